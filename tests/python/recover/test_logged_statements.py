"""States of a table that statements changed which the log has as text."""

import pytest

from recover.sources.log import Log
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
