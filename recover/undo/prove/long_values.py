"""Statements that are too long for the packets of a server: their long values go into variables, part by part.

A server refuses a statement that is longer than its `max_allowed_packet`: by default 64 MiB on MySQL, 16 MiB on
MariaDB, and 4 MiB on MySQL 5.6. A value in hex is twice as long as its bytes. The server also makes no value longer
than `max_allowed_packet`, so a value that it once stored still fits into a variable.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

# Half of what the smallest default accepts, and few enough parts for a value of many megabytes.
_STATEMENT: Final = 2 << 20
_VALUE: Final = 64 << 10
_PART: Final = 1 << 20
_LITERAL: Final = re.compile(
    r"`(?:[^`]|``)*+` | (?P<value>'[^'\\]*+(?:''[^'\\]*+)*+' | (?:_utf8mb4\ )?X'[0-9A-F]*+')", re.VERBOSE
)

_HEX: Final = ("X'", "_utf8mb4 X'")


@dataclass
class InParts:
    """A statement with variables instead of its long values.

    Attributes
    ----------
    before
        Lines that fill the variables. If the server cannot hold a value, they make the count of rows NULL, so that the
        block ends like one with a wrong count.
    statement
        The statement, without its end.
    after
        Lines that empty the variables.
    longest
        Bytes of the longest of these values.
    """

    before: list[str] = field(default_factory=list)
    statement: str = ""
    after: list[str] = field(default_factory=list)
    longest: int = 0


def in_parts(sql: str) -> InParts:
    """Return a statement as it can be sent. The text of the statement is one of `statements`."""
    if len(sql) <= _STATEMENT:
        return InParts(statement=sql)
    found = InParts()
    texts: list[str] = []
    at = 0
    for match in _LITERAL.finditer(sql):
        if match["value"] is None or len(match[0]) <= _VALUE:
            continue
        name = f"@binloom_value_{len(found.after) + 1}"
        size = _size(match[0])
        found.before += _filled(name, match[0], size)
        found.longest = max(found.longest, size)
        found.after.append(f"SET {name} = NULL;")
        texts += [sql[at : match.start()], name]
        at = match.end()
    found.statement = "".join([*texts, sql[at:]])
    return found


def _size(literal: str) -> int:
    """Return the number of bytes of a value; a text in quotes is ASCII."""
    value = literal[literal.index("'") + 1 : -1]
    return len(value) // 2 if literal.startswith(_HEX) else len(value.replace("''", "'"))


def _filled(name: str, literal: str, size: int) -> Iterator[str]:
    """Yield the lines that give a variable the value of a literal."""
    head, value = literal[: literal.index("'")], literal[literal.index("'") + 1 : -1]
    is_utf8 = head.startswith("_utf8mb4")
    first, *others = _hex_parts(value, is_utf8) if literal.startswith(_HEX) else _text_parts(value)
    yield f"SET {name} = {head}'{first}';"
    yield from (f"SET {name} = CONCAT({name}, {head}'{part}');" for part in others)
    yield f"SET @binloom_rows = IF(OCTET_LENGTH({name}) <=> {size}, @binloom_rows, NULL);"


def _hex_parts(value: str, is_utf8: bool) -> Iterator[str]:
    """Yield the digits of a value; of UTF-8, whole characters are in each part."""
    at = 0
    while at < len(value):
        end = min(at + _PART, len(value))
        # A byte that begins with the bits 10 continues a character.
        while is_utf8 and end < len(value) and value[end] in "89AB":
            end -= 2
        yield value[at:end]
        at = end


def _text_parts(value: str) -> Iterator[str]:
    """Yield the parts of a text; a quote is written twice, and both are in one part."""
    at = 0
    while at < len(value):
        end = min(at + _PART, len(value))
        quotes = 0
        while value[end - 1 - quotes] == "'" and quotes < end - at:
            quotes += 1
        end -= quotes % 2 if end < len(value) else 0
        yield value[at:end]
        at = end
