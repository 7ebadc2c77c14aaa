"""Who may see a page: only a browser that was given the address with the token, and only from pages of its own."""

import hmac
import ipaddress
import secrets
import socket
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from binloom.pages.rendering import render
from binloom.ui.words import joined

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'; frame-ancestors 'none';"
        " base-uri 'none'"
    ),
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Headers of each answer."""
_METHODS: Final = ("GET", "HEAD")
_LOCAL: Final = ("127.0.0.1", "localhost", "::1")
_ANY: Final = ("0.0.0.0", "::")


class Guard:
    """Lets requests through that prove by a cookie that they come from whoever was given the token.

    Parameters
    ----------
    app
        The pages.
    host, port
        The address that is listened on.

    Attributes
    ----------
    token
        The secret in the first address.
    """

    def __init__(self, app: ASGIApp, host: str, port: int) -> None:
        self.token = secrets.token_urlsafe(32)
        # The cookie has another secret: the token stays in the history of a terminal and of a browser.
        self._session = secrets.token_urlsafe(32)
        self._app = app
        self._host = host
        self._port = port
        # A browser sends the cookies of all ports of a machine to each of them.
        self._cookie = f"binloom-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return
        request = Request(scope)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        answered = self._refusal(request) or self._entrance(request) or self._without_cookie(request)
        await (answered or self._app)(scope, receive, send_with_headers)

    def _refusal(self, request: Request) -> Response | None:
        """Return the answer to a request that no page of ours has made; None for others."""
        if request.method not in _METHODS:
            refused = PlainTextResponse("These pages can only be read.\n", 405)
            refused.headers["Allow"] = ", ".join(_METHODS)
            return refused
        # A foreign name may lead to this machine: its page would read ours.
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or not self._is_own_host(hosts[0]):
            return _refused("This is not the address of these pages. Use the one that `binloom ui` printed.")
        origin = request.headers.get("origin")
        if origin is not None and origin != f"http://{hosts[0]}":
            return _refused("Another site asks for this page.")
        return None

    def _entrance(self, request: Request) -> Response | None:
        """Return the answer to the address with the token; None for others."""
        given = request.query_params.getlist("token")
        if request.url.path != "/" or not given:
            return None
        if len(given) != 1 or not _is_equal(given[0], self.token):
            return _refused("The token is wrong. Each start of `binloom ui` prints another one: use the newest.")
        # The page leads on: a redirect would still count as a request of the site that the address was opened from,
        # to which a browser gives no strict cookie.
        words = [(name, value) for name, value in request.query_params.multi_items() if name != "token"]
        opened = HTMLResponse(render("ui/entrance.html", to=joined("/", words)))
        opened.set_cookie(self._cookie, self._session, httponly=True, samesite="strict", path="/")
        return opened

    def _without_cookie(self, request: Request) -> Response | None:
        """Return the answer to a request without the cookie, or one of another site; None for others."""
        if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return _refused("Another site asks for this page. If that was you, paste the address into the browser.")
        if not _is_equal(request.cookies.get(self._cookie, ""), self._session):
            return _refused("This browser was not let in. Open the address that `binloom ui` printed.")
        return None

    def _is_own_host(self, text: str) -> bool:
        name, _, port = text.rpartition(":")
        if port != str(self._port):
            return False
        name = name.removeprefix("[").removesuffix("]").lower()
        if self._host in _LOCAL:
            return name in _LOCAL
        if self._host in _ANY:
            return name in (*_LOCAL, socket.gethostname().lower()) or _is_address(name)
        return name == self._host.lower()


def _is_address(name: str) -> bool:
    """Return whether a name is a number, which needs no name server."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_equal(one: str, other: str) -> bool:
    """Return whether two secrets are equal; the time that it takes tells nothing about where they differ."""
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode())


def _refused(sentence: str) -> Response:
    return PlainTextResponse(f"{sentence}\n", 403)
