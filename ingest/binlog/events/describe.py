"""Descriptions of events for listings: one function for each event type of the servers.

This module reads event types about files and servers. Statements, GTIDs and rows have modules of their own.
Sources: server, libs/mysql/binlog/event/control_events.cpp and codecs/binary.cpp; MariaDB, sql/log_event.cc.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from ingest.binlog.events.format import HEADER_SIZE, FormatDescription
from ingest.binlog.events.fragments import describe_fragment
from ingest.binlog.events.gtid_events import (
    describe_gtid,
    describe_maria_gtid,
    describe_maria_gtid_list,
    describe_tagged_gtid,
    gtid_set,
    xa_text,
)
from ingest.binlog.events.moments import moment_of_seconds
from ingest.binlog.events.payload import payload_fields, unpack
from ingest.binlog.events.reader import MalformedEventError, Reader
from ingest.binlog.events.rows_events import describe_rows, describe_table_map
from ingest.binlog.events.statement_events import (
    describe_block,
    describe_execute_load_query,
    describe_intvar,
    describe_load,
    describe_query,
    describe_rand,
    describe_user_var,
)
from ingest.binlog.events.types import (
    EVENT_NAMES,
    FORMAT_DESCRIPTION,
    PARTIAL_ROW_DATA,
    ROTATE,
    TRANSACTION_PAYLOAD,
    event_name,
)
from ingest.binlog.kernel.layout import FLAG_IGNORABLE
from ingest.binlog.text.charsets import decode_text
from ingest.versions import Flavor

Detail = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Subject:
    """An event to describe: its type, all its bytes, its body between header and checksum, and its format."""

    code: int
    event: bytes
    body: bytes
    format: FormatDescription

    @property
    def server_id(self) -> int:
        return int.from_bytes(self.event[5:9], "little")

    @property
    def post_header_size(self) -> int:
        return self.format.post_header_size(self.code)

    @property
    def flavor(self) -> Flavor:
        return self.format.flavor


def describe(code: int, event: bytes, format: FormatDescription) -> Detail:
    """Return an event's fields for a listing; empty for types without fields to show.

    For a body that contradicts itself, the result is `malformed` with the reason.

    Parameters
    ----------
    code
        The event's type.
    event
        The whole event, header and checksum included.
    format
        The format description in force.
    """
    describer = _DESCRIBERS.get(code)
    if describer is None:
        return _of_unknown_type(event, format) if code not in EVENT_NAMES else {}
    try:
        return describer(Subject(code, event, event_body(code, event, format), format))
    except MalformedEventError as error:
        return {"malformed": str(error)}


def _of_unknown_type(event: bytes, format: FormatDescription) -> Detail:
    has_flags = format.header_size >= HEADER_SIZE
    is_ignorable = has_flags and int.from_bytes(event[17:19], "little") & FLAG_IGNORABLE
    return {"ignorable": "its server lets readers ignore it, and binloom does"} if is_ignorable else {}


def event_body(code: int, event: bytes, format: FormatDescription) -> bytes:
    """Return the bytes of an event between its header and its checksum."""
    # These two types are read before the file's header size is known.
    header_size = min(format.header_size, HEADER_SIZE) if code in (FORMAT_DESCRIPTION, ROTATE) else format.header_size
    return event[header_size : len(event) - (4 if format.has_checksums else 0)]


def rotate_target(body: bytes, post_header_size: int) -> str:
    """Return the file that a ROTATE event names.

    The name follows the fixed part, which contains the position. Format 1 has no fixed part.
    """
    return decode_text(body[post_header_size:], None)


# --- the file and its server ---


def _start(event: Subject) -> Detail:
    """Describe START_V3 and the head of FORMAT_DESCRIPTION."""
    reader = Reader(event.body)
    version, server, created = reader.number(2), reader.take(50), reader.number(4)
    return {
        "format_version": version,
        "server_version": server.split(b"\0")[0].decode("ascii", "backslashreplace"),
        "created_at": moment_of_seconds(created),
    }


def _format_description(event: Subject) -> Detail:
    reader = Reader(event.body)
    reader.take(56)
    return {**_start(event), "header_size": reader.byte()}


def _rotate(event: Subject) -> Detail:
    """Describe ROTATE. Format version 1 has no position: the next file begins at its first event."""
    position = Reader(event.body).number(8) if event.post_header_size else 4
    return {"next_binlog_file": rotate_target(event.body, event.post_header_size), "position": position}


def _slave(event: Subject) -> Detail:
    """Describe SLAVE, which no server ever wrote to a log."""
    reader = Reader(event.body)
    position, port, host = reader.number(8), reader.number(2), reader.until_zero()
    return {
        "host": decode_text(host, None),
        "port": port,
        "binlog_file": decode_text(reader.rest(), None),
        "position": position,
    }


_INCIDENTS: Final = {0: "none", 1: "lost events"}


def _incident(event: Subject) -> Detail:
    reader = Reader(event.body)
    number = reader.number(2)
    message = decode_text(reader.take(reader.byte()), None) if reader.left else ""
    return {"incident": number, "meaning": _INCIDENTS.get(number, "unknown"), "message": message}


def _heartbeat(event: Subject) -> Detail:
    return {"binlog_file": decode_text(event.body, None)}


def _heartbeat_v2(event: Subject) -> Detail:
    detail: Detail = {}
    for field, value in Reader(event.body).numbered():
        if field == 1:
            detail["binlog_file"] = decode_text(value.rest(), None)
        elif field == 2:
            detail["position"] = value.packed()
    return detail


def _binlog_checkpoint(event: Subject) -> Detail:
    reader = Reader(event.body)
    return {"binlog_file": decode_text(reader.take(reader.number(4)), None)}


def _start_encryption(event: Subject) -> Detail:
    reader = Reader(event.body)
    return {"scheme": reader.byte(), "key_version": reader.number(4), "nonce": reader.take(12).hex()}


# --- transactions ---


def _xid(event: Subject) -> Detail:
    return {"xid": Reader(event.body).number(8)}


def _xa_prepare(event: Subject) -> Detail:
    reader = Reader(event.body)
    one_phase, form, global_size, branch_size = reader.byte(), reader.number(4), reader.number(4), reader.number(4)
    return {
        "xid": xa_text(form, reader.take(global_size), reader.take(branch_size)),
        "is_one_phase": bool(one_phase),
    }


def _previous_gtids(event: Subject) -> Detail:
    gtids = gtid_set(event.body)
    if gtids is None:
        raise MalformedEventError("its GTIDs do not fit into the event")
    return {"gtids": gtids}


def _transaction_context(event: Subject) -> Detail:
    """Describe the certifier's input for a transaction (Group Replication)."""
    reader = Reader(event.body)
    uuid_size, thread_id, is_specified = reader.byte(), reader.number(4), reader.byte()
    snapshot_size, write_set_size, read_set_size = reader.number(4), reader.number(4), reader.number(4)
    server_uuid = decode_text(reader.take(uuid_size), None)
    snapshot = gtid_set(reader.take(snapshot_size))
    sets = [[reader.take(reader.number(2)) for _ in range(size)] for size in (write_set_size, read_set_size)]
    return {
        "server_uuid": server_uuid,
        "thread_id": thread_id,
        "is_gtid_specified": bool(is_specified),
        "snapshot": snapshot,
        **{name: len(hashes) for name, hashes in zip(("write_set", "read_set"), sets, strict=True)},
    }


