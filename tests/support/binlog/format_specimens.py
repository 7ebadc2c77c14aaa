"""One file for each event type and each column type, and its content: the basis of `docs/formats.md`.

An event comes from a recorded file where a server writes it, otherwise it is made by hand. `says` are the texts that
every program that decodes it must give.
"""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from ingest.binlog import SchemaHints
from ingest.binlog.events.types import EVENT_NAMES
from tests.support.binlog.forge import (
    BINARY_COLLATION,
    BIT,
    BLOB,
    BLOB_COMPRESSED,
    DATE,
    DATETIME2,
    DOUBLE,
    ENUM,
    FLOAT,
    INT24,
    JSON,
    LONG,
    LONGLONG,
    NEWDECIMAL,
    OLD_DATETIME,
    OLD_TIME,
    OLD_TIMESTAMP,
    SET,
    SHORT,
    STRING,
    TIME2,
    TIMESTAMP,
    TIMESTAMP2,
    TINY,
    UTF8MB4,
    VARCHAR,
    VARCHAR_COMPRESSED,
    YEAR,
    FileMaker,
    charset,
    column_file,
    compressed,
    datetime2,
    decimal,
    field_of,
    fraction,
    json_document,
    packed,
    signedness,
    time2,
)
from tests.support.binlog.workload import Column
from tests.support.places import FIXTURES

CODES = {name: code for code, name in EVENT_NAMES.items()}
SOURCE = uuid.UUID("11111111-2222-3333-4444-555555555555")
IGNORABLE_FLAG = 0x80


# --- event types ---


@dataclass(frozen=True)
class EventSpecimen:
    """A file with an event of a type, texts that represent its content, and a text that shows a misreading.

    `hints` is a snapshot of its table, for events that cannot be read without one.
    """

    name: str
    file: Callable[[Path], Path]
    says: tuple[str, ...] = ()
    misreading: str | None = None
    hints: SchemaHints | None = None

    @property
    def code(self) -> int:
        return CODES[self.name]


class MySQL9Maker(FileMaker):
    """A file with the format description of MySQL 9.7."""

    first_of = "mysql-defaults"

    def __post_init__(self) -> None:
        data = (FIXTURES / f"{self.first_of}.binlog").read_bytes()
        self.data += data[4 : 4 + int.from_bytes(data[13:17], "little")]


class MariaDBMaker(MySQL9Maker):
    """A file with the format description of MariaDB 10.11."""

    first_of = "mariadb-defaults"


def recorded(name: str) -> Callable[[Path], Path]:
    return lambda folder: FIXTURES / f"{name}.binlog"


def made(*bodies: tuple[int, bytes], maker: type[FileMaker] = FileMaker, flags: int = 0) -> Callable[[Path], Path]:
    """Make a file with these events; compute a checksum again where flags are set."""

    def make(folder: Path) -> Path:
        file = maker()
        for code, body in bodies:
            at = file.event(code, body)
            if flags:
                file.data[at + 17 : at + 19] = struct.pack("<H", flags)
                file.data[-4:] = struct.pack("<I", zlib.crc32(file.data[at:-4]))
        file.rotate()
        return file.write(folder)

    return make


def old_format(code: int, body: bytes) -> Callable[[Path], Path]:
    """Make a file of format version 3, as MySQL 4.0 and 4.1 wrote them."""

    def make(folder: Path) -> Path:
        data = bytearray(b"\xfebin")
        for each, content in ((1, struct.pack("<H50sI", 3, b"4.1.24-log", TIMESTAMP)), (code, body)):
            if each != 1 or code != 1 or len(data) == 4:
                data += struct.pack("<IBIIIH", TIMESTAMP, each, 1, 19 + len(content), 0, 0) + content
        path = folder / "binlog.000001"
        path.write_bytes(data)
        return path

    return make


def _query(sql: bytes) -> bytes:
    return struct.pack("<IIBHH", 7, 0, 4, 0, 0) + b"shop\0" + sql


def _load(clauses: bytes, file_id: bytes = b"") -> bytes:
    return struct.pack("<IIIBBI", 7, 0, 0, 1, 4, 0) + file_id + clauses + b"t\0shop\0" + b"rows.txt\0"


