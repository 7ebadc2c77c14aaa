"""Rows that a baseline reads from a MySQL server without a lock, and the position that the log proves for them."""

import contextlib
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pymysql
import pytest
from pymysql.constants import ER

from ingest.binlog import SchemaHints, TableFilter
from ingest.binlog.gtid_sets import GtidSet
from ingest.errors import AccessRefusedError, SourceError
from ingest.sources.baselines import settled_position
from ingest.sources.baselines.baseline_tables import choose_tables, read_definitions
from ingest.sources.baselines.beginnings import Beginning, begin_between
from ingest.sources.baselines.consistent_read import ConsistentRead, TransactionReader
from ingest.sources.baselines.logged_changes import Unproved
from ingest.sources.servers.address import ServerAddress
from ingest.sources.servers.server import Server as Connection
from ingest.sources.servers.server import server_identity
from tests.servers import Server, mysql56
from tests.servers.accounts import create_account
from tests.servers.load import SCHEMA, TABLES, Load
from tests.servers.managed import PRIVILEGES, known_to, without_lock
from tests.servers.marked import marked
from tests.support.binlog.replay import Change, Decoded, difference, replay
from tests.support.depth import at_depth

Rows = list[tuple[str | None, ...]]

SHOP = (
    "drop database if exists shop",
    "create database shop character set utf8mb4",
    """create table shop.items (
        region varchar(9) not null, id int unsigned not null, n bigint not null, price decimal(18,4) null,
        rate double null, part float null, bits bit(12) null, sold datetime(3) null,
        kind enum('cash', 'card') not null, note varchar(99) null, bytes varbinary(9) null, primary key (region, id)
    ) engine=InnoDB""",
    "create table shop.bare (n int) engine=InnoDB",
    "insert into shop.bare values (1), (1)",
)
ITEMS = 300
# Seconds between two transactions of a client: all of them are decoded and replayed for each read.
PAUSE = at_depth(10, 0) / 1000


def address(server: Server, **more: Any) -> ServerAddress:
    return ServerAddress("127.0.0.1", server.port, **{"user": "root", **more})


@pytest.fixture(params=marked("mysql", "mysql56"))
def shop(request: pytest.FixtureRequest) -> Iterator[Server]:
    server: Server = request.getfixturevalue(f"{request.param}_server")
    values = ", ".join(
        f"('{'eu' if number % 2 else 'us'}', {number}, 0, {number}.5, 1e{number % 30}, 0.1, {number}, null, 'cash',"
        f" 'ü {number}', x'00ff')"
        for number in range(ITEMS)
    )
    server.execute(*SHOP, f"insert into shop.items values {values}")
    server.flush()
    yield server
    server.execute("drop database shop")