def _view_change(event: Subject) -> Detail:
    """Describe a new membership, with the certifier's information (Group Replication)."""
    reader = Reader(event.body)
    view_id = decode_text(reader.take(40).split(b"\0")[0], None)
    number, count = reader.number(8), reader.number(4)
    for _ in range(count):
        reader.take(reader.number(2))
        reader.take(reader.number(4))
    return {"view_id": view_id, "sequence_number": number, "certified_rows": count}


def _rows_query(event: Subject) -> Detail:
    """Describe ROWS_QUERY. Its first byte is the text's length only below 256, so the text is read to the end."""
    reader = Reader(event.body)
    reader.take(1)
    return {"sql": decode_text(reader.rest(), None)}


# --- events that hold others ---

_COMPRESSIONS: Final = {0: "ZSTD", 255: "NONE"}


def describe_payload(event: bytes, format: FormatDescription) -> tuple[Detail, bytes]:
    """Return the result of `describe` for a TRANSACTION_PAYLOAD, and the bytes of its events if it unpacks."""
    inside = b""
    try:
        body = event_body(TRANSACTION_PAYLOAD, event, format)
        compression, size, start = payload_fields(body)
        inside = unpack(TRANSACTION_PAYLOAD, event, format)
        counts = Counter(event_name(code) for code, _ in events_inside(inside, format))
    except MalformedEventError as error:
        return {"malformed": str(error)}, inside
    return {
        "compression": _COMPRESSIONS.get(compression, str(compression)),
        "payload_bytes": len(body) - start,
        "uncompressed_bytes": size,
        "events": dict(counts.most_common()),
    }, inside


