"""Options of `binloom` itself, which need no command: each one prints or writes something, and ends."""

from collections.abc import Callable
from typing import Annotated

import typer


def _print_version() -> None:
    from importlib.metadata import version

    typer.echo(f"binloom {version('binloom')}")


def _install_completion() -> None:
    from binloom.commands.completion import install_completion

    install_completion()


def _print_completion() -> None:
    from binloom.commands.completion import print_completion

    print_completion()


def _then_exit(action: Callable[[], None]) -> Callable[[typer.Context, bool], None]:
    def callback(context: typer.Context, is_wanted: bool) -> None:
        # A shell that asks for words to complete a line runs nothing that is on the line already.
        if is_wanted and not context.resilient_parsing:
            action()
            raise typer.Exit()

    return callback


Version = Annotated[
    bool,
    typer.Option(
        "--version", "-V", is_eager=True, callback=_then_exit(_print_version), help="Print the version and exit."
    ),
]
InstallCompletion = Annotated[
    bool,
    typer.Option(
        "--install-completion",
        is_eager=True,
        callback=_then_exit(_install_completion),
        help="Let TAB complete commands and options in your shell ($SHELL: bash, zsh or fish), and exit.",
    ),
]
ShowCompletion = Annotated[
    bool,
    typer.Option(
        "--show-completion",
        is_eager=True,
        callback=_then_exit(_print_completion),
        help="Print the script that does this, and exit.",
    ),
]
