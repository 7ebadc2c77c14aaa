"""Scripts of `undo`, run by the server's own client: the tables must be as they would be without the selection.

Each case has its own schema: statements before, the statements of one transaction that is taken back, statements after
it, and statements that make the expected rows on a second schema.
"""

from dataclasses import replace
from pathlib import Path

import pytest
from pymysql.cursors import DictCursor

from ingest.errors import UsageError
from ingest.sources.snapshots.snapshot_files import read_snapshot_dir
from recover.selection.filters import Filters
from recover.sources.log import Log
from recover.timeline.as_of import moment_of
from recover.timeline.events import Table as LoggedTable
from recover.timeline.history import history_of
from recover.timeline.state import state_of
from recover.undo.options import Direction, Mode, UndoOptions
from recover.undo.print.script import script
from recover.undo.prove.against import LiveServer
from recover.undo.select.selected import SelectionError
from recover.undo.undoing import planned
from tests.servers import Server
from tests.servers.marked import marked
from tests.support.recover.undo_servers import (
    Case,
    is_new,
    played,
    root_of,
    rows_of,
    run,
    statements_of,
    undone,
)

ALL = marked("mysql", "mariadb118", deep=("mariadb", "mysql56"))
TABLE = "create table t (id int primary key, a int, b varchar(40) character set utf8mb4)"
ROWS = "insert into t values (1, 1, 'one'), (2, 2, 'two'), (3, 3, 'three')"
MINIMAL = "set session binlog_row_image = 'MINIMAL'"
MODE = "set sql_mode = 'ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO'"


WITH_TIME = "create table t (id int primary key, a int, s timestamp null default null on update current_timestamp)"

