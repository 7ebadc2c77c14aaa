"""Statements that a server writes itself are in UTF-8 and escaped, whatever the client and the SQL mode are."""

from pathlib import Path
from typing import Any

import pytest

from ingest.binlog.text.server_statements import decode_statement, is_of_server
from recover.sources.log import Log
from tests.servers import ALL_DISTRIBUTIONS

# The bytes are those of UTF-8, also where the client names another character set.
WRITTEN = [
    r"create table first (id int primary key, `cä` enum('ä\\b'))",
    "create table `sä` select * from first",
    r"create temporary table made (id int primary key, `cä` enum('ä\\b') comment 'ä\\')",
    "create table liked like made",
    "create table valued (id int) select cast('ä' as char(9)) as `cä` from first",
]
KEYED = ["set sql_generate_invisible_primary_key = 1", r"create table keyed (id int, `cä` enum('ä\\b'))"]


@pytest.mark.parametrize(("charset", "mode"), [("latin1", ""), ("binary", ""), ("utf8mb4", "no_backslash_escapes")])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("mysql", marks=pytest.mark.mysql),
        pytest.param("mysql-5.6", marks=pytest.mark.mysql56),
        pytest.param("mariadb", marks=pytest.mark.mariadb),
        pytest.param("mariadb-11.8", marks=pytest.mark.mariadb118),
    ],
)
def test_names_and_labels_of_a_table_that_the_server_describes(
    name: str, charset: str, mode: str, tmp_path: Path
) -> None:
    with ALL_DISTRIBUTIONS[name].start(tmp_path / "server", []) as server:
        with server.connect(charset="utf8mb4", autocommit=True) as connection, connection.cursor() as cursor:
            for statement in [
                "create database d",
                "use d",
                f"set names {charset}",
                f"set sql_mode = '{mode}'",
                *WRITTEN,
            ]:
                cursor.execute(statement)
            if name == "mysql":
                for statement in KEYED:
                    cursor.execute(statement)
            cursor.execute("set names utf8mb4")
            cursor.execute("drop temporary table made")
            cursor.execute("show tables")
            tables = [table for (table,) in cursor.fetchall()]
            for table in tables:
                cursor.execute(f"insert into `{table}` values (1, 1)")
            expected = {table: rows_of(cursor, table) for table in tables}
        log = Log.of_whole_files([server.flush()])
    rows = dict(log.connection.execute("select table_name, row_after from binloom.row_changes").fetchall())
    for row in rows.values():
        row.pop("my_row_id", None)
    assert rows == expected and len(rows) >= 4
    assert log.connection.execute("select * from binloom.quarantined_row_events").fetchall() == []


def rows_of(cursor: Any, table: str) -> dict[str, str]:
    """Return the only row of a table, as binloom writes its values."""
    cursor.execute(f"select * from `{table}`")
    (row,) = cursor.fetchall()
    names = [column[0] for column in cursor.description]
    return {
        name: f"0x{value.hex().upper()}" if isinstance(value, bytes) else str(value)
        for name, value in zip(names, row, strict=True)
    }


def test_a_client_may_send_the_same_form_in_its_own_character_set() -> None:
    of_client = "CREATE TABLE `cä` (\n  `id` int\n)"
    assert is_of_server(of_client.encode("latin1"))
    assert decode_statement(of_client.encode("latin1"), "latin1") == of_client
    assert decode_statement(of_client.encode(), "latin1") == of_client
    dumped = "CREATE TABLE `cä` (\n  `id` int\n) ENGINE=InnoDB AUTO_INCREMENT=2 DEFAULT CHARSET=latin1".encode()
    assert not is_of_server(dumped)
    assert decode_statement(dumped, "latin1") == dumped.decode("latin1")
    assert is_of_server(dumped + b" START TRANSACTION")
    assert decode_statement("create table `cä` (id int)".encode(), "latin1") == "create table `cÃ¤` (id int)"
