"""Splits a file into statements the way the servers' own client does.

Source: server, client/mysql.cc, `add_line`: a statement ends at the delimiter. The delimiter has no effect inside a
string, a name, a comment or a body in JavaScript. A line DELIMITER changes the delimiter. If it is `$$`, it ends the
statement and begins no body.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from ingest.ddl.tokens import BODY_MARK


@cache
def _lexemes(has_dollars: bool) -> re.Pattern[str]:
    body = rf"(?-i:{BODY_MARK}.*?(?P=mark))" if has_dollars else "(?!)"
    return re.compile(
        r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`"""
        r"|/\*(?!M?!).*?(?:\*/|\Z)|\#[^\n]*|--(?=[\s\x00]|\Z)[^\n]*"
        rf"|^[ \t]*delimiter[ \t]+(?P<delimiter>\S+)[^\n]*|(?P<body>{body})|(?P<other>.)",
        re.DOTALL | re.IGNORECASE | re.MULTILINE,
    )


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of a file, and the number of the line on which it begins, from 1."""

    text: str
    line: int


def statements_of(script: str, has_dollars: bool = False) -> Iterator[Statement]:
    """Yield the statements of a file, without their delimiters.

    Parameters
    ----------
    script
        Content of the file.
    has_dollars
        Whether dollars quote the bodies of routines in JavaScript.
    """
    delimiter, start, at = ";", 0, 0
    lexemes = _lexemes(has_dollars)
    while at < len(script):
        found = lexemes.match(script, at)
        assert found is not None
        if found["delimiter"]:
            delimiter = found["delimiter"]
            at = start = found.end()
        elif (found["other"] or found["body"]) and script.startswith(delimiter, at):
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
