"""Nothing that was not proved is printed: each proof is broken on purpose, and the undo is refused."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from ingest.errors import BinloomError
from recover.timeline.events import Place
from recover.undo.options import Direction, Mode, UndoOptions
from recover.undo.plan import classify, order, planner, processes
from recover.undo.plan.chains import Task
from recover.undo.plan.planner import Plan, Planner
from recover.undo.print.script import Heading, comment, script
from recover.undo.prove.reading import StatementReader, UnprovedStatementError
from recover.undo.prove.writing import StatementWriter, statement
from recover.undo.rows.fold import History
from recover.undo.rows.literals import UnprintableValueError, guard, literal
from recover.undo.rows.operations import Operation, in_order
from recover.undo.select import changes as undo_changes
from recover.undo.select.cascades import CascadeError, Cuts, add_cascades
from recover.undo.select.selected import EmptySelectionError, select
from recover.undo.tables.definitions import Definitions
from recover.undo.tables.table import Column, ForeignKey, Table

TABLE = Table(
    ("shop", "t"),
    (
        Column("id", "int", "int", is_nullable=False),
        Column("a", "int", "int"),
        Column("b", "varchar", "varchar(20)", "latin1"),
        Column("f", "float", "float"),
        Column("s", "timestamp", "timestamp", is_updated_by_itself=True),
    ),
    ("id",),
    (("a",),),
)
CHILD = Table(("shop", "c"), (Column("id", "int", "int", is_nullable=False), Column("t", "int", "int")), ("id",))
KEY = ForeignKey("c_t", CHILD.name, ("t",), TABLE.name, ("id",))

Image = dict[str, str | None] | None


def row(id: int, a: int | None = 1, b: str | None = "x", f: str | None = "1.1", s: str | None = None) -> Image:
    return {"id": str(id), "a": None if a is None else str(a), "b": b, "f": f, "s": s}


def child(id: int, parent: int) -> Image:
    return {"id": str(id), "t": str(parent)}


def log(*changes: tuple[int, Image, Image]) -> duckdb.DuckDBPyConnection:
    """Return a log of changes, each with the number of its transaction and its images."""
    connection = duckdb.connect()
    connection.execute(
        "create schema binloom; create table binloom.row_changes (change_id varchar, source_id varchar, epoch int,"
        " binlog_file varchar, file_sequence bigint, start_pos bigint, payload_ordinal int, row_ordinal int,"
        " transaction_pos bigint, gtid varchar, outcome varchar, event_type varchar, schema_name varchar,"
        " table_name varchar, pk_values varchar, pk_values_after varchar, row_before map(varchar, varchar),"
        " row_after map(varchar, varchar), undecoded_columns varchar[], event_timestamp timestamptz);"
        "create table binloom.schema_changes (source_id varchar, epoch int, file_sequence bigint, start_pos bigint,"
        " statement_type varchar, binlog_file varchar, tables varchar[], sql_text varchar)"
    )
    for place, (transaction, before, after) in enumerate(changes, 1):
        kind = "INSERT" if before is None else "DELETE" if after is None else "UPDATE"
        images = [image for image in (before, after) if image is not None]
        moved = images[-1]["id"] if images[-1].get("id", images[0]["id"]) != images[0]["id"] else None
        connection.execute(
            f"insert into binloom.row_changes values (?, 's', 0, 'b.000001', 1, {place * 10}, 0, 0, {transaction},"
            f" '0-1-{transaction}', 'commit', ?, 'shop', ?, ?, ?, ?, ?, null, to_timestamp({transaction}))",
            [f"s/0/b/{place}", kind, "c" if "t" in images[0] else "t", images[0]["id"], moved, before, after],
        )
    return connection


def planned(
    connection: Any, condition: str = "transaction_pos = 1", options: UndoOptions | None = None, **more: Any
) -> Plan:
    return printed(connection, condition, options, **more)[0]


def printed(
    connection: Any,
    condition: str = "transaction_pos = 1",
    options: UndoOptions | None = None,
    child_table: Table = CHILD,
    **more: Any,
) -> tuple[Plan, list[str]]:
    """Return a plan and its statements."""
    definitions = Definitions({TABLE.name: TABLE, CHILD.name: child_table}, (KEY,))
    with Planner(connection, definitions) as planner:
        found = planner.plan(select(connection, condition, **more), options or UndoOptions())
        if not found.is_printable:
            return found, []
        lines = "\n".join(script(planner, found, Heading("h", "x"))).splitlines()
    return found, [line for line in lines if line.split(" ")[0] in ("INSERT", "UPDATE", "DELETE")]


UPDATED = ((1, row(1), row(1, a=2)), (2, row(1, a=2), row(1, a=2, b="y")))


def test_a_wrong_fold_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    fold = classify.fold

    def wrong(table: Table, changes: Sequence[Any]) -> list[History]:
        histories = fold(table, changes)
        histories[0].before["a"] = "7"
        return histories

    assert planned(log(*UPDATED)).is_printable
    monkeypatch.setattr(classify, "fold", wrong)
    found = planned(log(*UPDATED))
    assert not found.is_printable and "is not proved" in found.problems[0]


@pytest.mark.parametrize("changes", [UPDATED, UPDATED[:1], ((1, None, row(1)),), ((1, row(1), None),)])
def test_a_wrong_statement_is_not_printed(monkeypatch: pytest.MonkeyPatch, changes: Any) -> None:
    between = classify.operation_between

    def wrong(*arguments: Any) -> Operation | None:
        found = between(*arguments)
        if found is None or found.verb == "DELETE":
            return None if found is None else Operation(found.table, "DELETE", {"id": "9"}, {}, {})
        return Operation(found.table, found.verb, found.key, found.guard, {**found.values, "b": "wrong"}, found.kept)

    monkeypatch.setattr(classify, "operation_between", wrong)
    monkeypatch.setattr(classify, "undo_of", lambda table, history: wrong(table, history.row, history.row_before))
    found = planned(log(*changes))
    assert not found.is_printable and "is not proved" in found.problems[0]


def test_a_wrong_way_back_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classify, "_step", lambda table, now, wanted: None)
    found = planned(log(*UPDATED))
    assert not found.is_printable and "again does not give" in found.problems[0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("= 1", "= 2"),
        ("<=> 2", "<=> 3"),
        (" WHERE", ", `b` = 'z' WHERE"),
        (" AND", " OR"),
        ("`a` <=> 2", "`a` <=> `a`"),
        ("`shop`", "`shop2`"),
        ("UPDATE", "UPDATE IGNORE"),
        ("1", "1 -- "),
        ("`s` = `s`", "`s` = `a`"),
        ("", "DROP TABLE t; "),
    ],
)
def test_a_wrong_text_is_not_printed(monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> None:
    write = StatementWriter.text
    monkeypatch.setattr(StatementWriter, "text", lambda self, one: write(self, one).replace(old, new, 1))
    with pytest.raises(UnprovedStatementError):
        planned(log(*UPDATED))


TYPED = (
    ("n", "bigint", ["0", "-7", "18446744073709551615"]),
    ("m", "decimal", ["0.00", "-1.50", "1.5"]),
    ("f", "float", ["0", "-0", "1.5", "1e20"]),
    ("d", "double", ["-0", "0", "0.1", "-1e-300"]),
    ("v", "varchar", ["", "it's", "''", "x' AND '1", "ä", "ö'", "a", "A", "a "]),
    ("j", "json", ["{}", '{"a": "ä"}', '{"a": "b"}', "null"]),
    ("b", "blob", ["0x", "0x00", "0x00FF"]),
    ("p", "point", ["0x01", "0x02"]),
    ("t", "date", ["0000-00-00", "2026-11-17", "2026-11-18"]),
    ("e", "enum", ["a", "it's"]),
)


def test_a_wrong_text_is_not_printed_after_right_ones_of_its_shape() -> None:
    columns = tuple(
        Column(name, kind, kind, "utf8mb4", labels=("a", "it's") if kind == "enum" else None) for name, kind, _ in TYPED
    )
    table = Table(("shop", "all"), (Column("id", "int", "int", is_nullable=False), *columns), ("id",))
    for name, kind, listed in TYPED:
        values: list[str | None] = [*listed, None]
        plans = [
            Operation(table, "UPDATE", {"id": "1"}, {name: old}, {name: new})
            for old in values
            for new in values
            if old != new
        ]
        plans += [Operation(table, "DELETE", {"id": "1"}, {name: old}, {}) for old in values]
        plans += [Operation(table, "INSERT", {}, {}, {"id": "1", name: new}) for new in values]
        texts = [statement(one) for one in plans]
        assert len(set(texts)) == len(texts)
        reader = StatementReader()
        for text, one in zip(texts * 2, plans * 2, strict=True):
            reader.prove(text, one)
        for text, right in zip(texts, plans, strict=True):
            for own, one in zip(texts, plans, strict=True):
                is_same_number = kind == "decimal" and text.replace("1.50", "1.5") == own.replace("1.50", "1.5")
                if text != own and one.verb == right.verb and not is_same_number:
                    with pytest.raises(UnprovedStatementError):
                        reader.prove(text, one)
        for right in (plans[0], plans[-1], plans[-len(values) - 1]):
            text = statement(right)
            for old, new in ((" WHERE", " WHERE 1 OR"), ("`all`", "`alls`"), ("1", "2"), (")", ", 1)"), ("NOT ", "")):
                if old in text:
                    with pytest.raises(UnprovedStatementError):
                        reader.prove(text.replace(old, new, 1), right)


def test_statements_of_one_shape_are_those_that_are_written_alone() -> None:
    writer = StatementWriter()
    table = Table(("100%", "t%s"), (Column("k", "double", "double"), Column("%d", "varchar", "varchar(9)", "utf8mb4")))
    for key in ("0", "-0", "1.5", None):
        for text in ("a", "ä", "%s", None):
            for one in (
                Operation(table, "DELETE", {"k": key}, {"%d": text}, {}),
                Operation(table, "UPDATE", {"k": key}, {"k": "2"}, {"%d": text, "k": key}, ("%d",)),
            ):
                assert writer.text(one) == statement(one)


def test_text_is_read_back_by_its_value() -> None:
    reader = StatementReader()
    texts = ["it's", "back\\slash", "new\nline", "ä🎁", "", "a' OR '1'='1", "*/ -- ", "\x00"]
    table = Table(("s`;", "t"), (Column("k`\n", "varchar", "varchar(9)", "utf8mb4", is_nullable=False),), ("k`\n",))
    for text in texts:
        for other in texts:
            operation = Operation(table, "DELETE", {"k`\n": text}, {}, {})
            wrong = Operation(table, "DELETE", {"k`\n": other}, {}, {})
            sql = statement(operation)
            if text == other:
                reader.prove(sql, operation)
            else:
                with pytest.raises(UnprovedStatementError):
                    reader.prove(sql, wrong)


def test_comments_have_one_line() -> None:
    for text in ("a\nDROP TABLE t", "a\r\nb", "a\x00b", "*/ x", "a\u2028b", "a\x85b"):
        assert len(comment(text).splitlines()) == 1 and comment(text).startswith("-- ")


def test_a_broken_chain_is_refused() -> None:
    found = planned(log((1, row(1), row(1, a=2)), (2, row(1, a=5), row(1, a=5, b="y"))))
    assert not found.is_printable and "do not link" in found.refusals[0].reason


def test_a_partial_image_needs_an_earlier_image() -> None:
    minimal: tuple[int, Image, Image] = (1, {"id": "1"}, {"a": "2"})
    found = planned(log(minimal))
    assert not found.is_printable and "does not contain the value of column a" in found.refusals[0].reason
    _, statements = printed(log((3, None, row(1)), minimal))
    assert statements == ["UPDATE `shop`.`t` SET `a` = 1, `s` = `s` WHERE `id` = 1 AND `a` <=> 2;"]
    found = planned(log((3, None, row(1)), minimal), options=UndoOptions(by_transaction=True))
    assert not found.is_printable and "lacks column a: leave out --by-transaction" in found.refusals[0].reason
    found = planned(log((1, {"id": "1"}, None)))
    assert not found.is_printable and "does not contain" in found.refusals[0].reason


def test_a_unique_value_that_another_row_has_now_is_refused() -> None:
    found = planned(log((1, row(1, a=5), None), (2, row(2, a=3), row(2, a=5))))
    assert not found.is_printable and "row 2 of shop.t has a unique value (a)" in found.problems[0]
    found = planned(log((1, row(1, a=5), None), (2, row(2, a=3), row(2, a=5)), (3, row(2, a=5), row(2, a=6))))
    assert found.is_printable


def test_keys_are_recorded_while_changes_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "_ROWS_AT_ONCE", 2)
    _, statements = printed(log(*((1, row(number, a=number), row(number, a=-number)) for number in range(9))))
    assert len(statements) == 8


@pytest.mark.slow
def test_processes_that_share_the_rows_give_the_same_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[tuple[int, Image, Image]] = [(1, row(n, a=n), row(n, a=100 + n)) for n in range(10, 30)]
    rows += [(1, None, row(n, a=n)) for n in range(30, 40)]
    rows += [(2, row(12, a=112), row(12, a=7)), (3, row(13, a=113), row(13, a=13)), (2, row(14), row(14, b="\ufffd"))]
    rows += [(1, row(50, a=50), row(51, a=50)), (1, row(52, a=52), row(50, a=52)), (1, row(60, b="\ufffd"), None)]
    monkeypatch.setattr(undo_changes, "_ROWS_AT_ONCE", 4)
    alone = printed(log(*rows), options=UndoOptions(mode=Mode.SKIP))
    monkeypatch.setattr(planner, "number_of_processes", lambda _: 2)
    shared = printed(log(*rows), options=UndoOptions(mode=Mode.SKIP))
    assert shared == alone
    assert [*map(str, shared[0].left.groups)] == [*map(str, alone[0].left.groups)]
    assert [*shared[0].left.lines()] == [*alone[0].left.lines()] != []
    found, statements = shared
    assert (len(statements), found.conflicting, found.refused, len(found.already)) == (29, 1, 2, 1)


def test_an_error_of_a_process_is_one_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task(TABLE, UndoOptions(), keeps_effects=False, is_compared=False)
    batches = [(0, pa.record_batch({"chain": ["1"]}))]
    with processes.PlanningProcesses(task, 1) as some, pytest.raises(ValueError, match="unpack"):
        [*some.findings(batches)]
    monkeypatch.setattr(processes, "_PROGRAM", "")
    with processes.PlanningProcesses(task, 1) as some, pytest.raises(BinloomError, match="ended early"):
        [*some.findings(batches)]


def test_few_changes_need_no_other_process() -> None:
    assert processes.number_of_processes(processes.FEWEST_CHANGES - 1) == 0
    assert processes.number_of_processes(10**6) <= 4


def test_a_child_of_a_row_that_the_undo_removes_is_refused() -> None:
    changes: list[tuple[int, Image, Image]] = [(1, None, row(1)), (2, None, child(7, 1))]
    found = planned(log(*changes))
    assert not found.is_printable and "row 7 of shop.c refers (c_t)" in found.problems[0]
    assert planned(log(*changes), "true").is_printable


NOTED = replace(CHILD, columns=(*CHILD.columns, Column("note", "varchar", "varchar(9)", "latin1")))
WITH_UNIQUE_ID = replace(NOTED, primary_key=(), unique_keys=(("id",),))
WITHOUT_KEY = replace(NOTED, primary_key=())

NEW_PARENT: tuple[int, Image, Image] = (1, None, row(5))


def noted(id: int, parent: int | None, note: str = "n") -> Image:
    return {"id": str(id), "t": None if parent is None else str(parent), "note": note}


def kept(
    *changes: tuple[int, Image, Image], child_table: Table = NOTED, options: UndoOptions | None = None
) -> list[str]:
    """Return the problems of an undo of the first transaction, whether the log has `pk_values` as its table has."""
    connection = log(*changes)
    if not child_table.primary_key:
        connection.execute(
            "update binloom.row_changes set pk_values = null, pk_values_after = null where table_name = 'c'"
        )
    connection.execute(
        "update binloom.row_changes set table_name = 'c' where map_contains(coalesce(row_after, row_before), 'note')"
    )
    found = planned(connection, options=options, child_table=child_table)
    assert found.is_printable == (not found.problems), found
    return found.problems


@pytest.mark.parametrize("by_transaction", [False, True])
@pytest.mark.parametrize(
    "changes",
    [
        # The undo sets another column of the child, or nothing, because the column is as before.
        [(1, noted(7, None), noted(7, None, "m")), (2, noted(7, None, "m"), noted(7, 5, "m"))],
        [(1, noted(7, None), noted(7, None, "m")), (2, noted(7, None, "m"), noted(7, 5))],
        # The last image of the child lacks the column.
        [(2, None, noted(7, 5)), (3, {"id": "7"}, {"note": "z"})],
        [(2, None, noted(8, 5)), (3, {"id": "8"}, {"id": "7", "note": "z"}), (3, {"id": "7"}, {"note": "y"})],
        [(2, None, {"id": "7", "note": "z"})],
    ],
)
def test_a_child_that_keeps_a_row_that_the_undo_removes_is_refused(changes: Any, by_transaction: bool) -> None:
    options = UndoOptions(by_transaction=by_transaction)
    for table in (NOTED, WITH_UNIQUE_ID):
        (problem,) = kept(NEW_PARENT, *changes, child_table=table, options=options)
        assert re.match(r"row 7 of shop\.c (refers|may refer) \(c_t\) to a row that the undo removes, since", problem)


def test_a_child_that_left_a_row_does_not_keep_it() -> None:
    for table in (NOTED, WITH_UNIQUE_ID):
        assert (
            kept(NEW_PARENT, (2, None, noted(7, 5)), (3, {"id": "7"}, {"t": "6", "note": "z"}), child_table=table) == []
        )
        assert kept(NEW_PARENT, (2, None, noted(7, 5)), (3, noted(7, 5), None), child_table=table) == []
        assert kept(NEW_PARENT, (1, None, noted(7, 5)), (1, noted(8, None), noted(8, 5)), child_table=table) == []
        # Its first image lacks the column: it had its parent before.
        assert kept(NEW_PARENT, (2, {"id": "7"}, {"note": "z"}), child_table=table) == []


def test_equal_children_are_counted() -> None:
    before, own, other = (0, noted(7, 5), None), (1, None, noted(7, 5)), (2, None, noted(7, 5))
    gone = (3, noted(7, 5), None)
    for changes, is_refused in (
        ([NEW_PARENT, own], False),
        ([NEW_PARENT, other], True),
        ([NEW_PARENT, other, gone], False),
        ([before, NEW_PARENT, other], True),
        ([NEW_PARENT, (2, None, {"id": "7", "note": "z"})], True),
    ):
        problems = kept(*changes, child_table=WITHOUT_KEY)
        assert [problem.partition(" (")[0] for problem in problems] in (
            ([["a row of shop.c refers"], ["a row of shop.c may refer"]]) if is_refused else [[]]
        ), changes


def test_a_row_that_is_left_out_keeps_its_values() -> None:
    changes = [NEW_PARENT, (1, None, child(7, 5)), (2, child(7, 5), child(7, 6)), (3, child(7, 6), child(7, 5))]
    found = planned(log(*changes), options=UndoOptions(mode=Mode.SKIP))
    assert found.is_printable and not found.statements
    assert [(one.key, one.table.text) for one in found.conflicts] == [("7", "shop.c"), ("5", "shop.t")]
    assert planned(log(*changes), options=UndoOptions(mode=Mode.DEPENDENTS)).is_printable
    taken = [(1, row(1, a=5), row(1, a=6)), (1, row(2), row(2, b="y")), (2, row(2, a=3), row(2, a=5))]
    found = planned(log(*taken))
    assert not found.is_printable and "row 2 of shop.t has a unique value (a) that the undo needs" in found.problems[0]


def test_a_redo_does_not_harm_what_others_wrote_since() -> None:
    undone: list[tuple[int, Image, Image]] = [(1, row(5), None), (2, None, row(5))]
    redo = UndoOptions(Direction.REDO)
    assert kept(*undone, options=redo) == kept((0, None, noted(7, 5)), *undone, options=redo) == []
    for table, who in ((NOTED, "row 7"), (WITHOUT_KEY, "a row")):
        (problem,) = kept(*undone, (3, None, noted(7, 5)), child_table=table, options=redo)
        assert problem == (
            f"{who} of shop.c refers (c_t) to a row that the redo removes, since 0-1-3: take that transaction back, too"
            " (--with-dependents), or leave out row 5 of shop.t (--skip-conflicts)"
        )
    moved: list[tuple[int, Image, Image]] = [(1, row(1, a=5), row(2, a=6)), (2, row(2, a=6), row(1, a=5))]
    for changes in (moved[:1], moved):
        assert planned(log(*changes), options=redo).is_printable
    found = planned(log(*moved, (3, None, row(3, a=6))), options=redo)
    assert len(found.problems) == 1
    assert found.problems[0].startswith("row 3 of shop.t has a unique value (a) that the redo needs, since 0-1-3: ")


def test_swapped_unique_values_are_taken_back_by_transaction() -> None:
    swap = [(1, row(1, a=5), row(1, a=0)), (1, row(2, a=6), row(2, a=5)), (1, row(1, a=0), row(1, a=6))]
    found = planned(log(*swap))
    assert not found.is_printable and "use --by-transaction" in found.problems[0]
    _, statements = printed(log(*swap), options=UndoOptions(by_transaction=True))
    assert [text.split(" WHERE")[0].rpartition("SET ")[2] for text in statements] == [
        "`a` = 0, `s` = `s`", "`a` = 6, `s` = `s`", "`a` = 5, `s` = `s`",
    ]  # fmt: skip


def test_rows_that_exchanged_keys_are_ordered_as_they_are_printed() -> None:
    taken = [(1, row(1), row(2)), (1, None, row(1, a=3)), (1, None, child(7, 1))]
    found, statements = printed(log(*taken))
    assert found.order == ("DELETE", "UPDATE", "INSERT")
    assert [text.split(" WHERE")[0].split(",")[0] for text in statements] == [
        "DELETE FROM `shop`.`c`", "DELETE FROM `shop`.`t`", "UPDATE `shop`.`t` SET `id` = 1",
    ]  # fmt: skip


def test_unique_values_of_rows_that_exchanged_keys_are_free_when_they_are_taken() -> None:
    found = planned(log((1, row(1, a=5), row(2, a=9)), (1, row(3, a=6), row(1, a=5)), (1, row(2, a=9), row(2, a=6))))
    assert not found.is_printable and "two rows would have the same unique value in shop.t" in found.problems[0]


def test_other_columns_that_were_changed_since_are_kept() -> None:
    found, statements = printed(log(*UPDATED))
    assert found.disjoint == 1
    assert statements == ["UPDATE `shop`.`t` SET `a` = 1, `s` = `s` WHERE `id` = 1 AND `a` <=> 2;"]


def test_several_transactions_are_folded() -> None:
    changes = [(1, None, row(1)), (1, row(1), row(1, a=2)), (1, row(2), row(2, b="y")), (1, row(2, b="y"), row(2))]
    found, statements = printed(log(*changes))
    assert found.done == 1 and [text.split(" ")[0] for text in statements] == ["DELETE"]
    assert printed(log((1, None, row(1)), (1, row(1), None)))[1] == []


def test_force_overwrites_and_skip_leaves_out() -> None:
    conflict = [(1, row(1), row(1, a=2)), (2, row(1, a=2), row(1, a=3)), (1, row(2, a=4), row(2, a=9))]
    found = planned(log(*conflict))
    assert not found.is_printable and found.conflicts[0].transactions == ("0-1-2",)
    assert len(printed(log(*conflict), options=UndoOptions(mode=Mode.SKIP))[1]) == 1
    _, statements = printed(log(*conflict), options=UndoOptions(mode=Mode.FORCE))
    assert "`a` = 1, `s` = `s` WHERE `id` = 1 AND `a` <=> 3" in statements[0]
    found, statements = printed(log(*conflict), options=UndoOptions(mode=Mode.DEPENDENTS))
    assert found.added == ("0-1-2",) and len(statements) == 2


def test_blocks_are_proved_before_the_first_is_printed() -> None:
    changes = [(1, row(1, b="\ufffd"), row(1, b="y")), (2, row(1, b="y"), row(1, b="z"))]
    found = planned(log(*changes), "true", UndoOptions(by_transaction=True))
    assert not found.is_printable and found.refused == 1
    assert found.refusals[0].key == "1" and "bytes that are no character" in found.refusals[0].reason
    # The server would take child 8 along to parent 1, although both changes of the parent together are nothing.
    connection = log((1, child(7, 2), child(8, 2)), (1, row(1), row(2)), (2, row(2), row(1)))
    definitions = Definitions({TABLE.name: TABLE, CHILD.name: CHILD}, (replace(KEY, update_rule="CASCADE"),))
    for options, problems in ((UndoOptions(), 0), (UndoOptions(by_transaction=True), 1)):
        with Planner(connection, definitions) as planner:
            found = planner.plan(select(connection, "true"), options)
        assert (len(found.problems), found.is_printable) == (problems, not problems)
    assert found.problems[0].startswith("the undo is impossible change by change: the server would change t of row 8")


def test_a_row_that_the_selection_inserted_and_that_is_gone_has_its_key() -> None:
    (found,) = planned(log((1, None, row(7)), (2, row(7), None))).already
    assert (found.key, found.transactions) == ("7", ("0-1-2",))


def test_only_rows_and_only_columns() -> None:
    changes = [(1, row(1), row(1, a=2, b="y")), (1, row(2), row(2, a=3))]
    assert len(printed(log(*changes), "pk_values = '1'", rows_only=True)[1]) == 1
    found = printed(log(*changes), options=UndoOptions(columns=frozenset({"b"})))[1]
    assert found == ["UPDATE `shop`.`t` SET `b` = 'x', `s` = `s` WHERE `id` = 1 AND"
                     " CAST(CONVERT(`b` USING utf8mb4) AS BINARY) <=> 'y';"]  # fmt: skip


def test_redo_is_guarded_by_the_row_before() -> None:
    _, statements = printed(log(*UPDATED), options=UndoOptions(Direction.REDO))
    assert statements == ["UPDATE `shop`.`t` SET `a` = 2, `s` = `s` WHERE `id` = 1 AND `a` <=> 1;"]


PARENT_AND_CHILD = [(3, None, row(1)), (3, None, child(7, 1)), (1, row(1), None)]


def with_cascades(
    changes: Sequence[tuple[int, Image, Image]], *, cuts: Cuts | None = None, child_table: Table = CHILD, **key: Any
) -> list[str]:
    """Return the statements of an undo with the rows that a cascade changed."""
    connection = log(*changes)
    keys = (replace(KEY, **{"delete_rule": "CASCADE", **key}),)
    definitions = Definitions({TABLE.name: TABLE, CHILD.name: child_table}, keys)
    add_cascades(connection, select(connection, "transaction_pos = 1"), definitions, cuts)
    with Planner(connection, definitions) as planner:
        found = planner.plan(select(connection, "transaction_pos = 1"), UndoOptions())
        assert found.is_printable, found
        return [text for texts in planner.statements(found) for text in texts]


def test_rows_of_a_cascade_are_taken_from_their_last_images() -> None:
    parent, *children = with_cascades(PARENT_AND_CHILD)
    assert parent.startswith("INSERT INTO `shop`.`t`")
    assert children == ["INSERT INTO `shop`.`c` (`id`, `t`) VALUES (7, 1)"]
    assert with_cascades(PARENT_AND_CHILD, delete_rule="SET NULL")[1:] == [
        "UPDATE `shop`.`c` SET `t` = 1 WHERE `id` = 7 AND `t` IS NULL"
    ]
    emptied: Image = {"id": "7", "t": None}
    later = [*PARENT_AND_CHILD, (2, emptied, {"id": "8", "t": None})]
    assert with_cascades(later, delete_rule="SET NULL")[1:] == [
        "UPDATE `shop`.`c` SET `t` = 1 WHERE `id` = 8 AND `t` IS NULL"
    ]


def test_no_row_of_a_cascade_is_added_that_was_not_changed_by_it() -> None:
    assert with_cascades(PARENT_AND_CHILD, delete_rule="RESTRICT", update_rule="CASCADE")[1:] == []
    # The table of the children was emptied between.
    assert with_cascades(PARENT_AND_CHILD, cuts={CHILD.name: [Place(0, 1, 25)]})[1:] == []
    assert len(with_cascades(PARENT_AND_CHILD, cuts={CHILD.name: [Place(0, 1, 15), Place(0, 1, 35)]})) == 2
    # The log shows the row afterwards: foreign_key_checks was off.
    for rule in ("CASCADE", "SET NULL"):
        assert with_cascades([*PARENT_AND_CHILD, (2, child(7, 1), child(7, 2))], delete_rule=rule)[1:] == []
    # The row had left its parent.
    moved = [*PARENT_AND_CHILD[:2], (2, child(7, 1), child(7, 2)), PARENT_AND_CHILD[2]]
    assert with_cascades(moved)[1:] == []
    other = [*PARENT_AND_CHILD[:2], (2, child(7, 1), None), PARENT_AND_CHILD[2]]
    assert with_cascades(other)[1:] == []


def test_rows_whose_images_are_too_old_are_counted() -> None:
    definitions = Definitions({TABLE.name: TABLE, CHILD.name: CHILD}, (replace(KEY, delete_rule="CASCADE"),))
    altered, emptied = {CHILD.name: [Place(0, 1, 25)]}, {CHILD.name: [Place(0, 1, 25)]}
    for cuts, ends, condition, missing in (
        ({}, {}, "transaction_pos = 1", {}),
        (altered, {}, "transaction_pos = 1", {CHILD.name: 1}),
        (altered, {}, "transaction_pos = 3", {}),
        (altered, emptied, "transaction_pos = 1", {}),
    ):
        connection = log(*PARENT_AND_CHILD)
        selected = select(connection, condition)
        assert add_cascades(connection, selected, definitions, cuts, ends) == missing


@pytest.mark.parametrize(
    ("changes", "words", "more"),
    [
        ([(4, {"id": "9"}, {"t": "3"})], "images of shop.t in the log lack id, a, b, f, s", {}),
        (
            [(4, row(5), row(6))],
            "columns t of shop.c and id of shop.t have other types",
            {
                "update_rule": "SET NULL",
                "child_table": replace(CHILD, columns=(CHILD.columns[0], Column("t", "bigint", "bigint"))),
            },
        ),
        ([], "the rule of foreign key c_t", {"delete_rule": "UNKNOWN"}),
        ([], "shop.c has no primary key", {"child_table": replace(CHILD, primary_key=())}),
    ],
)
def test_a_cascade_that_cannot_be_followed_is_refused(changes: Any, words: str, more: dict[str, Any]) -> None:
    with pytest.raises(CascadeError, match=re.escape(words)):
        with_cascades([*changes, *PARENT_AND_CHILD], **more)


def test_keys_that_differ_in_case_are_not_taken_for_equal() -> None:
    parent = Table(("shop", "t"), (Column("id", "varchar", "varchar(9)", "latin1", is_nullable=False),), ("id",))
    definitions = Definitions(
        {
            parent.name: parent,
            CHILD.name: replace(CHILD, columns=(CHILD.columns[0], replace(parent.columns[0], name="t"))),
        },
        (replace(KEY, delete_rule="CASCADE"),),
    )
    connection = log((3, None, {"id": "7", "t": "A"}), (1, {"id": "a"}, None))
    with pytest.raises(CascadeError, match="differ only in case or spaces"):
        add_cascades(connection, select(connection, "transaction_pos = 1"), definitions)


def test_an_empty_selection_is_an_error() -> None:
    with pytest.raises(EmptySelectionError):
        select(log(*UPDATED), "false")


def test_keys_that_rows_exchange_are_ordered() -> None:
    def move(old: str, new: str) -> Operation:
        return Operation(TABLE, "UPDATE", {"id": old}, {}, {"id": new})

    chain = [move("1", "2"), move("2", "3"), Operation(TABLE, "DELETE", {"id": "3"}, {}, {})]
    assert in_order(chain) == chain[::-1]
    assert in_order([move("1", "2"), move("2", "1")]) is None


def _refused() -> Iterator[tuple[Column, str]]:
    enum = Column("e", "enum", "enum('z','x')", "utf8mb4", labels=("z", "x"))
    yield enum, ""
    yield enum, "y"
    yield Column("i", "int", "int"), "0x41"
    yield Column("b", "varbinary", "varbinary(9)"), "text"
    yield Column("t", "varchar", "varchar(9)", None), "x"
    yield Column("d", "date", "date"), "'; DROP"
    yield Column("j", "json", "json"), f'{{"a": {"1" * 66}}}'
    yield Column("x", "xmltype", "xmltype"), "x"


@pytest.mark.parametrize(("column", "value"), [*_refused()])
def test_a_value_that_cannot_be_told_apart_is_refused(column: Column, value: str) -> None:
    with pytest.raises(UnprintableValueError):
        literal(column, value)


def test_literals_follow_the_type_and_not_the_text() -> None:
    assert literal(Column("t", "varchar", "varchar(9)", "latin1"), "0x41") == "'0x41'"
    assert literal(Column("t", "varbinary", "varbinary(9)"), "0x41") == "X'41'"
    assert literal(Column("t", "varchar", "varchar(9)", "latin1"), "é") == "_utf8mb4 X'C3A9'"
    assert literal(Column("t", "float", "float"), "1.1") == "1.100000023841858e0"
    assert guard(Column("t", "double", "double"), "-0") == "(`t` <=> 0e0 AND CAST(`t` AS CHAR) LIKE '%-%')"


@pytest.mark.parametrize("selected", [row(1, a=2), row(2)])
def test_a_redo_of_a_change_of_a_row_that_was_deleted_since_is_a_conflict(selected: Image) -> None:
    assert selected is not None
    changes = ((1, row(1), selected), (2, selected, None), (1, row(5), row(5, a=9)))
    redo = UndoOptions(Direction.REDO)
    found = planned(log(*changes), options=redo)
    assert not found.problems and not found.refusals
    ((reason, transactions),) = ((one.reason, one.transactions) for one in found.conflicts)
    assert (reason, transactions) == ("the row is gone now", ("0-1-2",))
    left, statements = printed(log(*changes), options=replace(redo, mode=Mode.SKIP))
    assert left.conflicting == 1
    assert len(statements) == 1 and "9" in statements[0]


def test_change_by_change_each_image_must_have_its_values() -> None:
    partial = log((2, None, row(1)), (1, {"id": "1"}, {"id": "1", "b": "y"}))
    assert planned(partial).is_printable
    found = planned(partial, options=UndoOptions(by_transaction=True))
    assert not found.problems
    assert [one.reason for one in found.refusals] == [
        "the image of a change lacks column b: leave out --by-transaction"
    ]
