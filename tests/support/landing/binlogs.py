"""Makes binlog files from recorded ones: grown, cut, broken, from another server, from another series."""

import struct
import zlib
from pathlib import Path

from ingest.binlog import scan_binlog
from ingest.sources.servers.address import ServerAddress
from ingest.sources.servers.information_schema import take_snapshot
from ingest.sources.servers.server import Server
from ingest.sources.snapshots.snapshot import SchemaSnapshot
from tests.support.places import SAMPLES

SHOP = SAMPLES / "shop-mysql"
SHOP_MARIADB = SAMPLES / "shop-mariadb"

MAGIC = 4
IN_USE = 0x1
_FLAGS_AT = MAGIC + 17
# After the header of the event, the version of the format and that of the server.
_STARTED_AT = 19 + 2 + 50


def transaction_ends(path: Path) -> list[int]:
    """Return the offsets at which a transaction ends: valid ends of a file that is still being written."""
    return [segment.end for segment in scan_binlog(path, segment_bytes=1).segments]


def in_use(data: bytes) -> bytes:
    """Return the file as it is while the server writes it. The checksum does not cover the flag."""
    flags = struct.unpack_from("<H", data, _FLAGS_AT)[0] | IN_USE
    return data[:_FLAGS_AT] + struct.pack("<H", flags) + data[_FLAGS_AT + 2 :]


def of_server(data: bytes, server_id: int) -> bytes:
    """Return the file with another server_id in its format description event."""
    return _with_head(data, server_id=server_id)


def created_at(data: bytes, timestamp: int) -> bytes:
    """Return the file as part of another series: its format description event has another time."""
    return _with_head(data, timestamp=timestamp)


def begun_at(data: bytes, timestamp: int) -> bytes:
    """Return the file as a server begins it at its start: its format description event tells when."""
    return _with_head(data, start=timestamp)


def _with_head(
    data: bytes, timestamp: int | None = None, server_id: int | None = None, start: int | None = None
) -> bytes:
    old_timestamp, kind, old_id, size = struct.unpack_from("<IBII", data, MAGIC)
    event = bytearray(data[MAGIC : MAGIC + size])
    struct.pack_into("<IBI", event, 0, timestamp if timestamp is not None else old_timestamp, kind, server_id or old_id)
    if start is not None:
        struct.pack_into("<I", event, _STARTED_AT, start)
    flags = struct.unpack_from("<H", event, 17)[0]
    # The checksum is computed with the flag cleared.
    struct.pack_into("<H", event, 17, flags & ~IN_USE)
    struct.pack_into("<I", event, size - 4, zlib.crc32(bytes(event[:-4])))
    struct.pack_into("<H", event, 17, flags)
    return data[:MAGIC] + bytes(event) + data[MAGIC + size :]


def flip_bit(data: bytes, position: int) -> bytes:
    """Return the file with the lowest bit of one byte flipped."""
    return data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]


def event(code: int, body: bytes, *, server_id: int = 1, has_checksum: bool = True) -> bytes:
    """Return an event of format 3 or 4, at noon on the 1st of November 2026, without its next position."""
    size = 19 + len(body) + (4 if has_checksum else 0)
    head = struct.pack("<IBIIIH", 1_793_534_400, code, server_id, size, 0, 0) + body
    return head + (struct.pack("<I", zlib.crc32(head)) if has_checksum else b"")


def encrypted_by_mysql(data: bytes) -> bytes:
    """Return a file of MySQL with binlog_encryption=ON: another magic, a header of 512 bytes, unreadable content."""
    return b"\xfdbin" + bytes(508) + bytes(byte ^ 0x5A for byte in data)


def encrypted_by_mariadb(data: bytes) -> bytes:
    """Return a file of MariaDB with encrypt_binlog=ON: a format description, START_ENCRYPTION, unreadable content."""
    end = MAGIC + struct.unpack_from("<I", data, MAGIC + 9)[0]
    start_encryption = event(164, b"\x01" + struct.pack("<I", 1) + bytes(12))
    return data[:end] + start_encryption + bytes(byte ^ 0x5A for byte in data[end:])


def of_41(*statements: str, is_first: bool = True, server_id: int = 1) -> bytes:
    """Return a file of MySQL 4.1: only the first file after a server start has a start event."""
    start = event(1, struct.pack("<H50sI", 3, b"4.1.22-log", 1_793_534_400), server_id=server_id, has_checksum=False)
    queries = (
        event(2, struct.pack("<IIBH", 7, 0, 4, 0) + b"shop\0" + text.encode(), server_id=server_id, has_checksum=False)
        for text in statements
    )
    return b"\xfebin" + (start if is_first else b"") + b"".join(queries)


def snapshot_of(host: str, port: int) -> SchemaSnapshot:
    """Return the current schema of a server."""
    with Server(ServerAddress(host, port, "root")) as live:
        return take_snapshot(live)
