"""Status variables of QUERY events: the session state that servers log, and hand-made blocks."""

import struct
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pymysql
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.binlog import open_binlog
from ingest.binlog.events import status_variables
from ingest.binlog.events.status_variables import SessionReader, Status, parse_status
from tests.servers import Server
from tests.servers.marked import marked

QUERY = 2


@pytest.fixture(params=marked("mysql", "mariadb"))
def server(request: pytest.FixtureRequest) -> Server:
    running: Server = request.getfixturevalue(f"{request.param}_server")
    return running


def statuses(path: Path) -> dict[str, Status]:
    """Return the status of each QUERY event by its statement."""
    log, data, found = open_binlog(path), path.read_bytes(), {}
    fixed = log.format.post_header_size(QUERY)
    for event in log.events():
        if event.type_code == QUERY:
            body = data[event.position + log.format.header_size : event.end_position]
            (size,) = struct.unpack_from("<H", body, 11)
            found[event.detail["sql"]] = parse_status(body[fixed : fixed + size], log.format.flavor)
    return found


def present(status: Status) -> dict[str, Any]:
    return {name: value for name, value in asdict(status).items() if value is not None}


@pytest.mark.mysql
@pytest.mark.mariadb
def test_sql_modes_are_written_as_the_server_prints_them(server: Server) -> None:
    printed = {}
    server.flush()
    with server.connect() as connection, connection.cursor() as cursor:
        for bit in range(64):
            try:
                cursor.execute(f"set sql_mode = {1 << bit}")
            except pymysql.Error:
                continue
            cursor.execute("select @@sql_mode")
            statement = f"drop database if exists mode_{bit}"
            printed[statement] = cursor.fetchall()[0][0]
            cursor.execute(statement)
    assert len(printed) >= 20
    logged = {sql: status.sql_mode for sql, status in statuses(server.flush()).items()}
    assert logged == printed


@pytest.mark.mysql
@pytest.mark.mariadb
def test_the_settings_of_a_session(server: Server) -> None:
    server.flush()
    server.execute(
        "create database statuses",
        "create table statuses.t (a int primary key auto_increment, b datetime(6))",
        "set names ujis, time_zone = '+05:30', lc_time_names = 'de_DE', collation_server = 'latin1_bin'",
        "set auto_increment_increment = 7, auto_increment_offset = 3, sql_mode = 'ansi_quotes'",
        "set foreign_key_checks = 0, unique_checks = 0, sql_auto_is_null = 1, binlog_format = 'statement'",
        "insert into statuses.t (b) values (convert_tz(now(6), @@time_zone, '+00:00'))",
        "create definer = current_user view statuses.v as select 1",
        "drop database statuses",
    )
    logged = statuses(server.flush())
    session = {
        "auto_increment_increment": 7,
        "auto_increment_offset": 3,
        "catalog": "std",
        "character_set_client": "ujis",
        "collation_connection": 12,
        "collation_server": 47,
        "flags2": 1 << 14 | 1 << 24 | 3 << 26 if server.flavor == "mariadb" else 1 << 14 | 3 << 26,
        "is_complete": True,
        "lc_time_names": 4,
        "sql_mode": "ANSI_QUOTES",
    }
    insert = next(status for sql, status in logged.items() if sql.startswith("insert"))
    assert session.items() <= present(insert).items()
    assert insert.microseconds is not None and insert.time_zone == "+05:30"
    view = next(status for sql, status in logged.items() if "v" in sql and "VIEW" in sql)
    assert session.items() <= present(view).items()
    assert view.invoker == "root@localhost" and view.xid is not None
    if server.flavor == "mysql":
        assert view.updated_schemas == ("statuses",)
        assert logged["drop database statuses"].default_collation_for_utf8mb4 == 255
    assert all(status.is_complete for status in logged.values())


