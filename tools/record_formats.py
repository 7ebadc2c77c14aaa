"""Records fixtures of formats that few servers write: `python -m tools.record_formats [NAME…]`.

Each is a small binlog `tests/fixtures/NAME.binlog` of the schema `fixture`, with `NAME-schema/`, its snapshot, and
`NAME.rows.json`, the server's rows at the file's end: `{table: {"columns": [name…], "rows": [[text…]…]}}`
in binloom's text form. Replayed in commit order onto empty tables, the file gives these rows.
"""

import argparse
import contextlib
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pymysql.cursors import DictCursor

from tests.servers import Distribution, Server, mariadb, mariadb118, mysql, mysql56
from tests.servers.rows import table_rows
from tools.record_samples import FIXTURES

SCHEMA = "fixture"
RELAY_LOGS = "relay-logs"
FETCH_SECONDS = 30
# Zero and invalid dates are stored too.
SQL_MODE = "set session sql_mode = 'ALLOW_INVALID_DATES'"
NUMBERS = "create table numbers (id int primary key, word varchar(20) character set utf8mb4)"


@dataclass(frozen=True)
class Fixture:
    """One file: its server and options, the statements to write, and the statements that restore the server afterwards.

    Without `tables`, the rows of all tables are stored with it.
    """

    name: str
    distribution: Distribution
    write: Sequence[str] | Callable[[Server], None]
    options: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    after: str = ""

    def record(self, directory: Path) -> None:
        with self.distribution.start(directory, self.options) as server:
            server.execute("set sql_log_bin = 0", f"create database {SCHEMA} character set utf8mb4")
            server.flush()
            if callable(self.write):
                self.write(server)
            else:
                server.execute(f"use {SCHEMA}", SQL_MODE, *self.write)
            keep(self.name, server.flush(), server, self.tables)
            if self.after:
                server.execute(self.after)


def keep(name: str, binlog: Path, server: Server, tables: Sequence[str] = ()) -> None:
    """Copy a file to the fixtures, with the server's final schema and the final rows of all tables or some."""
    shutil.copyfile(binlog, FIXTURES / f"{name}.binlog")
    server.snapshot_dir(FIXTURES / f"{name}-schema")
    query = f"select table_name from information_schema.tables where table_schema = '{SCHEMA}' order by 1"
    content = []
    for table in tables or [name for (name,) in server.execute(query)]:
        columns, rows = table_rows(server, SCHEMA, table)
        rows.sort(key=lambda row: (int(row[0] or 0), str(row)))
        lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        content.append(f'"{SCHEMA}.{table}": {{"columns": {json.dumps(columns)}, "rows": [\n{lines}\n]}}')
    (FIXTURES / f"{name}.rows.json").write_text("{" + ",\n".join(content) + "}\n")


# --- rows of MySQL 5.6 ---

OLD_TABLE = """
    create table things (
        id int unsigned not null primary key,
        name varchar(40) character set utf8mb4 null,
        latin char(40) character set latin1 null,
        kind enum('small', 'large') null,
        flags set('a', 'b', 'c') null,
        price decimal(8, 3) null,
        happened_at datetime(6) null,
        noted_at timestamp(3) null,
        lasted time(2) null,
        bits bit(11) null,
        picture blob null
    )
"""
OLD_ROWS = [
    """
    insert into things values
        (1, 'one', 'Zürich', 'small', 'a,c', 1.5, '2026-11-17 08:00:00.000001', '2026-11-17 08:00:00.125',
            '-00:00:00.5', b'10000000001', x'00ff'),
        (4294967295, '🎁', null, 'large', '', -99999.999, null, null, '838:59:59', 0, ''),
        (3, null, 'ÿ', null, 'b', 0, '0000-00-00 00:00:00', '1970-01-01 00:00:01', null, null, null)
    """,
    "update things set name = null, price = price + 1 where id <> 3",
    "update things set lasted = '-837:00:00.99', picture = repeat('x', 300) where id = 1",
    "delete from things where id = 3",
]

# --- MariaDB's own types ---