NEW_CLAUSES = b"\1," + b'\1"' + b"\1\n" + b"\0" + b"\1\\" + b"\0"
BLOCK = struct.pack("<I", 31337) + b"1\tone\n"
LOAD_QUERY = struct.pack("<IIBHH", 7, 0, 4, 0, 0) + struct.pack("<IIIB", 31337, 9, 24, 0)
LOAD_QUERY += b"shop\0" + b"LOAD DATA INFILE 'rows.txt' INTO TABLE t"
GTID = SOURCE.bytes + struct.pack("<q", 4242)
CLOCK = b"\2" + struct.pack("<qq", 31336, 31337)
GTID_SET = struct.pack("<Q", 1) + SOURCE.bytes + struct.pack("<QQQ", 1, 1, 4243)
TABLE_MAP = struct.pack("<IHH", 1, 0, 1) + b"\4shop\0\1t\0" + b"\1\3" + b"\0" + b"\xff"
ROW = struct.pack("<IHH", 1, 0, 1) + b"\1\xff" + b"\0" + struct.pack("<i", 31337)
ROWS_V1_EVENT = struct.pack("<IBIIIH", TIMESTAMP, 23, 1, 19 + len(ROW), 0, 0) + ROW
FRAGMENTS = (
    (172, struct.pack("<IIBQ", 2, 1, 1, len(ROWS_V1_EVENT)) + ROWS_V1_EVENT[:25]),
    (172, struct.pack("<IIB", 2, 2, 0) + ROWS_V1_EVENT[25:]),
)
ROWS_V2 = struct.pack("<IHHH", 1, 0, 1, 2) + b"\1"
OLD_TABLE_MAP = struct.pack("<IHH", 1, 0, 1) + b"\4shop\0\1t\0" + b"\1\3"
OLD_ROW = struct.pack("<IHH", 1, 0, 1) + b"\1\xff" + b"\xfd" + struct.pack("<i", 31337)
OLD_TABLE = SchemaHints.from_columns(
    [
        {
            "schema_name": "shop",
            "table_name": "t",
            "column_name": "a",
            "ordinal_position": 1,
            "data_type": "int",
            "column_type": "int(11)",
            "is_nullable": True,
        }
    ]
)

INSERTED, UPDATED = ("-99999.999",), ("-99998.999",)

TAGGED_GTIDS = (":nightly:1",)

