"""Values as SQL: literals by the type of the column, and comparisons that hold for these bytes only.

A comparison of texts in a server follows a collation ('a' = 'A', 'a' = 'a '), and one of numbers ignores the sign of
zero. An undo must change only the row that the log describes, so its guards compare the characters or the bytes.
"""

import re
import struct
from collections.abc import Callable
from typing import Final

from ingest.errors import BinloomError
from recover.undo.rows.documents import DocumentError, Member, members_of, with_members
from recover.undo.tables.table import Column

Text = str | None
"""A value as the marts print it; None is NULL."""

Printer = Callable[[Column, str], str]
"""Writes a value of a column as SQL."""

INTEGERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "integer", "bigint"})
DECIMALS: Final = frozenset({"decimal", "numeric"})
FLOATS: Final = frozenset({"float"})
DOUBLES: Final = frozenset({"double", "real"})
BITS: Final = frozenset({"bit"})
TEXTS: Final = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
LABELS: Final = frozenset({"enum", "set"})
PRINTED: Final = frozenset({"date", "time", "datetime", "timestamp", "year", "inet4", "inet6", "uuid"})
"""Types whose text is the same in every character set and decides their value."""
BINARIES: Final = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
OPAQUE: Final = frozenset(
    {
        *("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon"),
        *("geometrycollection", "geomcollection", "vector"),
    }
)
"""Types that a server compares only by their bytes."""

# A text that means the same with and without NO_BACKSLASH_ESCAPES and in every character set of a client.
_PLAIN: Final = re.compile(r"[ -\[\]-~]*")
_INTEGER: Final = re.compile(r"-?[0-9]{1,20}")
_DECIMAL: Final = re.compile(r"-?[0-9]{1,65}(\.[0-9]{1,38})?")
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?")
_HEX: Final = re.compile(r"0x(?:[0-9A-F]{2})*+")
_PRINTED: Final = re.compile(r"[0-9A-Za-z:. -]+")


class UnprintableValueError(BinloomError):
    """A value cannot be written as SQL so that the column gets exactly this value."""


def literal(column: Column, value: Text) -> str:
    """Return the SQL that sets a column to a value.

    Raises
    ------
    UnprintableValueError
        The text is not a value of the column's type, or means several values.
    """
    if value is None:
        return "NULL"
    return printer_of(column)(column, value)


def guard(column: Column, value: Text) -> str:
    """Return a condition that is true only if a column has exactly this value. Raises like `literal`."""
    if value is None:
        return f"{quoted(column.name)} IS NULL"
    if is_floating(column) and float(value) == 0:
        # The sign of zero is only in its text: 0, -0, 0.00 of a DOUBLE(10,2), or 00-0 of a FLOAT ZEROFILL.
        name, has_sign = quoted(column.name), "LIKE" if value.startswith("-") else "NOT LIKE"
        return f"({name} <=> 0e0 AND CAST({name} AS CHAR) {has_sign} '%-%')"
    before, write = comparison(column)
    return before + write(column, value)


def comparison(column: Column) -> tuple[str, Printer]:
    """Return the guard of a column up to its literal, and the function that writes the literal.

    NULL and zero have other guards.
    """
    name = quoted(column.name)
    kind = column.data_type
    if kind in TEXTS or kind in LABELS:
        return f"CAST(CONVERT({name} USING utf8mb4) AS BINARY) <=> ", _checked_bytes
    if kind == "json":
        return f"CAST(CAST({name} AS CHAR) AS BINARY) <=> ", _bytes
    if kind in OPAQUE:
        return f"HEX({name}) <=> ", _hex_text
    if kind in PRINTED:
        return f"CAST({name} AS CHAR) <=> ", printer_of(column)
    return f"{name} <=> ", printer_of(column)


def is_floating(column: Column) -> bool:
    """Return whether a column has floating-point numbers, with two zeros."""
    return column.data_type in FLOATS | DOUBLES


def finder(column: Column, value: Text) -> str | None:
    """Return a condition that an index of the column can answer; None if there is none, or the guard is one itself."""
    if value is None or guard(column, value) == f"{quoted(column.name)} <=> {literal(column, value)}":
        return None
    return f"{quoted(column.name)} = {literal(column, value)}" if has_finder(column) else None


def has_finder(column: Column) -> bool:
    """Return whether an index of the column can answer a condition beside its guard."""
    return column.data_type != "json" and column.data_type not in OPAQUE and not is_floating(column)


def quoted(name: str) -> str:
    """Return a name as SQL."""
    return "`" + name.replace("`", "``") + "`"


def printer_of(column: Column) -> Printer:
    """Return what writes the values of a column as SQL. Raises `UnprintableValueError` for an unknown type."""
    kind = column.data_type
    for kinds, printer in _PRINTERS:
        if kind in kinds:
            return printer
    raise UnprintableValueError(
        f"Column {column.name} has the type {column.column_type}, which binloom cannot write as SQL.",
        hint="Leave its table out.",
    )


