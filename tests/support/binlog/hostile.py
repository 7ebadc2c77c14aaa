"""Hostile binlogs: well-formed files whose counts, sizes and offsets are false.

Each file has hostile events in one transaction, then a good transaction whose row must be decoded. As a script this
decodes all files and the named ones, one line of JSON each: `python -m tests.support.binlog.hostile [FILE…]`.
Set BINLOOM_KERNEL_CHECKS=1 to compile the kernel with checked memory accesses.
"""

import json
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import zstandard

from ingest.binlog import open_binlog
from ingest.errors import BinloomError
from tests.support.binlog import forge
from tests.support.binlog.forge import FileMaker, field_of, packed
from tests.support.binlog.mutations import decode_all, hints_of

MOST: Final = (1 << 64) - 1
NOT_COUNTS: Final = {"minus one": MOST, "minus eight": MOST - 7, "two to the 63": 1 << 63, "two to the 32": 1 << 32}
MARIADB: Final = b"10.11.8-MariaDB"
GOOD_VALUE: Final = 424242

Events = Callable[[FileMaker], object]


@dataclass(frozen=True)
class Hostile:
    """Events to append to a file; `reasons` are the expected reasons in `unsupported_events`, None for any."""

    events: Events
    reasons: set[str] | None
    version: bytes
    post_headers: bytes


HOSTILE: Final[dict[str, Hostile]] = {}


def hostile(
    name: str, *reasons: str, mariadb: bool = False, any_reasons: bool = False, post_headers: bytes | None = None
) -> Callable[[Events], Events]:
    """Register a function that appends hostile events to a file."""
    version, known = (MARIADB, forge.MARIADB_POST_HEADERS) if mariadb else (forge.VERSION, forge.POST_HEADERS)

    def register(events: Events) -> Events:
        assert name not in HOSTILE
        HOSTILE[name] = Hostile(
            events, None if any_reasons else set(reasons), version, known if post_headers is None else post_headers
        )
        return events

    return register


def file_of(name: str, folder: Path) -> Path:
    """Make the file of that name."""
    made = HOSTILE[name]
    maker = FileMaker(version=made.version, post_headers=made.post_headers)
    maker.begin()
    made.events(maker)
    maker.commit()
    maker.begin()
    maker.table_map([forge.LONG], b"", table_id=9)
    maker.rows(30, 1, b"\0" + struct.pack("<i", GOOD_VALUE), table_id=9)
    maker.commit()
    maker.rotate()
    return maker.write(folder)


def outcome(path: Path) -> dict[str, Any]:
    """Decode a file: reasons, number of rows, the first value of the last row, GTIDs, and the error if there is one."""
    found: dict[str, Any] = {"reasons": set(), "rows": 0, "last_value": None, "gtids": [], "error": None}
    try:
        for kind, batch in open_binlog(path).batches():
            batch.validate(full=True)
            if kind == "unsupported_events":
                found["reasons"].update(batch.column("reason").to_pylist())
            elif kind == "transactions":
                found["gtids"] += [gtid for gtid in batch.column("gtid").to_pylist() if gtid]
            elif kind == "row_events":
                found["rows"] += batch.num_rows
                found["last_value"] = batch.column("after_values")[-1].as_py()[0]
    except BinloomError as error:
        found["error"] = type(error).__name__
    found["reasons"] = sorted(found["reasons"])
    decode_all(path, hints_of(path))
    return found


# --- rows events and their table maps ---


def table_map_without_metadata(maker: FileMaker, table_id: int = 1) -> None:
    """Append a table map as MySQL 5.1 before 5.1.18 wrote it: types without metadata."""
    maker.event(19, struct.pack("<IHH", table_id, 0, 1) + b"\x01s\0\x01t\0\x01" + bytes([forge.LONG]))


def rows_of_width(maker: FileMaker, code: int, width: int, rest: bytes = b"") -> None:
    maker.event(code, struct.pack("<IHHH", 1, 0, 0, 2) + b"\xfe" + struct.pack("<Q", width) + rest)


