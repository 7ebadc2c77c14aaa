"""DDL after the damage: the undo gives the rows that the same DDL gives on a server without the damage.

No schema snapshot is given: the definitions are those of the statements in the log.
"""

import re
from pathlib import Path
from typing import Any

import pytest

from binloom.answers.undo import planned_undo
from recover.selection.filters import Filters
from recover.sources.log import Log
from recover.undo.options import Mode, UndoOptions
from recover.undo.plan.planner import Plan
from recover.undo.print.script import script
from recover.undo.undoing import planned
from tests.servers import Server
from tests.servers.marked import marked
from tests.support.recover.undo_servers import Case, played, rows_of, run, statements_of

ALL = marked("mysql", "mariadb118", deep=("mysql56", "mariadb"))
TABLE = "create table t (id int primary key, a int, b varchar(40) character set utf8mb4, c int not null default 4)"
ROWS = "insert into t values (1, 1, 'one', 1), (2, 2, 'two', 2), (3, 3, null, 3)"
DELETE, UPDATE = "delete from t where id = 1", "update t set a = a + 10, b = 'x' where id > 1"
MINIMAL = "set session binlog_row_image = 'MINIMAL'"
BOTH = (DELETE, UPDATE)

CARRIED = [
    Case("add columns", (TABLE, ROWS), BOTH, ("alter table t add d int null, add e int not null default 7",)),
    Case("add a column at the beginning", (TABLE, ROWS), BOTH, ("alter table t add d varchar(9) default 'x' first",)),
    Case("add a column without a default", (TABLE, ROWS), BOTH, ("alter table t add d int not null",)),
    Case(
        "change the default of an added column",
        (TABLE, ROWS),
        BOTH,
        ("alter table t add d int default 7", "alter table t alter d set default 8"),
    ),
    Case(
        "use an added column",
        (TABLE, ROWS),
        BOTH,
        ("alter table t add d int default 7", "update t set d = 9 where id = 3", "insert into t (id) values (9)"),
    ),
    Case("drop a column", (TABLE, ROWS), BOTH, ("alter table t drop c",)),
    Case("rename a column", (TABLE, ROWS), BOTH, ("alter table t change a z int",)),
    Case("rename the key", (TABLE, ROWS), BOTH, ("alter table t change id number int not null",)),
    Case(
        "move columns",
        (TABLE, ROWS),
        BOTH,
        ("alter table t modify id int not null after c, modify b varchar(40) character set utf8mb4 first",),
    ),
    Case(
        "wider types",
        (TABLE, ROWS),
        BOTH,
        ("alter table t modify a bigint, modify b varchar(90) character set utf8mb4",),
    ),
    Case("rename the table", (TABLE, ROWS), BOTH, ("rename table t to u",)),
    Case(
        "alter and rename the table",
        (TABLE, ROWS),
        BOTH,
        ("alter table t add d int default 3", "alter table t rename to u", "alter table u drop c"),
    ),
    Case(
        "an index, a comment, a default",
        (TABLE, ROWS),
        BOTH,
        ("alter table t add index i (a), comment = 'x', alter c set default 9",),
    ),
    Case("a unique key", (TABLE, ROWS), BOTH, ("alter table t add unique u (c)",)),
    Case(
        "partial images",
        (TABLE, ROWS, "update t set c = c + 1"),
        (MINIMAL, UPDATE),
        ("alter table t add d int default 7, change a z int",),
    ),
    Case("another engine", (TABLE, ROWS), BOTH, ("alter table t engine = MyISAM",)),
    Case(
        "a table without a key",
        (
            "create table t (a int, b varchar(9) character set latin1)",
            "insert into t values (1, 'x'), (1, 'x'), (2, 'y')",
        ),
        ("delete from t where a = 1 limit 1",),
        ("alter table t add d int default 7",),
    ),
    Case(
        "a key of other columns",
        ("create table t (id int primary key, a int not null)", "insert into t values (1, 7), (2, 8)"),
        ("delete from t where id = 1", "update t set a = 9 where id = 2"),
        ("alter table t drop primary key, add primary key (a)",),
    ),
    Case("drop the key", (TABLE, ROWS), BOTH, ("alter table t drop primary key",)),
    Case("another type of numbers", (TABLE, ROWS), BOTH, ("alter table t modify a decimal(10,2)",)),
    Case("another character set", (TABLE, ROWS), BOTH, ("alter table t convert to character set latin1",)),
    Case("another order", (TABLE, ROWS), BOTH, ("alter table t order by a desc",)),
    Case("a counter", (TABLE, ROWS), (UPDATE,), ("alter table t add n int auto_increment unique",)),
    Case(
        "a time of update that was added",
        (TABLE, ROWS),
        BOTH,
        ("alter table t add s timestamp null default null on update current_timestamp",),
    ),
    Case(
        "generated columns",
        (TABLE, ROWS),
        BOTH,
        ("alter table t add g int as (a + 1) virtual, add h int as (a + 2) stored",),
        not_on=("mysql56",),
    ),
]


