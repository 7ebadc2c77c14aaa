"""Columns that MariaDB does not list: a snapshot has all columns of table maps and rows.

The server adds two to a system-versioned table that does not declare its period, and one for each unique key
that is long or `using hash`.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest.binlog import SchemaHints
from ingest.sources.servers.address import ServerAddress
from ingest.sources.servers.information_schema import take_snapshot
from ingest.sources.servers.server import Server
from ingest.sources.snapshots.snapshot import SchemaSnapshot
from ingest.sources.snapshots.snapshot_files import read_snapshot_dir
from tests.servers import Server as LiveServer
from tests.servers.marked import marked
from tests.servers.rows import table_rows
from tests.support.binlog.recordings import Setting
from tests.support.binlog.replay import Decoded, difference, replay

pytestmark = pytest.mark.slow

SCHEMA = "unlisted"
COLUMNS = """
    id int unsigned primary key, big bigint unsigned, kind enum('a', 'b''c'), word varchar(9) character set latin1
"""
NOTE = "note text default (word) unique"
DECLARED = """
    {} timestamp(6) generated always as row start {}, {} timestamp(6) generated always as row end {},
    period for system_time ({}, {})
"""
TABLES = {
    "implicit": f"create table implicit ({COLUMNS}) with system versioning",
    "keyless": f"create table keyless ({COLUMNS.replace('primary key', '')}) with system versioning",
    "alike": "create table alike like implicit",
    "by_columns": f"create table by_columns ({COLUMNS}, price int with system versioning)",
    "computed": f"create table computed ({COLUMNS}, twice bigint as (id * 2) virtual, thrice bigint as (id * 3) stored)"
    " with system versioning",
    "named": f"create table named ({COLUMNS}, {DECLARED.format('f', '', 't', '', 'f', 't')}, price int)"
    " with system versioning",
    "unseen": f"create table unseen ({COLUMNS}, {DECLARED.format('f', 'invisible', 't', 'invisible', 'f', 't')},"
    " price int) with system versioning",
    "same_names": f"create table same_names ({COLUMNS},"
    f" {DECLARED.format('row_start', 'invisible', 'row_end', 'invisible', 'row_start', 'row_end')}, price int)"
    " with system versioning",
    "booked": f"create table booked ({COLUMNS}, since date, until date, period for stay (since, until))",
    "both_periods": f"create table both_periods ({COLUMNS.replace(' primary key', '')}, since date, until date,"
    " period for stay (since, until), primary key (id, stay without overlaps)) with system versioning",
    "once": f"create table once ({COLUMNS}) with system versioning",
    "later": f"create table later ({COLUMNS})",
    "long_key": f"create table long_key ({COLUMNS}, {NOTE})",
    "long_keys": f"create table long_keys ({COLUMNS}, {NOTE}, picture blob default (word) unique,"
    " unique (word) using hash, unique (kind, id, big) using hash)",
    "hash_only": f"create table hash_only ({COLUMNS.replace('primary key', 'not null')}, unique (id) using hash)",
    "hash_of_myisam": f"create table hash_of_myisam ({COLUMNS}, unique (word) using hash, key (big) using hash)"
    " engine = myisam",
    "hash_of_memory": f"create table hash_of_memory ({COLUMNS}, unique (word) using hash) engine = memory",
    "hash_of_partitions": f"create table hash_of_partitions ({COLUMNS.replace('primary key', '')},"
    " unique (id) using hash) partition by hash (id) partitions 2",
    "trees": f"create table trees ({COLUMNS.replace(' primary key', '')}, primary key (id) using hash,"
    " unique (word) using btree, key (kind) using hash, unique (big))",
    "taken_names": f"create table taken_names ({COLUMNS}, DB_ROW_HASH_1 int, db_row_hash_3 int, {NOTE},"
    " unique (word) using hash)",
    "versions_of_hashes": f"create table versions_of_hashes ({COLUMNS}, {NOTE}, unique (word) using hash)"
    " with system versioning",
    "named_and_hashed": f"create table named_and_hashed ({COLUMNS},"
    f" {DECLARED.format('f', '', 't', '', 'f', 't')}, {NOTE}) with system versioning",
    "computed_and_hashed": f"create table computed_and_hashed ({COLUMNS}, twice bigint as (id * 2) virtual,"
    f" {NOTE}, thrice bigint as (id * 3) stored)",
    "hashed_later": f"create table hashed_later ({COLUMNS}, {NOTE})",
}
ALTERED = [
    "set session system_versioning_alter_history = keep",
    "alter table once drop system versioning",
    "alter table later add system versioning",
    "alter table later add column price int",
    "alter table alike add column price int first",
    "alter table hashed_later add column price int unsigned",
    "alter table hashed_later add unique (word) using hash",
    "alter table hashed_later add system versioning",
    "alter table versions_of_hashes add column price int unsigned",
]


@pytest.fixture(params=marked("mariadb", "mariadb118"))
def server(request: pytest.FixtureRequest) -> Iterator[LiveServer]:
    """Each MariaDB, with tables of every kind of period and hash."""
    live: LiveServer = request.getfixturevalue(f"{request.param}_server")
    statements = [f"create database {SCHEMA}", f"use {SCHEMA}", *TABLES.values(), *ALTERED]
    live.execute(f"drop database if exists {SCHEMA}", *statements)
    yield live
    live.execute(f"drop database {SCHEMA}")


def snapshots(server: LiveServer, folder: Path) -> list[SchemaSnapshot]:
    """The snapshot of the server itself, and the snapshot of its views in files."""
    with Server(ServerAddress("127.0.0.1", server.port, "root")) as live:
        return [take_snapshot(live), read_snapshot_dir(server.snapshot_dir(folder))]


Described = dict[str, list[tuple[str, bool, bool]]]


def columns_of_log(decoded: Decoded) -> Described:
    """Return each table's columns from full metadata: name, in the primary key, unsigned."""
    return {
        table_map["table_name"]: [
            (column["name"], column["is_primary_key"], bool(column["is_unsigned"])) for column in table_map["columns"]
        ]
        for table_map in decoded.table_maps
    }


