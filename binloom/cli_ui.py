"""The command that serves pages. It is part of the same command line as those of `binloom.cli`."""

from typing import TYPE_CHECKING, Annotated

import typer

from binloom.file_options import with_files
from binloom.options import OneSource, not_empty

if TYPE_CHECKING:
    from binloom.answers.opening import Inputs

commands = typer.Typer(rich_markup_mode=None)


@commands.command(short_help="Look at the log in a browser.")
@with_files(uses_index=False, has_port=False)
def ui(
    source: OneSource = None,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Listen on this address.", callback=not_empty)
    ] = "127.0.0.1",
    page_port: Annotated[
        int | None,
        typer.Option("--port", min=1, max=65535, metavar="N", help="Listen on this port; default: any free port."),
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
    *,
    inputs: "Inputs",
) -> None:
    """Show changes over time, transactions, rows, tables and undos as pages. Changes nothing. Needs no Java.

    The command prints one address with a secret, opens it in a browser, and serves the pages until Ctrl-C. Only this
    machine can reach them, unless --host says otherwise. Without --files, they show what has landed. Needs the extra
    `ui`.
    """
    from binloom.commands.ui import serve_pages

    raise typer.Exit(serve_pages(inputs, [source] if source is not None else [], host, page_port or 0, not no_browser))