class Writers:
    """Clients that change rows of `shop.items` in every way."""

    def __init__(self, server: Server, clients: int = 3) -> None:
        self.server = server
        self.done = 0
        self._ended = threading.Event()
        self._failures: list[BaseException] = []
        self._threads = [threading.Thread(target=self._work, args=(number,)) for number in range(clients)]

    def __enter__(self) -> "Writers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()
        assert not self._failures, self._failures[0]

    def wait_for(self, transactions: int) -> None:
        target = self.done + transactions
        while self.done < target and not self._failures:
            assert not self._ended.wait(0.01)

    def _work(self, client: int) -> None:
        chance = random.Random(client)
        try:
            with self.server.connect(autocommit=False) as connection, connection.cursor() as cursor:
                while not self._ended.is_set():
                    try:
                        for _ in range(chance.choice((1, 1, 1, 3))):
                            cursor.execute(self._statement(chance, client))
                        connection.commit()
                    except pymysql.err.OperationalError as error:
                        if error.args[0] != ER.LOCK_DEADLOCK:
                            raise
                        connection.rollback()
                    self.done += 1
                    self._ended.wait(PAUSE)
        except BaseException as error:
            self._failures.append(error)

    def _statement(self, chance: random.Random, client: int) -> str:
        # Each client has numbers of its own, so that no two of them wait for each other.
        number = chance.randrange(ITEMS // 3) * 3 + client
        where = f"where region in ('eu', 'us') and id = {number}"
        return chance.choice(
            (
                f"update shop.items set n = n + 1, part = {chance.random()}, sold = now(3) {where}",
                f"update shop.items set note = if(note = 'a', 'b', 'a'), bits = {chance.getrandbits(12)} {where}",
                f"update ignore shop.items set region = if(region = 'eu', 'us', 'eu') {where}",
                f"delete from shop.items {where}",
                f"insert ignore into shop.items (region, id, n, rate, kind) values ('eu', {number}, 1, 1e-7, 'card')",
            )
        )


def rows_of(read: ConsistentRead) -> dict[str, Rows]:
    return {
        table.table_name: [tuple(row) for batch in read.rows(table) for row in batch.to_pylist()]
        for table in read.tables
    }


def _changes_since(decoded: Sequence[tuple[str, Decoded]], read: ConsistentRead) -> Iterator[Change]:
    for name, log in decoded:
        if name >= (read.snapshot.binlog_file or ""):
            is_first = name == read.snapshot.binlog_file
            start = read.snapshot.binlog_pos if is_first and read.snapshot.binlog_pos else 0
            yield from Decoded(
                [row for row in log.row_events if row["start_pos"] >= start],
                [row for row in log.transactions if row["start_pos"] >= start],
                [row for row in log.statements if row["start_pos"] >= start],
                [],
                [],
            ).committed_changes()


def test_the_log_after_the_position_leads_to_the_end(shop: Server) -> None:
    """While clients write, the rows with all changes behind their position are those of the server at last."""
    is_old = shop.distribution is mysql56
    schemas = ["shop"] if is_old else ["shop", SCHEMA]
    wanted = TableFilter.of(schemas=schemas, exclude_tables=["bare", "extra_*"])
    first = shop.binlogs()[-1].name
    if SCHEMA in schemas:
        shop.execute(f"drop database if exists {SCHEMA}", *TABLES)
    with ExitStack() as stack:
        writers = stack.enter_context(Writers(shop))
        if SCHEMA in schemas:
            stack.enter_context(Load(shop, pause=PAUSE))
        seen = []
        for number in range(at_depth(3, 10)):
            writers.wait_for(200)
            with ConsistentRead(address(shop), wanted, without_lock=True) as read:
                if number == 0:
                    # Rotates the log, and lets the next reads look at InnoDB's transactions.
                    shop.execute("flush binary logs" if is_old else "set global gtid_mode = on_permissive")
                seen.append((read, rows_of(read)))
                read.assert_unchanged()
    with ConsistentRead(address(shop), wanted) as end:
        last = rows_of(end)
    if not is_old:
        shop.execute("set global gtid_mode = on")
    assert {read.beginning.proof for read, _ in seen} == {"log"}
    assert sum(read.beginning.changes.row_count for read, _ in seen) > 0
    shop.flush()
    hints = SchemaHints.from_columns(end.snapshot.columns)
    decoded = [(path.name, Decoded.of(path, hints)) for path in shop.binlogs()[:-1] if path.name >= first]
    for read, rows in seen:
        changes = [*_changes_since(decoded, read)]
        for table in read.tables:
            own = [
                change for change in changes if (change.schema, change.table) == (table.schema_name, table.table_name)
            ]
            begun = [Change("INSERT", table.schema_name, table.table_name, None, row) for row in rows[table.table_name]]
            assert difference(replay([*begun, *own]), last[table.table_name]) == ([], []), (str(table), read.snapshot)
        if read.snapshot.gtid_executed is not None:
            _assert_gtids(decoded, read)
    assert is_old or seen[0][0].snapshot.gtid_executed is not None
    if SCHEMA in schemas:
        shop.execute(f"drop database {SCHEMA}")


def _assert_gtids(decoded: Sequence[tuple[str, Decoded]], read: ConsistentRead) -> None:
    executed = GtidSet.parse(read.snapshot.gtid_executed)
    place = (read.snapshot.binlog_file, read.snapshot.binlog_pos)
    transactions = [(name, row) for name, log in decoded for row in log.transactions]
    gtids = pa.array([row["gtid"] for _, row in transactions], pa.string())
    assert executed.contains_all(gtids).tolist() == [(name, row["start_pos"]) < place for name, row in transactions]


@pytest.mark.mysql
@pytest.mark.parametrize("gtid_mode", ["on", "on_permissive"])
def test_a_transaction_that_is_logged_and_not_committed_is_waited_for(mysql_server: Server, gtid_mode: str) -> None:
    """The end of the log alone would be wrong: the snapshot lacks the last transaction before it."""
    mysql_server.execute(*SHOP, "create table shop.counted (id int primary key, n int)")
    mysql_server.execute("insert into shop.counted values (1, 0)", f"set global gtid_mode = {gtid_mode}")
    mysql_server.execute("set global binlog_group_commit_sync_delay = 300000")
    mysql_server.flush()
    try:
        writer = threading.Thread(
            target=lambda: [mysql_server.execute("update shop.counted set n = n + 1") for _ in range(6)]
        )
        writer.start()
        seen = []
        while writer.is_alive():
            with ConsistentRead(
                address(mysql_server), TableFilter.of(tables=["shop.counted"]), without_lock=True
            ) as read:
                seen.append((read, rows_of(read)["counted"]))
        writer.join()
    finally:
        mysql_server.execute("set global binlog_group_commit_sync_delay = 0", "set global gtid_mode = on")
    (name,) = {read.snapshot.binlog_file for read, _ in seen}
    decoded = Decoded.of(mysql_server.binlog_dir / str(name))
    for read, rows in seen:
        before = [row for row in decoded.row_events if row["start_pos"] < (read.snapshot.binlog_pos or 0)]
        assert rows == [("1", str(len(before)))]
    assert len(seen) > 1
    mysql_server.execute("drop database shop")


@pytest.mark.mysql
def test_a_list_of_transactions_that_the_server_cannot_give_is_asked_for_again(mysql_server: Server) -> None:
    mysql_server.execute(*SHOP, "set global gtid_mode = on_permissive")
    asked = "select trx_id from information_schema.innodb_trx"
    statement = "update shop.bare set n = if(sleep(0.7) = 0 and '🙏' <> '', 2, 3)"
    writer = threading.Thread(target=mysql_server.execute, args=(statement,))
    writer.start()
    try:
        with contextlib.suppress(pymysql.MySQLError):
            while writer.is_alive():
                # The server renews the list when nobody has read it for a tenth of a second.
                time.sleep(0.15)
                mysql_server.execute(asked)
        assert writer.is_alive(), "the server gives the list: asking again is not needed any more"
        wanted = TableFilter.of(tables=["shop.items"])
        with ConsistentRead(address(mysql_server), wanted, without_lock=True) as read:
            assert rows_of(read) == {"items": []}
        writer.join()
    finally:
        mysql_server.execute("set global gtid_mode = on", "drop database shop")


@pytest.mark.mysql56
def test_a_statement_that_runs_for_long_is_waited_for_and_an_idle_transaction_is_not(
    mysql56_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settled_position, "SETTLING_SECONDS", 1.0)
    mysql56_server.execute(*SHOP, "insert into shop.bare values (1), (1), (1)")
    with mysql56_server.connect(autocommit=False) as idle, mysql56_server.connect() as busy:
        idle.cursor().execute("insert into shop.items (region, id, n, kind) values ('eu', 7, 0, 'card')")
        wanted = TableFilter.of(tables=["shop.items"])
        with ConsistentRead(address(mysql56_server), wanted, without_lock=True) as read:
            assert rows_of(read) == {"items": []}
        running = threading.Thread(target=_until_killed, args=(busy,))
        running.start()
        with pytest.raises(SourceError, match=r"transaction \d+ of innodb_trx did not end within"):
            while True:
                ConsistentRead(address(mysql56_server), wanted, without_lock=True).close()
        ((number,),) = mysql56_server.execute(
            "select id from information_schema.processlist where info like 'update shop.bare%'"
        )
        mysql56_server.execute(f"kill {number}")
        running.join()
    mysql56_server.execute("drop database shop")


def _until_killed(connection: Any) -> None:
    with contextlib.suppress(pymysql.MySQLError):
        connection.cursor().execute("update shop.bare set n = n + 1 + sleep(1)")


Step = tuple[str, ...]


def _between(
    server: Server, before: Step, after: Step, tables: Sequence[str] = ("shop.items",)
) -> dict[str, Counter[Any]]:
    """Read tables while statements run between the two positions, before and after the snapshot begins."""
    with Connection(address(server)) as connection:
        identity, definitions = server_identity(connection), read_definitions(connection)
        chosen = choose_tables(connection, definitions, TableFilter.of(tables=tables))
        reader = TransactionReader(address(server), lambda _: None)
        try:
            reader.prepare(identity)

            def begin() -> None:
                server.execute("select 1", *before)
                reader.begin(())
                server.execute("select 1", *after)

            beginning = begin_between(connection, identity, chosen, definitions.schema, begin)
            return {str(table): _counted(beginning, table, reader) for table in chosen}
        finally:
            reader.close()


def _counted(beginning: Beginning, table: Any, reader: TransactionReader) -> Counter[Any]:
    rows = beginning.rows(table, reader.stream(table))
    return Counter(tuple(row) for batch in rows for row in batch.to_pylist())


def _now(server: Server, table: str) -> Counter[Any]:
    with ConsistentRead(address(server), TableFilter.of(tables=[table])) as read:
        return Counter(rows_of(read)[table.partition(".")[2]])


UPDATE = "update shop.items set n = n + 1, note = 'changed', part = 0.3 where id < 9"
BACK = "update shop.items set n = 0, note = concat('ü ', id), part = 0.1 where id < 9"
DELETE = "delete from shop.items where id < 5"
MOVE = "update shop.items set region = 'asia' where id < 4"
INSERT = "insert into shop.items (region, id, n, kind) values ('eu', 900, 1, 'card')"
MINIMAL = "set session binlog_row_image = 'minimal'"
ROLLED_BACK = ("begin", "savepoint a", UPDATE, "rollback to a", INSERT, "commit")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((UPDATE,), ()),
        ((), (UPDATE,)),
        ((UPDATE, DELETE), (INSERT,)),
        ((UPDATE,), (BACK,)),
        ((), (UPDATE, BACK, MOVE)),
        ((MOVE,), (DELETE, "update shop.items set region = 'eu' where region = 'asia'")),
        ((DELETE, INSERT), ("delete from shop.items where id = 900", INSERT)),
        (ROLLED_BACK, ("delete from shop.items where id = 900",)),
        ((MINIMAL, UPDATE), ()),
        ((), (MINIMAL, UPDATE)),
        ((MINIMAL, UPDATE), (MINIMAL, "update shop.items set rate = 1.5 where id < 12", DELETE)),
        ((UPDATE, "flush binary logs"), ("flush binary logs", DELETE)),
        (("set session sql_log_bin = 0", "update shop.items set n = 77", "set session sql_log_bin = 1", UPDATE), ()),
        (("create table shop.more (id int primary key)", UPDATE), ("insert into shop.more values (1)",)),
    ],
)
def test_rows_are_those_after_all_changes(shop: Server, before: Step, after: Step) -> None:
    found = _between(shop, before, after)
    assert found == {"shop.items": _now(shop, "shop.items")}