def undone(log: Path, condition: str, options: UndoOptions | None = None) -> tuple[Plan, str]:
    """Return the plan for the transactions of a condition of `played`, and its script."""
    first, end = map(int, re.findall(r"transaction_pos >?[=<] ([0-9]+)", condition))
    files = Log.of_whole_files([log])
    filters = Filters.of(files=[log.name], from_pos=first, to_pos=end)
    with planned(files, filters, options or UndoOptions()) as (planner, plan, heading):
        return plan, "\n".join(script(planner, plan, heading)) + "\n" if plan.is_printable else ""


@pytest.mark.parametrize("name", ALL)
def test_tables_are_as_if_only_the_ddl_had_run(name: str, request: pytest.FixtureRequest) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    for case in (one for one in CARRIED if name not in one.not_on):
        log, condition = played(server, case, "undo_altered")
        wanted = rows_of(server, "undo_altered_without")
        plan, text = undone(log, condition)
        assert text, (case.name, plan.problems, plan.conflicts, plan.refusals)
        done = run(server, text)
        assert done.returncode == 0, (case.name, done.stderr, text)
        assert rows_of(server, "undo_altered") == wanted, (case.name, text)


@pytest.mark.mysql
def test_an_insert_leaves_added_columns_to_their_defaults(mysql_server: Server) -> None:
    case = Case("defaults", (TABLE, ROWS), (DELETE,), ("alter table t add d int null, add e int not null default 7",))
    log, condition = played(mysql_server, case, "undo_altered")
    plan, text = undone(log, condition)
    (insert,) = statements_of(text)
    assert insert == "INSERT INTO `undo_altered`.`t` (`id`, `a`, `b`, `c`) VALUES (1, 1, 'one', 1);"
    assert "-- definition of undo_altered.t: from CREATE TABLE at " in text
    assert [warning for warning in plan.warnings if "default is no constant" in warning] == []


LOST = [
    ("alter table t drop b", "column b of undo_altered.t, which ALTER TABLE at "),
    ("alter table t add d datetime default current_timestamp", "column d of undo_altered.t, which was added since"),
]


@pytest.mark.mysql
def test_what_a_statement_took_is_named_once(mysql_server: Server) -> None:
    for statement, words in LOST:
        log, condition = played(mysql_server, Case(words, (TABLE, ROWS), BOTH, (statement,)), "undo_altered")
        plan, text = undone(log, condition)
        assert text, plan.problems
        assert len([warning for warning in plan.warnings if warning.startswith(words)]) == 1
        assert run(mysql_server, text).returncode == 0


@pytest.mark.mysql
@pytest.mark.parametrize("again", [(), ("alter table t add b varchar(9)",)])
def test_an_undo_of_a_column_that_is_gone_does_not_say_that_all_is_well(
    mysql_server: Server, again: tuple[str, ...]
) -> None:
    case = Case("gone", (TABLE, ROWS), ("update t set b = 'new'",), ("alter table t drop b", *again))
    log, condition = played(mysql_server, case, "undo_altered")
    first, end = map(int, re.findall(r"transaction_pos >?[=<] ([0-9]+)", condition))
    filters = Filters.of(files=[log.name], from_pos=first, to_pos=end)
    with planned_undo(Log.of_whole_files([log]), filters, UndoOptions()) as found:
        texts = " ".join(map(str, found.notes))
        assert "nothing can be done: the columns whose values would come back were dropped" in texts
        assert ("the column that has this name now was added later" in texts) == bool(again)
        assert found.leaves_rows_out


@pytest.mark.mysql
def test_values_whose_new_text_is_unknown_are_refused_once(mysql_server: Server) -> None:
    case = Case("narrowed", (TABLE, ROWS), BOTH, ("alter table t modify b varchar(2)",))
    log, condition = played(mysql_server, case, "undo_altered", is_possible_without=False)
    plan, text = undone(log, condition)
    (problem,) = plan.problems
    assert not text and "gave column b of undo_altered.t another type" in problem, problem


CUT = ("set sql_mode = ''", "alter table t modify a tinyint, modify b varchar(4)")


