"""Rows that ROLLBACK TO SAVEPOINT took back, and the server logged, never happened."""

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ingest.sources.snapshots.snapshot_files import read_snapshot_dir
from recover.selection.filters import Filters
from recover.sources.home.marts import open_marts
from recover.sources.log import Log
from recover.timeline.as_of import moment_of
from recover.timeline.events import Table
from recover.timeline.state import state_of
from recover.undo.options import UndoOptions
from recover.undo.print.script import script
from recover.undo.undoing import planned
from tests.servers import Server
from tests.servers.marked import marked
from tests.support.in_process import binloom, binloom_here, build
from tests.support.recover.savepoints import SCHEMA, Played, Rows, play
from tests.support.recover.undo_servers import run

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

TRANSACTIONS = 40
_EVERY = 5
SESSIONS = {"mysql56": ("set session binlog_format = 'MIXED'",)}
SERVERS = marked("mysql", "mysql56", "mariadb", "mariadb118")


def assert_states(marts: "DuckDBPyConnection", source: str, played: Played) -> None:
    """Check the state of both tables after some transactions, and after the last."""
    for position, tables in [*played.contents.items()][::-_EVERY]:
        moment = moment_of(marts, source, f"{played.path.name}:{position}")
        for table, expected in tables.items():
            state = state_of(marts, Table(source, SCHEMA, table), moment)
            found: Rows = Counter(tuple(row.values[name] or "NULL" for name in state.columns) for row in state.rows())
            assert (found, state.is_complete) == (expected, True), (position, state.gaps_in_knowledge)


def outcomes(marts: "DuckDBPyConnection") -> list[tuple[str, str]]:
    rows = marts.execute("select change_id, outcome from binloom.row_changes order by change_id")
    return rows.fetchall()