def test_a_table_without_a_key_is_read_while_others_change(shop: Server) -> None:
    found = _between(shop, (UPDATE,), (DELETE,), ("shop.items", "shop.bare"))
    assert found["shop.bare"] == Counter([("1",), ("1",)])


UNLOGGED = "set session sql_log_bin = 0"
LOGGED = "set session sql_log_bin = 1"
XA = ("xa start 'x'", UPDATE, "xa end 'x'", "xa prepare 'x'")


@pytest.mark.parametrize(
    ("before", "after", "tables", "reason"),
    [
        (
            (),
            (UNLOGGED, "update shop.items set n = 77 where id = 3", LOGGED, UPDATE),
            "shop.items",
            r"row with key eu\|3 of table shop\.items is none of those that the log has .* without logging it",
        ),
        ((UPDATE, UNLOGGED, BACK, LOGGED), (DELETE,), "shop.items", "without logging it"),
        ((UPDATE, UNLOGGED, DELETE), (), "shop.items", "without logging it"),
        ((MINIMAL, INSERT), (), "shop.items", "does not have all values of the row with key eu|900"),
        (("insert into shop.bare values (2)",), (), "shop.bare", "shop.bare has no primary key, and a row of it"),
        (("alter table shop.items comment = 'x'",), (), "shop.items", "statement at .* may change a table"),
        ((), ("truncate table shop.items",), "shop.items", "statement at .* may change a table"),
        (("drop database shop",), (), "shop.items", "statement at .* may change a table"),
        (("set session binlog_format = 'statement'", UPDATE), (), "shop.items", "statement at .* may change a table"),
    ],
)
def test_what_the_log_does_not_tell_is_refused(
    shop: Server, before: Step, after: Step, tables: str, reason: str
) -> None:
    try:
        with pytest.raises((SourceError, Unproved), match=reason):
            _between(shop, before, after, [tables])
    finally:
        shop.execute("create database if not exists shop")


