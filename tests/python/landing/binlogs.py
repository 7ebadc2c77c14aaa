"""Binlog files made from recorded ones: grown, cut, broken, of another server, of another series."""

import struct
import zlib
from pathlib import Path

from ingest.binlog import scan_binlog

REPO = Path(__file__).parents[3]
SHOP = REPO / "samples" / "shop-mysql"
SHOP_MARIADB = REPO / "samples" / "shop-mariadb"

MAGIC = 4
IN_USE = 0x1
_FLAGS_AT = MAGIC + 17


def transaction_ends(path: Path) -> list[int]:
    """Offsets at which a transaction ends, and with it a file that a server has written so far."""
    return [segment.end for segment in scan_binlog(path, segment_bytes=1).segments]


def in_use(data: bytes) -> bytes:
    """The file as it is while the server writes it. The flag is not part of the checksum."""
    flags = struct.unpack_from("<H", data, _FLAGS_AT)[0] | IN_USE
    return data[:_FLAGS_AT] + struct.pack("<H", flags) + data[_FLAGS_AT + 2 :]


def of_server(data: bytes, server_id: int) -> bytes:
    """The file with another server_id in its format description event."""
    return _with_head(data, server_id=server_id)


def created_at(data: bytes, timestamp: int) -> bytes:
    """The file of another series: its format description event was written at another time."""
    return _with_head(data, timestamp=timestamp)


def _with_head(data: bytes, timestamp: int | None = None, server_id: int | None = None) -> bytes:
    old_timestamp, kind, old_id, size = struct.unpack_from("<IBII", data, MAGIC)
    event = bytearray(data[MAGIC : MAGIC + size])
    struct.pack_into("<IBI", event, 0, timestamp if timestamp is not None else old_timestamp, kind, server_id or old_id)
    flags = struct.unpack_from("<H", event, 17)[0]
    # Its checksum is taken with the flag cleared.
    struct.pack_into("<H", event, 17, flags & ~IN_USE)
    struct.pack_into("<I", event, size - 4, zlib.crc32(bytes(event[:-4])))
    struct.pack_into("<H", event, 17, flags)
    return data[:MAGIC] + bytes(event) + data[MAGIC + size :]


def flip_bit(data: bytes, position: int) -> bytes:
    """The file with the lowest bit of one byte turned over."""
    return data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]
