"""Cascades that a server does not log: with their rows, the tables are as if the transaction had never run."""

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from ingest.errors import UsageError
from ingest.sources.snapshots.snapshot_files import read_snapshot_dir
from recover.selection.filters import Filters
from recover.sources.cluster.copies import Copies
from recover.sources.log import Log
from recover.undo.options import Direction, Mode, UndoOptions
from recover.undo.plan.planner import Plan
from recover.undo.tables.definitions import Definitions
from recover.undo.undoing import planned
from tests.servers import Server
from tests.servers.marked import marked
from tests.support.depth import at_depth
from tests.support.in_process import binloom_here
from tests.support.places import PROJECT
from tests.support.recover.cascade_workload import CascadeWorkload
from tests.support.recover.cluster_rows import LogAsCluster
from tests.support.recover.undo_servers import (
    Case,
    played,
    position_of,
    root_of,
    rows_of,
    run,
    statements_of,
    undone,
)
from tests.support.recover.undo_workload import run_possible

ROUNDS = at_depth(2, 200)
FIRST = int(os.environ.get("BINLOOM_CASCADE_FIRST", "0"))

SCHEMA = "undo_cascade"
KEYS = "a int, b varchar(9) character set latin1"
PARENT = f"create table p ({KEYS}, v int, primary key (a, b))"
PARENTS = "insert into p values (1, 'x', 1), (1, 'y|z', 2), (2, 'x', 3)"
CHILD = (
    f"create table c (id int primary key, {KEYS}, v varchar(9) character set utf8mb4,"
    " s timestamp null default null on update current_timestamp,"
    " foreign key (a, b) references p (a, b) on delete {})"
)
CHILDREN = "insert into c values (1, 1, 'x', 'é', null), (2, 1, 'y|z', null, null), (3, 2, 'x', 'c', null), \
(4, null, 'x', 'd', null)"
GRANDCHILD = "create table g (id int primary key, c int, foreign key (c) references c (id) on delete cascade)"
GRANDCHILDREN = "insert into g values (10, 1), (11, 1), (12, 2), (13, 3), (14, null)"
DELETE = "delete from p where a = 1"