@pytest.mark.mysql
def test_a_prepared_transaction_of_before_that_commits_is_refused(mysql_server: Server) -> None:
    mysql_server.execute(*SHOP, INSERT)
    with mysql_server.connect() as connection, connection.cursor() as cursor:
        for statement in ("xa start 'x'", "update shop.items set n = 9", "xa end 'x'", "xa prepare 'x'"):
            cursor.execute(statement)
    with pytest.raises(Unproved, match=r"commits a prepared transaction \(XA\)"):
        _between(mysql_server, ("xa commit 'x'",), ())
    mysql_server.execute("drop database shop")


@pytest.mark.mysql56
def test_a_cascade_that_is_not_logged_is_refused(mysql56_server: Server) -> None:
    mysql56_server.execute(
        *SHOP,
        "create table shop.parent (id int primary key, code int unique, note int)",
        "create table shop.child (id int primary key, code int, foreign key (code) references shop.parent (code)"
        " on delete cascade on update cascade)",
        "create table shop.grandchild (id int primary key, child int, foreign key (child) references shop.child (id)"
        " on delete cascade)",
        "insert into shop.parent values (1, 10, 0), (2, 20, 0)",
        "insert into shop.child values (1, 10), (2, 20)",
        "insert into shop.grandchild values (1, 1)",
    )
    for table in ("shop.child", "shop.grandchild"):
        for statement in ("update shop.parent set code = 11 where id = 1", "delete from shop.parent where id = 1"):
            with pytest.raises(Unproved, match=r"shop\.parent at .* may cascade"):
                _between(mysql56_server, (), (statement,), [table])
        mysql56_server.execute("replace into shop.parent values (1, 10, 0)", "replace into shop.child values (1, 10)")
        mysql56_server.execute("replace into shop.grandchild values (1, 1)")
    found = _between(mysql56_server, (), ("update shop.parent set note = 1",), ["shop.child"])
    assert found["shop.child"] == _now(mysql56_server, "shop.child")
    mysql56_server.execute("drop database shop")


