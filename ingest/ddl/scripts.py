"""Splits a file into statements the way the servers' own client does.

Source: server, client/mysql.cc, `add_line`: a statement ends at the delimiter. The delimiter has no effect inside a
string, a name or a comment. A line DELIMITER changes the delimiter.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_LEXEMES: Final = re.compile(
    r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`"""
    r"|/\*(?!M?!).*?(?:\*/|\Z)|\#[^\n]*|--(?=[\s\x00]|\Z)[^\n]*"
    r"|^[ \t]*delimiter[ \t]+(?P<delimiter>\S+)[^\n]*|(?P<other>.)",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of a file, and the number of the line on which it begins, from 1."""

    text: str
    line: int


def statements_of(script: str) -> Iterator[Statement]:
    """Yield the statements of a file, without their delimiters."""
    delimiter, start, at = ";", 0, 0
    while at < len(script):
        found = _LEXEMES.match(script, at)
        assert found is not None
        if found["delimiter"]:
            delimiter = found["delimiter"]
            at = start = found.end()
        elif found["other"] and script.startswith(delimiter, at):
            yield from _statement(script, start, at)
            at += len(delimiter)
            start = at
        else:
            at = found.end()
    yield from _statement(script, start, len(script))


def _statement(script: str, start: int, end: int) -> Iterator[Statement]:
    text = script[start:end]
    if text.strip():
        begins = start + len(text) - len(text.lstrip())
        yield Statement(text.strip(), script.count("\n", 0, begins) + 1)
