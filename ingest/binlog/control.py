"""Control events that are read one at a time: GTID sets, rotations, and details for listings."""

import struct
import uuid
from typing import Any

from ingest.binlog.charsets import decode_text
from ingest.binlog.events import event_name


def gtid_set(body: bytes) -> str | None:
    """A PREVIOUS_GTIDS event's body as the server prints a set: `uuid:1-5:7,uuid:…`; None when malformed.

    Source: server, sql/rpl_gtid_set.cc, `Gtid_set::add_gtid_encoding`: count of UUIDs (8 bytes), each with
    16 bytes and a count of intervals [start, end). Tagged sets (MySQL 8.3) mark their first byte 1, then
    carry a tag behind each UUID.
    """
    try:
        (count,) = struct.unpack_from("<Q", body)
        tagged = count >> 56 == 1
        if tagged:
            count = count >> 8 & 0xFFFFFFFFFFFF
        at = 8
        texts: list[str] = []
        previous = ""
        for _ in range(count):
            source = str(uuid.UUID(bytes=body[at : at + 16]))
            at += 16
            tag = ""
            if tagged:
                size = body[at] >> 1
                tag = body[at + 1 : at + 1 + size].decode("ascii")
                at += 1 + size
            (intervals,) = struct.unpack_from("<Q", body, at)
            at += 8
            ranges = []
            for _ in range(intervals):
                first, behind = struct.unpack_from("<QQ", body, at)
                at += 16
                ranges.append(str(first) if behind == first + 1 else f"{first}-{behind - 1}")
            text = ":".join([tag] * bool(tag) + ranges)
            if source == previous:
                texts[-1] += f":{text}"
            else:
                texts.append(f"{source}:{text}")
            previous = source
    except (struct.error, ValueError, IndexError, UnicodeDecodeError):
        return None
    return ",".join(texts)


def maria_gtid_list(body: bytes) -> str | None:
    """A MariaDB GTID list: `domain-server-number,…`. Count 4 bytes (28 bits), then 16 bytes each."""
    try:
        (count,) = struct.unpack_from("<I", body)
        return ",".join(
            "{}-{}-{}".format(*struct.unpack_from("<IIQ", body, 4 + 16 * i)) for i in range(count & 0x0FFFFFFF)
        )
    except struct.error:
        return None


def rotate_target(body: bytes, post_header_size: int) -> str:
    """The file that a ROTATE event names, behind the position in its fixed part, which format 1 does not have."""
    return body[post_header_size:].decode("utf-8", "backslashreplace")


def describe(code: int, body: bytes, server_id: int, post_header_size: int) -> dict[str, Any]:
    """What a person wants to see of an event in a listing; empty for types with nothing to tell.

    Parameters
    ----------
    code, body
        The event's type and the bytes between its header and its checksum.
    server_id
        From its header: a part of MariaDB's GTIDs.
    post_header_size
        Size of the fixed part of this type, from the format description.
    """
    try:
        return _describe(event_name(code), body, server_id, post_header_size)
    except (struct.error, IndexError, ValueError):
        return {"malformed": True}


def _describe(name: str, body: bytes, server_id: int, post_header_size: int) -> dict[str, Any]:
    if name == "QUERY":
        thread, seconds, schema_size, error, status_size = struct.unpack_from("<IIBHH", body)
        at = post_header_size + status_size
        return {
            "schema": decode_text(body[at : at + schema_size], None),
            "sql": decode_text(body[at + schema_size + 1 :], None),
            "thread_id": thread,
            "error_code": error,
            "seconds": seconds,
        }
    if name == "ROTATE":
        return {
            "next_binlog_file": rotate_target(body, post_header_size),
            "position": struct.unpack_from("<Q", body)[0],
        }
    if name == "XID":
        return {"xid": struct.unpack_from("<Q", body)[0]}
    if name == "GTID":
        return {"gtid": f"{uuid.UUID(bytes=body[1:17])}:{struct.unpack_from('<q', body, 17)[0]}"}
    if name == "MARIA_GTID":
        number, domain = struct.unpack_from("<QI", body)
        return {"gtid": f"{domain}-{server_id}-{number}", "standalone": bool(body[12] & 1)}
    if name == "PREVIOUS_GTIDS":
        return {"gtids": gtid_set(body)}
    if name == "MARIA_GTID_LIST":
        return {"gtids": maria_gtid_list(body)}
    if name == "FORMAT_DESCRIPTION":
        return {"server_version": body[2:52].split(b"\0")[0].decode("ascii", "backslashreplace")}
    if name == "ROWS_QUERY":
        return {"sql": decode_text(body[1:], None)}
    if name == "ANNOTATE_ROWS":
        return {"sql": decode_text(body, None)}
    if name == "TABLE_MAP":
        at = post_header_size
        schema = body[at + 1 : at + 1 + body[at]]
        at += 2 + body[at]
        table = body[at + 1 : at + 1 + body[at]]
        return {
            "table_id": int.from_bytes(body[: post_header_size - 2], "little"),
            "table": f"{decode_text(schema, None)}.{decode_text(table, None)}",
        }
    if "_ROWS" in name:
        return {"table_id": int.from_bytes(body[: 4 if post_header_size == 6 else 6], "little")}
    return {}