OLD_TEMPORALS = [
    "create table moments (id int primary key, a_date date null, a_year year null, "
    + ", ".join(
        f"time{digits} time({digits}) null, datetime{digits} datetime({digits}) null,"
        f" timestamp{digits} timestamp({digits}) null"
        for digits in range(7)
    )
    + ")",
    *(
        "insert into moments values (" + ", ".join([str(number), *moments, *clock * 7]) + ")"
        for number, (moments, clock) in enumerate(
            [
                (
                    ("'2026-11-20'", "2026"),
                    ("'12:34:56.123456'", "'2026-11-20 01:02:03.123456'", "'2026-11-20 01:02:03.123456'"),
                ),
                (("'0000-00-00'", "0"), ("'00:00:00'", "'0000-00-00 00:00:00'", "'0000-00-00 00:00:00'")),
                (
                    ("'9999-12-31'", "2155"),
                    ("'838:59:59'", "'9999-12-31 23:59:59.999999'", "'2038-01-19 03:14:07.999999'"),
                ),
                (
                    ("'1000-01-01'", "1901"),
                    ("'-838:59:59.999999'", "'1000-01-01 00:00:00.000001'", "'1970-01-01 00:00:01.000001'"),
                ),
                (
                    ("'2024-02-31'", "1970"),
                    ("'-00:00:00.500000'", "'2024-02-31 12:00:00.5'", "'2001-09-09 01:46:40.5'"),
                ),
                (("null", "null"), ("null", "null", "null")),
            ]
        )
    ),
    "update moments set a_date = null, time3 = '-00:00:01.999', datetime6 = '1999-12-31 23:59:59.999999' where id = 0",
    "delete from moments where id = 2 and time0 is not null",
]
UUID_AND_INET = [
    "create table addresses (id int primary key, u uuid null, six inet6 null, four inet4 null, word varchar(9))",
    """
    insert into addresses values
        (1, '123e4567-e89b-12d3-a456-426655440000', '2001:db8::ff00:42:8329', '192.0.2.1', 'a'),
        (2, '00000000-0000-0000-0000-000000000000', '::', '0.0.0.0', 'b'),
        (3, 'ffffffff-ffff-ffff-ffff-ffffffffffff', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '255.255.255.255', 'c'),
        (4, '6ccd780c-baba-1026-9564-5b8c656024db', '::ffff:192.0.2.128', '10.0.0.0', 'd'),
        (5, 'f81d4fae-7dec-41d0-a765-00a0c91e6bf6', '::1.2.3.4', '0.0.0.1', 'e'),
        (6, '01890a5d-ac96-774b-bcce-b302099a8057', '1:0:0:2:0:0:0:3', '127.0.0.1', 'f'),
        (7, null, '0:0:1::', null, 'g'),
        (8, '00000000-0000-0000-0000-000000000001', '::1', '1.0.0.0', null),
        (9, '8f000000-0000-4000-0000-000000000000', 'fe80::', '9.9.9.9', 'h'),
        (10, '00112233-4455-0677-8899-aabbccddeeff', '1::', '9.9.9.10', 'i')
    """,
    "update addresses set u = '123e4567-e89b-12d3-a456-426655440001', six = null, four = '198.51.100.7' where id = 1",
    "delete from addresses where id = 2",
]
COMPRESSED_COLUMNS = [
    """
    create table packed (
        id int primary key,
        short_text varchar(200) compressed character set utf8mb4 null,
        long_text varchar(5000) compressed character set latin1 null,
        short_bytes varbinary(255) compressed null,
        a_tinytext tinytext compressed character set utf8mb4 null,
        a_text text compressed character set utf8mb4 null,
        a_longtext longtext compressed character set utf8mb4 null,
        a_tinyblob tinyblob compressed null,
        a_blob blob compressed null,
        a_longblob longblob compressed null,
        plain varchar(20) null
    )
    """,
    "insert into packed values (1, '', '', '', '', '', '', '', '', '', 'empty')",
    "insert into packed values (2, 'short', 'ü', x'00', 'x', 'y', 'z', x'ff', x'00ff', x'80', 'below the threshold')",
    "insert into packed values (3, repeat('é', 150), repeat('ü', 900), repeat(x'00', 255), repeat('a', 255),"
    " repeat('🎁', 500), repeat('abc ', 400), repeat(x'ab', 255), repeat(x'00ff', 300), repeat(x'01', 700),"
    " 'long')",
    "insert into packed values (4, null, null, null, null, null, null, null, null, null, null)",
    "update packed set short_text = repeat('word ', 30), a_longblob = null, plain = 'changed' where id in (2, 3)",
    "delete from packed where id = 1",
]
# Long and repetitive enough that QUERY events are worth compressing.
COMPRESSED_EVENTS = [
    NUMBERS,
    "create table notes (id int primary key, note text) comment = '" + "many words " * 12 + "'",
    "insert into numbers values " + ", ".join(f"({number}, 'word {number % 7}')" for number in range(60)),
    "update numbers set word = concat(word, '!') where id % 2 = 0",
    "insert into notes values (1, repeat('text ', 100)), (2, null)",
    "delete from numbers where id > 50",
    "/* " + "a long remark " * 20 + "*/ create table empty_one (id int primary key)",
]
VERSIONED = [
    "create table priced (id int primary key, price int) with system versioning",
    """
    create table priced_by_name (
        id int primary key,
        price int,
        valid_from timestamp(6) generated always as row start,
        valid_to timestamp(6) generated always as row end,
        period for system_time (valid_from, valid_to)
    ) with system versioning
    """,
    "create table hidden (id int primary key, seen int, unseen varchar(9) invisible default 'dark', last_one int)",
    """
    create table computed (
        id int primary key,
        a int,
        twice int generated always as (a * 2) stored,
        negative int generated always as (-a) virtual,
        word varchar(9)
    )
    """,
    "insert into priced values (1, 10), (2, 20), (3, 30)",
    "insert into priced_by_name (id, price) values (1, 10), (2, 20), (3, 30)",
    "update priced set price = 11 where id = 1",
    "update priced_by_name set price = 11 where id = 1",
    "delete from priced where id = 2",
    "delete from priced_by_name where id = 2",
    "insert into hidden values (1, 1, 1), (2, 2, 2)",
    "update hidden set unseen = 'light', seen = null where id = 1",
    "insert into computed (id, a, word) values (1, 10, 'one'), (2, 20, 'two'), (3, null, 'three')",
    "update computed set a = 11 where id = 1",
    "delete from computed where id = 3",
]
FAR_TIMESTAMPS = [
    "create table stamps (id int primary key, s timestamp null, s3 timestamp(3) null, s6 timestamp(6) null)",
    "insert into stamps values (1, '2038-01-19 03:14:08', '2038-01-19 03:14:08.001', '2038-01-19 03:14:08.000001')",
    "insert into stamps values (2, '2106-02-07 06:28:15', '2106-02-07 06:28:15.999', '2106-02-07 06:28:15.999999')",
    "insert into stamps values (3, '1970-01-01 00:00:01', '0000-00-00 00:00:00', '2069-06-15 12:00:00.5')",
    "update stamps set s = '2100-01-01 00:00:00' where id = 3",
]
ROW_IMAGES = [
    "create table wide (id int primary key, a int, b varchar(9), c text, d blob, e decimal(9, 2), unique key (a))",
    "insert into wide values (1, 1, 'one', 'text', x'00', 1.5), (2, 2, null, null, null, null)",
    "update wide set b = 'two', c = null where id = 1",
    "update wide set b = null where id = 2",
    "update wide set a = 20, d = x'ff', e = 0 where id = 2",
    "insert into wide (id, a) values (3, 3)",
    "delete from wide where id = 1",
]

