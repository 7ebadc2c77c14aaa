"""The pages of `binloom ui` without a browser, and what is in them."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser

import uvicorn
from starlette.testclient import TestClient

from binloom.answers.given_definitions import GivenDefinitions
from binloom.answers.opening import Inputs
from binloom.ui.app import application
from binloom.ui.guard import Guard
from binloom.ui.opened_log import OpenedLog
from tests.support.places import SAMPLES

LOG = SAMPLES / "shop-mysql"
HOST = "127.0.0.1:8000"
ADDRESS = f"http://{HOST}"
DAMAGE = "binlog.000002:20069"
"""The transaction of the UPDATE without a WHERE."""


class Page(HTMLParser):
    """The texts, links, fields and elements of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: dict[str, str] = {}
        self.loaded: list[str] = []
        self.fields: list[tuple[str, str]] = []
        self._texts: list[str] = []
        self._link: str | None = None
        self.feed(html)

    @property
    def text(self) -> str:
        """All texts, a line each."""
        return "\n".join(filter(None, self._texts))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        given = {name: value or "" for name, value in attrs}
        self.tags.append(tag)
        assert not [name for name in given if name.startswith("on")]
        self.loaded += [given[name] for name in ("src", "srcset") if name in given]
        if tag == "a":
            self._link = given["href"]
        if tag == "input":
            self.fields.append((given.get("name", ""), given.get("value", "")))

    def handle_endtag(self, tag: str) -> None:
        """End a link."""
        if tag == "a":
            self._link = None

    def handle_data(self, data: str) -> None:
        """Note a text."""
        if text := data.strip():
            self._texts.append(text)
            if self._link is not None:
                self.links.setdefault(text, self._link)


def sample_inputs() -> Inputs:
    """Return the recorded shop."""
    return Inputs([LOG / "binlog.000001", LOG / "binlog.000002"], GivenDefinitions(LOG / "schema"))


def fail(error: Exception) -> str:
    """Let a test fail with an error that nobody expected."""
    raise error


@contextmanager
def guarded(inputs: Inputs) -> Iterator[Guard]:
    """Give the pages behind their guard."""
    with OpenedLog(inputs, []) as opened:
        yield Guard(application(opened, fail), "127.0.0.1", 8000)


@contextmanager
def let_in(inputs: Inputs) -> Iterator[TestClient]:
    """Give a client that has the cookie."""
    with guarded(inputs) as guard:
        client = TestClient(guard, base_url=ADDRESS)
        assert client.get("/", params={"token": guard.token}).status_code == 200
        yield client


@contextmanager
def served(inputs: Inputs) -> Iterator[tuple[str, str]]:
    """Serve pages in a thread; give their address, and the one with the token."""
    with OpenedLog(inputs, []) as opened, socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        guard = Guard(application(opened, fail), "127.0.0.1", port)
        server = uvicorn.Server(uvicorn.Config(guard, log_config=None, access_log=False, lifespan="off", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{port}", f"http://127.0.0.1:{port}/?token={guard.token}"
        finally:
            server.should_exit = True
            thread.join()


def page(client: TestClient, address: str, status: int = 200) -> Page:
    """Return the page at an address."""
    answer = client.get(address)
    assert answer.status_code == status, answer.text[-3000:]
    found = Page(answer.text)
    assert found.loaded == [] and "script" not in found.tags
    return found


def addresses() -> list[str]:
    """Return an address of each page, on the sample."""
    return [
        "/",
        "/?table=shop.orders&key=1042",
        "/transactions",
        f"/transaction?id={DAMAGE}",
        f"/later?id={DAMAGE}",
        "/row?table=shop.orders&key=1042",
        "/table",
        "/table?table=shop.orders",
        "/undo",
        "/schema",
        "/schema?table=shop.orders",
        "/coverage",
        f"/undo?transaction={DAMAGE}",
    ]