UNDONE = [
    Case("update of several rows", (TABLE, ROWS), ("update t set a = a + 10",)),
    Case("delete and insert", (TABLE, ROWS), ("delete from t where id = 2", "insert into t values (9, 9, 'new')")),
    Case(
        "insert and delete of one row",
        (TABLE, ROWS),
        ("insert into t values (9, 9, 'x')", "delete from t where id = 9"),
    ),
    Case(
        "delete and insert of one key",
        (TABLE, ROWS),
        ("delete from t where id = 1", "insert into t values (1, 7, 'x')"),
    ),
    Case(
        "chain of keys", (TABLE, ROWS), ("update t set id = id + 10 where id = 3", "update t set id = 3 where id = 2")
    ),
    Case(
        "one row through three keys",
        (TABLE, ROWS),
        ("update t set id = 7 where id = 1", "update t set id = 8 where id = 7"),
    ),
    Case(
        "swap of keys",
        (TABLE, ROWS),
        (
            "update t set id = 99 where id = 1",
            "update t set id = 1 where id = 2",
            "update t set id = 2 where id = 99",
        ),
        by_transaction=True,
    ),
    Case(
        "swap of unique values",
        (
            "create table t (id int primary key, u int, unique key (u))",
            "insert into t values (1, 10), (2, 20)",
        ),
        ("update t set u = 0 where id = 1", "update t set u = 10 where id = 2", "update t set u = 20 where id = 1"),
        by_transaction=True,
    ),
    *(
        Case(
            f"swap of unique values of rows with {name}",
            (
                f"create table t (a varchar(255) character set latin1 not null, b int not null, u int, unique key (u),"
                f" {key})",
                "insert into t values (repeat('k|', 125), 1, 10), ('x', 2, 20)",
            ),
            ("update t set u = 0 where b = 1", "update t set u = 10 where b = 2", "update t set u = 20 where b = 1"),
            by_transaction=True,
        )
        for name, key in (
            ("a long key", "primary key (a)"),
            ("a key in another order", "primary key (b, a)"),
            ("a unique key of two columns", "unique key (b, a)"),
        )
    ),
    Case(
        "case of the last letter of a long key",
        (
            "create table t (k varchar(180) character set utf8mb4 collate utf8mb4_general_ci primary key, a int)",
            "insert into t values (repeat('k', 170), 1)",
        ),
        ("update t set k = concat(repeat('k', 169), 'K')",),
    ),
    *(
        Case(
            f"keys that differ in case only, {words}",
            (
                "create table t (k varchar(20) character set utf8mb4 collate utf8mb4_general_ci primary key, a int)",
                "insert into t values ('abc', 1), ('d', 1)",
            ),
            ("delete from t where k = 'abc'", "insert into t values ('ABC', 2)", "update t set k = 'D' where k = 'd'"),
            by_transaction=by_transaction,
        )
        for words, by_transaction in (("folded", False), ("change by change", True))
    ),
    Case(
        "end of a long key of bytes",
        (
            "create table t (k varbinary(300), a int, primary key (k(200), a))",
            "insert into t values (repeat('k', 250), 1), (repeat('k', 251), 2)",
        ),
        ("update t set k = concat(repeat('k', 200), 'q') where a = 1", "delete from t where a = 2"),
    ),
    Case(
        "primary key that the server computes",
        (
            "create table t (a int, b int generated always as (a * 2) stored, c int, primary key (b))",
            "insert into t (a, c) values (1, 1), (2, 2), (3, 3)",
        ),
        (
            "update t set c = 11 where a = 1",
            "delete from t where a = 2",
            "update t set a = 20 where a = 3",
            "insert into t (a, c) values (2, 9), (5, 5)",
        ),
        not_on=("mysql56", "mariadb", "mariadb118"),
    ),
    Case(
        "swap of primary keys that the server computes",
        (
            "create table t (a int, b int generated always as (a * 2) stored, c int, primary key (b))",
            "insert into t (a, c) values (1, 1), (2, 2)",
        ),
        (
            "update t set a = 9 where a = 1",
            "update t set a = 1 where a = 2",
            "update t set a = 2 where a = 9",
        ),
        not_on=("mysql56", "mariadb", "mariadb118"),
        by_transaction=True,
    ),
    Case(
        "replace with two unique keys",
        (
            "create table t (id int primary key, u int, v int, unique key (u))",
            "insert into t values (1, 10, 0), (2, 20, 0)",
        ),
        ("replace into t values (1, 20, 5)",),
    ),
    Case(
        "later change of another column",
        (TABLE, ROWS),
        ("update t set a = 50",),
        ("update t set b = 'kept' where id = 2",),
    ),
    Case(
        "equal rows without a key",
        (
            "create table t (a int, b varchar(9) character set latin1)",
            "insert into t values (1, 'x'), (1, 'x'), (1, 'X')",
        ),
        ("delete from t where b = 'x' limit 2", "insert into t values (2, null), (2, null)"),
    ),
    Case(
        "partial images of a unique key of two columns",
        (
            "create table t (a int not null, b int not null, c int, unique key (a, b))",
            "insert into t values (1, 1, 1), (2, 2, 2)",
        ),
        (MINIMAL, "update t set a = 9 where a = 1", "update t set c = 5 where a = 9", "delete from t where a = 2"),
    ),
    Case(
        "id 0",
        ("create table t (id int primary key auto_increment, a int)", MODE, "insert into t values (0, 1)"),
        ("delete from t",),
    ),
    Case(
        "text that looks like hex",
        (
            "create table t (id varchar(9) character set utf8mb4 primary key, b varbinary(9))",
            "insert into t values ('0x41', x'3078'), ('A', x'41')",
        ),
        ("delete from t",),
    ),
    Case(
        "PAD SPACE and case twins",
        (
            "create table t (id int primary key, b varchar(9) character set latin1)",
            "insert into t values (1, 'a'), (2, 'a ')",
        ),
        ("update t set b = 'A' where id = 1", "update t set b = 'a' where id = 2"),
    ),
    Case(
        "names and values that try to break out",
        (
            "create table `t``; -- */ '` (id int primary key, `a``'\\\"` varchar(99) character set utf8mb4)",
            "insert into `t``; -- */ '` values (1, ''';\\n-- */ \\\\'), (2, '\\0\\Z')",
        ),
        ("delete from `t``; -- */ '`",),
    ),
    Case(
        "numbers at their ends",
        (
            "create table t (id bigint unsigned primary key, f float, d double, e decimal(65,30), b bit(64))",
            "insert into t values (18446744073709551615, 1.1234567e0, -0e0, -99999999999999999999999999999999999."
            "999999999999999999999999999999, b'1'), (0, 16777217, 1e-300, 0, ~0)",
        ),
        ("delete from t",),
    ),
    Case(
        "invalid dates",
        (
            "create table t (id int primary key, d date, t datetime(3) null, s timestamp null default null)",
            MODE,
            "insert into t values (1, '0000-00-00', '2024-02-31 00:00:00.120', '0000-00-00 00:00:00')",
        ),
        ("delete from t",),
    ),
    Case(
        "NULL in every column",
        (
            "create table t (id int primary key, a int, b text, c blob, d date, e enum('x'), f float, g point)",
            "insert into t (id) values (1)",
        ),
        ("update t set a = 1, b = 'x', c = 'x', d = '2024-01-01', e = 'x', f = 1, g = point(1, 2)",),
    ),
    Case(
        "time of update",
        (
            "create table t (id int primary key, a int, s timestamp null default null on update current_timestamp)",
            "set timestamp = 1500000000",
            "insert into t values (1, 1, null), (2, 2, '2001-01-01 00:00:00')",
        ),
        ("set timestamp = 1600000000", "update t set a = a + 1"),
    ),
    Case(
        "time of update that a later update keeps",
        (WITH_TIME, "insert into t values (1, 1, '2020-01-01 00:00:00'), (2, 2, null)"),
        ("update t set s = '2022-02-01 00:00:00'",),
        ("update t set a = 7, s = s where id = 1", "update t set a = 8, s = '2023-01-01 00:00:00' where id = 2"),
    ),
    Case(
        "time of update that a later update sets to the same second",
        (WITH_TIME, "insert into t values (1, 1, '2020-01-01 00:00:00')"),
        ("set timestamp = 1600000000", "update t set a = 5"),
        ("set timestamp = 1600000000", "update t set id = 7"),
    ),
    Case(
        "time of update of a child that lost its parent",
        (
            "create table p (id int primary key)",
            "create table c (id int primary key, p int, s datetime null default null on update current_timestamp,"
            " foreign key (p) references p (id) on delete set null)",
            "insert into p values (1)",
            "insert into c values (1, 1, '2020-01-01 00:00:00')",
        ),
        ("update c set s = '2022-02-01 00:00:00'",),
        ("delete from p",),
    ),
    Case(
        "rows that were deleted or replaced since",
        (WITH_TIME, "insert into t values (1, 1, null), (2, 2, null), (3, 3, null)"),
        ("set timestamp = 1600000000", "update t set a = a + 10"),
        ("delete from t where id < 3", "insert into t values (2, 7, null)"),
    ),
    Case(
        "labels of which one is empty",
        ("create table t (id int primary key, e enum('x', ''))", "insert into t values (1, ''), (2, 'x'), (3, '')"),
        ("delete from t where id = 1", "update t set e = '' where id = 2", "update t set e = 'x' where id = 3"),
    ),
    Case(
        "generated columns",
        (
            "create table t (id int primary key, a int, v int as (a + 1) virtual, s int as (a + 2) stored)",
            "insert into t (id, a) values (1, 1), (2, 2)",
        ),
        ("update t set a = 9 where id = 1", "delete from t where id = 2"),
        not_on=("mysql56",),
    ),
    Case(
        "sjis and latin1",
        (
            "create table t (id int primary key, a varchar(9) character set sjis, b varchar(9) character set latin1)",
            "insert into t values (1, '表ソ', 'é€')",
        ),
        ("update t set a = 'x', b = 'y'",),
    ),
    Case(
        "parent and child",
        (
            "create table p (id int primary key)",
            "create table c (id int primary key, p int, foreign key (p) references p (id))",
            "insert into p values (1), (2)",
            "insert into c values (1, 1), (2, 2)",
        ),
        (
            "delete from c where id = 1",
            "delete from p where id = 1",
            "insert into p values (3)",
            "insert into c values (3, 3)",
        ),
    ),
    Case(
        "parent that takes a former key, and its child",
        (
            "create table p (id int primary key)",
            "create table c (id int primary key, p int, foreign key (p) references p (id))",
            "insert into p values (1)",
        ),
        ("update p set id = 2 where id = 1", "insert into p values (1)", "insert into c values (7, 1)"),
    ),
    Case(
        "tree",
        (
            "create table t (id int primary key, p int, foreign key (p) references t (id))",
            "insert into t values (1, null), (2, 1), (3, 2)",
        ),
        ("delete from t where id = 3", "delete from t where id = 2"),
        by_transaction=True,
    ),
    *(
        Case(
            f"row that refers to itself, {words}",
            (
                "create table t (id int primary key, u int, up int, s datetime null default null"
                f" on update current_timestamp, foreign key (up) references t (id) on delete {rule})",
                "insert into t values (1, 0, null, null), (2, 0, 2, '2020-01-01 00:00:00'), (3, 0, null, null)",
            ),
            (
                "update t set up = null, s = null where id = 2",
                "delete from t where id = 2",
                "insert into t values (9, 0, 9, '2021-01-01 00:00:00'), (10, 0, 1, null)",
                "update t set up = 3 where id = 3",
            ),
            by_transaction=by_transaction,
        )
        for words, rule, by_transaction in (
            ("restrict", "restrict", False),
            ("change by change", "no action", True),
            ("cascade", "cascade", False),
        )
    ),
    Case(
        "row without a key that refers to itself by a text",
        (
            "create table t (k varchar(9) character set utf8mb4 collate utf8mb4_general_ci, up varchar(9) character set"
            " utf8mb4 collate utf8mb4_general_ci, unique key (k), foreign key (up) references t (k))",
        ),
        ("insert into t values ('a', 'A'), ('b', 'a')", "update t set up = null where k = 'b'"),
    ),
    *(
        Case(
            f"parents changed without checks, {rule}",
            (
                "create table p (id int primary key, a int)",
                "create table c (id int primary key, p int, a int,"
                f" foreign key (p) references p (id) on delete {rule} on update {rule})",
                "insert into p values (1, 1), (2, 2), (3, 3)",
                "insert into c values (10, 1, 1), (20, 2, 2)",
            ),
            (
                "set foreign_key_checks = 0",
                "delete from p where id = 1",
                "update p set id = 4 where id = 2",
                "set foreign_key_checks = 1",
            ),
            ("update c set a = a + 1",),
        )
        for rule in ("restrict", "cascade", "set null")
    ),
    Case(
        "invisible column",
        (
            "create table t (id int primary key, a int invisible default 5)",
            "insert into t (id, a) values (1, 1)",
        ),
        ("delete from t",),
        not_on=("mysql56",),
    ),
    Case(
        "cycle of foreign keys",
        (
            "create table p (id int primary key, c int)",
            "create table c (id int primary key, p int, foreign key (p) references p (id))",
            "alter table p add foreign key (c) references c (id)",
            "insert into p values (1, null)",
            "insert into c values (1, 1)",
            "update p set c = 1",
        ),
        (
            "insert into p values (2, null)",
            "insert into c values (2, 2)",
            "update p set c = 2 where id = 2",
            "update p set c = null where id = 1",
            "delete from c where id = 1",
            "delete from p where id = 1",
        ),
        by_transaction=True,
    ),
    Case(
        "values longer than a packet",
        (
            "create table t (id int primary key, b longblob, c longtext character set utf8mb4, a longtext, note int)",
            """insert into t values (1, repeat(x'ff8027', 700000), repeat('é🎂', 400000), repeat("''a", 900000), 1),
                (2, 'short', 'short', 'short', 2)""",
        ),
        ("update t set b = concat(b, x'80'), c = '', a = concat(a, 'x') where id = 1", "delete from t where id = 2"),
    ),
    Case(
        "changes of JSON documents",
        (
            "create table t (id int primary key, j json, a int)",
            """insert into t values (1, '{"a": 1, "b": [1, 2.50, "é"]}', 1), (2, null, 2)""",
        ),
        (
            "set session binlog_row_value_options = 'PARTIAL_JSON'",
            """update t set j = json_set(j, '$.a', 2, '$.b[1]', 'x') where id = 1""",
            """update t set j = json_remove(j, '$.b[0]'), a = 7 where id = 1""",
            """update t set j = '{"new": true}' where id = 2""",
        ),
        not_on=("mysql56", "mariadb", "mariadb118"),
    ),
]


