"""Prints the man page of binloom, from the help of its commands: `python -m tools.man_page > binloom.1`.

`make man` puts it where `man binloom` finds it, if `.venv/bin` is in PATH.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from typer.main import get_command

from binloom.cli import app
from binloom.commands.running import EXIT_INTERRUPTED, EXIT_PIPE
from ingest.errors import EXIT_CHECK_FAILED, EXIT_DONE, EXIT_SOURCE, EXIT_USAGE

PROJECT: Final = Path(__file__).resolve().parents[1]

_EXIT_CODES: Final = {
    EXIT_DONE: "The command did what it was asked to do.",
    EXIT_CHECK_FAILED: "It found something: a damaged file, a failed check, or an undo that it refuses.",
    EXIT_USAGE: "The command line or a file of settings is wrong.",
    EXIT_SOURCE: "It could not do everything: a file or server could not be read, or a part of it was reported.",
    EXIT_INTERRUPTED: "It was interrupted.",
    EXIT_PIPE: "Nobody reads its output any more.",
}


def man_page() -> str:
    """Return the page in the language of roff."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    group: Any = get_command(app)
    context = group.make_context("binloom", ["status"], resilient_parsing=True)
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    yield f'.TH BINLOOM 1 "" "binloom {project["version"]}" "User Commands"'
    yield from (".SH NAME", f"binloom \\- {_text(_first_lower(project['description']))}")
    yield from (".SH SYNOPSIS", r".B binloom", _usage(group, context))
    yield from (".SH DESCRIPTION", *_paragraphs(group.help), *_paragraphs(group.epilog))
    yield from (".SH OPTIONS", *_options(group, context))
    yield from (".PP", _text("Each command has --help too."))
    yield ".SH COMMANDS"
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        inside = command.make_context(name, [], parent=context, resilient_parsing=True)
        yield from (f".SS {_text(name)}", rf".B binloom {_text(name)}", _usage(command, inside))
        yield from (*_paragraphs(command.help), *_options(command, inside))
    yield ".SH EXIT STATUS"
    for code, meaning in _EXIT_CODES.items():
        yield from (".TP", f".B {code}", _text(meaning))
    yield from (".SH SEE ALSO", ".BR mysqlbinlog (1),", ".BR mariadb\\-binlog (1)", ".PP")
    yield from (_text(address) + "\n.br" for address in project["urls"].values())


def _usage(command: Any, context: Any) -> str:
    return _text(" ".join(command.collect_usage_pieces(context)))


def _options(command: Any, context: Any) -> Iterator[str]:
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record and (parameter.name != "help" or context.parent is None):
            names, meaning = record
            yield from (".TP", rf"\fB{_text(names)}\fR", _text(meaning))


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        yield from (".PP", _text(paragraph))


def _text(text: str) -> str:
    """Return a text without what roff would take for its own signs; code in backticks becomes bold."""
    plain = " ".join(text.split()).replace("\\", r"\e").replace("-", r"\-")
    plain = re.sub(r"`([^`]+)`", r"\\fB\1\\fR", plain)
    return rf"\&{plain}" if plain.startswith((".", "'")) else plain


def _first_lower(text: str) -> str:
    return text[:1].lower() + text[1:]


if __name__ == "__main__":
    print(man_page(), end="")
