"""Descriptions of TABLE_MAP and rows events: the table, flags and extra row info, not the rows.

Sources: server, libs/mysql/binlog/event/rows_event.cpp, `Rows_event::Rows_event`; MariaDB, sql/log_event.cc.
"""

from typing import Any, Final, NamedTuple

from ingest.binlog.events.format import FormatDescription
from ingest.binlog.events.gtid_events import names_of
from ingest.binlog.events.reader import MalformedEventError, Reader
from ingest.binlog.events.table_map import parse_table_map
from ingest.versions import Flavor

Detail = dict[str, Any]

_ROW_FLAGS: Final = {
    1: "STMT_END_F",
    2: "NO_FOREIGN_KEY_CHECKS_F",
    4: "RELAXED_UNIQUE_CHECKS_F",
    8: "COMPLETE_ROWS_F",
    16: "USE_SQL_FOREIGN_KEY_F",
    128: "NO_CHECK_CONSTRAINT_CHECKS_F",
}
_UPDATES: Final = frozenset({24, 31, 39, 167, 170})
"""Types with two images and a bitmap for each; version 0 has one bitmap for both images."""
_SHORT_ID_HEADER: Final = 6
"""A fixed part of this size contains a table id of four bytes (5.1 before 5.1.4)."""
_HEADER_WITH_EXTRA_INFO: Final = 10
_NDB, _PARTITION = 0, 1


class RowsHead(NamedTuple):
    """The fields of a rows event before its rows: `bitmaps` of the columns in each image, `extra_info` of version 2."""

    table_id: int
    flags: int
    extra_info: bytes
    width: int
    bitmaps: list[bytes]


def rows_head(code: int, reader: Reader, post_header_size: int) -> RowsHead:
    """Read the fields before the rows of a rows event, compressed or not; `reader` is at the start of its body."""
    table_id, flags = reader.number(_id_size(post_header_size)), reader.number(2)
    # The size counts its own two bytes.
    extra_size = reader.number(2) if post_header_size == _HEADER_WITH_EXTRA_INFO else 2
    if extra_size < 2:
        raise MalformedEventError(f"extra row info of {extra_size} bytes")
    extra_info = reader.take(extra_size - 2)
    width = reader.packed()
    bitmaps = [reader.take((width + 7) // 8) for _ in range(2 if code in _UPDATES else 1)]
    return RowsHead(table_id, flags, extra_info, width, bitmaps)


def describe_table_map(body: bytes, post_header_size: int, flavor: Flavor) -> Detail:
    """Describe a TABLE_MAP event: id, flags, table, and columns as `name TYPE`, or `TYPE` if names are not logged."""
    reader = Reader(body)
    table_id = reader.number(_id_size(post_header_size))
    rest = reader.rest()
    parsed = parse_table_map(rest, flavor)
    return {
        "table_id": table_id,
        "flags": Reader(rest).number(2),
        "table": f"{parsed.schema_name}.{parsed.table_name}",
        "columns": [f"{column.name} {column.type}" if column.name else column.type for column in parsed.columns],
    }


def describe_rows(code: int, body: bytes, post_header_size: int) -> Detail:
    """Describe a rows event up to its rows.

    Version 2 has extra row info: NDB's, as hex, and the partition of the rows. An update between partitions names
    both partitions. `columns_present` counts the columns in each image, and is missing when all are present.
    """
    reader = Reader(body)
    head = rows_head(code, reader, post_header_size)
    detail: Detail = {
        "table_id": head.table_id,
        "flags": names_of(head.flags, _ROW_FLAGS),
        **_extra_row_info(head.extra_info, is_update=code in _UPDATES),
        "columns": head.width,
    }
    present = [(int.from_bytes(bits, "little") & ((1 << head.width) - 1)).bit_count() for bits in head.bitmaps]
    if any(count != head.width for count in present):
        detail["columns_present"] = present
    detail["row_bytes"] = reader.left
    return detail


def table_id_of(code: int, event: bytes, format: FormatDescription) -> tuple[int, int]:
    """Return the table id in a TABLE_MAP or rows event, its header included, and the offset after the id."""
    end = format.header_size + table_id_size(code, format)
    return int.from_bytes(event[format.header_size : end], "little"), end


def table_id_size(code: int, format: FormatDescription) -> int:
    """Return the bytes of the table id in events of a type."""
    return _id_size(format.post_header_size(code))


def _id_size(post_header_size: int) -> int:
    return 4 if post_header_size == _SHORT_ID_HEADER else 6


def _extra_row_info(data: bytes, *, is_update: bool) -> Detail:
    """Describe extra row info: pieces that begin with a type byte.

    NDB's piece has its size and a format before its data. An unknown piece ends the parse.
    """
    reader = Reader(data)
    detail: Detail = {}
    while reader.left:
        kind = reader.byte()
        if kind == _NDB:
            size, form = reader.byte(), reader.byte()
            if size < 2:
                raise MalformedEventError(f"NDB info of {size} bytes")
            detail |= {"ndb_format": form, "ndb_info": f"0x{reader.take(size - 2).hex().upper()}"}
        elif kind == _PARTITION:
            detail["partition"] = reader.number(2)
            if is_update:
                detail["source_partition"] = reader.number(2)
        else:
            detail["unknown_info"] = f"0x{kind:02X}{reader.rest().hex().upper()}"
    return detail