CASES = [
    Case(
        "composite, two levels",
        (PARENT, CHILD.format("cascade"), GRANDCHILD, PARENTS, CHILDREN, GRANDCHILDREN),
        ("update c set v = 'new' where id = 2", DELETE),
    ),
    Case("set null", (PARENT, CHILD.format("set null"), PARENTS, CHILDREN), (DELETE,)),
    Case(
        "set null, and another column changed since",
        (PARENT, CHILD.format("set null"), PARENTS, CHILDREN),
        (DELETE,),
        ("set timestamp = 1600000000", "update c set v = 'kept' where id = 1"),
    ),
    Case(
        "tree",
        (
            "create table t (id int primary key, p int, foreign key (p) references t (id) on delete cascade)",
            "insert into t values (1, null), (2, 1), (3, 2), (4, 2), (5, 1), (6, null), (7, 6)",
        ),
        ("delete from t where id = 1",),
        by_transaction=True,
    ),
    Case(
        "another key of a parent",
        (
            PARENT.replace("v int", "v int, u int unique"),
            CHILD.format("cascade on update cascade"),
            "create table n (id int primary key, u int, v int, foreign key (u) references p (u) on update set null)",
            PARENTS.replace("1)", "1, 10)").replace("2)", "2, 20)").replace("3)", "3, 30)"),
            CHILDREN,
            "insert into n values (1, 10, 1), (2, 20, 1), (3, null, 1)",
        ),
        (
            "set timestamp = 1600000000",
            "update c set v = 'before' where id = 1",
            "update p set a = 8, b = 'ß', u = 80, v = 5 where a = 1 and b = 'x'",
            "update c set v = 'after' where id = 1",
            "update n set v = 7 where id = 1",
        ),
    ),
    Case(
        "another key of a parent, which is part of the keys of its children",
        (
            PARENT,
            f"create table c ({KEYS}, i int, v int, primary key (a, b, i),"
            " foreign key (a, b) references p (a, b) on update cascade)",
            f"create table g (id int primary key, {KEYS}, i int,"
            " foreign key (a, b, i) references c (a, b, i) on update cascade)",
            PARENTS,
            "insert into c values (1, 'x', 1, 0), (1, 'x', 2, 0), (1, 'y|z', 1, 0), (2, 'x', 1, 0)",
            "insert into g values (1, 1, 'x', 1), (2, 1, 'x', 2), (3, 2, 'x', 1), (4, 1, 'y|z', 1)",
        ),
        ("update p set a = 7, b = 'p|q', v = 9 where a = 1 and b = 'x'", "update c set v = 3 where a = 7 and i = 2"),
        # MySQL 9.7 refuses the UPDATE: it changes the second level before the first.
        not_on=("mysql",),
    ),
    Case(
        "keys that move on",
        (
            "create table p (id int primary key, v int)",
            "create table c (id int primary key, p int,"
            " foreign key (p) references p (id) on update cascade on delete cascade)",
            "insert into p values (1, 1), (2, 2), (3, 3)",
            "insert into c values (1, 1), (2, 1), (3, 2)",
        ),
        (
            "update p set id = id + 1 order by id desc",
            "insert into p values (1, 5)",
            "insert into c values (7, 1)",
            "delete from p where id = 4",
        ),
        by_transaction=True,
    ),
    Case(
        "two ways to a row",
        (
            "create table p (id int primary key)",
            "create table c1 (id int primary key, p int, foreign key (p) references p (id) on delete cascade)",
            "create table c2 (id int primary key, p int, foreign key (p) references p (id) on delete cascade)",
            "create table g (id int primary key, x int, y int, foreign key (x) references c1 (id) on delete cascade,"
            " foreign key (y) references c2 (id) on delete set null)",
            "insert into p values (1), (2)",
            "insert into c1 values (1, 1), (2, 2)",
            "insert into c2 values (1, 1), (2, 2)",
            "insert into g values (1, 1, 1), (2, 1, 2), (3, 2, 1), (4, 2, 2), (5, null, 1)",
        ),
        ("delete from p where id = 1",),
    ),
    Case(
        "parents deleted twice",
        (PARENT, CHILD.format("cascade"), PARENTS, CHILDREN),
        (DELETE, PARENTS.replace(", (2, 'x', 3)", ""), "insert into c values (1, 1, 'x', 'again', null)", DELETE),
    ),
]