EVENTS: list[EventSpecimen] = [
    EventSpecimen("START_V3", old_format(1, struct.pack("<H50sI", 3, b"4.1.24-log", TIMESTAMP)), ("4.1.24-log",)),
    EventSpecimen("QUERY", recorded("mysql-defaults"), ("drop database if exists fixture",)),
    EventSpecimen("STOP", recorded("mysql-stopped")),
    EventSpecimen("ROTATE", recorded("mysql-defaults"), ("binlog.0000",)),
    EventSpecimen(
        "INTVAR", made((5, b"\2" + struct.pack("<Q", 31337)), (2, _query(b"insert into t values ()"))), ("31337",)
    ),
    EventSpecimen("LOAD", old_format(6, _load(b',"\n\0\\\0\x08')), ("rows.txt", "shop")),
    EventSpecimen(
        "SLAVE", old_format(7, struct.pack("<QH", 4, 3306) + b"host.example\0binlog.000009"), ("host.example",)
    ),
    EventSpecimen("CREATE_FILE", old_format(8, _load(NEW_CLAUSES, BLOCK[:4]) + BLOCK[4:]), ("rows.txt", "31337")),
    EventSpecimen("APPEND_BLOCK", made((17, BLOCK), (9, BLOCK), (18, LOAD_QUERY)), ("31337",)),
    EventSpecimen("EXEC_LOAD", old_format(10, BLOCK[:4]), ("31337",)),
    EventSpecimen("DELETE_FILE", made((17, BLOCK), (11, BLOCK[:4])), ("31337",)),
    EventSpecimen("NEW_LOAD", old_format(12, _load(NEW_CLAUSES)), ("rows.txt", "shop")),
    EventSpecimen(
        "RAND",
        made((13, struct.pack("<QQ", 31336, 31337)), (2, _query(b"insert into t values (rand())"))),
        ("31336", "31337"),
    ),
    EventSpecimen(
        "USER_VAR",
        made(
            (14, struct.pack("<I", 5) + b"who_x" + b"\0\2" + struct.pack("<IIq", 63, 8, -31337)),
            (2, _query(b"insert into t values (@who_x)")),
        ),
        ("who_x", "-31337"),
    ),
    EventSpecimen("FORMAT_DESCRIPTION", recorded("mysql-defaults"), ("9.7.4",)),
    EventSpecimen("XID", made((2, _query(b"BEGIN")), (16, struct.pack("<Q", 31337))), ("31337",)),
    EventSpecimen("BEGIN_LOAD_QUERY", made((17, BLOCK), (18, LOAD_QUERY)), ("31337",)),
    EventSpecimen("EXECUTE_LOAD_QUERY", made((17, BLOCK), (18, LOAD_QUERY)), ("INTO TABLE t",)),
    EventSpecimen("TABLE_MAP", recorded("mysql-defaults"), ("fixture", "things")),
    *(
        EventSpecimen(f"{verb}_ROWS_V0", made((19, OLD_TABLE_MAP), (code, OLD_ROW + row)), ("31337",), hints=OLD_TABLE)
        for verb, code, row in (("WRITE", 20, b""), ("UPDATE", 21, OLD_ROW[-5:]), ("DELETE", 22, b""))
    ),
    EventSpecimen("WRITE_ROWS_V1", recorded("mariadb-metadata-full"), INSERTED),
    EventSpecimen("UPDATE_ROWS_V1", recorded("mariadb-metadata-full"), UPDATED),
    EventSpecimen("DELETE_ROWS_V1", made((19, TABLE_MAP), (25, ROW), maker=MariaDBMaker), ("31337",)),
    EventSpecimen("INCIDENT", made((26, b"\1\0\x0fdisk quota full")), ("disk quota full",)),
    EventSpecimen("HEARTBEAT", made((27, b"binlog.000077")), ("binlog.000077",)),
    EventSpecimen("IGNORABLE", made((28, b"anything"), flags=IGNORABLE_FLAG)),
    EventSpecimen("ROWS_QUERY", recorded("mysql-rows-query"), ("insert into fixture.things values",)),
    EventSpecimen("WRITE_ROWS", recorded("mysql-metadata-full"), INSERTED),
    EventSpecimen("UPDATE_ROWS", recorded("mysql-metadata-full"), UPDATED),
    EventSpecimen(
        "DELETE_ROWS", made((19, TABLE_MAP), (32, ROWS_V2 + b"\xff\0" + struct.pack("<i", 31337))), ("31337",)
    ),
    EventSpecimen(
        "GTID",
        made((33, b"\1" + GTID + CLOCK), (2, _query(b"create table t (a int)"))),
        (f"{SOURCE}:4242", "31336", "31337"),
    ),
    EventSpecimen(
        "ANONYMOUS_GTID",
        made((34, b"\1" + bytes(24) + CLOCK), (2, _query(b"create table t (a int)"))),
        ("31336", "31337"),
    ),
    EventSpecimen("PREVIOUS_GTIDS", made((35, GTID_SET)), (f"{SOURCE}:1-4242",), misreading="1-4243"),
    EventSpecimen(
        "TRANSACTION_CONTEXT",
        made((36, struct.pack("<BIBIII", 36, 31337, 1, len(GTID_SET), 0, 0) + str(SOURCE).encode() + GTID_SET)),
        (str(SOURCE), "31337"),
    ),
    EventSpecimen(
        "VIEW_CHANGE", made((37, b"15005:31337".ljust(40, b"\0") + struct.pack("<QI", 8, 0))), ("15005:31337",)
    ),
    EventSpecimen(
        "XA_PREPARE", made((38, b"\0" + struct.pack("<III", 31337, 3, 3) + b"abcdef")), ("616263", "646566", "31337")
    ),
    EventSpecimen("PARTIAL_UPDATE_ROWS", recorded("mysql-partial-json-many-diffs"), ("fresh", "no document changed")),
    EventSpecimen("TRANSACTION_PAYLOAD", recorded("mysql-transaction-payload"), INSERTED + UPDATED),
    EventSpecimen(
        "HEARTBEAT_V2",
        made((41, b"\1\x0dbinlog.000077\2\3\xfc\x69\x7a\0"), maker=MySQL9Maker),
        ("binlog.000077", "31337"),
    ),
    EventSpecimen("GTID_TAGGED", recorded("mysql-tagged-gtids"), TAGGED_GTIDS),
    EventSpecimen("ANNOTATE_ROWS", recorded("mariadb-defaults"), ("insert into fixture.things values",)),
    EventSpecimen("BINLOG_CHECKPOINT", recorded("mariadb-defaults"), ("binlog.0000",)),
    EventSpecimen(
        "MARIA_GTID",
        made(
            (162, struct.pack("<QIB", 31337, 77, 1) + bytes(6)),
            (2, _query(b"create table t (a int)")),
            maker=MariaDBMaker,
        ),
        ("77-1-31337",),
    ),
    EventSpecimen(
        "MARIA_GTID_LIST", made((163, struct.pack("<IIIQ", 1, 77, 5, 31337)), maker=MariaDBMaker), ("77-5-31337",)
    ),
    EventSpecimen(
        "START_ENCRYPTION",
        made((164, b"\1" + struct.pack("<I", 31337) + bytes(range(160, 172))), maker=MariaDBMaker),
        ("31337", bytes(range(160, 172)).hex()),
    ),
    EventSpecimen("QUERY_COMPRESSED", recorded("mariadb-compressed-events"), ("create table fixture.things",)),
    *(
        EventSpecimen(f"{verb}_ROWS_COMPRESSED_V1", recorded("mariadb-compressed-queries"), (text,))
        for verb, text in (("WRITE", "word 3"), ("UPDATE", "word 5!"), ("DELETE", "word 4"))
    ),
    *(
        EventSpecimen(
            f"{verb}_ROWS_COMPRESSED",
            made((19, TABLE_MAP), (code, ROWS_V2 + bitmaps + compressed(images, raw=False)), maker=MariaDBMaker),
            ("31337",),
        )
        for verb, code, bitmaps, images in (
            ("WRITE", 169, b"\xff", ROW[-5:]),
            ("UPDATE", 170, b"\xff\xff", ROW[-5:] * 2),
            ("DELETE", 171, b"\xff", ROW[-5:]),
        )
    ),
    EventSpecimen("PARTIAL_ROW_DATA", made((19, TABLE_MAP), *FRAGMENTS, maker=MariaDBMaker), ("31337",)),
]


