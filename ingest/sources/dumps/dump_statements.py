"""The statements of dumps, as far as their first words tell what they are."""

import re
from dataclasses import dataclass
from typing import Final

_NAME: Final = rb"(`(?:[^`]|``)+`|[^\s`.(]+)"
_INSERT: Final = re.compile(
    rb"(?i)(?:INSERT|REPLACE)\s+(?:IGNORE\s+)?INTO\s+" + _NAME + rb"(?:\." + _NAME + rb")?\s*(\([^()]*\))?\s*VALUES\s*"
)
_COLUMN: Final = re.compile(rb"\s*" + _NAME + rb"\s*[,)]")
_CREATE: Final = re.compile(rb"(?i)CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?" + _NAME + rb"(?:\." + _NAME + rb")?")
_ENGINE: Final = re.compile(rb"(?i)\).*?\bENGINE\s*=\s*(\w+)")
_USE: Final = re.compile(rb"(?i)USE\s+" + _NAME + rb"\s*;")
_NAMES: Final = re.compile(rb"(?i)SET\s+NAMES\s+'?(\w+)")
_UTC: Final = re.compile(rb"(?i)TIME_ZONE\s*=\s*'\+00:00'")


@dataclass(frozen=True)
class Insert:
    """An INSERT statement of several rows up to the first of them.

    Attributes
    ----------
    columns
        The columns that it names; None if it names none.
    size
        Number of its bytes.
    """

    schema: str | None
    table: str
    columns: tuple[str, ...] | None
    size: int


def insert_of(statement: bytes) -> Insert | None:
    """Return what an INSERT or REPLACE statement begins with; None for any other."""
    found = _INSERT.match(statement)
    if found is None:
        return None
    columns = tuple(unquoted(one) for one in _COLUMN.findall(found[3][1:])) if found[3] else None
    schema = unquoted(found[1]) if found[2] else None
    return Insert(schema, unquoted(found[2] or found[1]), columns, found.end())


def created(line: bytes) -> tuple[str | None, str] | None:
    """Return the schema, if it is named, and the name of the table whose CREATE TABLE begins with a line."""
    found = _CREATE.match(line)
    if found is None:
        return None
    return (unquoted(found[1]), unquoted(found[2])) if found[2] else (None, unquoted(found[1]))


def engine(line: bytes) -> str | None:
    """Return the engine, in upper case, of the table whose CREATE TABLE ends with a line."""
    found = _ENGINE.match(line)
    return found[1].decode().upper() if found is not None else None


def table_of(script: str) -> tuple[str, str | None] | None:
    """Return the name and the engine of the table that a script creates; None if it creates none."""
    name = named = None
    for line in script.encode().splitlines():
        if name is None and (begun := created(line)):
            name = begun[1]
        elif name is not None:
            named = engine(line) or named
    return None if name is None else (name, named)


def used_schema(line: bytes) -> str | None:
    """Return the schema of a USE statement."""
    found = _USE.match(line)
    return unquoted(found[1]) if found is not None else None


def names_charset(line: bytes) -> str | None:
    """Return the character set of a SET NAMES in a line, in lower case."""
    found = _NAMES.search(line)
    return found[1].decode().lower() if found is not None else None


def sets_utc(line: bytes) -> bool:
    """Return whether a line sets the time zone to UTC."""
    return _UTC.search(line) is not None


def unquoted(name: bytes) -> str:
    """Return a name without its quotes."""
    text = name.decode()
    return text[1:-1].replace("``", "`") if text.startswith("`") else text