@pytest.mark.parametrize("name", marked("mysql", "mariadb", deep=("mysql56",)))
def test_tables_are_as_if_the_parents_had_never_been_deleted(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    for number, case in enumerate(one for one in CASES if name not in one.not_on):
        log, condition = played(server, case, SCHEMA)
        damaged, wanted = rows_of(server, SCHEMA), rows_of(server, f"{SCHEMA}_without")
        folder = tmp_path / str(number)
        folder.mkdir()
        in_two_ways = number == 0 or case.name.startswith("another key")
        ways = [False, True] if in_two_ways else [case.by_transaction]
        for by_transaction in ways:
            plan, text = undone(
                server, [log], folder, condition, UndoOptions(by_transaction=by_transaction), against=root_of(server),
                with_cascades=True,
            )  # fmt: skip
            assert text, (case.name, plan.problems, plan.conflicts, plan.refusals, plan.differences)
            done = run(server, text)
            assert done.returncode == 0, (case.name, done.stderr, text)
            assert rows_of(server, SCHEMA) == wanted, (case.name, text)
            if in_two_ways or number == 1:
                _, forward = undone(server, [log], folder, condition, UndoOptions(Direction.REDO), with_cascades=True)
                done = run(server, forward)
                assert done.returncode == 0, (case.name, done.stderr, forward)
                assert rows_of(server, SCHEMA) == damaged, (case.name, forward)


LATER = [
    # The child was changed, moved or made again since.
    ("set null", DELETE, "update c set a = 2, b = 'x' where id = 1", "the same columns were changed since"),
    ("cascade", DELETE, "insert into c values (1, 2, 'x', 'again', null)", "was inserted or deleted again since"),
    # The selection gave a parent another key, and the child has another parent since.
    (
        "cascade on update cascade",
        "update p set a = 8 where b = 'y|z'",
        "update c set a = 2, b = 'x' where id = 2",
        "the same columns were changed since",
    ),
]


@pytest.mark.parametrize("name", marked("mysql", "mariadb"))
def test_a_child_that_a_later_cascade_deleted_needs_nothing(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    before = (PARENT, CHILD.format("cascade"), PARENTS, CHILDREN)
    # Without the selection, the row would be gone as well.
    case = Case("gone", before, ("update c set v = 'new' where id = 1",), (DELETE,))
    log, condition = played(server, case, SCHEMA)
    plan, text = undone(server, [log], tmp_path, condition, with_cascades=True)
    assert text and not statements_of(text) and not plan.conflicts
    assert rows_of(server, SCHEMA) == rows_of(server, f"{SCHEMA}_without")


@pytest.mark.parametrize("name", marked("mysql", "mariadb"))
def test_a_child_that_was_changed_since_is_a_conflict(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    for number, (rule, damage, later, reason) in enumerate(LATER):
        case = Case(reason, (PARENT, CHILD.format(rule), PARENTS, CHILDREN), (damage,), (later,))
        log, condition = played(server, case, SCHEMA, is_possible_without=False)
        folder = tmp_path / str(number)
        folder.mkdir()
        plan, text = undone(server, [log], folder, condition, with_cascades=True)
        assert not text, reason
        (conflict,) = plan.conflicts
        assert conflict.reason.endswith(reason) and conflict.transactions, (conflict, plan.problems)
        assert conflict.table.name == (SCHEMA, "c")
        plan, text = undone(
            server, [log], folder, condition, UndoOptions(mode=Mode.SKIP), against=root_of(server), with_cascades=True
        )
        assert run(server, text).returncode == 0, (reason, plan.differences, text)


def test_children_that_the_log_shows_later_or_never_follow_their_parents(
    mariadb_server: Server, tmp_path: Path
) -> None:
    case = Case(
        "begin not logged",
        (
            "create table p (id int primary key, v int)",
            "create table c (p int, i int, v int, primary key (p, i), foreign key (p) references p (id)"
            " on update cascade)",
            "create table g (id int primary key, p int, i int, v int, foreign key (p, i) references c (p, i)"
            " on update cascade)",
            "insert into p values (1, 1), (2, 2), (3, 3)",
            "insert into c values (1, 1, 0), (1, 2, 0), (2, 1, 0), (3, 1, 0)",
            "insert into g values (1, 1, 1, 0), (2, 1, 2, 0), (3, 2, 1, 0), (4, 3, 1, 0)",
        ),
        ("update p set id = id + 10 where id < 3", "update p set id = id + 10, v = 9 where id = 11"),
        ("update c set v = 5 where i = 1", "update g set v = 6 where id in (1, 4)"),
    )
    log, condition = played(mariadb_server, case, SCHEMA, is_begin_logged=False)
    plan, text = undone(mariadb_server, [log], tmp_path, condition, against=root_of(mariadb_server), with_cascades=True)
    assert text, (plan.problems, plan.conflicts, plan.refusals, plan.differences)
    done = run(mariadb_server, text)
    assert done.returncode == 0, (done.stderr, text)
    assert rows_of(mariadb_server, SCHEMA) == rows_of(mariadb_server, f"{SCHEMA}_without")


def plan_of(log: Path, condition: str, *, with_cascades: bool = False) -> Plan:
    """Return the plan for the transactions of a condition of `played`, as a command makes it."""
    first, end = map(int, re.findall(r"transaction_pos >?[=<] ([0-9]+)", condition))
    filters = Filters.of(files=[log.name], from_pos=first, to_pos=end)
    with planned(Log.of_whole_files([log]), filters, UndoOptions(with_cascades=with_cascades)) as (_, plan, _):
        return plan


DROPPED_SINCE = (
    "alter table c drop foreign key c_ibfk_1",
    "alter table c drop foreign key c_ibfk_1, add constraint other foreign key (a, b) references p (a, b)",
)


@pytest.mark.parametrize("since", DROPPED_SINCE)
def test_a_cascade_by_a_foreign_key_that_was_dropped_since_is_told(mariadb_server: Server, since: str) -> None:
    case = Case("dropped", (PARENT, CHILD.format("cascade"), PARENTS, CHILDREN), (DELETE,), (since,))
    log, condition = played(mariadb_server, case, SCHEMA, is_possible_without=False)
    plan = plan_of(log, condition)
    assert any("undo_cascade.c that foreign key c_ibfk_1 deleted or changed" in one for one in plan.warnings)
    with pytest.raises(UsageError, match=r"foreign key c_ibfk_1 of undo_cascade\.c was dropped since"):
        plan_of(log, condition, with_cascades=True)


@pytest.mark.parametrize("server", marked("mariadb", "mysql"))
@pytest.mark.parametrize(
    ("rules", "damage", "children"),
    [
        ("on delete cascade", "delete from p where a = 1", ["c", "d"]),
        ("on delete set null", "delete from p where a = 1", ["c"]),
        ("on update cascade", "update p set a = 9 where a = 1", ["c"]),
        ("on update cascade", "update p set b = 9 where a = 1", []),
    ],
)
def test_a_script_lacks_rows_only_where_a_foreign_key_may_have_changed_them(
    server: str, request: pytest.FixtureRequest, rules: str, damage: str, children: list[str]
) -> None:
    live: Server = request.getfixturevalue(f"{server}_server")
    tables = (
        "create table p (a int primary key, b int)",
        f"create table c (id int primary key, a int, foreign key (a) references p (a) {rules})",
        "create table d (id int primary key, c int, foreign key (c) references c (id) on delete cascade)",
    )
    rows = ("insert into p values (1, 1)", "insert into c values (1, 1)", "insert into d values (1, 1)")
    log, condition = played(live, Case("told", (*tables, *rows), (damage,)), SCHEMA, is_possible_without=False)
    warnings = plan_of(log, condition).warnings
    told = [found[1] for one in warnings if (found := re.match(rf"rows of {SCHEMA}\.(\w) that foreign key", one))]
    assert told == children, warnings


def test_a_refusal_says_what_a_script_would_lack(mariadb_server: Server, tmp_path: Path) -> None:
    again = "insert into p values (1, 'x', 7)"
    case = Case("there again", (PARENT, CHILD.format("cascade"), PARENTS, CHILDREN), (DELETE,), (again,))
    log, condition = played(mariadb_server, case, SCHEMA, is_possible_without=False)
    first, end = re.findall(r"transaction_pos >?[=<] ([0-9]+)", condition)
    told = binloom_here("undo", "--files", log, "--file", log.name, "--from-pos", first, "--to-pos", end, home=tmp_path)
    lacks = "a script would not contain: rows of undo_cascade.c that foreign key c_ibfk_1 deleted or changed (CASCADE)"
    assert told.returncode == 1 and lacks in told.stderr and told.stdout == "", told
    assert "the undo is refused" in told.stderr.splitlines()[-1]


def undo_of(log: Path, condition: str, *options: object) -> tuple[int, str, str]:
    """Run the command for the transactions of a condition of `played`; return its exit code and what it printed."""
    first, end = re.findall(r"transaction_pos >?[=<] ([0-9]+)", condition)
    place = ("--file", log.name, "--from-pos", first, "--to-pos", end)
    done = binloom_here("undo", "--with-cascades", "--files", log, *place, *map(str, options))
    return done.returncode, done.stdout, done.stderr


def test_children_that_were_altered_since_come_back(mariadb_server: Server) -> None:
    before = (PARENT, CHILD.format("cascade"), GRANDCHILD, PARENTS, CHILDREN, GRANDCHILDREN)
    since = (
        "alter table c add column z int not null default 3 after id, modify v varchar(20) character set utf8mb4",
        "alter table g add column n int",
    )
    log, condition = played(mariadb_server, Case("altered", before, (DELETE,), since), SCHEMA)
    code, text, told = undo_of(log, condition)
    assert code == 0 and "3 INSERT of undo_cascade.g" in told, told
    done = run(mariadb_server, text)
    assert done.returncode == 0, (done.stderr, text)
    assert rows_of(mariadb_server, SCHEMA) == rows_of(mariadb_server, f"{SCHEMA}_without")


RENAMED_SINCE = (
    ("rename table c to c2",),
    ("rename table p to p2", "alter table c change v k {text}, change k v {text}"),
    ("rename table c to old_c", "rename table old_c to c3, g to g2", "alter table c3 add column z int after id"),
)


@pytest.mark.parametrize("since", RENAMED_SINCE)
def test_tables_that_were_renamed_since_are_followed(mariadb_server: Server, since: tuple[str, ...]) -> None:
    text = "varchar(9) character set utf8mb4"
    child = CHILD.format("cascade").replace(" foreign key", f" k {text} default 'k', foreign key")
    rows = (PARENTS, CHILDREN.replace("into c", "into c (id, a, b, v, s)"), GRANDCHILDREN)
    later = tuple(one.format(text=text) for one in since)
    case = Case("renamed", (PARENT, child, GRANDCHILD, *rows), (DELETE,), later)
    log, condition = played(mariadb_server, case, SCHEMA)
    code, text, told = undo_of(log, condition)
    assert code == 0 and " 2 INSERT of undo_cascade.c" in told, told
    done = run(mariadb_server, text)
    assert done.returncode == 0, (done.stderr, text)
    assert rows_of(mariadb_server, SCHEMA) == rows_of(mariadb_server, f"{SCHEMA}_without")


def test_a_child_without_a_definition_at_the_end_is_told(mariadb_server: Server) -> None:
    hidden = (
        "set session binlog_format = 'STATEMENT'",
        "create temporary table c (id int, a int)",
        "alter table c add column z int",
        "drop temporary table c",
    )
    case = Case("hidden", (PARENT, CHILD.format("cascade"), PARENTS, CHILDREN), (DELETE,), hidden)
    log, condition = played(mariadb_server, case, SCHEMA, is_possible_without=False)
    assert any("undo_cascade.c that foreign key c_ibfk_1" in one for one in plan_of(log, condition).warnings)
    with pytest.raises(UsageError, match=r"nothing tells the columns of undo_cascade\.c at the end of the log"):
        plan_of(log, condition, with_cascades=True)


def test_children_in_quarantine_are_not_taken_for_children_that_the_log_lacks(
    mariadb_server: Server, tmp_path: Path
) -> None:
    """The definition is that of after an ALTER TABLE, and the file ends before it."""
    case = Case(
        "named later", (PARENT, CHILD.format("cascade"), PARENTS, CHILDREN), ("update c set v = 'u'", DELETE), ()
    )
    log, condition = played(mariadb_server, case, SCHEMA, is_possible_without=False, is_begin_logged=False)
    mariadb_server.execute(f"alter table {SCHEMA}.c add column z int")
    definitions = tmp_path / "later.sql"
    tables = [mariadb_server.execute(f"show create table {SCHEMA}.{name}")[0][1] for name in ("p", "c")]
    definitions.write_text("".join(f"{text};\n" for text in (f"use {SCHEMA}", *tables)))
    code, text, told = undo_of(log, condition, "--ddl", definitions, "--type", "delete")
    assert code == 2 and text == "", told
    assert "cannot be followed: row events are in quarantine: 4 of undo_cascade.c (column count mismatch)" in told
    assert "give the later files, too" in told


def test_a_foreign_key_between_other_labels_is_refused(mariadb_server: Server) -> None:
    case = Case(
        "labels",
        (
            "create table p (code enum('a', 'b') primary key)",
            "create table c (id int primary key, r enum('b', 'a'), foreign key (r) references p (code))",
        ),
        ("insert into p values ('a')",),
        ("insert into c values (1, 'b')",),
    )
    log, condition = played(mariadb_server, case, SCHEMA, is_possible_without=False)
    plan = plan_of(log, condition)
    assert not plan.is_printable
    assert any(
        "compares the numbers of labels, and r of undo_cascade.c has other labels" in one for one in plan.problems
    )


@pytest.mark.parametrize("by_transaction", [False, True])
@pytest.mark.parametrize(
    ("damage", "since"),
    [
        ("insert into p values (5, 'n', 1)", "insert into c values (9, 5, 'n', 'since', null)"),
        ("update p set a = 8 where b = 'y|z'", "insert into c values (9, 8, 'y|z', 'since', null)"),
    ],
)
def test_the_server_does_not_change_rows_that_others_wrote_since(
    damage: str, since: str, by_transaction: bool, mariadb_server: Server, tmp_path: Path
) -> None:
    rules = "cascade on update cascade"
    case = Case("since", (PARENT, CHILD.format(rules), PARENTS, CHILDREN), (damage,), (since,))
    log, condition = played(mariadb_server, case, SCHEMA, is_possible_without=False)
    options = UndoOptions(by_transaction=by_transaction)
    plan, text = undone(mariadb_server, [log], tmp_path, condition, options, with_cascades=True)
    assert not text
    (problem,) = plan.problems
    assert "row 9 of undo_cascade.c refers (c_ibfk_1) to a row that the undo removes" in problem


@pytest.mark.parametrize("name", marked("mysql", "mysql56", "mariadb", "mariadb118"))
def test_random_cascades_leave_the_whole_database_as_before(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    assert sum(_round(server, name, seed, tmp_path) for seed in range(FIRST, FIRST + ROUNDS)) > 0


def _round(server: Server, name: str, seed: int, folder: Path) -> bool:
    """Play one round; return whether an undo was run. Its rows are those of a dump before the transaction."""
    work = CascadeWorkload(seed)
    with server.connect(autocommit=False) as connection, connection.cursor() as cursor:
        for statement in (f"drop database if exists {SCHEMA}", f"create database {SCHEMA}", f"use {SCHEMA}"):
            cursor.execute(statement)
        server.flush()
        for statement in work.tables():
            cursor.execute(statement)
        run_possible(cursor, work.rows())
        begin, before = position_of(server), rows_of(server, SCHEMA)
        run_possible(cursor, work.transaction())
        end, damaged = position_of(server), rows_of(server, SCHEMA)
    log = server.flush()
    if damaged == before:
        return False
    condition = f"schema_name = '{SCHEMA}' and transaction_pos >= {begin} and transaction_pos < {end}"
    reasons = []
    for by_transaction in (seed % 2 == 1, seed % 2 == 0):
        plan, text = undone(
            server, [log], folder, condition, UndoOptions(by_transaction=by_transaction), against=root_of(server),
            # MySQL 9.7 logs its cascades.
            with_cascades=name != "mysql",
        )  # fmt: skip
        assert not [problem for problem in plan.problems if "not proved" in problem], (seed, plan.problems)
        if text:
            done = run(server, text)
            assert done.returncode == 0, (seed, by_transaction, done.stderr, text)
            assert rows_of(server, SCHEMA) == before, (seed, by_transaction, text)
            return True
        reasons += [*plan.problems, *plan.conflicts, *plan.refusals]
    assert reasons, seed
    return False


@pytest.mark.slow
def test_rows_that_are_copied_from_a_cluster_give_the_same_cascade(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = PROJECT / "samples" / "shop-mysql"
    snapshot = read_snapshot_dir(shop / "schema")
    log = Log.of_whole_files(sorted(shop.glob("binlog.0*")), snapshot=snapshot)
    # As of a server that does not log the rows of a cascade.
    log.connection.execute("alter view binloom.row_changes rename to all_row_changes")
    log.connection.execute(
        "create view binloom.row_changes as select * from binloom.all_row_changes"
        " where not (table_name = 'order_items' and event_type = 'DELETE')"
    )
    copies = Copies(LogAsCluster(log))  # type: ignore[arg-type]
    copies.add("table_versions")
    found = Definitions.of_snapshot(snapshot)
    keys = (replace(key, delete_rule="CASCADE") for key in found.foreign_keys)
    definitions = replace(found, foreign_keys=tuple(key for key in keys if key.name == "fk_order_items_order"))
    for name in ("of_log", "of_cluster"):
        monkeypatch.setattr(Definitions, name, lambda one, other: definitions)

    def statements(log: Log) -> list[str]:
        filters = Filters.of(tables=["shop.orders"], types=["DELETE"])
        with planned(log, filters, UndoOptions(with_cascades=True)) as (planner, plan, _):
            assert plan.synthesized == {("shop.order_items", "DELETE"): 10}
            return [text for texts in planner.statements(plan) for text in texts]

    copied = statements(Log(copies.connection, log.versions, copies=copies))
    assert copied == statements(log) and len(copied) == 13
