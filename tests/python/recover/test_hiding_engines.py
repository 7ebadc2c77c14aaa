"""Tables that have other rows than the log shows, because of their engine, against servers."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from recover.selection.filters import Filters
from recover.sources.log import Log
from recover.timeline.as_of import moment_of
from recover.timeline.events import Table
from recover.timeline.history import history_of
from recover.timeline.state import State, state_of
from recover.undo.options import UndoOptions
from recover.undo.undoing import planned
from tests.servers import Distribution, Server, mariadb118, mysql, mysql56
from tests.servers.marked import marked

SCHEMA = "engines"
COLUMNS = "(id int primary key, v varchar(20))"
RESTARTED: dict[str, Distribution] = {"mysql": mysql, "mysql56": mysql56, "mariadb118": mariadb118}


def run(server: Server, *statements: str) -> Path:
    """Run statements in a new schema; return the binlog file."""
    server.execute(f"drop database if exists {SCHEMA}")
    server.flush()
    server.execute(f"create database {SCHEMA} character set utf8")
    with server.connect(database=SCHEMA) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
    return server.flush()


def state(path: Path, name: str) -> tuple[State, dict[str | None, bool]]:
    """Return the state at the end, and for the key of each row whether it is certain."""
    return state_of_files([path], name)


def state_of_files(paths: Sequence[Path], name: str) -> tuple[State, dict[str | None, bool]]:
    log = Log.of_whole_files(paths, source_id="s").connection
    found = state_of(log, Table("s", SCHEMA, name), moment_of(log, "s", None))
    return found, {row.values["id"]: not row.doubts for row in found.rows()}


def assert_uncertain(path: Path, name: str, reason: str, keys: Sequence[str]) -> None:
    found, rows = state(path, name)
    assert not found.is_complete
    assert rows == dict.fromkeys(keys, False)
    assert any(reason in sentence for sentence in found.gaps_in_knowledge), found.gaps_in_knowledge


@pytest.mark.parametrize("name", marked("mysql", "mysql56"))
def test_rows_of_a_blackhole_table_are_uncertain(name: str, request: pytest.FixtureRequest) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    path = run(
        server,
        f"create table made {COLUMNS} engine=blackhole",
        "insert into made values (1, 'a'), (2, 'b')",
        f"create table made_since {COLUMNS} comment='x', engine blackhole",
        "insert into made_since values (1, 'a')",
        "drop table made_since",
        f"create table made_since {COLUMNS}",
        "insert into made_since values (2, 'b')",
        f"create table swallowed {COLUMNS}",
        "insert into swallowed values (1, 'a'), (2, 'b')",
        "alter table swallowed engine = 'BLACKHOLE', add w int default 1",
        "insert into swallowed values (3, 'c', 3)",
        f"create table back {COLUMNS}",
        "alter table back engine = blackhole",
        "insert into back values (3, 'c')",
        "alter table back engine = innodb",
        "insert into back values (4, 'd')",
    )
    assert_uncertain(path, "made", "CREATE TABLE with ENGINE=BLACKHOLE", ["1", "2"])
    assert_uncertain(path, "swallowed", "ALTER TABLE with ENGINE=BLACKHOLE", ["3"])
    found, rows = state(path, "made_since")
    assert (found.is_complete, rows) == (True, {"2": True})
    found, rows = state(path, "back")
    assert (found.is_complete, rows) == (False, {"3": False, "4": True})
    log = Log.of_whole_files([path], source_id="s")
    assert history_of(log.connection, Table("s", SCHEMA, "made"), "1")[-1].doubts
    statements = "select table_name from binloom.schema_changes where destroys_rows and statement_type = 'ALTER TABLE'"
    assert log.connection.execute(statements).fetchall() == [("swallowed",), ("back",)]
    with planned(log, Filters.of(tables=[f"{SCHEMA}.made"]), UndoOptions()) as (_, plan, _):
        (problem,) = plan.problems
    assert "made may have changed unseen since: CREATE TABLE with ENGINE=BLACKHOLE" in problem


@pytest.mark.parametrize("name", marked("mysql", "mysql56", "mariadb118"))
def test_rows_of_a_merge_table_and_of_its_members_are_uncertain(name: str, request: pytest.FixtureRequest) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    tables = [f"create table {one} {COLUMNS} engine=myisam" for one in "abcde"]
    path = run(
        server,
        *tables,
        "insert into a values (1, 'a')",
        "insert into d values (1, 'd')",
        f"create table m {COLUMNS} engine=merge union=(a, {SCHEMA}.b) insert_method=last",
        "insert into m values (2, 'b')",
        "update m set v = 'mm' where id = 1",
        "insert into b values (5, 'b5')",
        f"create table n {COLUMNS} engine=myisam",
        "alter table n engine=mrg_myisam, union=(c), insert_method=first",
        "insert into n values (7, 'n')",
        "insert into c values (8, 'c')",
        "alter table m union=(d)",
        "insert into e values (9, 'e')",
    )
    assert_uncertain(path, "a", "CREATE TABLE of a MERGE table that has its rows", ["1"])
    assert_uncertain(path, "b", "CREATE TABLE of a MERGE table that has its rows", ["5"])
    assert_uncertain(path, "c", "ALTER TABLE of a MERGE table that has its rows", ["8"])
    assert_uncertain(path, "d", "ALTER TABLE of a MERGE table that has its rows", ["1"])
    assert_uncertain(path, "n", "ALTER TABLE with ENGINE=MERGE", ["7"])
    found, rows = state(path, "e")
    assert (found.is_complete, rows) == (True, {"9": True})
    found, rows = state(path, "m")
    assert (found.is_complete, any(rows.values())) == (False, False)


@pytest.mark.parametrize("name", marked("mysql", "mysql56"))
def test_a_copy_and_a_new_name_keep_the_engine(name: str, request: pytest.FixtureRequest) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    path = run(
        server,
        f"create table a {COLUMNS} engine=blackhole",
        "create table copied like a",
        "insert into copied values (1, 'a')",
        "rename table a to renamed",
        "truncate table renamed",
        "insert into renamed values (2, 'b')",
        "create table back like renamed",
        "rename table back to kept",
        "alter table kept engine = innodb",
        "insert into kept values (3, 'c')",
        f"create table a {COLUMNS}",
        "insert into a values (4, 'd')",
    )
    assert_uncertain(path, "copied", "CREATE TABLE from a table with ENGINE=BLACKHOLE", ["1"])
    found, rows = state(path, "renamed")
    assert (found.is_complete, rows) == (False, {"2": False})
    _, rows = state(path, "kept")
    assert rows == {"3": True}
    found, rows = state(path, "a")
    assert (found.is_complete, rows) == (True, {"4": True})
    log = Log.of_whole_files([path], source_id="s")
    with planned(log, Filters.of(tables=[f"{SCHEMA}.copied"]), UndoOptions()) as (_, plan, _):
        (problem,) = plan.problems
    assert "copied may have changed unseen since: CREATE TABLE from a table with ENGINE=BLACKHOLE" in problem


@pytest.mark.parametrize("name", marked("mysql", "mysql56", "mariadb118"))
def test_the_rows_of_a_memory_table_are_uncertain_after_a_start_of_the_server(name: str, tmp_path: Path) -> None:
    with RESTARTED[name].start(tmp_path) as server:
        server.execute(
            f"create database {SCHEMA}",
            f"create table {SCHEMA}.a {COLUMNS} engine=memory",
            f"create table {SCHEMA}.b like {SCHEMA}.a",
            f"create table {SCHEMA}.kept {COLUMNS}",
            *(f"insert into {SCHEMA}.{table} values (1, 'a')" for table in ("a", "b", "kept")),
        )
        before = server.binlogs()
        found, rows = state_of_files(before, "b")
        assert (found.is_complete, rows) == (True, {"1": True})
        server.restart()
        # Nobody has used the table: neither a statement nor a transaction tells that its rows are gone.
        after_start = server.binlogs()
        for table in ("a", "b"):
            found, rows = state_of_files(after_start, table)
            assert not found.is_complete
            assert rows == {"1": False}
            assert any("a start of the server, which empties MEMORY" in one for one in found.gaps_in_knowledge)
        found, rows = state_of_files(after_start, "kept")
        assert (found.is_complete, rows) == (True, {"1": True})
        log = Log.of_whole_files(after_start, source_id="s")
        with planned(log, Filters.of(tables=[f"{SCHEMA}.b"]), UndoOptions()) as (_, plan, _):
            (problem,) = plan.problems
        assert "may have changed unseen since: a start of the server" in problem
        server.execute(f"truncate table {SCHEMA}.b", f"insert into {SCHEMA}.b values (2, 'b')")
        server.flush()
        found, rows = state_of_files(server.binlogs()[:-1], "b")
        assert (found.is_complete, rows) == (True, {"2": True})