def _widths() -> None:
    for text, width in NOT_COUNTS.items():
        reason = "malformed_event" if width >= 1 << 63 else "column_count_mismatch"

        @hostile(f"rows of {text} columns for a table map without metadata", reason)
        def without_metadata(maker: FileMaker, width: int = width) -> None:
            table_map_without_metadata(maker)
            for code in (30, 31, 32) * 40:
                rows_of_width(maker, code, width)

        @hostile(f"rows of {text} columns", reason)
        def with_metadata(maker: FileMaker, width: int = width) -> None:
            maker.table_map([forge.LONG], b"")
            for code in (30, 31, 32, 39):
                rows_of_width(maker, code, width, b"\xff" * 40)


_widths()


@hostile("rows for a malformed table map", "malformed_table_map", "malformed_event", "column_count_mismatch")
def rows_for_malformed_table_map(maker: FileMaker) -> None:
    maker.event(19, struct.pack("<IHH", 1, 0, 1) + b"\x01s\0\x01t\0\x02\x03\x03\xff")
    rows_of_width(maker, 30, MOST)
    rows_of_width(maker, 30, 0)


@hostile("table map of 2^40 columns", "malformed_table_map")
def table_map_of_many_columns(maker: FileMaker) -> None:
    maker.event(19, struct.pack("<IHH", 1, 0, 1) + b"\x01s\0\x01t\0\xfe" + struct.pack("<Q", 1 << 40) + b"\x03" * 9)


@hostile("table map of 4097 columns", "malformed_table_map", "column_count_mismatch")
def table_map_of_4097_columns(maker: FileMaker) -> None:
    maker.table_map([forge.TINY] * 4097, b"")
    maker.rows(30, 4097, bytes(513) + b"\1" * 4097)


@hostile("table maps whose inner sizes lie", "malformed_table_map")
def table_map_sizes(maker: FileMaker) -> None:
    head = struct.pack("<IHH", 1, 0, 1) + b"\x01s\0\x01t\0\x01\xf7"
    for size in (*NOT_COUNTS.values(), 3):
        maker.event(19, head + b"\xfe" + struct.pack("<Q", size) + b"\xf7\x01\xff")
        # Optional metadata: false counts and lengths of the labels of an ENUM.
        members = b"\x06\xfe" + struct.pack("<Q", size) + bytes(7)
        maker.event(19, head + b"\x02\xf7\x01\xff" + members)
        maker.event(19, head + b"\x02\xf7\x01\xff" + field_of(6, b"\xfe" + struct.pack("<Q", max(size, 9)) + bytes(7)))


@hostile("more table maps than a statement can have", "malformed_event")
def many_table_maps(maker: FileMaker) -> None:
    maker.table_map([forge.LONG], b"")
    for _ in range(5000):
        maker.table_map([forge.LONG], b"")


@hostile("rows events cut off in their heads", "malformed_event", "malformed_row", "column_count_mismatch")
def cut_heads(maker: FileMaker) -> None:
    maker.table_map([forge.LONG], b"")
    body = struct.pack("<IHHH", 1, 0, 0, 2) + b"\x01\xff\xff"
    for code in (23, 24, 25, 30, 31, 32, 39):
        for size in range(len(body)):
            maker.event(code, body[:size])


@hostile("extra row info of any size", "malformed_event")
def extra_info(maker: FileMaker) -> None:
    maker.table_map([forge.LONG], b"")
    for size in (0, 1, 3, 20, 0x7FFF, 0xFFFF):
        for code in (30, 31, 32, 39):
            maker.event(code, struct.pack("<IHHH", 1, 0, 0, size) + b"\x01\xff\xff")


@hostile("partial updates whose options lie", "malformed_row")
def value_options(maker: FileMaker) -> None:
    maker.table_map([forge.JSON], b"\x04")
    image = b"\0" + struct.pack("<I", 1) + b"\4"
    for options in (packed(MOST), packed(1 << 63), packed(1), packed(2), b"\xff", b"\xfb", b"\xfe"):
        maker.rows(39, 1, image + options, ends_statement=False)


# --- values ---