def _integer(column: Column, value: str) -> str:
    return _matching(_INTEGER, column, value)


def _decimal(column: Column, value: str) -> str:
    return _matching(_DECIMAL, column, value)


def _float(column: Column, value: str) -> str:
    """Return the DOUBLE that equals the 32 bits: a server compares a FLOAT as a DOUBLE."""
    number = float(_matching(_NUMBER, column, value))
    try:
        single = struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        raise _no_value(column, value) from None
    return _exponential(single)


def _double(column: Column, value: str) -> str:
    return _exponential(float(_matching(_NUMBER, column, value)))


def _exponential(number: float) -> str:
    """Return a number with an exponent; without one it would be a DECIMAL."""
    text = repr(number).replace("e+", "e").removesuffix(".0")
    return text if "e" in text else f"{text}e0"


def _text(column: Column, value: str) -> str:
    return as_text(_checked(column, value))


def as_text(value: str) -> str:
    """Return a literal of characters: readable if all are plain ASCII, otherwise their bytes in utf8mb4."""
    if _PLAIN.fullmatch(value):
        return "'" + value.replace("'", "''") + "'"
    return f"_utf8mb4 X'{value.encode().hex().upper()}'"


def _checked_bytes(column: Column, value: str) -> str:
    return _bytes(column, _checked(column, value))


def _hex_text(column: Column, value: str) -> str:
    return f"'{_hex(column, value)}'"


def _bytes(column: Column, value: str) -> str:
    if _PLAIN.fullmatch(value):
        return "'" + value.replace("'", "''") + "'"
    return f"X'{value.encode().hex().upper()}'"


def _checked(column: Column, value: str) -> str:
    """Return the text of a column with characters, if it can only be one value of it."""
    kind = column.data_type
    if kind == "enum":
        if column.labels is None or (value and value not in column.labels):
            raise _no_value(column, value)
        if not value and "" not in column.labels:
            raise UnprintableValueError(
                f"The empty text in column {column.name} is no label: the row had the invalid number 0, which SQL"
                " cannot set reliably.",
                hint="Leave this row out, and correct the column by hand.",
            )
    if kind == "set" and (column.labels is None or not {*filter(None, value.split(","))} <= {*column.labels}):
        raise _no_value(column, value)
    if kind in TEXTS and column.character_set in (None, "binary"):
        raise UnprintableValueError(
            f"The character set of column {column.name} is unknown.",
            hint="A server tells it (--against or --schema-from), or CREATE DATABASE … CHARACTER SET … in the"
            " file of --ddl; in a warehouse, a new schema snapshot.",
        )
    if "\ufffd" in value:
        raise UnprintableValueError(
            f"A text in column {column.name} has bytes that are no character, so that its bytes are unknown.",
            hint="Leave this row out, and correct the column by hand.",
        )
    return value


def _printed(column: Column, value: str) -> str:
    return f"'{_matching(_PRINTED, column, value)}'"


def _binary(column: Column, value: str) -> str:
    return f"X'{_hex(column, value)}'"


def _json(column: Column, value: str) -> str:
    """Return the SQL of a document: its text, in which the members that a text does not keep are set by their paths."""
    try:
        members = members_of(value, column.documents)
        if not members:
            return as_text(value)
        text = with_members(value, [(member.path, "0") for member in members])
    except DocumentError as error:
        raise UnprintableValueError(
            f"The document in column {column.name} cannot be written as SQL: {error}.",
            hint="Leave this row out, and correct the column by hand.",
        ) from None
    changes = (f"{as_text(member.path)}, {_member(member)}" for member in members)
    return f"JSON_SET(CAST({as_text(text)} AS JSON), {', '.join(changes)})"


def _member(member: Member) -> str:
    value = member.value
    if isinstance(value, bytes):
        return member.form.replace("?", f"X'{value.hex().upper()}'", 1)
    return member.form.replace("?", str(value) if isinstance(value, int) else as_text(value), 1)


def _hex(column: Column, value: str) -> str:
    return _matching(_HEX, column, value)[2:]


def _matching(pattern: re.Pattern[str], column: Column, value: str) -> str:
    if not pattern.fullmatch(value):
        raise _no_value(column, value)
    return value


def _no_value(column: Column, value: str) -> UnprintableValueError:
    shown = value if len(value) <= 40 else value[:40] + "…"
    return UnprintableValueError(
        f"{shown!r} is no value of column {column.name}, whose type is {column.column_type}.",
        hint="The column had another type when it was written: land a schema snapshot from that time, and build again.",
    )


_PRINTERS: Final[tuple[tuple[frozenset[str], Printer], ...]] = (
    (INTEGERS | BITS, _integer),
    (DECIMALS, _decimal),
    (FLOATS, _float),
    (DOUBLES, _double),
    (TEXTS | LABELS, _text),
    (PRINTED, _printed),
    (BINARIES | OPAQUE, _binary),
    (frozenset({"json"}), _json),
)
