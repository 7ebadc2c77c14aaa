"""A statement in the log that may change more than the tables that it names makes all these tables uncertain."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from recover.sources.log import Log
from recover.timeline.as_of import moment_of
from recover.timeline.events import Table
from recover.timeline.state import state_of
from tests.servers import Server
from tests.servers.marked import marked

SCHEMA = "beyond"
TABLES = ("t", "r", "u")
CREATED = (
    f"create database {SCHEMA}",
    *(f"create table {SCHEMA}.{table} (id int primary key, v varchar(40))" for table in TABLES),
    *(f"insert into {SCHEMA}.{table} values (1, 'a')" for table in TABLES),
)
STATEMENT, ROW = "set session binlog_format = STATEMENT", "set session binlog_format = ROW"
FUNCTION = "create function f() returns int modifies sql data begin delete from t; return 2; end"
IN_LOG = "a statement in the log"


@pytest.fixture(params=marked("mysql", "mariadb118"))
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server with three tables, whose definitions are in the newest file of its log."""
    found: Server = request.getfixturevalue(f"{request.param}_server")
    found.flush()
    found.execute("set global log_bin_trust_function_creators = 1", *CREATED)
    yield found
    found.execute(f"drop database {SCHEMA}", "set global log_bin_trust_function_creators = default")


def run(server: Server, *statements: str) -> Path:
    """Let a server run statements in the schema; return the file of its log."""
    server.execute(f"use {SCHEMA}", *statements)
    return server.flush()


def reasons(*files: Path, only: str | None = None) -> dict[str, list[str]]:
    """Return which events make the rows of each table uncertain at the end of files, without their places.

    Parameters
    ----------
    only
        The only table whose rows are decoded; None: those of all tables.
    """
    log = Log.of_whole_files(list(files), only)
    moment = moment_of(log.connection, "files", None)
    found = {}
    for table in TABLES if only is None else (only,):
        gaps = state_of(log.connection, Table("files", SCHEMA, table), moment).gaps_in_knowledge
        found[table] = [gap.removeprefix("After ").partition(" at ")[0] for gap in gaps if gap.startswith("After ")]
    return found


def each(*events: str) -> dict[str, list[str]]:
    """Return these events for each table."""
    return {table: list(events) for table in TABLES}


def test_a_function_in_a_statement_may_change_any_table(server: Server) -> None:
    log = run(server, FUNCTION, STATEMENT, "insert into r values (f(), 's')", ROW)
    assert not server.execute(f"select * from {SCHEMA}.t")
    assert reasons(log) == each(IN_LOG)


@pytest.mark.parametrize("call", ["select f()", "do f()", "set @x = f()"])
def test_a_call_of_a_function_may_change_any_table(server: Server, call: str) -> None:
    assert reasons(run(server, FUNCTION, STATEMENT, call, ROW)) == each(IN_LOG)


def test_functions_of_the_server_change_no_table(server: Server) -> None:
    update = "update t set v = concat(upper(v), char_length(v), ' f(1)') where id in (1, 2) and (v = 'a')"
    log = run(server, STATEMENT, update, "insert into t (id, v) values (2, abs(-1))", ROW)
    assert reasons(log) == {"t": [IN_LOG], "r": [], "u": []}


VIEW = f"{IN_LOG} on {SCHEMA}.w, which may be a view,"


def test_a_statement_on_a_view_may_change_any_table(server: Server) -> None:
    update = (STATEMENT, "update w set v = 'vw'", ROW)
    log = run(server, "create view w as select id, v from t", *update)
    assert reasons(log) == each(VIEW)
    # Nothing in the later file shows what the name is; then the log shows that it was a view.
    later = run(server, "truncate t", "truncate r", "truncate u", *update)
    assert reasons(later) == each(VIEW)
    last = run(server, "drop view w", "create table w (id int, v int)", "insert into w values (1, 1)")
    assert reasons(later, last) == each(VIEW)


def test_a_statement_on_a_table_changes_no_other_table(server: Server) -> None:
    created = run(
        server,
        *("create view w as select id, v from t", "drop view w", "create table w (id int, v int)"),
        *(STATEMENT, "create temporary table x (id int)", "insert into x values (1)", "drop temporary table x"),
        *("insert into w values (1, 1)", ROW),
    )
    assert reasons(created) == each()
    # Row events, a later statement on the table, and a definition show that it is a table.
    for shown in ("insert into w values (2, 2)", "alter table w add x int"):
        log = run(server, "truncate t", STATEMENT, "update w set v = 3", ROW, shown)
        assert reasons(log, only="t") == {"t": []}
    assert reasons(log)["t"] == []


def test_a_statement_in_a_schema_of_which_nothing_is_known_changes_no_other_table(server: Server) -> None:
    server.execute("create database tools", "create table tools.heartbeat (id int primary key, v int)")
    server.flush()
    log = run(server, "truncate t", "truncate r", "truncate u", STATEMENT, "replace into tools.heartbeat values (1, 1)")
    server.execute("drop database tools")
    assert reasons(log) == each()


def test_statements_on_tables_of_the_server_change_no_other_table(server: Server) -> None:
    insert = "insert into mysql.time_zone_leap_second values (1, 1)"
    log = run(server, STATEMENT, insert, "delete from mysql.time_zone_leap_second", ROW)
    assert reasons(log) == each()


TRIGGER = f"{IN_LOG} on {SCHEMA}.t, which has triggers,"


def test_a_statement_on_a_table_with_a_trigger_may_change_any_table(server: Server) -> None:
    trigger = "create trigger g after insert on t for each row update r set v = new.v"
    log = run(server, trigger, STATEMENT, "insert into t values (2, 'tr')", ROW)
    assert server.execute(f"select v from {SCHEMA}.r") == [("tr",)]
    assert reasons(log) == {"t": [IN_LOG], "r": [TRIGGER], "u": [TRIGGER]}
    renamed = run(server, "truncate r", "truncate u", "rename table t to s", STATEMENT, "insert into s values (3, 's')")
    assert reasons(log, renamed)["r"] == [TRIGGER.replace(".t", ".s")]
    server.execute(ROW, f"rename table {SCHEMA}.s to {SCHEMA}.t")


@pytest.mark.parametrize("end", ["drop trigger g", "drop table t", f"drop trigger if exists {SCHEMA}.g"])
def test_a_trigger_that_was_dropped_changes_no_table(server: Server, end: str) -> None:
    log = run(
        server,
        *("create trigger g after insert on t for each row update r set v = new.v", end),
        *("create table if not exists t (id int, v int)", STATEMENT, "insert into t values (2, 2)", ROW),
        "create trigger g after insert on t for each row update r set v = new.v",
    )
    assert reasons(log) == {"t": [IN_LOG], "r": [], "u": []}