@pytest.mark.mysql
def test_a_row_is_refused_if_the_text_of_its_new_value_is_unknown(mysql_server: Server) -> None:
    changed = "update t set a = if(id = 1, 500, 7), c = c + 1 where id < 3", "update t set b = 'longer' where id = 3"
    log, condition = played(mysql_server, Case("cut", (TABLE, ROWS), changed, CUT), "undo_altered")
    plan, text = undone(log, condition)
    assert not text and not plan.problems
    assert {(one.key, one.column) for one in plan.refusals} == {("1", "a"), ("3", "b")}
    plan, text = undone(log, condition, UndoOptions(mode=Mode.SKIP))
    (statement,) = statements_of(text)
    assert "WHERE `id` = 2 AND" in statement and plan.left.count == 2
    assert run(mysql_server, text).returncode == 0


ZERO_KEY = (
    "create table t (id int primary key, a int)",
    "set session sql_mode = ''",
    "insert into t values (0, 1), (5, 3)",
)


@pytest.mark.mysql
def test_a_key_that_the_server_chose_is_no_key_of_an_undo(mysql_server: Server) -> None:
    since = ("alter table t modify id int auto_increment",)
    log, condition = played(
        mysql_server, Case("zero", ZERO_KEY, ("update t set a = 2 where id = 0",), since), "undo_altered"
    )
    plan, text = undone(log, condition)
    assert not text and "its rows do not tell the new key" in " ".join(plan.problems)


PARTITIONS = "partition by range (id) (partition p0 values less than (3), partition p1 values less than (9))"
REFUSED = {
    "alter table t drop primary key, add n int auto_increment primary key first": "its rows do not tell the new key",
    "alter table t truncate partition p0": "may have changed unseen since|was altered since|was emptied since",
    "alter table t drop partition p0": "may have changed unseen since|was altered since|was emptied since",
}


@pytest.mark.mysql
def test_statements_that_leave_the_rows_unknown_are_refused(mysql_server: Server) -> None:
    for statement, words in REFUSED.items():
        table = f"{TABLE} {PARTITIONS if 'partition' in statement else ''}"
        case = Case(statement, (table, ROWS), BOTH, (statement,))
        log, condition = played(mysql_server, case, "undo_altered", is_possible_without=False)
        plan, text = undone(log, condition)
        assert not text and re.search(words, plan.problems[0]), (statement, plan.problems)


@pytest.mark.mysql
def test_an_emptied_table_has_its_way_out(mysql_server: Server) -> None:
    for statement in ("truncate table t", "drop table t"):
        log, condition = played(mysql_server, Case("emptied", (TABLE, ROWS), (DELETE,), (statement,)), "undo_altered")
        plan, text = undone(log, condition)
        assert not text and any(
            "`binloom state undo_altered.t --format sql`" in one and f"--as-of {log.name}:" in one
            for one in plan.problems
        )


@pytest.mark.parametrize("name", marked("mysql", "mariadb"))
def test_statements_in_the_selected_part_are_told(name: str, request: pytest.FixtureRequest) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    server.execute("drop database if exists within", "flush binary logs", "create database within")
    schema = "use within"
    server.execute(
        schema,
        "create table `a[1]` (id int primary key)",
        "create table a1 (id int primary key)",
        "create table b (x int)",
    )
    begin = server.execute("show master status" if name == "mariadb" else "show binary log status")[0]
    server.execute(
        schema,
        "truncate table b",
        "truncate table b",
        "set session binlog_format = STATEMENT",
        "update a1 set id = id + 1",
        "set session binlog_format = ROW",
        "insert into `a[1]` values (1)",
        "insert into a1 values (1)",
        "drop table b",
    )
    log = Log.of_whole_files([server.flush()], source_id="s")
    part: dict[str, Any] = {"files": [begin[0]], "from_pos": int(begin[1])}

    def told(**filters: Any) -> list[str]:
        with planned(log, Filters.of(**filters), UndoOptions()) as (_, plan, _):
            return [text.partition(",")[0] for text in plan.warnings if "the log lists" in text]

    truncate, update, drop = told(**part)
    assert re.fullmatch(r"TRUNCATE TABLE of within\.b at .*:\d+ and at 1 later place", truncate)
    assert update.startswith("UPDATE of within.a1 at ") and drop.startswith("DROP TABLE of within.b at ")
    assert told(tables=["within.a[1]"], **part) == []
    # Chosen rows are no part of the log.
    assert told(tables=["within.a1"], types=["INSERT"], **part) == []
    with planned(log, Filters.of(tables=["within.a[1]"], **part), UndoOptions()) as (_, plan, _):
        assert plan.counts == {("within.a[1]", "DELETE"): 1}
