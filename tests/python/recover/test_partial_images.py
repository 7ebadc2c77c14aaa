"""The state of tables without a primary key whose images lack columns, as a server had it."""

from collections import Counter

import pytest

from recover.sources.log import Log
from recover.timeline.as_of import moment_of
from recover.timeline.events import Table
from recover.timeline.state import State, state_of
from tests.servers import Server
from tests.servers.marked import marked
from tests.support.recover.undo_servers import Case, played, rows_of

SCHEMA = "partial_images"
MINIMAL = "set session binlog_row_image = 'MINIMAL'"
TABLE = "create table t (id int not null, v int, b varchar(9) character set utf8mb4, unique key (id))"
ROWS = "insert into t values (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c'), (4, 4, 'd'), (5, 5, null)"
CHANGES = (
    MINIMAL,
    "delete from t where id = 2",
    "update t set v = 7 where id = 3",
    "update t set id = 30, b = 'x' where id = 3",
    "insert into t (id, v) values (2, 9)",
    "update t set b = 'late' where id = 2",
    "delete from t where id in (4, 30)",
    "update t set v = v + 1 where id = 5",
)


def state(server: Server, *before: str) -> State:
    log, _ = played(server, Case("partial", before, CHANGES), SCHEMA)
    connection = Log.of_whole_files([log]).connection
    return state_of(connection, Table("files", SCHEMA, "t"), moment_of(connection, "files", None))


@pytest.mark.parametrize("name", marked("mysql", "mariadb", deep=("mysql56", "mariadb118")))
def test_images_without_all_columns_find_their_rows(name: str, request: pytest.FixtureRequest) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    found = state(server, TABLE, ROWS)
    rows = [*found.rows()]
    assert not any(row.doubts or row.unknown_columns for row in rows) and found.is_complete
    assert Counter(tuple(row.values.values()) for row in rows) == rows_of(server, SCHEMA)["t"]


def test_rows_that_may_be_the_one_of_an_image_are_in_doubt(mysql_server: Server) -> None:
    # The image of an INSERT lacks a key that is a default, so that the log does not tell the row.
    found = state(
        mysql_server,
        TABLE.replace("not null", "not null default 4", 1),
        MINIMAL,
        "insert into t (v) values (4)",
        ROWS.replace("(4, 4, 'd'), ", ""),
    )
    doubtful = [row.values for row in found.rows() if row.doubts]
    assert doubtful == [{"v": "4"}] and not found.is_complete