@pytest.mark.parametrize("name", ALL)
def test_tables_are_as_if_the_transaction_had_never_run(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    for number, case in enumerate(one for one in UNDONE if name not in one.not_on):
        schema = "undo_case"
        log, condition = played(server, case, schema)
        damaged = rows_of(server, schema)
        wanted = rows_of(server, f"{schema}_without")
        folder = tmp_path / str(number)
        folder.mkdir()
        options = UndoOptions(by_transaction=case.by_transaction)
        plan, text = undone(server, [log], folder, condition, options, against=root_of(server))
        assert text, (case.name, plan.problems, plan.conflicts, plan.refusals, plan.differences)
        # The smallest max_allowed_packet that is a default has 4 MiB.
        assert max(map(len, text.splitlines())) < 4 << 20, case.name
        assert (plan.compared > 0) == (plan.statements > 0) and plan.differing == 0, (case.name, plan.differences)
        rehearsal = undone(server, [log], folder, condition, options, ending="rollback")
        assert statements_of(rehearsal[1]) == statements_of(text), case.name
        assert run(server, rehearsal[1]).returncode == 0, case.name
        assert rows_of(server, schema) == damaged, case.name
        done = run(server, text)
        assert done.returncode == 0, (case.name, done.stderr, text)
        assert rows_of(server, schema) == wanted, (case.name, text)
        again = run(server, text)
        assert (again.returncode != 0) == (plan.statements > 0), case.name
        assert rows_of(server, schema) == wanted, case.name
        if not case.by_transaction and not case.after:
            _, forward = undone(server, [log], folder, condition, UndoOptions(Direction.REDO))
            done = run(server, forward)
            assert done.returncode == 0, (case.name, done.stderr)
            assert rows_of(server, schema) == damaged, case.name


@pytest.mark.parametrize("name", ALL)
def test_triggers_run_again(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    case = Case(
        "trigger",
        (
            TABLE,
            "create table notes (id int primary key auto_increment, t int, a int)",
            "create trigger noted after update on t for each row insert into notes (t, a) values (new.id, new.a)",
            ROWS,
            "update t set a = 5 where id = 3",
        ),
        ("update t set a = a + 10 where id < 3",),
    )
    log, condition = played(server, case, "undo_trigger")
    before = rows_of(server, "undo_trigger_without")
    plan, text = undone(server, [log], tmp_path, condition)
    assert plan.counts == {("undo_trigger.notes", "DELETE"): 2, ("undo_trigger.t", "UPDATE"): 2}
    done = run(server, text)
    assert done.returncode == 0, done.stderr
    after = rows_of(server, "undo_trigger")
    assert after["t"] == before["t"]
    # The trigger has noted the updates of the undo: the values are those from before.
    assert before["notes"] <= after["notes"]
    assert sorted(row[1:] for row in (after["notes"] - before["notes"]).elements()) == [("1", "1"), ("2", "2")]


TRIGGER = "create trigger noted after update on t for each row set @noted = new.id"
TRIGGERS = [
    (("create table t (id int primary key, a int)", TRIGGER), True, "Triggers of undo_trigger.t run again"),
    (("create table t (id int primary key, a int)", TRIGGER, "drop trigger noted"), True, ""),
    (("create table t (id int primary key, a int)",), True, ""),
    (("create table t (id int primary key, a int)",), False, "if these tables have any"),
    (("create table t (id int primary key, a int)", TRIGGER), False, "if these tables have any"),
]


@pytest.mark.parametrize("name", marked("mysql", "mariadb118"))
def test_triggers_are_told_where_there_are_any(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    for number, (tables, is_logged, warning) in enumerate(TRIGGERS):
        case = Case("t", (*tables, "insert into t values (1, 1)"), ("update t set a = 2",))
        log, _ = played(server, case, "undo_trigger", is_possible_without=False, is_begin_logged=is_logged)
        snapshot = read_snapshot_dir(server.snapshot_dir(tmp_path / str(number)))
        selected = Filters.of(tables=["undo_trigger.t"], types=["UPDATE"])
        with planned(Log.of_whole_files([log], snapshot=snapshot), selected, UndoOptions()) as (_, plan, _):
            told = [one for one in plan.warnings if "triggers" in one]
        assert len(told) == bool(warning) and all(warning in one for one in told), (tables, told)
        files = Log.of_whole_files([log], snapshot=snapshot)
        with LiveServer(root_of(server)) as live, planned(files, selected, UndoOptions(), server=live) as (_, plan, _):
            has_trigger = tables[-1] == TRIGGER
            assert any("run again" in one for one in plan.warnings) == has_trigger
            assert not any("if these tables" in one for one in plan.warnings)


@pytest.mark.parametrize("name", marked("mysql", "mariadb118"))
def test_values_computed_in_another_time_zone_are_told(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    case = Case(
        "zone",
        (
            "create table t (id int primary key, at timestamp null, day date as (date(at)) stored)",
            "create table plain (id int primary key, at datetime, day date as (date(at)) stored)",
            "set time_zone = '+05:30'",
            "insert into t (id, at) values (1, '2024-01-01 02:00:00')",
            "insert into plain (id, at) values (1, '2024-01-01 02:00:00')",
        ),
        ("delete from t", "delete from plain"),
    )
    log, _ = played(server, case, "undo_zone")
    before = rows_of(server, "undo_zone_without")
    selected = Filters.of(tables=["undo_zone.*"], types=["DELETE"])
    with planned(Log.of_whole_files([log]), selected, UndoOptions()) as (planner, plan, heading):
        text = "\n".join(script(planner, plan, heading)) + "\n"
    assert [one for one in plan.warnings if "time zone" in one] == [
        "values of day of undo_zone.t that the server computed from a TIMESTAMP in another time zone. When you run the"
        " script, it computes them in UTC"
    ]
    assert run(server, text).returncode == 0
    after = rows_of(server, "undo_zone")
    assert after["plain"] == before["plain"]
    assert [*before["t"]] == [("1", "2023-12-31 20:30:00", "2024-01-01")]
    assert [*after["t"]] == [("1", "2023-12-31 20:30:00", "2023-12-31")]


def test_a_text_key_that_looks_like_a_named_value_has_its_history(mysql_server: Server, tmp_path: Path) -> None:
    mysql_server.execute("drop database if exists named_keys", "create database named_keys")
    mysql_server.flush()
    mysql_server.execute(
        "create table named_keys.t (a varchar(9) character set utf8mb4, b int, primary key (a, b))",
        "insert into named_keys.t values ('a=b', 1), ('b', 1), ('x', 2)",
    )
    log = Log.of_whole_files([mysql_server.flush()])
    table = LoggedTable("files", "named_keys", "t")
    for key, row in {"a=b|1": "a=b", "b|1": "b", "a=b|b=1": "b", "B=2|a=x": "x"}.items():
        assert [(one.row or {})["a"] for one in history_of(log.connection, table, key)] == [row], key


def problems_of(server: Server, log: Path, folder: Path, damage: Filters, *, rows_only: bool = False) -> list[str]:
    """Return why `binloom undo --files` refuses a selection; empty if it prints SQL."""
    snapshot = read_snapshot_dir(server.snapshot_dir(folder))
    files = Log.of_whole_files([log], snapshot=snapshot)
    with planned(files, damage, UndoOptions(rows_only=rows_only)) as (_, plan, _):
        assert plan.is_printable == (not plan.problems)
        return plan.problems


WITH_OTHER_KEYS = (
    "create table t (a int, b int not null, c int, primary key (b, a))",
    "create table u (c int, q int not null, unique key (q))",
)


@pytest.mark.parametrize("name", marked("mysql", "mariadb118"))
def test_keys_are_known_under_full_metadata(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    rows = ("insert into t values (1, 2, 3)", "insert into u values (1, 2)")
    case = Case("keys", (*WITH_OTHER_KEYS, *rows), ("update t set c = 9", "update u set c = 9"))
    server.execute("set global binlog_row_metadata = 'FULL'")
    try:
        log, _ = played(server, case, "undo_keys", is_possible_without=False)
    finally:
        server.execute("set global binlog_row_metadata = default")
    assert problems_of(server, log, tmp_path, Filters.of(schemas=["undo_keys"], types=["UPDATE"])) == []


def test_a_row_that_dependent_transactions_deleted_comes_back(mysql_server: Server, tmp_path: Path) -> None:
    case = Case("gone", (TABLE, ROWS), ("update t set a = 50 where id = 1",), ("delete from t where id = 1",))
    log, condition = played(mysql_server, case, "undo_gone", is_possible_without=False)
    plan, text = undone(mysql_server, [log], tmp_path, condition)
    assert plan.is_printable and not statements_of(text)
    assert plan.already[0].reason == "the row needs no statement: it was deleted since"
    plan, text = undone(mysql_server, [log], tmp_path, condition, UndoOptions(mode=Mode.DEPENDENTS))
    assert run(mysql_server, text).returncode == 0 and plan.added
    assert ("1", "1", "one") in rows_of(mysql_server, "undo_gone")["t"]


ALTERED = [
    ("alter table t modify a varbinary(40)", "ALTER TABLE at "),
    ("truncate table t", "undo_altered.t was emptied since by TRUNCATE TABLE"),
]


@pytest.mark.parametrize("name", ALL)
def test_tables_that_were_altered_since_are_refused(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    for number, (statement, reason) in enumerate(ALTERED):
        case = Case(statement, (TABLE, ROWS), ("update t set a = a + 10",), (statement,))
        log, _ = played(server, case, "undo_altered", is_possible_without=False)
        damage = Filters.of(tables=["undo_altered.t"], types=["UPDATE"])
        (first, *_) = problems_of(server, log, tmp_path / str(number), damage)
        assert first.startswith(reason), (statement, first)


@pytest.mark.parametrize("name", marked("mysql", "mariadb"))
def test_a_child_that_is_newer_than_the_snapshot_is_refused(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    child = "create table n (id int primary key, foreign key (id) references t (id) on delete cascade)"
    case = Case("new child", (TABLE,), ("insert into t values (9, 9, 'x')",), (child, "insert into n values (9)"))
    log, condition = played(server, case, "undo_stale", is_possible_without=False)
    before = int(condition.split(" >= ")[1].split(" ")[0])
    snapshot = read_snapshot_dir(server.snapshot_dir(tmp_path))
    taken = replace(snapshot, foreign_keys=[], binlog_file=log.name, binlog_pos=before)
    files = Log.of_whole_files([log], snapshot=taken)
    with planned(files, Filters.of(tables=["undo_stale.t"]), UndoOptions()) as (planner, plan, _):
        assert not plan.is_printable or ("undo_stale", "n") in {key.table for key in planner._foreign_keys}


LOOPS = ("insert into t values (9, 9)", "insert into t values (5, 1)")


@pytest.mark.parametrize("name", ALL)
def test_a_row_that_must_refer_to_itself_is_refused(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    table = "create table t (id int primary key, up int not null, constraint k foreign key (up) references t (id))"
    log, condition = played(server, Case("loop", (table, "insert into t values (1, 1)"), LOOPS), "undo_loop")
    for number, by_transaction in enumerate((False, True)):
        folder = tmp_path / str(number)
        folder.mkdir()
        plan, text = undone(server, [log], folder, condition, UndoOptions(by_transaction=by_transaction))
        (refusal,) = plan.refusals
        assert not text and refusal.key == "9"
        assert "it refers to itself (k) in columns that cannot be NULL" in refusal.reason
    plan, text = undone(server, [log], tmp_path, condition, UndoOptions(mode=Mode.SKIP))
    assert run(server, text).returncode == 0 and len(statements_of(text)) == 1
    assert rows_of(server, "undo_loop")["t"].keys() == {("1", "1"), ("9", "9")}


PARTS_WITHOUT_ROWS = [
    # No definition of `gone` is in the file or in the snapshot.
    (
        ("insert into gone values (1, 1, 'x'), (2, 2, 'y')", "update t set a = a + 10"),
        ("drop table gone",),
        "row events of undo_part.gone in the selected transactions are in quarantine",
    ),
    (
        ("set session binlog_format = 'MIXED'", "update gone set a = 5", "update t set a = a + 10, b = uuid()"),
        (),
        "the selected transactions contain 1 statement without rows (UPDATE of undo_part.gone)",
    ),
]


@pytest.mark.parametrize("name", ALL)
def test_a_transaction_is_not_taken_back_in_part(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    before = (TABLE, ROWS, "create table gone like t", "insert into gone values (7, 7, 'x')")
    for number, (damage, after, reason) in enumerate(PARTS_WITHOUT_ROWS):
        case = Case(reason, before, damage, after)
        log, _ = played(server, case, "undo_part", is_possible_without=False, is_begin_logged=False)
        changes = Filters.of(tables=["undo_part.t"], where=["after.a = 11"])
        (problem,) = problems_of(server, log, tmp_path / str(number), changes)
        assert problem.startswith(reason), problem
        assert problems_of(server, log, tmp_path / f"{number}-rows", changes, rows_only=True) == []
        if after:
            changes = Filters.of(schemas=["undo_part"], threads=[0])
            with pytest.raises(
                UsageError, match=r"are not searched: 2 of undo_part\.gone \(unknown table\)\. The definitions"
            ):
                problems_of(server, log, tmp_path / f"{number}-nothing", changes)


@pytest.mark.parametrize("name", marked("mysql", "mariadb", "mariadb118"))
def test_a_transaction_that_was_rolled_back_is_left_out_and_named(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    damage = ("xa start 'x'", "update t set a = a + 10", "xa end 'x'", "xa prepare 'x'", "xa rollback 'x'")
    case = Case("xa", (TABLE, ROWS), damage, ("delete from t where id = 2",))
    log, _ = played(server, case, "undo_xa", is_possible_without=False)
    snapshot = read_snapshot_dir(server.snapshot_dir(tmp_path))
    for rows_only in (False, True):
        files = Log.of_whole_files([log], snapshot=snapshot)
        damaged = Filters.of(tables=["undo_xa.t"], types=["UPDATE", "DELETE"])
        with planned(files, damaged, UndoOptions(rows_only=rows_only)) as (planner, plan, heading):
            assert plan.counts == {("undo_xa.t", "INSERT"): 1}
            (name_of_xa,) = plan.selected.rolled_back
            assert f"-- left out, because they were rolled back: {name_of_xa}" in script(planner, plan, heading)
        files = Log.of_whole_files([log], snapshot=snapshot)
        only = planned(files, Filters.of(tables=["undo_xa.t"], types=["UPDATE"]), UndoOptions(rows_only=rows_only))
        with pytest.raises(SelectionError, match=f"rolled back, so it changed nothing: {name_of_xa}"), only:
            pass


def test_a_sequence_is_left_alone(mariadb118_server: Server, tmp_path: Path) -> None:
    tables = ("create sequence s cache 2", "create table t (id int primary key default nextval(s), a int)")
    damage = ("insert into t (a) values (1), (2), (3), (4), (5)",)
    log, condition = played(mariadb118_server, Case("sequence", tables, damage), "undo_sequence")
    plan, text = undone(mariadb118_server, [log], tmp_path, condition)
    assert plan.counts == {("undo_sequence.t", "DELETE"): 5}
    assert "-- left alone, because it is a sequence: undo_sequence.s" in text
    assert run(mariadb118_server, text).returncode == 0
    _, text = undone(mariadb118_server, [log], tmp_path, condition, UndoOptions(by_transaction=True))
    assert len(statements_of(text)) == 5
    with pytest.raises(SelectionError, match=r"Only sequences are selected: undo_sequence\.s"):
        undone(mariadb118_server, [log], tmp_path, f"{condition} and table_name = 's'", rows_only=True)
    # The log has a row for each refill; the table has the last one.
    sequence = LoggedTable("files", "undo_sequence", "s")
    files = Log.of_whole_files([log]).connection
    (row,) = state_of(files, sequence, moment_of(files, "files", None)).rows()
    ((last,),) = mariadb118_server.execute("select next_not_cached_value from undo_sequence.s")
    assert row.values["next_not_cached_value"] == str(last)


CONFLICTS = [
    ("update t set a = 50 where id = 1", "update t set a = 60 where id = 1", "the same columns were changed since"),
    ("update t set id = 9 where id = 1", "delete from t where id = 9", "the row is gone now"),
    ("insert into t values (9, 9, 'x')", "update t set b = 'y' where id = 9", "and it was changed since"),
    ("delete from t where id = 1", "insert into t values (1, 5, 'x')", "was inserted or deleted again since"),
    ("update t set id = 9 where id = 1", "insert into t values (1, 5, 'x')", "another row has its key now"),
]


@pytest.mark.parametrize("name", marked("mysql", "mariadb"))
def test_a_row_that_was_changed_since_is_a_conflict(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    for number, (damage, later, reason) in enumerate(CONFLICTS):
        schema, folder = "undo_conflict", tmp_path / str(number)
        folder.mkdir()
        case = Case(reason, (TABLE, ROWS), (damage, "update t set a = 70 where id = 3"), (later,))
        log, condition = played(server, case, schema, is_possible_without=False)
        plan, text = undone(server, [log], folder, condition)
        assert not text, reason
        assert plan.conflicts[0].reason.endswith(reason)
        _, text = undone(server, [log], folder, condition, UndoOptions(mode=Mode.SKIP))
        now = rows_of(server, schema)
        assert run(server, text).returncode == 0
        left = {row for rows in (now - rows_of(server, schema)["t"] for now in now.values()) for row in rows}
        assert left == {("3", "70", "three")}, reason
        plan, text = undone(server, [log], folder, condition, UndoOptions(mode=Mode.DEPENDENTS))
        assert text and plan.added, reason


@pytest.mark.parametrize("name", marked("mysql", "mariadb"))
def test_a_change_whose_image_lacks_the_key_is_not_left_out(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    # A minimal image of an INSERT has no columns whose values are defaults.
    table = "create table t (a int not null default 7, b int not null, unique key (a), unique key (b))"
    log, condition = played(server, Case("default", (table,), (MINIMAL, "insert into t (b) values (1)")), "undo_no_key")
    with pytest.raises(SelectionError, match=r"undo_no_key\.t lack columns of the key \(a\)"):
        undone(server, [log], tmp_path, condition)


@pytest.mark.parametrize("name", ALL)
def test_nothing_is_committed_when_a_row_differs(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    log, condition = played(server, Case("x", (TABLE, ROWS), ("update t set a = a + 10",)), "undo_differs")
    _, text = undone(server, [log], tmp_path, condition)
    server.execute("update undo_differs.t set a = 77 where id = 2")
    rows = rows_of(server, "undo_differs")
    # With --force, the client goes on after an error, here with another script.
    for more, options in (
        ("", ()),
        ("", ("--force",)),
        ("start transaction; commit;", ("--force",)),
        (text, ("--force",)),
    ):
        done = run(server, text + more, *options)
        assert "2 rows changed instead of 3" in done.stderr
        assert rows_of(server, "undo_differs") == rows
    assert run(server, text).returncode != 0


@pytest.mark.parametrize("name", marked("mysql", "mysql56", "mariadb"))
def test_statements_find_their_row_by_the_key(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    table = "create table t (k varchar(20) character set latin1, n int, s datetime, a int, primary key (k, n, s))"
    rows = [f"insert into t values ('é{number}', {number}, '2024-01-01 00:00:00', 1)" for number in range(60)]
    case = Case("keys", (table, *rows), ("update t set a = 2 where n = 7",))
    log, condition = played(server, case, "undo_plan")
    _, text = undone(server, [log], tmp_path, condition)
    update = next(line for line in text.splitlines() if line.startswith("UPDATE"))
    with server.connect(cursorclass=DictCursor) as connection, connection.cursor() as cursor:
        cursor.execute("analyze table undo_plan.t")
        cursor.fetchall()
        if is_new(server):
            cursor.execute("set explain_format = 'TRADITIONAL'")
        cursor.execute(f"explain {update.rstrip(';')}")
        (found,) = cursor.fetchall()
    assert (found["key"], int(found["rows"])) == ("PRIMARY", 1), found