# --- MySQL's own ---

TAGGED = [
    NUMBERS,
    "insert into numbers values (1, 'untagged')",
    "set session gtid_next = 'AUTOMATIC:nightly'",
    "insert into numbers values (2, 'tagged'), (3, 'tagged')",
    "update numbers set word = 'changed' where id = 2",
    "set session gtid_next = 'AUTOMATIC'",
    "insert into numbers values (4, 'untagged again')",
    "set session gtid_next = 'AUTOMATIC:a_tag_of_thirty_two_characters_x'",
    "delete from numbers where id = 3",
    "create table made_by_a_tagged_statement (id int primary key)",
    "set session gtid_next = '11111111-2222-3333-4444-555555555555:by_hand:1000000'",
    "insert into numbers values (5, 'number by hand')",
    "set session gtid_next = 'AUTOMATIC'",
    "insert into numbers values (6, 'last')",
]
JSON_DIFFS = [
    "create table documents (id int primary key, a json, n int, b json, word varchar(20))",
    """
    insert into documents values
        (1, '{"name": "one", "tags": ["x", "y"], "deep": {"list": [1, {"k": "v"}], "n": 1}}', 1, '[1, 2, 3]', 'w'),
        (2, '{"a.b": 1, "c \\\\"d\\\\"": 2, "é": 3, "": 4, "$": 5}', 2, '{"long": "a value that is replaced"}', 'w'),
        (3, null, 3, '[[1, 2], [3, 4], {"k": [true, null, 1.5]}]', 'w'),
        (4, '[10, 20, 30, 40]', 4, null, 'w'),
        (5, '"a scalar"', 5, '64.0', 'w'),
        (6, json_object('d', cast('1.50' as decimal(10,2)), 'day', cast('2024-02-29' as date), 'x', 1), 6, '{}', 'w')
    """,
    "update documents set a = json_set(a, '$.name', 'changed', '$.deep.n', 22, '$.fresh', json_object('k', 1))"
    " where id = 1",
    "update documents set a = json_replace(a, '$.tags[1]', 'Z', '$.deep.list[1].k', null),"
    " b = json_set(b, '$[1]', 'two', '$[3]', 4) where id = 1",
    "update documents set a = json_remove(a, '$.tags[0]', '$.deep.list[0]'), n = n + 1 where id = 1",
    """update documents set a = json_set(a, '$."a.b"', 10, '$."c \\\\"d\\\\""', 20, '$."é"', 30, '$.""', 40,
        '$."$"', 50), b = json_replace(b, '$.long', 'short') where id = 2""",
    "update documents set b = json_set(b, '$[2].k[1]', 'nested', '$[0][1]', 22, '$[1]', json_array()) where id = 3",
    "update documents set b = json_array_insert(b, '$[0]', 'first', '$[1][0]', 0) where id = 3",
    "update documents set b = json_array_append(b, '$', 'last', '$[0]', 'wrapped') where id = 3",
    "update documents set a = json_remove(a, '$[2]', '$[0]') where id = 4",
    "update documents set a = json_set(a, '$[last]', -1) where id = 4",
    "update documents set b = json_set(b, '$', 1) where id in (4, 5)",
    "update documents set a = json_set(a, '$.x', cast('12:34:56.5' as time(1)), '$.d', cast('-2.75' as decimal(10,2)))"
    " where id = 6",
    "update documents set b = json_set(b, '$.made', json_object()) where id = 6",
    "update documents set b = json_set(b, '$.made.deeper', json_array(1, null, true, 'x')) where id = 6",
    "update documents set a = null, b = json_set(b, '$.z', 1) where id in (2, 6)",
    "update documents set word = 'no document changed' where id in (1, 3)",
    "update documents set a = json_set(a, '$.name', 'changed') where id = 1",
    "delete from documents where id = 5",
]
GB18030 = [
    "create table words (id int primary key, c char(20) character set gb18030, v varchar(60) character set gb18030,"
    " t text character set gb18030)",
    *(
        f"insert into words values ({number}, '{text[:20]}', '{text}', '{text}')"
        for number, text in enumerate(
            [
                "",
                "plain",
                "简体中文, 繁體中文",
                "€ Zürich ÿ Ā",
                "emoji 🎁🙏🏽",
                "日本語、ｶﾅ 한국어",
                "\u0080\uffff\U0010ffff𠀀ẞ",
            ]
        )
    ),
    "update words set v = null, c = 'Ω≈ç√∫' where id in (2, 4)",
]
# Changes to `statements` are logged as statements, changes to `numbers` as rows.
MIXED = [
    "set session binlog_format = 'MIXED'",
    NUMBERS,
    NUMBERS.replace("numbers", "statements"),
    "insert into statements values (1, 'safe'), (2, 'safe')",
    "insert into numbers values (2, left(uuid(), 0)), (3, left(uuid(), 0))",
    "update statements set word = 'changed' where id = 1",
    "update numbers set word = concat('unsafe', left(uuid(), 0)) where id = 3",
    "set session binlog_format = 'STATEMENT'",
    "insert into statements select id + 10, word from numbers",
    "delete from statements where id = 2",
    "set session binlog_format = 'ROW'",
    "insert into numbers values (5, 'a row')",
    "delete from numbers where id = 2",
]