# --- column types ---


@dataclass(frozen=True)
class ColumnSpecimen:
    """Values of a type in wire format, and the same values as text.

    `column` describes how to read the tools' notation of such a value.
    """

    name: str
    code: int
    metadata: bytes
    values: tuple[bytes, ...]
    texts: tuple[str, ...]
    column: Column
    optional: bytes
    is_named: bool

    def file(self, folder: Path) -> Path:
        names = field_of(4, b"\1c") if self.is_named else b""
        return column_file(folder, self.code, self.metadata, self.values, self.optional + names)


def specimen(
    name: str,
    kind: str,
    code: int,
    metadata: bytes,
    *pairs: tuple[bytes, str],
    optional: bytes = b"",
    ddl: str = "",
    unsigned: bool = False,
    members: tuple[str, ...] = (),
    charset_name: str | None = None,
    is_named: bool = True,
) -> ColumnSpecimen:
    """Make a specimen of values and their texts; without `is_named`, like binlog_row_metadata=MINIMAL."""
    declaration = f"{ddl or kind}{' unsigned' if unsigned else ''}"
    column = Column("c", declaration, kind, (), charset_name, members)  # type: ignore[arg-type]
    values, texts = zip(*pairs, strict=True)
    return ColumnSpecimen(name, code, metadata, values, texts, column, optional, is_named)


def sized(data: bytes, size: int = 1) -> bytes:
    return len(data).to_bytes(size, "little") + data


def labels(kind: int, *texts: bytes) -> bytes:
    return field_of(kind, packed(len(texts)) + b"".join(packed(len(text)) + text for text in texts))


UNSIGNED, SIGNED = signedness(True), signedness(False)
MEMBERS = ("small", "Größe")
ENCODED = [member.encode() for member in MEMBERS]
POINT = bytes(4) + b"\1" + struct.pack("<Idd", 1, 1.5, -2.0)
DOCUMENT = {"a": [1, "é", None], "b": 2.5}