def events_inside(payload: bytes, format: FormatDescription) -> Iterator[tuple[int, bytes]]:
    """Yield type and bytes of each event in an unpacked payload; raise `MalformedEventError` if one does not fit."""
    reader = Reader(payload)
    while reader.left:
        header = reader.take(format.header_size)
        rest = reader.take(int.from_bytes(header[9:13], "little") - format.header_size)
        yield format.type_codes[header[4]], header + rest


def _compressed(event: Subject) -> Detail:
    """Describe QUERY_COMPRESSED and compressed rows: the event inside, and the sizes of both."""
    inner = unpack(event.code, event.event, event.format)
    detail = describe(inner[4], inner, replace(event.format, checksum_algorithm=None))
    body_bytes = len(inner) - event.format.header_size
    return {**detail, "compressed_bytes": len(event.body), "uncompressed_bytes": body_bytes}


_DESCRIBERS: Final[dict[int, Callable[[Subject], Detail]]] = {
    1: _start,
    2: lambda event: describe_query(event.body, event.post_header_size, event.flavor),
    4: _rotate,
    5: lambda event: describe_intvar(event.body),
    **dict.fromkeys((6, 8, 12), lambda event: describe_load(event.code, event.body)),
    7: _slave,
    **dict.fromkeys((9, 10, 11, 17), lambda event: describe_block(event.body)),
    13: lambda event: describe_rand(event.body),
    14: lambda event: describe_user_var(event.body),
    15: _format_description,
    16: _xid,
    18: lambda event: describe_execute_load_query(event.body, event.post_header_size, event.flavor),
    19: lambda event: describe_table_map(event.body, event.post_header_size, event.flavor),
    **dict.fromkeys(
        (*range(20, 26), *range(30, 33), 39),
        lambda event: describe_rows(event.code, event.body, event.post_header_size),
    ),
    26: _incident,
    27: _heartbeat,
    29: _rows_query,
    **dict.fromkeys((33, 34), lambda event: describe_gtid(event.body)),
    35: _previous_gtids,
    36: _transaction_context,
    37: _view_change,
    38: _xa_prepare,
    TRANSACTION_PAYLOAD: lambda event: describe_payload(event.event, event.format)[0],
    41: _heartbeat_v2,
    42: lambda event: describe_tagged_gtid(event.body),
    160: lambda event: {"sql": decode_text(event.body, None)},
    161: _binlog_checkpoint,
    162: lambda event: describe_maria_gtid(event.body, event.server_id),
    163: lambda event: describe_maria_gtid_list(event.body),
    164: _start_encryption,
    **dict.fromkeys(range(165, 172), _compressed),
    PARTIAL_ROW_DATA: lambda event: describe_fragment(event.body),
}