@pytest.mark.parametrize("name", SERVERS)
def test_states_and_undos_are_those_of_the_server(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    played = play(server, TRANSACTIONS, seed=4, session=SESSIONS.get(name, ()))
    snapshot = read_snapshot_dir(server.snapshot_dir(tmp_path))
    log = Log.of_whole_files([played.path], snapshot=snapshot)
    assert_states(log.connection, "files", played)
    # MySQL cuts these rows out of its log.
    assert {outcome for _, outcome in outcomes(log.connection)} == (
        {"commit"} if name == "mysql" else {"commit", "rollback"}
    )

    before, last = list(played.contents)[-2:]
    found = Filters.of(tables=[f"{SCHEMA}.t"], files=[played.path.name], from_pos=before, to_pos=last)
    with planned(log, found, UndoOptions()) as (planner, plan, heading):
        assert plan.problems == []
        text = "\n".join(script(planner, plan, heading, "commit"))
    done = run(server, text)
    assert done.returncode == 0, done.stderr
    rows = Counter(tuple(map(str, row)) for row in server.execute(f"select * from {SCHEMA}.t"))
    assert rows == played.contents[before]["t"]


@pytest.mark.mysql
def test_a_compressed_log_is_the_same(mysql_server: Server, tmp_path: Path) -> None:
    session = ("set session binlog_transaction_compression = ON",)
    played = play(mysql_server, TRANSACTIONS, seed=5, session=session)
    log = Log.of_whole_files([played.path], snapshot=read_snapshot_dir(mysql_server.snapshot_dir(tmp_path)))
    assert_states(log.connection, "files", played)


DAMAGE = (
    f"create database {SCHEMA}",
    f"create table {SCHEMA}.orders (id int primary key, note varchar(40)) engine = innodb",
    f"create table {SCHEMA}.audit (id int primary key) engine = myisam",
    "begin",
    f"insert into {SCHEMA}.orders values (1, 'kept')",
    "savepoint sp",
    f"insert into {SCHEMA}.audit values (1)",
    f"insert into {SCHEMA}.orders values (2, 'taken back')",
    f"update {SCHEMA}.orders set note = 'taken back' where id = 1",
    "rollback to savepoint sp",
    f"insert into {SCHEMA}.orders values (3, 'kept')",
    "commit",
)


@pytest.fixture(scope="module")
def damage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    """A log with rows that were taken back, and the folder of a snapshot."""
    server: Server = request.getfixturevalue("mariadb_server")
    server.execute(f"drop database if exists {SCHEMA}")
    server.flush()
    server.execute(*DAMAGE)
    yield server.flush(), server.snapshot_dir(tmp_path_factory.mktemp("snapshot"))


@pytest.mark.mariadb
class TestCommands:
    def test_query_names_the_outcome_of_each_row(self, damage: tuple[Path, Path]) -> None:
        shown = binloom_here("query", "--table", f"{SCHEMA}.orders", "--files", damage[0]).stdout
        told = [line.partition(" at ")[0].strip() for line in shown.splitlines() if " at " in line or "files/" in line]
        assert ["outcome rollback" if "outcome" in line else line.partition("  ")[0] for line in told][1:] == [
            f"INSERT {SCHEMA}.orders 1",
            "outcome rollback",
            f"INSERT {SCHEMA}.orders 2",
            f"UPDATE {SCHEMA}.orders 1",
            told[0].partition("  ")[0],
            f"INSERT {SCHEMA}.orders 3",
        ]

    def test_decode_says_that_its_output_has_such_rows(self, damage: tuple[Path, Path]) -> None:
        done = binloom_here("decode", damage[0])
        assert "contains rows that ROLLBACK TO SAVEPOINT took back, in 1 transaction" in done.stderr
        assert done.stdout.count('"taken back"') == 2

    def test_undo_leaves_them_out(self, damage: tuple[Path, Path]) -> None:
        log, snapshot = damage
        options = ("undo", "--table", f"{SCHEMA}.orders", "--snapshot-dir", snapshot, "--files", log)
        done = binloom_here(*options)
        assert done.returncode == 0, done.stderr
        verbs = [
            line.split()[0] for line in done.stdout.splitlines() if line.startswith(("INSERT", "UPDATE", "DELETE"))
        ]
        assert (verbs, "taken back" in done.stdout) == (["DELETE", "DELETE"], False)
        done = binloom_here(*options, "--key", "2")
        assert (done.returncode, done.stdout) == (2, "")
        assert "ROLLBACK TO SAVEPOINT took back all selected changes" in done.stderr

    def test_history_does_not_know_them(self, damage: tuple[Path, Path]) -> None:
        done = binloom_here("history", f"{SCHEMA}.orders", "2", "--files", damage[0])
        assert "contains no change of row 2 in held.orders that took effect" in done.stderr


@pytest.mark.mariadb
@pytest.mark.spark
@pytest.mark.slow
def test_a_warehouse_knows_the_same_as_its_files(mariadb_server: Server, tmp_path: Path) -> None:
    played = play(mariadb_server, 20, seed=6)
    home, folder, snapshot = tmp_path / "home", tmp_path / "logs", mariadb_server.snapshot_dir(tmp_path)
    folder.mkdir()
    shutil.copy(played.path, folder)
    binloom(home, "snapshot", "--source", "shop", "--from-dir", str(snapshot))
    binloom(home, "ingest", "--source", "shop", "--binlog-dir", str(folder), "--all")
    build(home, "row_changes", "transactions", "chain_breaks")
    files = Log.of_files([played.path], Filters(), source_id="shop", snapshot=read_snapshot_dir(snapshot))
    expected = outcomes(files.connection)
    assert {outcome for _, outcome in expected} == {"commit", "rollback"}
    with open_marts(home, [("binloom", "row_changes")]) as marts:
        assert outcomes(marts) == expected
    breaks = binloom_here("sql", "select count(*) from binloom_quality.chain_breaks", "--format", "csv", home=home)
    assert breaks.stdout.split()[1:] == ["0"], breaks.stderr
