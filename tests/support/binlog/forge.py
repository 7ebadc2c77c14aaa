"""Makes binlog files by hand, byte by byte, from the documented layouts: for values that no server writes.

The encoders here follow the format's description and share no code with the decoder.
"""

import re
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

VERSION = b"8.0.40"
# Fixed parts of the event types 1 to 41, as a MySQL 8.0 format description lists them.
POST_HEADERS = bytes.fromhex(
    "00 0d 00 08 00 00 00 00 04 00 04 00 00 00 62 00 04 1a 08 00 00 00 08 08 08 02 00 00 00 0a 0a 0a 2a 2a 00 12 34 00"
    "0a 28 00"
)
# The same for the types 160 to 171, as MariaDB 10.11 lists them.
MARIADB_POST_HEADERS = (
    POST_HEADERS + bytes(159 - len(POST_HEADERS)) + bytes.fromhex("00 04 13 04 00 0d 08 08 08 0a 0a 0a")
)
# Servers that end a format description with its last fixed part, and list no types of version 2 rows.
BEFORE_CHECKSUMS = re.compile(rb"5\.[0-2]\.|5\.5\.(?!.*MariaDB)")
TIMESTAMP = 1_700_000_000

TINY, SHORT, LONG, FLOAT, DOUBLE, LONGLONG, INT24, DATE = 1, 2, 3, 4, 5, 8, 9, 10
YEAR, VARCHAR, BIT, TIMESTAMP2, DATETIME2, TIME2 = 13, 15, 16, 17, 18, 19
JSON, NEWDECIMAL, ENUM, SET, BLOB, STRING = 245, 246, 247, 248, 252, 254
OLD_TIMESTAMP, OLD_TIME, OLD_DATETIME = 7, 11, 12
BLOB_COMPRESSED, VARCHAR_COMPRESSED, VECTOR, GEOMETRY = 140, 141, 242, 255

UTF8MB4, BINARY_COLLATION, GB18030, LATIN1 = 255, 63, 248, 8