def _values() -> None:
    far = struct.pack("<I", 0xFFFFFFFF)
    documents = {
        "object of any count": b"\x00\xff\xff\xff\xff" + bytes(8),
        "large array of any count": b"\x03" + far + far + bytes(8),
        "array whose count and size overflow": b"\x03" + struct.pack("<II", 0x33333334, 12) + bytes(8),
        "key behind the document": b"\x00\x01\0\x0c\0\xff\xff\xff\xff\x04\0\0",
        "value behind the document": b"\x02\x01\0\x08\0\x0c\xff\xff",
        "value inside its own head": b"\x02\x01\0\x08\0\x02\0\0",
        "string of any size": b"\x0c\xff\xff\xff\xff\x0f",
        "string whose size does not end": b"\x0c" + b"\xff" * 5,
        "opaque of any size": b"\x0f\xf6\xff\xff\xff\xff\x0f",
        "opaque decimal without bytes": b"\x0f\xf6\x02\x41\x41",
        "opaque decimal of 255 digits": b"\x0f\xf6\x22\xff\xff" + b"\xff" * 32,
        "opaque time without bytes": b"\x0f\x0b\x03\0\0\0",
        "cut number": b"\x0b\0\0",
        "nothing behind the type": b"\x00",
    }
    for name, document in documents.items():

        @hostile(f"JSON: {name}", "undecodable_value")
        def json_value(maker: FileMaker, document: bytes = document) -> None:
            maker.table_map([forge.JSON], b"\x04")
            maker.rows(30, 1, b"\0" + struct.pack("<I", len(document)) + document)

    for name, kind, metadata, value, optional, reason in (
        ("string longer than its row", forge.VARCHAR, b"\xff\xff", b"\xff\xff", b"", "malformed_row"),
        ("blob of 4 GiB", forge.BLOB, b"\x04", far, b"", "malformed_row"),
        ("document of 4 GiB", forge.JSON, b"\x04", far, b"", "malformed_row"),
        ("cut number", forge.LONGLONG, b"", b"\1", b"", "malformed_row"),
        ("cut decimal", forge.NEWDECIMAL, b"\x41\x26", b"\1", b"", "malformed_row"),
        ("decimal of 255 digits", forge.NEWDECIMAL, b"\xff\xff", bytes(64), b"", "unsupported_column_type"),
        (
            "decimal with more fraction than digits",
            forge.NEWDECIMAL,
            b"\x02\x09",
            bytes(8),
            b"",
            "unsupported_column_type",
        ),
        ("bits of 255 bytes", forge.BIT, b"\xff\xff", bytes(300), b"", "unsupported_column_type"),
        ("time of 255 digits", forge.TIME2, b"\xff", bytes(140), b"", "unsupported_column_type"),
        ("blob with a length of 255 bytes", forge.BLOB, b"\xff", bytes(260), b"", "unsupported_column_type"),
        ("enum of 255 bytes", forge.STRING, b"\xf7\xff", bytes(260), b"", "unsupported_column_type"),
        ("set of 255 bytes", forge.STRING, b"\xf8\xff", bytes(260), b"", "unsupported_column_type"),
        (
            "member without a label",
            forge.STRING,
            b"\xf7\x02",
            b"\xff\xff",
            field_of(6, b"\x01\x01a"),
            "undecodable_value",
        ),
        (
            "members without labels",
            forge.STRING,
            b"\xf8\x08",
            b"\xff" * 8,
            field_of(5, b"\x01\x01a"),
            "undecodable_value",
        ),
    ):

        @hostile(f"value: {name}", reason)
        def value_of(
            maker: FileMaker,
            kind: int = kind,
            metadata: bytes = metadata,
            value: bytes = value,
            optional: bytes = optional,
        ) -> None:
            maker.table_map([kind], metadata, optional)
            maker.rows(30, 1, b"\0" + value)


_values()


@hostile("compressed values of any size", "undecodable_value", mariadb=True)
def compressed_values(maker: FileMaker) -> None:
    maker.table_map([forge.BLOB_COMPRESSED], b"\x04")
    stream = forge.compressed(b"x" * 100, raw=False)[2:]
    for head in (
        b"\x84\xff\xff\xff\xff",
        b"\x84\0\0\0\0",
        b"\x81\0",
        b"\x87" + b"\xff" * 7,
        b"\x80",
        b"\xf1\x05",
        b"\x81\x65",
    ):
        value = head + stream
        maker.rows(30, 1, b"\0" + struct.pack("<I", len(value)) + value, ends_statement=False)


