"""Rows that a baseline reads from a live server, and the position that they belong to."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ingest.binlog import SchemaHints, TableFilter
from ingest.binlog.gtid_sets import GtidSet
from ingest.errors import SourceError, UsageError
from ingest.sources.baselines.consistent_read import ConsistentRead
from ingest.sources.servers.address import ServerAddress
from tests.servers import Server, mysql56
from tests.servers.accounts import create_account
from tests.servers.marked import marked
from tests.support.binlog import workload, workload_own, workload_tables
from tests.support.binlog.replay import ABSENT, Decoded
from tests.support.binlog.workload import Table, make_column
from tests.support.patience import PATIENCE_SECONDS

# MariaDB does not show the values of these columns to any query.
HIDDEN = "DB_ROW_HASH_"


def address(server: Server, **more: Any) -> ServerAddress:
    return ServerAddress("127.0.0.1", server.port, **{"user": "root", **more})


@pytest.fixture(params=marked("mysql", "mysql56", "mariadb", "mariadb118"))
def server(request: pytest.FixtureRequest) -> Server:
    live: Server = request.getfixturevalue(f"{request.param}_server")
    return live


def rows_of(read: ConsistentRead) -> dict[str, list[tuple[str | None, ...]]]:
    return {
        table.table_name: [tuple(row) for batch in read.rows(table) for row in batch.to_pylist()]
        for table in read.tables
    }


def _all_types(server: Server) -> list[Table]:
    tables = workload_tables.tables(server, workload_tables.server_charsets(server))
    with_digits = Table(
        "with_digits",
        (
            make_column("two", "double(10,2)", "double", ["1.10", "-0.05", "99999999.99"]),
            make_column("one", "float(7,1)", "float", ["1.10", "123456.7"]),
            make_column("filled", "bigint unsigned zerofill", "int", ["0", "42", "18446744073709551615"]),
            make_column("filled_too", "decimal(8,2) zerofill", "decimal", ["0.50", "123456.78"]),
        ),
    )
    long_rows = Table(
        "long_rows",
        (
            make_column("a", "longtext character set utf8mb4", "text", ["repeat('🎁', 4500000)", "'x'"]),
            make_column("b", "longblob", "binary", ["repeat(x'00ff', 4000000)", "x'00'"]),
        ),
    )
    long_ones = [] if server.distribution is mysql56 else [long_rows]
    return [*tables, *workload_own.tables(server), with_digits, *long_ones]


def _insert_all(server: Server, tables: list[Table]) -> None:
    server.execute(
        f"drop database if exists {workload.SCHEMA}", f"create database {workload.SCHEMA} character set utf8mb4"
    )
    with server.connect(autocommit=True, max_allowed_packet=1 << 26) as connection, connection.cursor() as cursor:
        cursor.execute(f"set session sql_mode = '{workload.SQL_MODE}', time_zone = '+00:00', unique_checks = 1")
        for table in tables:
            cursor.execute(table.ddl())
            for statement in table.statements():
                if statement.startswith("insert into") and ") values (" in statement:
                    cursor.execute(statement)


def test_values_are_those_of_the_log(server: Server) -> None:
    """Every column type of every server: what is read is, text by text, what the decoder makes of the log."""
    tables = _all_types(server)
    server.flush()
    server.execute("set global max_allowed_packet = 67108864")
    _insert_all(server, tables)
    with ConsistentRead(address(server), TableFilter.of(schemas=[workload.SCHEMA])) as read:
        found = rows_of(read)
        read.assert_unchanged()
    binlog = server.flush()
    assert read.snapshot.binlog_file == binlog.name
    decoded = Decoded.of(binlog, SchemaHints.from_columns(read.snapshot.columns))
    assert decoded.unsupported_events == []
    logged: dict[str, list[Any]] = {table.name: [] for table in tables}
    for change in decoded.committed_changes():
        assert change.event_type == "INSERT"
        logged[change.table].append(change.after)
    assert set(found) == set(logged)
    for table in read.tables:
        width = len(table.column_names)
        rows = logged[table.table_name]
        assert rows and all(len(row) - width in (0, 1, 2) for row in rows)
        known = [at for at in range(width) if all(row[at] is not ABSENT for row in rows)]
        # MariaDB 11.8 leaves virtual columns out of its images.
        assert len(known) >= width - 2
        wanted = Counter(tuple(row[at] for at in known) for row in rows)
        got = Counter(tuple(row[at] for at in known) for row in found[table.table_name])
        assert got == wanted, _difference(table.table_name, got - wanted, wanted - got)


def _difference(name: str, extra: Counter[Any], missing: Counter[Any]) -> str:
    pairs = zip(sorted(extra, key=repr), sorted(missing, key=repr), strict=False)
    first = next(pairs, None)
    if first is None:
        return f"{name}: {extra} {missing}"[:500]
    return f"{name}: " + "; ".join(
        f"{at}: {mine!r} for {theirs!r}"[:300]
        for at, (mine, theirs) in enumerate(zip(*first, strict=True))
        if mine != theirs
    )


SHOP = [
    "drop database if exists shop",
    "create database shop",
    "create table shop.counted (id int primary key, n int)",
    "create table shop.other (id int primary key, n int)",
    "insert into shop.counted values (1, 0)",
    "insert into shop.other values (1, 0)",
]


@pytest.fixture
def shop(server: Server) -> Iterator[Server]:
    server.execute(*SHOP)
    yield server
    server.execute("drop database shop")


def test_the_position_belongs_to_the_rows(shop: Server) -> None:
    """While a client writes, the rows are those after exactly the transactions before the position."""
    shop.flush()
    begun, done = threading.Event(), threading.Event()

    def write() -> None:
        with shop.connect(autocommit=False) as connection, connection.cursor() as cursor:
            while not done.is_set():
                cursor.execute("update shop.counted set n = n + 1")
                cursor.execute("update shop.other set n = n + 1")
                connection.commit()
                begun.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = []
    try:
        assert begun.wait(PATIENCE_SECONDS)
        for _ in range(5):
            with ConsistentRead(address(shop), TableFilter.of(schemas=["shop"])) as read:
                rows = rows_of(read)
                assert rows["counted"] == rows["other"]
                seen.append((read.snapshot, rows["counted"][0][1]))
    finally:
        done.set()
        writer.join()
    decoded = Decoded.of(shop.flush())
    for snapshot, count in seen:
        before = [row for row in decoded.transactions if row["start_pos"] < snapshot.binlog_pos]
        assert max(row["end_pos"] for row in before) <= snapshot.binlog_pos
        images = [row["after_values"] for row in decoded.row_events if row["start_pos"] < snapshot.binlog_pos]
        assert images[-1][1] == count
        executed = GtidSet.parse(snapshot.gtid_executed)
        with_gtid = [row for row in decoded.transactions if row["gtid"]]
        are_executed = executed.contains_all(pa.array([row["gtid"] for row in with_gtid], pa.string()))
        assert are_executed.tolist() == [row["start_pos"] < snapshot.binlog_pos for row in with_gtid]


@pytest.mark.parametrize(
    "statement",
    ["truncate table shop.other", "drop table shop.other", "alter table shop.other modify n bigint"],
)
def test_ddl_while_it_reads_is_noticed_or_waits(shop: Server, statement: str) -> None:
    with ConsistentRead(address(shop), TableFilter.of(tables=["shop.*"])) as read:
        if shop.distribution is mysql56:
            # This server would show a truncated table as empty, so the statement waits.
            with pytest.raises(Exception, match="Lock wait timeout"):
                shop.execute("set session lock_wait_timeout = 1", statement)
            assert rows_of(read)["other"] == [("1", "0")]
            return
        shop.execute(statement)
        with pytest.raises(SourceError, match=r"table shop\.other .* while the baseline was read"):
            rows_of(read)
        if "truncate" not in statement:
            # Rows that were read before a TRUNCATE are those of the position.
            with pytest.raises(SourceError, match=r"table shop\.other "):
                read.assert_unchanged()


def test_two_tables_that_change_their_names_are_noticed(shop: Server) -> None:
    """They differ in the second in which they were created."""
    time.sleep(1)
    shop.execute("drop table shop.other", "create table shop.other like shop.counted")
    with ConsistentRead(address(shop), TableFilter.of(tables=["shop.*"])) as read:
        if shop.distribution is mysql56:
            return
        shop.execute("rename table shop.other to shop.x, shop.counted to shop.other, shop.x to shop.counted")
        with pytest.raises(SourceError, match="while the baseline was read"):
            rows_of(read)
            read.assert_unchanged()


def test_tables_of_other_engines_are_refused(shop: Server) -> None:
    shop.execute("create table shop.old (id int) engine=myisam")
    with pytest.raises(UsageError, match=r"shop\.old \(MyISAM\)"):
        ConsistentRead(address(shop), TableFilter.of(schemas=["shop"]))
    with ConsistentRead(address(shop), TableFilter.of(schemas=["shop"], exclude_tables=["old"])) as read:
        assert {str(table) for table in read.tables} == {"shop.counted", "shop.other"}


def test_an_unknown_table_is_reported_with_near_names(shop: Server) -> None:
    with pytest.raises(UsageError, match=r"no table shop\.countd .*There are shop\.counted"):
        ConsistentRead(address(shop), TableFilter.of(tables=["shop.countd"]))


# MySQL does not tell it: see test_read_without_lock.py.
@pytest.mark.parametrize("server", marked("mariadb", "mariadb118"), indirect=True)
def test_a_server_that_tells_the_position_needs_no_privilege_to_lock(shop: Server, tmp_path: Path) -> None:
    account = create_account(shop, tmp_path, "reader", ("select", "replication client"))
    login = {"user": account.user, "password": account.password}
    with ConsistentRead(address(shop, **login), TableFilter.of(schemas=["shop"])) as read:
        assert rows_of(read)["counted"] == [("1", "0")]
        assert read.beginning.proof == "server"
