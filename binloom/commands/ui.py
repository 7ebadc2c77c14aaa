"""`binloom ui`: serve the pages of a log to the browser of one person."""

import os
import signal
import socket
import sys
import webbrowser
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Final

from binloom.answers.opening import Inputs
from binloom.commands.output import print_line, say
from binloom.commands.running import unexpected
from binloom.pages.rendering import render
from ingest.errors import EXIT_DONE, UsageError
from recover.sources.cluster.thrift import is_cluster_target

if TYPE_CHECKING:
    import uvicorn

_LOCAL: Final = ("127.0.0.1", "localhost", "::1")
_SECONDS_TO_END: Final = 1
_DISPLAYS: Final = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")


def serve_pages(inputs: Inputs, sources: list[str], host: str, port: int, opens_browser: bool) -> int:
    """Serve the pages until the process is told to end; return the exit code.

    Parameters
    ----------
    port
        0: any that is free.

    Raises
    ------
    BinloomError
        The log cannot be read, or the address cannot be listened on.
    """
    import uvicorn

    from binloom.ui.app import application
    from binloom.ui.guard import Guard
    from binloom.ui.opened_log import OpenedLog

    if is_cluster_target() and not inputs.files:
        raise UsageError(
            "The pages do not ask a cluster.", hint="Use the other commands, or give binlog files with --files."
        )
    with _listening(host, port) as listening, OpenedLog(inputs, sources) as opened:
        # A mistake in what is asked is told here, and not on the first page.
        opened.log()
        own_port = listening.getsockname()[1]
        guard = Guard(application(opened, unexpected), host, own_port)
        name = f"[{host}]" if ":" in host else host
        address = f"http://{name}:{own_port}/?token={guard.token}"
        if host not in _LOCAL:
            say(f"the pages can be reached from other machines at {host}:{own_port}, and nothing is encrypted.")
        say("Ctrl-C ends the pages. Whoever has this address can read the log:")
        print_line(address)
        sys.stdout.flush()
        if opens_browser:
            _open(address, opened.folder)
        # No log of addresses: they have keys of rows.
        config = uvicorn.Config(
            guard,
            access_log=False,
            log_config=None,
            lifespan="off",
            ws="none",
            server_header=False,
            timeout_graceful_shutdown=_SECONDS_TO_END,
        )
        _run(uvicorn.Server(config), listening)
    return EXIT_DONE


def _run(server: "uvicorn.Server", listening: socket.socket) -> None:
    """Run a server until a signal ends it. It raises the signal again afterwards, which then does nothing."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    server.run(sockets=[listening])


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        place = f"{host}:{port}" if port else host
        raise UsageError(
            f"The pages cannot be served on {place}: {error.strerror or error}.",
            hint="Give another --port, or leave it out: binloom then takes any free port."
            if port
            else "Give --host an address of this machine.",
        ) from None


def _open(address: str, folder: Path) -> None:
    """Open an address in a browser, if there is one.

    It is in a file, because other users of the machine see the words that a browser is started with.
    """
    if sys.platform == "linux" and not any(map(os.environ.get, _DISPLAYS)):
        # A browser for text would take the terminal.
        return
    page = folder / "open.html"
    page.write_text(render("ui/opening.html", address=address), "utf-8")
    # Some browsers run until they are closed.
    Thread(target=_open_file, args=(page,), daemon=True).start()


def _open_file(page: Path) -> None:
    with suppress(webbrowser.Error, OSError):
        webbrowser.open(page.as_uri())
