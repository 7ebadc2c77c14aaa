"""Feeds a binlog file to mysql-replication: its decoder without a server, as a peer to compare with."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pymysql.protocol import MysqlPacket
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.constants import FORMAT_DESCRIPTION_EVENT
from pymysqlreplication.event import FormatDescriptionEvent
from pymysqlreplication.packet import BinLogPacketWrapper
from pymysqlreplication.row_event import DeleteRowsEvent, RowsEvent, TableMapEvent, UpdateRowsEvent, WriteRowsEvent

_ROWS = frozenset({FormatDescriptionEvent, TableMapEvent, WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent})
# What a stream gives that is asked for nothing in particular.
_DEFAULTS = BinLogStreamReader._allowed_event_list(None, None, None, filter_non_implemented_events=True)


def row_events(path: Path, flavor: str, *, has_checksums: bool, full_metadata: bool) -> Iterator[RowsEvent]:
    """Yield the row events of a file; their rows are decoded when `rows` is asked for."""
    for _, event in _read(path, flavor, _ROWS, has_checksums=has_checksums, full_metadata=full_metadata):
        if isinstance(event, RowsEvent):
            yield event


def events(path: Path, flavor: str, *, has_checksums: bool, full_metadata: bool) -> Iterator[tuple[int, Any]]:
    """Yield the position of each event of a file and what a stream would give for it: None when it is left out."""
    yield from _read(path, flavor, _DEFAULTS, has_checksums=has_checksums, full_metadata=full_metadata)


def _read(
    path: Path, flavor: str, allowed: frozenset[type], *, has_checksums: bool, full_metadata: bool
) -> Iterator[tuple[int, Any]]:
    """Take the steps of `BinLogStreamReader.fetchone`.

    The packets that it would get from a server are the file's events, each after an OK byte.
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