def two_phases(server: Server) -> None:
    """Run XA transactions: prepared, with others between, committed or rolled back, in one phase or two."""
    server.execute(f"use {SCHEMA}", NUMBERS, "insert into numbers values (1, 'before')")

    def session() -> Any:
        return contextlib.closing(server.connect(database=SCHEMA))

    with session() as one, session() as two, session() as three, session() as plain:
        _xa(one, "'first'", "insert into numbers values (2, 'first')", "update numbers set id = 20 where id = 2")
        _xa(two, "'second','branch',7", "insert into numbers values (3, 'second')")
        _statements(plain, "insert into numbers values (4, 'between')")
        _statements(two, "xa rollback 'second','branch',7")
        _statements(plain, "insert into numbers values (5, 'between')")
        _statements(one, "xa commit 'first'")
        _statements(plain, "update numbers set word = 'seen' where id = 20")
        _statements(three, "xa start x'00ff27'", "insert into numbers values (6, 'one phase')", "xa end x'00ff27'")
        _statements(three, "xa commit x'00ff27' one phase")
        _statements(three, "xa start 'gone'", "insert into numbers values (7, 'gone')", "xa end 'gone'")
        _statements(three, "xa rollback 'gone'")
        _xa(three, "'never ended'", "insert into numbers values (8, 'never ended')")
        _statements(plain, "insert into numbers values (9, 'after')")


