"""Rewrite rows events of version 0 (MySQL 5.1 before 5.1.18) as equivalent events of version 1.

Their TABLE_MAP contains only the types of the columns; a schema snapshot provides the sizes. A row is the null bytes
of its record, then the value of every column. A column that is NULL has a value too: its default. In tables whose
records have a fixed size, the first null bit is the mark of a deleted row. The other null bits belong to the nullable
columns. Unused bits are 1.

Sources: server 5.1, sql/rpl_record_old.cc (`pack_row_old`), sql/log_event_old.cc (`Old_rows_log_event`), sql/field.cc
(`pack` of each field), sql/table.cc (`open_binary_frm`, the null bits).
"""

from contextlib import suppress
from dataclasses import replace
from typing import Final

from ingest.binlog.events.format import FormatDescription
from ingest.binlog.events.hints import ColumnHint, Definition
from ingest.binlog.events.reader import MalformedEventError, Reader
from ingest.binlog.events.rows_events import table_id_of, table_id_size
from ingest.binlog.events.table_map import Column, TableMap, fitting_hints
from ingest.binlog.events.types import ROWS_V0
from ingest.binlog.text.charsets import BINARY

_UPDATE: Final = 21

_NUMBERS: Final = {"TINY": 1, "SHORT": 2, "INT24": 3, "LONG": 4, "LONGLONG": 8, "FLOAT": 4, "DOUBLE": 8}
_TIMES: Final = {"YEAR": 1, "DATE": 3, "TIME": 3, "DATETIME": 8, "TIMESTAMP": 4}
_FIXED_SIZES: Final = _NUMBERS | _TIMES
_LENGTH_BYTES: Final = {
    kind + base: size for base in ("blob", "text") for size, kind in enumerate(("tiny", "", "medium", "long"), 1)
}
# Most bytes per character in the multi-byte character sets of 5.1. It did not have `_LATER_CHARSETS`.
_CHARACTER_BYTES: Final = {
    **dict.fromkeys(("big5", "cp932", "euckr", "gb2312", "gbk", "sjis", "ucs2"), 2),
    **dict.fromkeys(("eucjpms", "ujis", "utf8mb3"), 3),
}
_LATER_CHARSETS: Final = frozenset({"gb18030", "utf16", "utf16le", "utf32", "utf8mb4"})


def with_snapshot_columns(table_map: TableMap, definitions: tuple[Definition, ...]) -> TableMap:
    """Return a table map that has only types, completed from the definition; unchanged when that does not fit."""
    if table_map.has_metadata or len(definitions) != 1 or len(definitions[0]) != len(table_map.columns):
        return table_map
    (hints,) = definitions
    columns = []
    for column, known in zip(table_map.columns, hints, strict=True):
        is_labelled = column.type == "STRING" and known.data_type in ("enum", "set")
        kind = known.data_type.upper() if is_labelled else column.type
        metadata = _metadata(kind, known)
        if metadata is None or known.is_nullable is None or known.fraction_digits:
            return table_map
        columns.append(replace(column, type=kind, metadata=metadata, is_nullable=known.is_nullable))
    if fitting_hints(tuple(columns), hints) is None:
        return table_map
    return replace(table_map, columns=tuple(columns), hint="snapshot", has_metadata=True)


def as_version_1(code: int, event: bytes, format: FormatDescription, table_map: TableMap) -> bytes | None:
    """Return the version 1 rows event that is equivalent to a version 0 rows event, both with their headers.

    A snapshot does not record whether the records of a table begin with the mark of a deleted row: that depends on the
    ROW_FORMAT. Both readings are tried.

    Returns
    -------
    None when neither reading fits the bytes exactly, or when both fit and differ.
    """
    if not table_map.has_metadata:
        return None
    readings = set()
    for has_mark in (False, True):
        with suppress(MalformedEventError):
            readings.add(_body(code, event, format, table_map.columns, has_mark=has_mark))
    if len(readings) != 1:
        return None
    header, body = bytearray(event[: format.header_size]), readings.pop()
    header[4] = ROWS_V0[code]
    header[9:13] = (len(header) + len(body)).to_bytes(4, "little")
    return bytes(header) + body