def columns_of_snapshot(snapshot: SchemaSnapshot) -> Described:
    """Return the same from a snapshot."""
    found: Described = defaultdict(list)
    for row in snapshot.columns:
        if row["schema_name"] == SCHEMA:
            is_unsigned = row["column_type"].endswith(" unsigned")
            found[row["table_name"]].append((row["column_name"], row["primary_key_ordinal"] is not None, is_unsigned))
    return found


def write(server: LiveServer) -> Path:
    """Write row versions into every table; return the binlog with them."""
    server.flush()
    for table in TABLES:
        days = ", since, until" if table in ("booked", "both_periods") else ""
        dates = ", '2026-01-01', '2026-12-31'" if days else ""
        server.execute(
            f"use {SCHEMA}",
            f"insert into {table} (id, big, kind, word{days}) values"
            f" (4294967295, 18446744073709551615, 'b''c', 'Zürich'{dates}), (2, 2, 'a', 'é'{dates})",
            f"update {table} set big = big - 1, word = 'ÿ' where id = 4294967295",
            f"delete from {table} where id = 2",
        )
    return server.flush()


def test_columns_are_those_that_full_metadata_name(server: LiveServer, tmp_path: Path) -> None:
    with Setting.of(server.distribution.marker, row_metadata="FULL").applied(server):
        decoded = Decoded.of(write(server))
    assert set(columns_of_log(decoded)) == set(TABLES)
    for snapshot in snapshots(server, tmp_path):
        assert columns_of_snapshot(snapshot) == columns_of_log(decoded)


def test_mysql_has_no_column_of_a_hash(mysql_server: LiveServer, tmp_path: Path) -> None:
    """MySQL's MEMORY engine computes hashes itself, and InnoDB makes a tree for a declared hash index."""
    mysql_server.execute(
        f"drop database if exists {SCHEMA}",
        f"create database {SCHEMA}",
        f"use {SCHEMA}",
        "create table hashed (id int unsigned primary key, word varchar(9), unique (word) using hash) engine = memory",
        "create table tree (id int unsigned primary key, word varchar(9), unique (word) using hash)",
    )
    with Setting.of("mysql", row_metadata="FULL").applied(mysql_server):
        mysql_server.flush()
        for table in ("hashed", "tree"):
            mysql_server.execute(f"insert into {SCHEMA}.{table} values (4294967295, 'a')")
        decoded = Decoded.of(mysql_server.flush())
    found = snapshots(mysql_server, tmp_path)
    mysql_server.execute(f"drop database {SCHEMA}")
    assert set(columns_of_log(decoded)) == {"hashed", "tree"}
    for snapshot in found:
        assert columns_of_snapshot(snapshot) == columns_of_log(decoded)


def test_rows_are_those_that_select_gives(server: LiveServer, tmp_path: Path) -> None:
    """Without metadata in the log, signs, labels and character sets come from the snapshot."""
    binlog = write(server)
    for snapshot in snapshots(server, tmp_path):
        decoded = Decoded.of(binlog, SchemaHints.from_columns(snapshot.columns))
        assert decoded.unsupported_events == []
        assert {table_map["hint"] for table_map in decoded.table_maps} == {"snapshot"}
        changes = decoded.committed_changes()
        for table in TABLES:
            generated = {
                row["ordinal_position"] - 1
                for row in snapshot.columns
                if (row["schema_name"], row["table_name"]) == (SCHEMA, table) and row["is_generated"]
            }
            rows = replay((change for change in changes if change.table == table), generated)
            names, expected = table_rows(server, SCHEMA, table)
            # No SELECT reads the hash columns, which follow all others.
            rows = [row[: len(names)] for row in rows]
            assert any("4294967295" in row and "18446744073709551614" in row and "b'c" in row for row in expected)
            assert difference(rows, expected) == ([], []), table