def _xa(connection: Any, xid: str, *statements: str) -> None:
    _statements(connection, f"xa start {xid}", *statements, f"xa end {xid}", f"xa prepare {xid}")


def _statements(connection: Any, *statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


# --- a replica's own files ---


FETCHING = {
    mysql: (
        "change replication source to source_host = '127.0.0.1', source_user = 'root', get_source_public_key = 1,"
        " source_log_file = 'binlog.000001', source_log_pos = 4, source_port = ",
        "start replica io_thread",
        "show replica status",
        "stop replica io_thread",
    ),
    mariadb: (
        "change master to master_host = '127.0.0.1', master_user = 'root', master_use_gtid = no,"
        " master_log_file = 'binlog.000001', master_log_pos = 4, master_port = ",
        "start slave io_thread",
        "show slave status",
        "stop slave io_thread",
    ),
}


def record_relay_logs(distribution: Distribution, directory: Path) -> None:
    """Let a replica fetch from a source whose checksum setting changes meanwhile; keep the relay logs with the change.

    The replica begins each relay log with its known checksum setting, and continues with the setting in the source's
    own format description event.
    """
    change, start, show, stop = FETCHING[distribution]
    options = ["--server-id=2", f"--relay-log={directory / 'relay'}"]
    rounds = {"checksum_on": "CRC32", "checksum_ends": "NONE", "checksum_begins": "CRC32"}
    with (
        distribution.start(directory / "source") as source,
        distribution.start(directory / "replica", options) as replica,
    ):
        replica.execute(f"{change}{source.port}", start)
        source.execute(f"create database {SCHEMA} character set utf8mb4")
        for table in rounds:
            source.execute(f"use {SCHEMA}", NUMBERS.replace("numbers", table))
        for table, checksum in rounds.items():
            source.execute(
                f"use {SCHEMA}",
                f"set global binlog_checksum = '{checksum}'",
                f"insert into {table} values (1, 'one'), (2, 'ü')",
                f"update {table} set word = 'with {checksum}' where id = 1",
            )
        _wait_for(replica, show, source.binlogs()[-1])
        replica.execute(stop, "flush relay logs")
        for path in sorted(directory.glob("relay.0*")):
            for table in ("checksum_ends", "checksum_begins"):
                if path.read_bytes().count(f"{table}\0".encode()) > 1:
                    keep(f"{distribution.name}-relay-log-{table.replace('_', '-')}", path, source, [table])


def _wait_for(replica: Server, show: str, binlog: Path) -> None:
    """Wait until a replica has fetched a source's last binlog to its end."""
    deadline = time.monotonic() + FETCH_SECONDS
    expected = (binlog.name, binlog.stat().st_size)
    while (found := _fetched(replica, show)) != expected:
        if time.monotonic() > deadline:
            raise TimeoutError(f"the replica has fetched {found}, not {expected}")
        time.sleep(0.1)


def _fetched(replica: Server, show: str) -> tuple[str, int]:
    with replica.connect() as connection, connection.cursor(DictCursor) as cursor:
        cursor.execute(show)
        (status,) = cursor.fetchall()
    return next(
        (status[f"{source}_Log_File"], status[f"Read_{source}_Log_Pos"])
        for source in ("Source", "Master")
        if f"{source}_Log_File" in status
    )


V1_ROWS = "--log-bin-use-v1-row-events=1"
GTIDS = ("--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--log-slave-updates=ON")
COMPRESSION = "--binlog-transaction-compression=ON"
PARTIAL_JSON = "--binlog-row-value-options=PARTIAL_JSON"
UNDO_XA = "xa rollback 'never ended'"

RECORDED = [
    Fixture("mysql56-rows-v2", mysql56, [OLD_TABLE, *OLD_ROWS]),
    Fixture("mysql56-rows-v1", mysql56, [OLD_TABLE, *OLD_ROWS], (V1_ROWS,)),
    Fixture("mysql56-checksum-none", mysql56, [OLD_TABLE, *OLD_ROWS], ("--binlog-checksum=NONE",)),
    Fixture("mysql56-gtids", mysql56, [OLD_TABLE, *OLD_ROWS], GTIDS),
    Fixture("mysql56-row-image-minimal", mysql56, ROW_IMAGES, ("--binlog-row-image=MINIMAL",)),
    Fixture("mysql-tagged-gtids", mysql, TAGGED),
    Fixture("mysql-tagged-gtids-compressed", mysql, TAGGED, (COMPRESSION,)),
    Fixture("mysql-partial-json-many-diffs", mysql, JSON_DIFFS, (PARTIAL_JSON,)),
    Fixture("mysql-partial-json-compressed", mysql, JSON_DIFFS, (PARTIAL_JSON, COMPRESSION)),
    Fixture("mysql-partial-json-minimal", mysql, JSON_DIFFS, (PARTIAL_JSON, "--binlog-row-image=MINIMAL")),
    Fixture("mysql-xa", mysql, two_phases, after=UNDO_XA),
    Fixture("mysql-xa-compressed", mysql, two_phases, (COMPRESSION,), after=UNDO_XA),
    Fixture("mysql-mixed", mysql, MIXED, tables=("numbers",)),
    Fixture("mysql-gb18030", mysql, GB18030),
    Fixture("mysql-row-image-noblob", mysql, ROW_IMAGES, ("--binlog-row-image=NOBLOB",)),
    Fixture("mariadb-old-temporals", mariadb, OLD_TEMPORALS, ("--mysql56-temporal-format=OFF",)),
    Fixture("mariadb-uuid-inet", mariadb, UUID_AND_INET),
    Fixture("mariadb-compressed-columns", mariadb, COMPRESSED_COLUMNS),
    Fixture(
        "mariadb-compressed-queries",
        mariadb,
        COMPRESSED_EVENTS,
        ("--log-bin-compress=ON", "--log-bin-compress-min-len=10"),
    ),
    Fixture("mariadb-versioned-and-generated", mariadb, VERSIONED),
    Fixture("mariadb-xa", mariadb, two_phases, after=UNDO_XA),
    Fixture("mariadb-mixed", mariadb, MIXED, tables=("numbers",)),
    Fixture("mariadb-row-image-noblob", mariadb, ROW_IMAGES, ("--binlog-row-image=NOBLOB",)),
    Fixture("mariadb118-uuid-inet", mariadb118, UUID_AND_INET),
    Fixture("mariadb118-versioned-and-generated", mariadb118, VERSIONED),
    Fixture("mariadb118-far-timestamps", mariadb118, FAR_TIMESTAMPS),
    Fixture("mariadb118-row-image-full-nodup", mariadb118, ROW_IMAGES, ("--binlog-row-image=FULL_NODUP",)),
    Fixture("mariadb118-xa", mariadb118, two_phases, after=UNDO_XA),
]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.record_formats", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="which ones; all when none is named")
    names = parser.parse_args().names
    for fixture in RECORDED:
        if not names or fixture.name in names:
            with tempfile.TemporaryDirectory(prefix="record-") as work:
                fixture.record(Path(work) / "server")
            print(fixture.name)
    for distribution in FETCHING:
        if not names or RELAY_LOGS in names:
            with tempfile.TemporaryDirectory(prefix="record-") as work:
                record_relay_logs(distribution, Path(work))
            print(f"{RELAY_LOGS} of {distribution.name}")


if __name__ == "__main__":
    main()
