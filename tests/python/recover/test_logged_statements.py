"""Statements that the log has as text: states of a table that they changed, and the rows that they wrote."""

from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from recover.sources.log import Log
from recover.timeline import logged_statements
from recover.timeline.as_of import moment_of
from recover.timeline.events import Table
from recover.timeline.state import state_of
from tests.servers import Server
from tests.servers.marked import marked

AS_TEXT = ("set session binlog_format = STATEMENT", "update a set v = v + 1", "set session binlog_format = ROW")


@pytest.mark.parametrize("name", marked("mysql", "mariadb"))
def test_each_statement_obscures_a_state(name: str, request: pytest.FixtureRequest) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    server.execute("drop database if exists as_text", "create database as_text")
    server.flush()
    position = "show binary log status" if name == "mysql" else "show master status"
    with server.connect() as connection, connection.cursor() as cursor:
        moments = []
        for statement in (
            "use as_text",
            "create table a (id int primary key, v int)",
            *AS_TEXT,
            "truncate a",
            "insert into a values (1, 1)",
            position,
            # Neither the first nor the last one of the log.
            *AS_TEXT,
            position,
            "insert into a values (3, 3)",
            *AS_TEXT,
        ):
            cursor.execute(statement)
            if statement == position:
                moments.append("{}:{}".format(*cursor.fetchone()[:2]))
    log = Log.of_whole_files([server.flush()], source_id="s")
    table = Table("s", "as_text", "a")
    states = [state_of(log.connection, table, moment_of(log.connection, "s", moment)) for moment in moments]
    assert [[len(row.doubts) for row in state.rows()] for state in states] == [[0], [1]]
    assert [state.is_complete for state in states] == [True, False]


@pytest.mark.parametrize("at_once", [1, 2, 3, 1000])
def test_rows_have_the_same_statements_in_any_batch(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The transactions of two files have the same positions."""
    monkeypatch.setattr(logged_statements, "_TRANSACTIONS_AT_ONCE", at_once)
    places = [(f"binlog.{file:06}", position) for file in (1, 2) for position in range(100, 600, 100)]
    rows = [("s", 0, file, at, at + 10 * n, 0, "ANNOTATE", f"{file} {at} {n}") for file, at in places for n in (1, 2)]
    connection = duckdb.connect()
    connection.execute("create schema binloom_staging")
    names = "source_id, epoch, binlog_file, transaction_pos, start_pos, payload_ordinal, kind, sql_text"
    connection.execute(
        f"create table binloom_staging.stg_binlog__statements as select * from (values {', '.join(map(str, rows))})"
        f" as statements ({names})"
    )
    log: Any = SimpleNamespace(rows=lambda query: connection.execute(query.sql("duckdb")).fetchall())
    changes = {f"s/0/{file}/{at + 10 * n + 5}/0/0": (file, at, n) for file, at in places for n in (1, 2)}
    found = logged_statements.statements_of(log, {id_: f"s/0/{file}/{at}" for id_, (file, at, _) in changes.items()})
    assert found == {id_: f"{file} {at} {n}" for id_, (file, at, n) in changes.items()}
