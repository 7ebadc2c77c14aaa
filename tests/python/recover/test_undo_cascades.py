"""Cascades that a server does not log: with their rows, the tables are as if the transaction had never run."""

from dataclasses import replace
from pathlib import Path

import pytest

from ingest.sources.snapshot_files import read_snapshot_dir
from recover.selection.filters import Filters
from recover.sources.copies import Copies
from recover.sources.log import Log
from recover.undo.classify import Direction, Mode, Wish
from recover.undo.definitions import Definitions
from recover.undo.undoing import planned
from tests.servers import Server
from tests.servers.marked import marked
from tests.support.places import PROJECT
from tests.support.recover.cluster_rows import LogAsCluster
from tests.support.recover.undo_servers import Case, played, root_of, rows_of, run, undone

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
        not_on=("mysql",),
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


@pytest.mark.parametrize("name", marked("mysql", "mysql56", "mariadb"))
def test_tables_are_as_if_the_parents_had_never_been_deleted(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    for number, case in enumerate(one for one in CASES if name not in one.not_on):
        log, condition = played(server, case, SCHEMA)
        damaged, wanted = rows_of(server, SCHEMA), rows_of(server, f"{SCHEMA}_without")
        folder = tmp_path / str(number)
        folder.mkdir()
        # MySQL 9.7 logs the second level after the first: backwards, its rows would come before their parents.
        ways = [case.by_transaction] if number or name == "mysql" else [False, True]
        for by_transaction in ways:
            plan, text = undone(
                server, [log], folder, condition, Wish(by_transaction=by_transaction), against=root_of(server),
                with_cascades=True,
            )  # fmt: skip
            assert text, (case.name, plan.problems, plan.conflicts, plan.refusals, plan.differences)
            done = run(server, text)
            assert done.returncode == 0, (case.name, done.stderr, text)
            assert rows_of(server, SCHEMA) == wanted, (case.name, text)
            if number < 2:
                _, forward = undone(server, [log], folder, condition, Wish(Direction.REDO), with_cascades=True)
                done = run(server, forward)
                assert done.returncode == 0, (case.name, done.stderr, forward)
                assert rows_of(server, SCHEMA) == damaged, (case.name, forward)


LATER = [
    # The child was changed, moved or made again since.
    ("set null", DELETE, "update c set a = 2, b = 'x' where id = 1", "the same columns were changed since"),
    ("cascade", DELETE, "insert into c values (1, 2, 'x', 'again', null)", "was inserted or deleted again since"),
    # The selection changed a child, and a later transaction its parent.
    ("cascade", "update c set v = 'new' where id = 1", DELETE, "the row is gone now"),
]


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
            server, [log], folder, condition, Wish(mode=Mode.SKIP), against=root_of(server), with_cascades=True
        )
        assert run(server, text).returncode == 0, (reason, plan.differences, text)


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
        with planned(log, filters, Wish(), with_cascades=True) as (planner, plan, _):
            assert plan.synthesized == {("shop.order_items", "DELETE"): 10}
            return [text for texts in planner.statements(plan) for text in texts]

    copied = statements(Log(copies.connection, log.versions, copies=copies))
    assert copied == statements(log) and len(copied) == 13
