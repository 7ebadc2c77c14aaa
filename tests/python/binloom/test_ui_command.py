"""`binloom ui` as a process: its address, its log, its end, and the mistakes that it tells."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

import httpx2
import pytest

from tests.support.command_line import COMMAND, assert_sentence, binloom
from tests.support.in_process import binloom_here
from tests.support.pages import LOG
from tests.support.patience import PATIENCE_SECONDS
from tests.support.places import PROJECT

pytestmark = pytest.mark.slow

FILES = ("--files", LOG / "binlog.000001", LOG / "binlog.000002", "--snapshot-dir", LOG / "schema")
ADDRESS = re.compile(r"(http://127\.0\.0\.1:(\d+)/)\?token=([\w-]{43})\n")


@contextmanager
def served(*words: object, env: dict[str, str] | None = None) -> Iterator["subprocess.Popen[str]"]:
    """Start the command; end it at the latest at exit."""
    process = subprocess.Popen(
        [*COMMAND, "ui", *map(str, (*words, *FILES))],
        cwd=PROJECT,
        env={**os.environ, **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def address_of(process: "subprocess.Popen[str]") -> re.Match[str]:
    assert process.stdout is not None
    found = ADDRESS.fullmatch(process.stdout.readline())
    assert found is not None
    return found


def test_it_serves_until_ctrl_c_and_logs_nothing(tmp_path: Path) -> None:
    # There is no browser, and the temporary folder is the test's own.
    env = {"BROWSER": str(tmp_path / "missing"), "TMPDIR": str(tmp_path), "PATH": str(tmp_path), "DISPLAY": ""}
    with served(env=env) as process:
        address = address_of(process)
        with httpx2.Client(base_url=address[1]) as client:
            assert client.get("/").status_code == 403
            assert client.get("/", params={"token": address[3]}).status_code == 200
            shown = client.get("/row", params={"table": "shop.orders", "key": "1042"})
            assert shown.status_code == 200 and "Version 6 of 6" in shown.text
            assert "server" not in shown.headers
        process.send_signal(signal.SIGINT)
        out, problems = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == 0 and out == ""
        assert all(line.startswith("binloom: ") for line in problems.splitlines()), problems
        assert "1042" not in problems and address[3] not in problems and "GET" not in problems
    assert [*tmp_path.glob("binloom-*")] == []


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_a_program_gets_pages_as_the_guide_tells(tmp_path: Path) -> None:
    guide = (PROJECT / "docs" / "ui.md").read_text().partition("## Get pages with a program")[2]
    first, *commands = re.findall(r"^\$ (.+)$", guide, re.MULTILINE)
    assert first.startswith("address=") and len(commands) == 5
    with served("--no-browser") as process:
        script = "\n".join(["set -e", f"address='{address_of(process)[0].strip()}'", *commands])
        subprocess.run(["bash", "-c", script], cwd=tmp_path, check=True, timeout=PATIENCE_SECONDS)
    assert "shop.orders" in (tmp_path / "page.html").read_text()
    assert (tmp_path / "orders.csv").read_text().startswith("id,customer_id,")
    assert (tmp_path / "cookies").stat().st_mode & 0o077 == 0


def test_a_browser_gets_the_address_in_a_file_that_nobody_else_can_read(tmp_path: Path) -> None:
    seen, browser = tmp_path / "seen", tmp_path / "browser"
    # A browser for text, which runs until it is closed.
    tell = f'printf "%s\\n" "$*" > {seen}.part; mv {seen}.part {seen}'
    browser.write_text(f"#!/bin/sh\n{tell}; exec sleep 5 > /dev/null 2>&1\n")
    browser.chmod(0o755)
    with served(env={"BROWSER": f"{browser} %s", "TMPDIR": str(tmp_path)}) as process:
        address = address_of(process)
        end = monotonic() + PATIENCE_SECONDS
        while not seen.exists() and monotonic() < end:
            sleep(0.05)
        page = Path(seen.read_text().strip().removeprefix("file://"))
        assert address[3] in page.read_text() and address[3] not in seen.read_text()
        assert page.parent.stat().st_mode & 0o077 == 0
        assert httpx2.get(address[1], params={"token": address[3]}).status_code == 200


def test_a_port_that_is_taken_is_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = binloom("ui", "--no-browser", "--port", taken.getsockname()[1], *FILES)
    assert_sentence(done, 2, "cannot be served on 127.0.0.1:", "--port")


@pytest.mark.parametrize(
    ("words", "needle"),
    [
        ((), "There is no folder"),
        (("--host", "203.0.113.7"), "cannot be served on 203.0.113.7.*--host"),
        (("--host", " "), "--host is empty"),
        (("--files", "/nonexistent/binlog.000001"), "/nonexistent/binlog.000001"),
        (("--ddl", "x.sql"), "--ddl is for the tables of files"),
    ],
)
def test_mistakes_are_told_before_an_address(words: tuple[str, ...], needle: str, tmp_path: Path) -> None:
    done = binloom("ui", "--no-browser", *words, home=tmp_path / "missing")
    assert_sentence(done, 2, needle)
    assert done.stdout == ""


@pytest.mark.parametrize("package", ["uvicorn", "starlette.applications"])
def test_without_the_extra_it_says_what_to_install(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [one for one in sys.modules if one.startswith("binloom.ui")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    done = binloom_here("ui", "--no-browser", *FILES)
    assert_sentence(done, 3, "The pages need Starlette and uvicorn", r"pip install 'binloom\[ui\]'")