@pytest.mark.parametrize("service", PRIVILEGES)
def test_privileges_of_managed_services_suffice(shop: Server, tmp_path: Path, service: str) -> None:
    privileges = known_to(shop, PRIVILEGES[service])
    for granted, asks_for_lock in ((without_lock(privileges), True), (privileges, False)):
        account = create_account(shop, tmp_path, "admin", granted)
        login = {"user": account.user, "password": account.password}
        with Writers(shop) as writers:
            writers.wait_for(50)
            wanted = TableFilter.of(tables=["shop.items"])
            with ConsistentRead(address(shop, **login), wanted, without_lock=not asks_for_lock) as read:
                assert rows_of(read)["items"]
                assert read.beginning.proof == "log"
                is_refused = "lacks the privilege RELOAD" in (read.refused_lock or "")
                assert is_refused == asks_for_lock


def test_missing_privileges_are_named(shop: Server, tmp_path: Path) -> None:
    def read(*privileges: str) -> None:
        account = create_account(shop, tmp_path, "reader", privileges)
        login = {"user": account.user, "password": account.password}
        with Writers(shop) as writers:
            # The log is read only if something was written while the transaction began.
            for _ in range(20):
                writers.wait_for(10)
                with ConsistentRead(address(shop, **login), TableFilter.of(tables=["shop.items"])) as done:
                    rows_of(done)
                if done.beginning.changes.transactions:
                    break

    needs_list = shop.distribution is mysql56
    if needs_list:
        with pytest.raises(AccessRefusedError, match=r"RELOAD .* Without this lock: .* PROCESS .*grant process on"):
            read("select", "replication client", "replication slave")
    with pytest.raises(AccessRefusedError, match=r"RELOAD .* Without this lock: .* REPLICATION SLAVE"):
        read("select", "replication client", "process")
    with pytest.raises(AccessRefusedError, match="REPLICATION CLIENT"):
        read("select", "replication slave", "process")
    read("select", "replication client", "replication slave", *(["process"] if needs_list else []))