@dataclass
class FileMaker:
    """Appends events to a file of format version 4.

    `post_headers` are by default those of a server with such a version.
    """

    checksum: bool = True
    version: bytes = VERSION
    post_headers: bytes = b""
    data: bytearray = field(default_factory=lambda: bytearray(b"\xfebin"))
    # Seconds in the header of the events that follow.
    timestamp: int = TIMESTAMP

    def __post_init__(self) -> None:
        is_old = BEFORE_CHECKSUMS.match(self.version) is not None
        if not self.post_headers:
            own = MARIADB_POST_HEADERS if b"MariaDB" in self.version else POST_HEADERS
            self.post_headers = POST_HEADERS[:27] if is_old else own
        body = struct.pack("<H50sIB", 4, self.version, TIMESTAMP, 19) + self.post_headers
        if is_old:
            assert not self.checksum
            self.data += self._header(15, len(body)) + body
            return
        event = self._header(15, len(body) + 5) + body + bytes([1 if self.checksum else 0])
        self.data += event + struct.pack("<I", zlib.crc32(event))

    def _header(self, code: int, body_size: int, flags: int = 0) -> bytes:
        size = 19 + body_size
        return struct.pack("<IBIIIH", self.timestamp, code, 1, size, (len(self.data) + size) & 0xFFFFFFFF, flags)

    def event(self, code: int, body: bytes) -> int:
        """Append an event; return its position."""
        position = len(self.data)
        event = self._header(code, len(body) + (4 if self.checksum else 0)) + body
        self.data += event + (struct.pack("<I", zlib.crc32(event)) if self.checksum else b"")
        return position

    def begin(self, thread: int = 7) -> int:
        return self.event(2, struct.pack("<IIBHH", thread, 0, 0, 0, 0) + b"\0BEGIN")

    def commit(self, xid: int = 1) -> int:
        return self.event(16, struct.pack("<Q", xid))

    def table_map(
        self, types: Sequence[int], metadata: bytes, optional: bytes = b"", table_id: int = 1, name: bytes = b"t"
    ) -> int:
        count = len(types)
        body = struct.pack("<IHH", table_id, 0, 1) + b"\x01s\0" + bytes([len(name)]) + name + b"\0"
        body += packed(count) + bytes(types)
        body += packed(len(metadata)) + metadata + b"\xff" * ((count + 7) // 8) + optional
        return self.event(19, body)

    def rows(
        self,
        code: int,
        width: int,
        images: bytes,
        table_id: int = 1,
        bitmaps: bytes | None = None,
        ends_statement: bool = True,
    ) -> int:
        """Append a version 2 rows event: 30 insert, 31 update, 32 delete. `bitmaps` are the present columns.

        A server that does not know version 2 writes version 1.
        """
        if bitmaps is None:
            bitmaps = b"\xff" * ((width + 7) // 8) * (2 if code == 31 else 1)
        head = struct.pack("<IHH", table_id, 0, ends_statement)
        if code > len(self.post_headers):
            return self.event(code - 7, head + packed(width) + bitmaps + images)
        return self.event(code, head + struct.pack("<H", 2) + packed(width) + bitmaps + images)

    def rotate(self, name: bytes = b"binlog.000002") -> int:
        return self.event(4, struct.pack("<Q", 4) + name)

    def write(self, folder: Path, name: str = "binlog.000001") -> Path:
        path = folder / name
        path.write_bytes(self.data)
        return path


def column_file(
    folder: Path,
    kind: int,
    metadata: bytes,
    values: Sequence[bytes | None],
    optional: bytes = b"",
    version: bytes = VERSION,
) -> Path:
    """Write a file in which one transaction inserts each value into a table of one column."""
    maker = FileMaker(version=version)
    maker.begin()
    maker.table_map([kind], metadata, optional)
    images = b"".join(b"\x01" if value is None else b"\x00" + value for value in values)
    maker.rows(30, 1, images)
    maker.commit()
    maker.rotate()
    return maker.write(folder)


def packed(number: int) -> bytes:
    """Encode a length-encoded integer."""
    if number < 251:
        return bytes([number])
    if number < 1 << 16:
        return b"\xfc" + struct.pack("<H", number)
    if number < 1 << 24:
        return b"\xfd" + struct.pack("<I", number)[:3]
    return b"\xfe" + struct.pack("<Q", number)


def field_of(kind: int, value: bytes) -> bytes:
    """Encode an optional metadata field of a table map."""
    return bytes([kind]) + packed(len(value)) + value


def signedness(*unsigned: bool) -> bytes:
    bits = "".join("1" if bit else "0" for bit in unsigned).ljust(-(-len(unsigned) // 8) * 8, "0")
    return field_of(1, int(bits, 2).to_bytes(len(bits) // 8, "big"))


def charset(collation: int) -> bytes:
    """Encode one collation for all character columns."""
    return field_of(2, packed(collation))


DIGIT_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


def decimal(value: Decimal, precision: int, scale: int) -> bytes:
    """Encode a DECIMAL: nine digits in four bytes, the rest of either side in fewer; sign in the top bit."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits))
    unscaled = text + "0" * (exponent + scale)
    unscaled = unscaled.rjust(precision, "0")
    whole, fraction = unscaled[: precision - scale], unscaled[precision - scale :]
    head = len(whole) % 9
    groups = [whole[:head]] * bool(head) + [whole[i : i + 9] for i in range(head, len(whole), 9)]
    groups += [fraction[i : i + 9] for i in range(0, len(fraction), 9)]
    encoded = bytearray(b"".join(int(group).to_bytes(DIGIT_BYTES[len(group)], "big") for group in groups))
    if sign and any(digits):
        encoded = bytearray(byte ^ 0xFF for byte in encoded)
    encoded[0] ^= 0x80
    return bytes(encoded)


def fraction(micros: int, digits: int) -> bytes:
    size = (digits + 1) // 2
    return (micros // (10000, 10000, 100, 1)[size]).to_bytes(size, "big") if size else b""


def datetime2(year: int, month: int, day: int, hour: int, minute: int, second: int, micros: int, digits: int) -> bytes:
    packed_value = ((((year * 13 + month) << 5 | day) << 5 | hour) << 6 | minute) << 6 | second
    return (packed_value + 0x8000000000).to_bytes(5, "big") + fraction(micros, digits)


def time2(negative: bool, hour: int, minute: int, second: int, micros: int, digits: int) -> bytes:
    size = (digits + 1) // 2
    value = (hour << 12 | minute << 6 | second) << 8 * size | int.from_bytes(fraction(micros, digits), "big")
    return ((-value if negative else value) + (1 << 8 * (3 + size) - 1)).to_bytes(3 + size, "big")


def compressed(value: bytes, *, raw: bool, size: int | None = None) -> bytes:
    """Compress an event or a column value as MariaDB does; `size` replaces the true size in the header."""
    size = len(value) if size is None else size
    width = max((size.bit_length() + 7) // 8, 1)
    stream = zlib.compressobj(wbits=-15 if raw else 15)
    data = stream.compress(value) + stream.flush()
    return bytes([0x80 + width + (8 if raw else 0)]) + size.to_bytes(width, "big") + data


# --- binary JSON ---

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]


def json_document(value: JsonValue) -> bytes:
    kind, data = _json(value)
    return bytes([kind]) + data


def _json(value: JsonValue) -> tuple[int, bytes]:
    if value is None or isinstance(value, bool):
        return 4, bytes([{None: 0, True: 1, False: 2}[value]])
    if isinstance(value, int):
        for kind, form in ((5, "<h"), (6, "<H"), (7, "<i"), (8, "<I"), (9, "<q"), (10, "<Q")):
            try:
                return kind, struct.pack(form, value)
            except struct.error:
                continue
        raise ValueError(value)
    if isinstance(value, float):
        return 11, struct.pack("<d", value)
    if isinstance(value, str):
        encoded = value.encode()
        size, head = len(encoded), bytearray()
        while size > 127:
            head.append(size & 127 | 128)
            size >>= 7
        return 12, bytes(head) + bytes([size]) + encoded
    for large in (False, True):
        try:
            return (int(large) if isinstance(value, dict) else 2 + large), _container(value, large)
        except (struct.error, OverflowError):
            continue
    raise ValueError("too large")


def _container(value: list[JsonValue] | dict[str, JsonValue], large: bool) -> bytes:
    """Encode count, size, key entries, value entries, keys, values; offsets from the container's start."""
    number, width = ("<I", 4) if large else ("<H", 2)
    if isinstance(value, dict):
        pairs = sorted(((key.encode(), item) for key, item in value.items()), key=lambda pair: (len(pair[0]), pair[0]))
        keys, items = [key for key, _ in pairs], [item for _, item in pairs]
    else:
        keys, items = [], list(value)
    at = 2 * width + len(keys) * (width + 2) + len(items) * (width + 1)
    key_entries, value_entries, tail = b"", b"", b""
    for key in keys:
        key_entries += struct.pack(number, at + len(tail)) + struct.pack("<H", len(key))
        tail += key
    for item in items:
        kind, data = _json(item)
        if kind in (4, 5, 6) or (large and kind in (7, 8)):
            value_entries += bytes([kind]) + data.ljust(width, b"\0")
        else:
            value_entries += bytes([kind]) + struct.pack(number, at + len(tail))
            tail += data
    size = at + len(tail)
    return struct.pack(number, len(items)) + struct.pack(number, size) + key_entries + value_entries + tail