def _metadata(kind: str, known: ColumnHint) -> int | None:
    """Return the metadata that later servers log, in the units of `Column`; None when the snapshot lacks it."""
    match kind:
        case "STRING" | "VARCHAR" if len(known.sizes) == 1 and known.charset and known.charset not in _LATER_CHARSETS:
            return known.sizes[0] * _CHARACTER_BYTES.get(known.charset, 1)
        case "NEWDECIMAL" if len(known.sizes) == 2:
            return known.sizes[0] << 8 | known.sizes[1]
        case "ENUM" if known.members:
            return 1 if len(known.members) < 256 else 2
        case "SET" if known.members:
            size = (len(known.members) + 7) // 8
            return size if size <= 4 else 8
        case "BLOB":
            return _LENGTH_BYTES.get(known.data_type)
        case "GEOMETRY":
            return 4
    return 0 if kind in _FIXED_SIZES else None


def _body(code: int, event: bytes, format: FormatDescription, columns: tuple[Column, ...], *, has_mark: bool) -> bytes:
    table_id, start = table_id_of(code, event, format)
    reader = Reader(event[start : len(event) - (4 if format.has_checksums else 0)])
    flags = reader.take(2)
    if reader.packed() != len(columns):
        raise MalformedEventError("another number of columns")
    width = reader.data[2 : reader.at]
    bitmap = reader.take((len(columns) + 7) // 8)
    present = [column for column in columns if bitmap[column.ordinal >> 3] >> (column.ordinal & 7) & 1]
    if not present:
        raise MalformedEventError("no columns")
    images: list[bytes] = []
    while reader.left or not images or (code == _UPDATE and len(images) % 2):
        before = reader.left
        images.append(_image(reader, columns, present, has_mark=has_mark))
        if reader.left == before:
            raise MalformedEventError("an image of no bytes")
    try:
        head = table_id.to_bytes(table_id_size(ROWS_V0[code], format), "little")
    except OverflowError:
        raise MalformedEventError("a table id that no event of version 1 has") from None
    return head + flags + width + bitmap * (2 if code == _UPDATE else 1) + b"".join(images)


def _image(reader: Reader, columns: tuple[Column, ...], present: list[Column], *, has_mark: bool) -> bytes:
    """Return an image in version 1: null bits of the present columns, then the values that are not NULL."""
    nullable = [column for column in columns if column.is_nullable]
    size = (len(nullable) + has_mark + 7) // 8
    bits = reader.number(size)
    of_columns = ((1 << len(nullable)) - 1) << has_mark
    if bits | of_columns != (1 << 8 * size) - 1:
        raise MalformedEventError("bits of no column that are not 1")
    are_null = {column for bit, column in enumerate(nullable, has_mark) if bits >> bit & 1}
    nulls, values = 0, []
    for number, column in enumerate(present):
        value = _value(reader, column)
        if column not in are_null:
            values.append(value)
        elif any(value.removeprefix(b"\x80") if column.type == "NEWDECIMAL" else value):
            # A nullable column without a default of its own stores zeros for NULL.
            raise MalformedEventError("a NULL with a value")
        else:
            nulls |= 1 << number
    return nulls.to_bytes((len(present) + 7) // 8, "little") + b"".join(values)


def _value(reader: Reader, column: Column) -> bytes:
    """Return the bytes of a value; they are the same in both versions."""
    kind, metadata = column.type, column.metadata
    if kind in _FIXED_SIZES:
        return reader.take(_FIXED_SIZES[kind])
    if kind == "NEWDECIMAL":
        precision, scale = metadata >> 8, metadata & 0xFF
        return reader.take(_digits_size(precision - scale) + _digits_size(scale))
    if kind in ("ENUM", "SET"):
        return reader.take(metadata)
    if kind in ("BLOB", "GEOMETRY"):
        head = reader.take(metadata)
        return head + reader.take(int.from_bytes(head, "little"))
    if kind not in ("STRING", "VARCHAR"):
        raise MalformedEventError(f"a column of type {kind}")
    head = reader.take(1 if metadata < 256 else 2)
    text = reader.take(int.from_bytes(head, "little"))
    if len(text) > metadata:
        raise MalformedEventError(f"{len(text)} bytes in a column of {metadata}")
    if kind == "STRING" and len(text) < metadata and column.charset in (None, BINARY, "ucs2"):
        # Servers dropped trailing one-byte spaces, later servers zeros of a BINARY. The bytes do not show which.
        raise MalformedEventError("a value without its end")
    return head + text


def _digits_size(digits: int) -> int:
    """Return the bytes of the digits on one side of a DECIMAL's point: nine digits in four bytes, the rest in fewer."""
    return digits // 9 * 4 + (digits % 9 + 1) // 2