VARIABLES = [
    ("mysql", b"\x00\x00\x40\x00\x04", {"flags2": 0x04004000}),
    ("mysql", b"\x01" + struct.pack("<Q", 1 << 2 | 1 << 32), {"sql_mode": "ANSI_QUOTES,TIME_TRUNCATE_FRACTIONAL"}),
    (
        "mariadb",
        b"\x01" + struct.pack("<Q", 1 << 4 | 1 << 32),
        {"sql_mode": "IGNORE_BAD_TABLE_OPTIONS,EMPTY_STRING_IS_NULL"},
    ),
    ("mysql", b"\x01" + struct.pack("<Q", 1 << 40), {"sql_mode": "0x10000000000"}),
    ("mysql", b"\x02\x03std\x00", {"catalog": "std"}),
    ("mysql", b"\x03\x02\x00\x01\x00", {"auto_increment_increment": 2, "auto_increment_offset": 1}),
    (
        "mysql",
        b"\x04\x21\x00\x08\x00\xff\x00",
        {"character_set_client": "utf8mb3", "collation_connection": 8, "collation_server": 255},
    ),
    ("mysql", b"\x05\x06SYSTEM", {"time_zone": "SYSTEM"}),
    ("mysql", b"\x06\x03std", {"catalog": "std"}),
    ("mysql", b"\x07\x04\x00", {"lc_time_names": 4}),
    ("mysql", b"\x08\x1c\x00", {"collation_database": 28}),
    ("mysql", b"\x09" + struct.pack("<Q", 5), {"table_map_for_update": 5}),
    ("mysql", b"\x0a\x64\x00\x00\x00", {"original_size": 100}),
    ("mariadb", b"\x0b\x04anna\x04home", {"invoker": "anna@home"}),
    ("mysql", b"\x0c\x02shop\x00crm\x00", {"updated_schemas": ("shop", "crm")}),
    ("mysql", b"\x0c\xfe", {}),
    ("mysql", b"\x0d\x40\xe2\x01", {"microseconds": 123456}),
    ("mysql", b"\x10\x01", {"explicit_defaults_for_timestamp": True}),
    ("mysql", b"\x11" + struct.pack("<Q", 77), {"xid": 77}),
    ("mysql", b"\x12\xff\x00", {"default_collation_for_utf8mb4": 255}),
    ("mysql", b"\x13\x00", {"sql_require_primary_key": False}),
    ("mysql", b"\x14\x01", {"default_table_encryption": True}),
    ("mysql", b"\x15\x01", {"enable_cascade_triggers": True}),
    ("mariadb", b"\x80\x40\xe2\x01", {"microseconds": 123456}),
    ("mariadb", b"\x81" + struct.pack("<Q", 77), {"xid": 77}),
    ("mariadb", b"\x82\x02", {"gtid_flags_extra": 2}),
    ("mariadb", b"\x82\x04" + struct.pack("<Q", 9), {"gtid_flags_extra": 4, "start_alter_gtid_number": 9}),
    ("mariadb", b"\x83\x01\x2d\x00\x00\x09", {"character_set_collations": ((45, 2304),)}),
]


@pytest.mark.parametrize(("flavor", "variable", "expected"), VARIABLES)
def test_each_variable(flavor: str, variable: bytes, expected: dict[str, Any]) -> None:
    assert present(parse_status(variable, flavor)) == {**expected, "is_complete": True}
    following = variable + b"\x07\x05\x00"
    assert present(parse_status(following, flavor)) == {**expected, "is_complete": True, "lc_time_names": 5}


@pytest.mark.parametrize(("flavor", "variable", "expected"), VARIABLES)
def test_a_variable_that_is_cut_off(flavor: str, variable: bytes, expected: dict[str, Any]) -> None:
    for size in range(1, len(variable)):
        assert present(parse_status(b"\x08\x1c\x00" + variable[:size], flavor)) == {
            "collation_database": 28,
            "is_complete": False,
        }


@pytest.mark.parametrize(("flavor", "key"), [("mysql", 128), ("mysql", 22), ("mariadb", 12), ("mariadb", 200)])
def test_an_unknown_variable_ends_the_parse(flavor: str, key: int) -> None:
    block = b"\x08\x1c\x00" + bytes([key]) + b"\x07\x05\x00"
    assert present(parse_status(block, flavor)) == {"collation_database": 28, "is_complete": False}


@given(st.binary(max_size=60), st.sampled_from(["mysql", "mariadb"]))
def test_any_bytes_give_a_status(block: bytes, flavor: str) -> None:
    assert isinstance(parse_status(block, flavor), Status)


PIECES = [b"\x0d\x01\x02\x03", b"\x0d\x09\x0d\x0d", b"\x80\x05\x06\x07", b"\x80\x80\x80\x80", b"\x0d\x01"]


@given(
    st.lists(
        st.lists(st.sampled_from([*(variable for _, variable, _ in VARIABLES), *PIECES]), max_size=4).map(b"".join),
        min_size=2,
        max_size=80,
    ),
    st.sampled_from(["mysql", "mariadb"]),
)
def test_sessions_are_those_of_each_block(blocks: list[bytes], flavor: str) -> None:
    reader = SessionReader(flavor)
    for block in blocks:
        assert replace(reader.status(block), microseconds=None) == replace(
            parse_status(block, flavor), microseconds=None
        )


def test_microseconds_are_not_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes] = []

    def counting(block: bytes, flavor: str) -> tuple[Status, int]:
        parsed.append(block)
        return parse(block, flavor)

    parse = status_variables._parse
    monkeypatch.setattr(status_variables, "_parse", counting)
    reader = SessionReader("mysql")
    for moment in range(1000):
        block = b"\x08\x1c\x00\x0d" + moment.to_bytes(3, "little") + b"\x12\xff\x00"
        assert reader.status(block).collation_database == 28
    assert len(parsed) == 1


def test_threads_share_what_a_reader_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = SessionReader("mysql")
    # flags2, and sql_mode behind it: without microseconds, their place is the end of the block.
    short, long = b"\x00" + bytes(4), b"\x00" + bytes(4) + b"\x01" + bytes(8)
    reader.status(short)
    key = status_variables._without_microseconds

    def interrupted(block: bytes, place: int) -> tuple[int, int, bytes]:
        # Another thread parses another block at this moment.
        monkeypatch.setattr(status_variables, "_without_microseconds", key)
        reader.status(long)
        return key(block, place)

    monkeypatch.setattr(status_variables, "_without_microseconds", interrupted)
    assert reader.status(b"\x00" + b"\x01" + bytes(3)) == parse_status(b"\x00" + b"\x01" + bytes(3), "mysql")
    assert reader.status(long) == parse_status(long, "mysql")
