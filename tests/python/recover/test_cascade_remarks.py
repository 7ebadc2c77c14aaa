"""A history and a state say that a foreign key may have changed rows: most servers do not log what a cascade does."""

from pathlib import Path

import pytest

from tests.servers import Server
from tests.servers.marked import marked
from tests.support.in_process import binloom_here

WORKLOAD = (
    "drop database if exists cascading",
    "create database cascading",
    "create table cascading.p (id int primary key)",
    "create table cascading.c (id int primary key, r int,"
    " foreign key (r) references cascading.p (id) on delete cascade)",
    "create table cascading.kept (id int primary key, r int, foreign key (r) references cascading.p (id))",
    "insert into cascading.p values (1), (2)",
    "insert into cascading.c values (1, 1), (2, 2)",
    "insert into cascading.kept values (1, 2), (2, 2)",
    "delete from cascading.c where id = 2",
    "delete from cascading.p where id = 1",
)
CASCADE = "Foreign key c_ibfk_1 changes rows when p changes; not every server logs these changes."
OF_STATEMENT = "has a foreign key that changes rows of this table when another table changes"
IS_OPEN = "The log does not show whether the row was so at that moment."


@pytest.mark.parametrize("server", marked("mariadb", "mysql"))
def test_a_row_that_a_cascade_may_have_changed(server: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    live: Server = request.getfixturevalue(f"{server}_server")
    live.flush()
    live.execute(*WORKLOAD)
    given = ("--snapshot-dir", live.snapshot_dir(tmp_path))
    log = ("--files", live.flush())

    def told(*words: object) -> str:
        done = binloom_here(*words, *log)
        assert done.returncode in (0, 1), done.stderr
        return done.stderr

    end = ("--as-of", "2099-01-01")
    # MySQL 9.7 logs the cascade, and its log tells it.
    is_gone = "did not exist as of" in told("history", "cascading.c", "1", *end)
    assert is_gone == (server == "mysql")
    for options, remark, other in ((given, CASCADE, OF_STATEMENT), ((), OF_STATEMENT, CASCADE)):
        for asked in (("state", "cascading.c"), ("history", "cascading.c", "1")):
            answer = told(*asked, *options)
            assert remark in answer
            assert other not in answer
        then = told("history", "cascading.c", "1", *end, *options)
        assert (remark in then, IS_OPEN in then) == (not is_gone, not is_gone)
        gone = told("history", "cascading.c", "2", *end, *options)
        assert "did not exist as of" in gone
        assert remark not in gone
    for options in (given, ()):
        assert "oreign key" not in told("state", "cascading.kept", *options)
        assert "oreign key" not in told("history", "cascading.kept", "1", *end, *options)
