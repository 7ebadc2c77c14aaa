"""State and history after statements that alter a table, against the rows that a server shows."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pymysql.converters import conversions

from recover.sources.log import Log
from recover.timeline.as_of import moment_of
from recover.timeline.events import Table
from recover.timeline.history import UnknownRowError, history_of
from recover.timeline.state import State, state_of
from tests.servers import Server
from tests.servers.marked import marked
from tests.support.binlog.forge import LONG, FileMaker
from tests.support.depth import is_full
from tests.support.in_process import binloom_here
from tests.support.recover.altered_tables import CASES, Case

SCHEMA = "altered"
SERVERS = {
    "mysql_minimal": "mysql",
    "mysql_full": "mysql",
    "mariadb118": "mariadb118",
}
"""Servers by what they log of columns."""
Rows = list[dict[str, str | None]]
# Values as the server prints them.
_ENCODERS = {kind: encode for kind, encode in conversions.items() if not isinstance(kind, int)}


@dataclass
class Run:
    """The cases on one server, and by table its rows before the statements, after them, and at last."""

    server: Server
    found: dict[str, list[tuple[str, Rows]]] = field(default_factory=dict)

    def run(self) -> Log:
        """Run all cases that the server has the syntax for; return the log."""
        with self.server.connect(conv=_ENCODERS) as connection, connection.cursor() as cursor:
            for statement in (
                f"drop database if exists {SCHEMA}",
                "flush binary logs",
                f"create database {SCHEMA} character set utf8",
                f"use {SCHEMA}",
                "set time_zone = '+00:00', sql_mode = ''",
                "set names utf8",
            ):
                cursor.execute(statement)
            for case in self.cases:
                self._run(cursor, case)
        return Log.of_whole_files([self.server.flush()], source_id="s")

    @property
    def cases(self) -> list[Case]:
        """The cases that the server has the syntax for; `make deep` also repeats those of MySQL on MariaDB."""
        marker = self.server.distribution.marker
        has_all = is_full() or marker == "mysql"
        cases = [case for case in CASES if marker in case.servers]
        return [case for case in cases if has_all or "mysql" not in case.servers or case.generated]

    def _run(self, cursor: Any, case: Case) -> None:
        cursor.execute(f"create table {case.table} ({case.columns})")
        cursor.execute(f"insert into {case.table} values {case.rows}")
        dumps = self.found[case.table] = [self._dump(cursor, case, {})]
        for statements in (case.alter, case.later):
            for statement in statements.split(";"):
                cursor.execute(statement.replace("{}", case.table))
            dumps.append(self._dump(cursor, case, dict(case.shown)))

    def _dump(self, cursor: Any, case: Case, shown: dict[str, str]) -> tuple[str, Rows]:
        is_renamed = self.server.flavor == "mysql" and not self.server.version.startswith("5.")
        cursor.execute("show binary log status" if is_renamed else "show master status")
        file, position, *_ = cursor.fetchone()
        cursor.execute(f"select * from {case.table} limit 0")
        names = [one[0] for one in cursor.description]
        cursor.execute(f"select {', '.join(shown.get(name, f'`{name}`') for name in names)} from {case.table}")
        rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        return f"{file}:{position}", rows


@dataclass(frozen=True)
class Altered:
    """What a server did, and the log of it."""

    run: Run
    log: Log


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=[getattr(pytest.mark, server), *([pytest.mark.deep] if name == "mysql_full" else [])])
        for name, server in SERVERS.items()
    ],
)
def altered(request: pytest.FixtureRequest) -> Iterator[Altered]:
    """The cases on a server that logs no names of columns, or all of their definitions."""
    name = request.param
    server: Server = request.getfixturevalue(f"{SERVERS[name]}_server")
    has_metadata = name == "mysql_full"
    if has_metadata:
        server.execute("set global binlog_row_metadata = 'FULL'")
    try:
        run = Run(server)
        yield Altered(run, run.run())
    finally:
        if has_metadata:
            server.execute("set global binlog_row_metadata = 'MINIMAL'")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.table)
def test_state_and_history_know_what_a_statement_tells(altered: Altered, case: Case) -> None:
    check(altered, case)


def check(altered: Altered, case: Case) -> None:
    """Compare state and history with the rows of the server."""
    if case not in altered.run.cases:
        return
    table = Table("s", SCHEMA, case.table)
    (_, first), (changed_at, changed), (_, last) = altered.run.found[case.table]
    missing = check_rows(state_at(altered, table, changed_at), changed, case)
    assert missing == case.unknown - {"..."}
    # A later change shows the whole row.
    unlogged = case.generated if altered.run.server.version.startswith("11.") else frozenset()
    assert check_rows(state_at(altered, table, None), last, case) <= missing | unlogged
    key = altered.log.connection.execute(
        "select primary_key_columns from binloom.table_versions where table_name = ? and len(primary_key_columns) > 0",
        [case.table],
    ).fetchone()
    has_key = key is not None and len(key[0]) == 1 and key[0][0] in first[0]
    if has_key:
        for row in first[:1]:
            versions = history_of(altered.log.connection, table, row[key[0][0]] or "")
            assert versions[-1].row is not None


def state_at(altered: Altered, table: Table, place: str | None) -> State:
    connection = altered.log.connection
    return state_of(connection, table, moment_of(connection, "s", place))


def check_rows(state: State, expected: Rows, case: Case) -> set[str]:
    """Check that no row is missing and that known values are right; return the columns with an unknown value."""
    found = [*state.rows()]
    left = list(expected)
    assert state.columns == tuple(expected[0])
    assert not state.chain_breaks
    assert state.is_complete is not case.is_lost
    assert len(found) >= len(expected) if case.is_lost else len(found) == len(expected)
    for row in found:
        assert bool(row.doubts) is case.is_lost or (case.is_lost and not row.unknown_columns)
        fitting = [one for one in left if row.values.items() <= one.items()]
        if case.is_lost and not fitting:
            continue
        assert fitting, (row, left)
        left.remove(max(fitting, key=lambda one: one.get("id") == row.values.get("id")))
    assert not left or case.is_lost
    # Some values of the column are known.
    assert "..." not in case.unknown or any(not row.unknown_columns for row in found)
    return {column for row in found for column in row.unknown_columns}


@pytest.mark.parametrize("name", marked("mysql", "mariadb118"))
def test_history_follows_a_row_that_has_lost_its_key(name: str, request: pytest.FixtureRequest) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    server.execute("drop database if exists altered_key", "create database altered_key")
    server.flush()
    with server.connect(database="altered_key") as connection, connection.cursor() as cursor:
        for statement in (
            "create table t (id int primary key, a int)",
            "insert into t values (1, 1), (2, 2), (3, 3)",
            "alter table t drop primary key",
            "update t set a = 5 where id = 1",
            "update t set a = 6, id = 9 where id = 1",
            "update t set id = 3, a = 3 where id = 2",
            "delete from t where id = 9",
            "insert into t values (7, 7)",
        ):
            cursor.execute(statement)
    log = Log.of_whole_files([server.flush()], source_id="s").connection
    table = Table("s", "altered_key", "t")
    one, two, seven = (history_of(log, table, key) for key in ("1", "2", "7"))
    alter = "ALTER TABLE"
    assert [version.change.event_type if version.change else alter for version in one] == [
        *("INSERT", alter, "UPDATE", "UPDATE", "DELETE")
    ]
    assert [version.row and version.row["a"] for version in one] == ["1", "1", "5", "6", None]
    # Two rows are equal from here on.
    assert two[-1].row is None and two[-1].joins is not None and two[-1].change is not None
    assert [version.joins for version in two[:-1]] == [None, None]
    # It was inserted when the table had no key.
    assert [version.row for version in seven] == [{"id": "7", "a": "7"}]
    with pytest.raises(UnknownRowError):
        history_of(log, table, "8")


@pytest.mark.parametrize("statement", ["alter table t change a b int, change b a int", "truncate table t"])
def test_a_statement_on_a_temporary_table_leaves_the_rows_of_the_other_one(statement: str, tmp_path: Path) -> None:
    maker = FileMaker()

    def query(text: str) -> None:
        maker.event(2, struct.pack("<IIBHH", 7, 0, 1, 0, 0) + b"s\0" + text.encode())

    query("create table t (a int, b int)")
    maker.begin()
    maker.table_map([LONG, LONG], b"")
    maker.rows(30, 2, b"\0" + struct.pack("<ii", 1, 2))
    maker.commit()
    for text in ("create temporary table t (a int, b int)", statement, "drop temporary table t"):
        query(text)
    maker.rotate()
    told = binloom_here("state", "s.t", "--files", maker.write(tmp_path), home=tmp_path / "home")
    assert told.stdout.splitlines()[0].startswith("a,b,") and "\n1,2," in told.stdout, told
    assert "perhaps on a temporary table of this name" in told.stderr and "complete" not in told.stderr