COLUMNS: list[ColumnSpecimen] = [
    *(
        specimen(
            f"{name} {'unsigned' if unsigned else 'signed'}",
            "integer",
            code,
            b"",
            *((number.to_bytes(size, "little", signed=not unsigned), str(number)) for number in (low, high)),
            optional=UNSIGNED if unsigned else SIGNED,
            unsigned=unsigned,
        )
        for name, code, size in (
            ("TINY", TINY, 1),
            ("SHORT", SHORT, 2),
            ("INT24", INT24, 3),
            ("LONG", LONG, 4),
            ("LONGLONG", LONGLONG, 8),
        )
        for unsigned, low, high in (
            (False, -(1 << 8 * size - 1), (1 << 8 * size - 1) - 1),
            (True, 0, (1 << 8 * size) - 1),
        )
    ),
    specimen(
        "FLOAT",
        "float",
        FLOAT,
        b"\4",
        *((struct.pack("<f", float(text)), text) for text in ("1.5", "-0.1")),
        optional=SIGNED,
    ),
    specimen(
        "FLOAT of nine digits", "double", FLOAT, b"\4", (struct.pack("<f", 16777216.0), "16777216"), optional=SIGNED
    ),
    specimen(
        "DOUBLE",
        "double",
        DOUBLE,
        b"\x08",
        *((struct.pack("<d", float(text)), text) for text in ("0.1", "-1.7976931348623157e308")),
        optional=SIGNED,
    ),
    specimen(
        "NEWDECIMAL",
        "decimal",
        NEWDECIMAL,
        b"\x14\4",
        *((decimal(Decimal(text), 20, 4), text) for text in ("-1234567890123456.7890", "0.0001")),
        optional=SIGNED,
    ),
    specimen("BIT", "bit", BIT, b"\5\1", (b"\x10\x05", "4101")),
    specimen("YEAR", "year", YEAR, b"", (b"\x7e", "2026")),
    specimen("YEAR 0000", "year", YEAR, b"", (b"\0", "0000")),
    specimen("DATE", "date", DATE, b"", ((2026 << 9 | 11 << 5 | 20).to_bytes(3, "little"), "2026-11-20")),
    specimen("DATE, zero", "date", DATE, b"", (bytes(3), "0000-00-00")),
    specimen("TIME2", "time", TIME2, b"\3", (time2(False, 23, 59, 59, 123000, 3), "23:59:59.123"), ddl="time(3)"),
    specimen(
        "TIME2, negative with a fraction",
        "time",
        TIME2,
        b"\3",
        (time2(True, 1, 2, 3, 400000, 3), "-01:02:03.400"),
        ddl="time(3)",
    ),
    specimen(
        "DATETIME2",
        "datetime",
        DATETIME2,
        b"\6",
        (datetime2(2026, 11, 20, 1, 2, 3, 456789, 6), "2026-11-20 01:02:03.456789"),
        ddl="datetime(6)",
    ),
    specimen(
        "DATETIME2, zero",
        "datetime",
        DATETIME2,
        b"\0",
        (datetime2(0, 0, 0, 0, 0, 0, 0, 0), "0000-00-00 00:00:00"),
        ddl="datetime",
    ),
    specimen(
        "TIMESTAMP2",
        "timestamp",
        TIMESTAMP2,
        b"\2",
        (TIMESTAMP.to_bytes(4, "big") + fraction(250000, 2), "2023-11-14 22:13:20.25"),
        ddl="timestamp(2)",
    ),
    specimen("TIME (before 5.6.4)", "time", OLD_TIME, b"", ((235959).to_bytes(3, "little"), "23:59:59"), ddl="time"),
    specimen(
        "DATETIME (before 5.6.4)",
        "datetime",
        OLD_DATETIME,
        b"",
        ((20261120010203).to_bytes(8, "little"), "2026-11-20 01:02:03"),
        ddl="datetime",
    ),
    specimen(
        "TIMESTAMP (before 5.6.4)",
        "timestamp",
        OLD_TIMESTAMP,
        b"",
        (TIMESTAMP.to_bytes(4, "little"), "2023-11-14 22:13:20"),
        ddl="timestamp",
    ),
    *(
        specimen(
            f"VARCHAR {name}",
            "text",
            VARCHAR,
            b"\xa0\0",
            (sized(text.encode(codec)), text),
            optional=charset(collation),
            charset_name=name,
        )
        for name, collation, codec, text in (
            ("utf8mb4", UTF8MB4, "utf-8", "Grüße 🎁"),
            ("latin1", 8, "cp1252", "Grüße"),
            ("utf16", 54, "utf-16-be", "Grüße 🎁"),
            ("sjis", 13, "shift_jis", "日本語"),
        )
    ),
    specimen(
        "VARBINARY",
        "binary",
        VARCHAR,
        b"\xa0\0",
        (sized(b"\xff\x00\x80"), "0xFF0080"),
        optional=charset(BINARY_COLLATION),
        ddl="varbinary(160)",
    ),
    specimen(
        "STRING (CHAR)",
        "text",
        STRING,
        b"\xfe\x28",
        (sized("Grüße".encode()), "Grüße"),
        optional=charset(UTF8MB4),
        charset_name="utf8mb4",
    ),
    specimen(
        "STRING (BINARY), padded",
        "bytes",
        STRING,
        b"\xfe\4",
        (sized(b"\xff\x01"), "0xFF010000"),
        optional=charset(BINARY_COLLATION),
        ddl="binary(4)",
    ),
    specimen(
        "ENUM",
        "enum",
        STRING,
        bytes([ENUM, 1]),
        (b"\2", MEMBERS[1]),
        optional=labels(6, *ENCODED) + field_of(10, packed(UTF8MB4)),
        members=MEMBERS,
    ),
    specimen(
        "SET",
        "set",
        STRING,
        bytes([SET, 1]),
        (b"\3", ",".join(MEMBERS)),
        optional=labels(5, *ENCODED) + field_of(10, packed(UTF8MB4)),
        members=MEMBERS,
    ),
    specimen(
        "BLOB (TEXT)",
        "text",
        BLOB,
        b"\2",
        (sized("Grüße 🎁".encode(), 2), "Grüße 🎁"),
        optional=charset(UTF8MB4),
        charset_name="utf8mb4",
    ),
    specimen(
        "BLOB",
        "binary",
        BLOB,
        b"\2",
        (sized(b"\xff\x00\x80", 2), "0xFF0080"),
        optional=charset(BINARY_COLLATION),
        ddl="blob",
    ),
    specimen("JSON", "json", JSON, b"\4", (sized(json_document(DOCUMENT), 4), '{"a": [1, "é", null], "b": 2.5}')),
    specimen("JSON, a number with a point", "json", JSON, b"\4", (sized(json_document(64.0), 4), "64.0")),
    specimen(
        "GEOMETRY",
        "binary",
        255,
        b"\4",
        (sized(POINT, 4), "0x" + POINT.hex().upper()),
        optional=field_of(7, b"\1"),
        ddl="point",
    ),
    specimen(
        "VECTOR",
        "binary",
        242,
        b"\4",
        (sized(struct.pack("<ff", 1.5, -2.0), 4), "0x" + struct.pack("<ff", 1.5, -2.0).hex().upper()),
        optional=field_of(13, b"\2"),
        ddl="vector(2)",
    ),
    *(
        specimen(
            name,
            "text",
            code,
            metadata,
            (sized(compressed(b"a" * 90, raw=True), size), "a" * 90),
            optional=charset(UTF8MB4),
            charset_name="utf8mb4",
        )
        for name, code, metadata, size in (
            ("VARCHAR_COMPRESSED", VARCHAR_COMPRESSED, b"\xa0\0", 1),
            ("BLOB_COMPRESSED", BLOB_COMPRESSED, b"\2", 2),
        )
    ),
    specimen(
        "LONG unsigned, MINIMAL",
        "integer",
        LONG,
        b"",
        (b"\xff" * 4, "4294967295"),
        optional=UNSIGNED,
        unsigned=True,
        is_named=False,
    ),
    specimen(
        "VARCHAR latin1, MINIMAL",
        "text",
        VARCHAR,
        b"\xa0\0",
        (sized("Grüße".encode("cp1252")), "Grüße"),
        optional=charset(8),
        charset_name="latin1",
        is_named=False,
    ),
    specimen(
        "BLOB, MINIMAL",
        "binary",
        BLOB,
        b"\2",
        (sized(b"\xff\x00\x80", 2), "0xFF0080"),
        optional=charset(BINARY_COLLATION),
        ddl="blob",
        is_named=False,
    ),
]
