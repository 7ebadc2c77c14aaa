"""Feeds a binlog file to mysql-replication: its decoder without a server, as a peer for comparison."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from pymysql.protocol import MysqlPacket
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.constants import FORMAT_DESCRIPTION_EVENT
from pymysqlreplication.event import FormatDescriptionEvent
from pymysqlreplication.packet import BinLogPacketWrapper
from pymysqlreplication.row_event import DeleteRowsEvent, RowsEvent, TableMapEvent, UpdateRowsEvent, WriteRowsEvent

from tests.support.binlog.workload import Column

_ROWS = frozenset({FormatDescriptionEvent, TableMapEvent, WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent})
# The events of a stream with default options.
_DEFAULTS = BinLogStreamReader._allowed_event_list(None, None, None, filter_non_implemented_events=True)


def row_events(path: Path, flavor: str, *, has_checksums: bool, full_metadata: bool) -> Iterator[RowsEvent]:
    """Yield the row events of a file; their rows are decoded when `rows` is accessed."""
    for _, event in _read(path, flavor, _ROWS, has_checksums=has_checksums, full_metadata=full_metadata):
        if isinstance(event, RowsEvent):
            yield event


def events(path: Path, flavor: str, *, has_checksums: bool, full_metadata: bool) -> Iterator[tuple[int, Any]]:
    """Yield the position of each event of a file and the event from mysql-replication: None when it skips the event."""
    yield from _read(path, flavor, _DEFAULTS, has_checksums=has_checksums, full_metadata=full_metadata)


def _read(
    path: Path, flavor: str, allowed: frozenset[type], *, has_checksums: bool, full_metadata: bool
) -> Iterator[tuple[int, Any]]:
    """Repeat the steps of `BinLogStreamReader.fetchone`.

    The packets, which normally come from a server, are the file's events, each after an OK byte.
    """
    connection = SimpleNamespace(charset="utf8", _get_dbms=lambda: flavor)
    tables: dict[int, Any] = {}
    version: Any = (0, 0, 0)
    header_lengths = None
    with path.open("rb") as handle, mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as data:
        position = 4
        while position + 19 <= len(data):
            (size,) = struct.unpack_from("<I", data, position + 9)
            packet = MysqlPacket(b"\0" + data[position : position + size], "utf8")
            no_filters = (None, None, None, None)
            wrapper = BinLogPacketWrapper(
                packet,
                tables,
                connection,
                version,
                has_checksums,
                allowed,
                *no_filters,
                freeze_schema=False,
                ignore_decode_errors=False,
                verify_checksum=False,
                optional_meta_data=full_metadata,
                enable_logging=False,
                post_header_lengths=header_lengths,
            )
            event = wrapper.event
            if wrapper.event_type == FORMAT_DESCRIPTION_EVENT and event is not None:
                version, header_lengths = event.mysql_version, event.post_header_len
            elif isinstance(event, TableMapEvent):
                tables[event.table_id] = event.get_table()
            yield position, event
            position += size


def is_same_value(column: Column, ours: str | None, theirs: Any) -> bool:
    """Whether a decoded value equals the value from mysql-replication."""
    if ours is None:
        # mysql-replication returns an empty SET as None.
        return theirs is None
    match column.kind:
        case "float":
            return bool(np.float32(ours) == np.float32(theirs))
        case "double":
            return float(ours) == theirs
        case "set":
            return {label for label in ours.split(",") if label} == (theirs or set())
        case "binary":
            # mysql-replication returns BINARY without its trailing zeros.
            plain, peer = bytes.fromhex(ours.removeprefix("0x")), theirs or b""
            is_padded = column.ddl.startswith(("binary", "char"))
            return plain.rstrip(b"\0") == peer.rstrip(b"\0") if is_padded else plain == peer
        case _:
            return ours == _text(column, theirs)


def _text(column: Column, value: Any) -> str | None:
    """Return binloom's text form of a Python value."""
    digits = int(column.ddl.partition("(")[2][:1] or 0) if column.kind in ("time", "datetime", "timestamp") else 0
    match value:
        case datetime():
            return _with_fraction(f"{value:%Y-%m-%d %H:%M:%S}", value.microsecond, digits)
        case date():
            return value.isoformat()
        case timedelta():
            seconds = value.days * 86400 + value.seconds
            clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
            return _with_fraction(clock, value.microseconds, digits)
    match column.kind:
        case "decimal":
            return f"{value:f}"
        case "bit":
            return str(int(value, 2))
        case _:
            return str(value) if value is not None else None


def _with_fraction(text: str, microseconds: int, digits: int) -> str:
    return f"{text}.{microseconds:06}"[: len(text) + 1 + digits] if digits else text