WIDEST_EVENTS, WIDEST_ROWS = 5, 36


@hostile("buffers filled to their ends")
def widest_values(maker: FileMaker) -> None:
    """Append rows of the widest texts, enough to fill the buffers several times: these rows are valid."""
    labels = b"".join(packed(40) + bytes([65 + number % 26]) * 40 for number in range(64))
    types = [forge.NEWDECIMAL] * 300 + [forge.DOUBLE] * 300 + [forge.JSON, forge.STRING, forge.BLOB, forge.VARCHAR]
    metadata = b"\x41\x26" * 300 + b"\x08" * 300 + b"\x04" + b"\xf8\x08" + b"\x02" + b"\xff\xff"
    maker.table_map(types, metadata, field_of(5, packed(64) + labels) + forge.charset(forge.LATIN1))
    decimal = forge.decimal(Decimal("-" + "9" * 27 + "." + "9" * 38), 65, 38)
    document = b"\x0c\xe8\x07" + b"\1" * 1000
    row = bytes((len(types) + 7) // 8) + decimal * 300 + struct.pack("<d", -2.2250738585072014e-308) * 300
    row += struct.pack("<I", len(document)) + document + b"\xff" * 8
    row += struct.pack("<H", 3000) + b"\xff" * 3000 + struct.pack("<H", 5000) + b"\x80" * 5000
    for _ in range(WIDEST_EVENTS):
        maker.rows(30, len(types), row * WIDEST_ROWS, ends_statement=False)


# --- GTIDs ---


def varlen(number: int) -> bytes:
    """Encode a number of the servers' serialization format in the fewest possible bytes."""
    for size in range(1, 9):
        if number < 1 << 7 * size:
            return (number << size | (1 << size - 1) - 1).to_bytes(size, "little")
    return b"\xff" + number.to_bytes(8, "little")


def tagged(*fields: tuple[int, bytes]) -> bytes:
    body = b"".join(varlen(number) + value for number, value in fields)
    return varlen(1) + varlen(len(body) + 4) + varlen(0) + body


FLAGS: Final = (0, varlen(1))
SOURCE: Final = (1, b"".join(varlen(byte) for byte in range(1, 17)))
NUMBER: Final = (2, varlen(14))
TAG: Final = (3, varlen(32) + b"t" * 32)


def _tagged_gtids() -> None:
    for name, fields in {
        "tag repeated": [FLAGS, SOURCE, NUMBER, *[TAG] * 40000],
        "UUID repeated": [FLAGS, *[SOURCE] * 40000, NUMBER, TAG],
        "number repeated behind the tag": [FLAGS, SOURCE, NUMBER, TAG, NUMBER],
        "no UUID": [FLAGS, NUMBER, TAG],
        "UUID of large numbers": [FLAGS, (1, varlen(1 << 63) * 16), NUMBER, TAG],
        "tag of any size": [FLAGS, SOURCE, NUMBER, (3, varlen(MOST) + b"tag")],
        "tag longer than the event": [FLAGS, SOURCE, NUMBER, (3, varlen(32) + b"tag")],
        "tag of 33 bytes": [FLAGS, SOURCE, NUMBER, (3, varlen(33) + b"t" * 33)],
    }.items():

        @hostile(f"tagged GTID: {name}", "malformed_event")
        def event(maker: FileMaker, fields: list[tuple[int, bytes]] = fields) -> None:
            maker.event(42, tagged(*fields))


_tagged_gtids()


@hostile("cut GTIDs", "malformed_event")
def cut_gtids(maker: FileMaker) -> None:
    for size in range(25):
        maker.event(33, b"\xff" * size)
        maker.event(42, tagged(FLAGS, SOURCE, NUMBER)[:size] + b"\xff")


@hostile("sets of GTIDs of any size", mariadb=True)
def gtid_sets(maker: FileMaker) -> None:
    for count in (MOST, 1 << 63, 1 << 40, 1):
        maker.event(35, struct.pack("<Q", count) + bytes(16) + struct.pack("<Q", count))
        maker.event(35, struct.pack("<Q", 0x0100000000000001 | (count & 0xFFFFFF) << 8) + bytes(16) + b"\xff" * 9)
        maker.event(163, struct.pack("<I", count & 0xFFFFFFFF) + bytes(16))


@hostile("XA identifiers of any size", "malformed_event")
def xa_identifiers(maker: FileMaker) -> None:
    for sizes in ((0xFFFFFFFF, 1), (65, 0), (64, 65), (0x80000000, 0x80000000), (64, 64)):
        maker.event(38, struct.pack("<BiII", 0, -1, *sizes) + b"\xff" * 100)
    for size in (0, 1, 299, 300, 301, 5000):
        for word in (b"XA COMMIT ", b"XA ROLLBACK "):
            maker.event(2, struct.pack("<IIBHH", 7, 0, 0, 0, 0) + b"\0" + word + b"x" * size)


@hostile("MariaDB GTIDs of any size", "malformed_event", mariadb=True)
def mariadb_gtids(maker: FileMaker) -> None:
    for size in (*range(14), 40):
        maker.event(162, b"\xff" * size)


# --- statements ---


@hostile("statements whose sizes lie", "malformed_event")
def statement_sizes(maker: FileMaker) -> None:
    for schema, status in ((255, 0), (0, 0xFFFF), (255, 0xFFFF), (0, 7), (6, 0)):
        maker.event(2, struct.pack("<IIBHH", 7, 0, schema, 0, status) + b"\0SELECT")
    for size in range(13):
        maker.event(2, b"\xff" * size)
    for block in (
        b"\x06\xff",
        b"\x02\xff",
        b"\x04",
        b"\x04\xff",
        b"\x0b\xff\xff",
        b"\x0c\xfd",
        b"\x0c\xff",
        b"\x83\xff",
    ):
        maker.event(2, struct.pack("<IIBHH", 7, 0, 0, 0, len(block)) + block + b"\0SELECT 1")


@hostile("variables whose sizes lie", "malformed_event")
def variable_sizes(maker: FileMaker) -> None:
    far = struct.pack("<I", 0xFFFFFFFF)
    maker.event(14, far + b"abc")
    maker.event(14, struct.pack("<I", 1) + b"a\0\0" + far + far)
    maker.event(14, struct.pack("<I", 1) + b"a\0\4" + far + struct.pack("<I", 2) + b"\xff\xff")
    maker.event(14, struct.pack("<I", 1) + b"a\0\4" + far + struct.pack("<I", 2) + b"\x41\x41")
    maker.event(6, struct.pack("<IIIBBI", 1, 1, 1, 255, 255, 0xFFFFFFFF) + bytes(40))
    for code in (5, 6, 8, 9, 10, 11, 12, 13, 14, 17, 18):
        maker.event(code, b"\xff" * 30)


@hostile("a statement larger than its buffer")
def large_statement(maker: FileMaker) -> None:
    for size in (1 << 20, (1 << 20) + 1, 3 << 20):
        maker.event(2, struct.pack("<IIBHH", 7, 0, 0, 0, 0) + b"\0" + b"x" * size)
    for size in (*range(200), 40000):
        maker.event(29, b"\xff" + b"x" * size)


# --- events that hold others ---


def payload(data: bytes, size: int, compression: int = 0) -> bytes:
    fields = (field_of(1, packed(len(data))), field_of(2, packed(compression)), field_of(3, packed(size)))
    return b"".join(fields) + b"\0" + data


def frame(content_size: int) -> bytes:
    """Return a zstd frame of one block whose header claims this many bytes."""
    return b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", content_size) + b"\x03\x00\x00\x41"


def _payloads() -> None:
    good = zstandard.compress(b"x" * 100)
    for name, body in {
        "of any size": payload(good, MOST),
        "of 2^63 bytes": payload(good, 1 << 63),
        "of 2^40 bytes": payload(good, 1 << 40),
        "smaller than it is": payload(good, 99),
        "larger than it is": payload(good, 101),
        "of no bytes": payload(good, 0),
        "whose frame is of 2^62 bytes": payload(frame(1 << 62), 100),
        "whose frame is of 2^40 bytes": payload(frame(1 << 40), 1 << 20),
        "whose fields do not end": b"\x01\xff\xff",
        "whose sizes are no numbers": b"\x03\x01\xfe\0" + good,
        "whose field is longer than it": b"\x03\xff" + good,
        "of no compression known": payload(good, 100, compression=7),
        "whose events have no size": payload(zstandard.compress(bytes(200)), 200),
        "whose events have any size": payload(zstandard.compress(b"\xff" * 200), 200),
        "that ends in an event": payload(zstandard.compress(_event(2, 400)[:300]), 300),
    }.items():

        @hostile(f"payload {name}", "malformed_payload")
        def event(maker: FileMaker, body: bytes = body) -> None:
            maker.event(40, body)


def _event(code: int, size: int) -> bytes:
    return struct.pack("<IBIIIH", 0, code, 1, size, 0, 0) + b"\xff" * (size - 19)


_payloads()


@hostile("payload in a payload", "misplaced_event")
def nested_payload(maker: FileMaker) -> None:
    inner = payload(zstandard.compress(_event(2, 60)), 60)
    event = struct.pack("<IBIIIH", 0, 40, 1, 19 + len(inner), 0, 0) + inner
    maker.event(40, payload(zstandard.compress(event), len(event)))


@hostile("rows of minus one columns in a payload", "malformed_event")
def payload_of_hostile_rows(maker: FileMaker) -> None:
    inner = FileMaker(checksum=False)
    first = len(inner.data)
    table_map_without_metadata(inner)
    for code in (30, 31, 32) * 40:
        rows_of_width(inner, code, MOST)
    data = bytes(inner.data[first:])
    maker.event(40, payload(zstandard.compress(data), len(data)))


@hostile("compressed events of any size", "malformed_payload", mariadb=True)
def compressed_events(maker: FileMaker) -> None:
    head = struct.pack("<IHH", 1, 0, 0) + b"\x01\xff"
    stream = forge.compressed(b"\0" + struct.pack("<i", 1), raw=False)[2:]
    maker.table_map([forge.LONG], b"")
    for size in (b"\x84\xff\xff\xff\xff", b"\x81\xff", b"\x81\0", b"\x87\0", b"\x80", b""):
        maker.event(166, head + size + stream)
        maker.event(165, struct.pack("<IIBHH", 7, 0, 0, 0, 0) + b"\0" + size + stream)
        maker.event(165, struct.pack("<IIBHH", 7, 0, 255, 0, 0xFFFF) + b"\0" + size + stream)
    maker.event(167, struct.pack("<IHH", 1, 0, 0) + packed(MOST) + stream)


# --- every type ---


def _all_types() -> None:
    for flavor in ("MySQL", "MariaDB"):
        for byte in (0x00, 0x01, 0x7F, 0x80, 0xFE, 0xFF):

            @hostile(
                f"{flavor}: events of each type that hold only {byte:#04x}",
                mariadb=flavor == "MariaDB",
                any_reasons=True,
            )
            def of_one_byte(maker: FileMaker, byte: int = byte) -> None:
                each_type(maker, byte, (*range(34), 60, 200, 1000))

    for size in (0, 6, 10, 13, 255):

        @hostile(f"events with fixed parts of {size} bytes", any_reasons=True, post_headers=bytes([size]) * 41)
        def with_fixed_parts(maker: FileMaker) -> None:
            for byte in (0x00, 0xFF):
                each_type(maker, byte, (*range(20), 255, 300))


def each_type(maker: FileMaker, byte: int, sizes: tuple[int, ...]) -> None:
    """Append events of each type except two types that end the decoding: encryption and format descriptions."""
    for size in sizes:
        for code in (*range(1, 50), *range(160, 172)):
            if code not in (15, 164):
                maker.event(code, bytes([byte]) * size)


_all_types()


def main() -> None:
    """Decode all hostile files and the named files in turn, and print the outcome of each."""

    def files() -> Iterator[tuple[str, Path]]:
        with tempfile.TemporaryDirectory() as folder:
            yield from ((name, file_of(name, Path(folder))) for name in HOSTILE)
        yield from ((name, Path(name)) for name in sys.argv[1:])

    for name, path in files():
        try:
            found = outcome(path)
        except Exception as error:
            found = {"raised": f"{type(error).__name__}: {error}"}
        print(json.dumps({"file": name, **found}), flush=True)


if __name__ == "__main__":
    main()
