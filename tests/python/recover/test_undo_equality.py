"""Values that a server takes for equal: the undo names the row that has one, or may have one."""

from dataclasses import replace
from itertools import product

import pytest

from recover.undo.options import Mode, UndoOptions
from recover.undo.plan.left_rows import grouped
from recover.undo.plan.planner import Plan, Planner
from recover.undo.select.selected import select
from recover.undo.tables.definitions import Definitions
from recover.undo.tables.table import Column, ForeignKey, KeyPart, Table, UniqueKey
from tests.python.recover.test_undo_proofs import CHILD, KEY, TABLE, Image, child, log, planned, row

HAS, MAY_HAVE, HAS_NOT = "row 2 of shop.t has a unique", "row 2 of shop.t may have a unique", ""
WHOLE = KeyPart("b")


def keyed(part: KeyPart, collation: str | None, kind: str = "varchar") -> Table:
    """Return the table with a unique key of a part, and its column `b` with a collation."""
    columns = tuple(
        Column("b", kind, f"{kind}(30)", "utf8mb4", collation=collation) if column.name == "b" else column
        for column in TABLE.columns
    )
    return replace(TABLE, columns=columns, unique_keys=(), computed_keys=(UniqueKey((part,)),))


def planned_with(table: Table, *changes: tuple[int, Image, Image], options: UndoOptions | None = None) -> Plan:
    connection = log(*changes)
    with Planner(connection, Definitions({table.name: table, CHILD.name: CHILD}, (KEY,))) as planner:
        return planner.plan(select(connection, "gtid = '0-1-1'"), options or UndoOptions())


@pytest.mark.parametrize(
    ("part", "collation", "old", "taken", "reason"),
    [
        (WHOLE, "utf8mb4_general_ci", "a", "A", HAS),
        (WHOLE, "utf8mb4_general_ci", "a ", "a", HAS),
        (WHOLE, "utf8mb4_general_ci", "a", "b", HAS_NOT),
        (WHOLE, "utf8mb4_general_ci", "a", "Ä", MAY_HAVE),
        (WHOLE, "utf8mb4_unicode_ci", "ß", "SS", MAY_HAVE),
        (WHOLE, "utf8mb4_unicode_ci", "ä", "ö", HAS_NOT),
        (WHOLE, "utf8mb4_unicode_ci", "ä", "ä", HAS),
        (WHOLE, "utf8mb4_unicode_ci", "あ", "い", MAY_HAVE),
        (WHOLE, "latin1_german2_ci", "ä", "ae", MAY_HAVE),
        (WHOLE, "latin1_swedish_ci", "ü", "y", MAY_HAVE),
        (WHOLE, "latin1_general_cs", "a", "A", HAS_NOT),
        (WHOLE, "utf8mb4_lithuanian_ci", "i", "y", MAY_HAVE),
        (WHOLE, "utf8mb4_0900_ai_ci", "a ", "a", HAS_NOT),
        (WHOLE, "utf8mb4_bin", "a", "A", HAS_NOT),
        (WHOLE, "utf8mb4_bin", "a ", "a", HAS),
        (WHOLE, None, "a", "A", HAS),
        (KeyPart("b", 3), "utf8mb4_general_ci", "abcdef", "ABCxyz", HAS),
        (KeyPart("b", 3), "utf8mb4_general_ci", "abcdef", "ABxyz", HAS_NOT),
        (KeyPart(None, None, "lower(`b`)"), "utf8mb4_bin", "a", "A", MAY_HAVE),
        (KeyPart(None, None, "lower(`b`)"), "utf8mb4_bin", "a", "b", HAS_NOT),
        (KeyPart(None, None, "md5(`b`)"), "utf8mb4_bin", "a", "b", MAY_HAVE),
        (KeyPart(None, None, "md5(`a`)"), "utf8mb4_bin", "a", "b", HAS_NOT),
    ],
)
def test_values_are_compared_as_the_server_does(
    part: KeyPart, collation: str | None, old: str, taken: str, reason: str
) -> None:
    table = keyed(part, collation)
    found = planned_with(table, (1, row(1, b=old), row(1, b="zz")), (2, None, row(2, b=taken)))
    assert found.is_printable == (not reason)
    assert not reason or found.problems[0].startswith(reason)


@pytest.mark.parametrize(
    ("kind", "old", "taken", "reason"),
    [("double", "0", "-0", HAS), ("decimal", "1.0", "1.00", HAS), ("decimal", "1.0", "1.01", HAS_NOT)],
)
def test_numbers_are_equal_with_other_texts(kind: str, old: str, taken: str, reason: str) -> None:
    table = keyed(WHOLE, None, kind)
    found = planned_with(table, (1, row(1, b=old), row(1, b="7")), (2, None, row(2, b=taken)))
    assert found.is_printable == (not reason)
    assert not reason or found.problems[0].startswith(reason)


def test_a_parent_that_is_gone_is_named_with_ways_out() -> None:
    moved: list[tuple[int, Image, Image]] = [(1, child(7, 1), child(7, 2)), (2, row(1), None)]
    found = planned(log(*moved))
    assert found.problems == [
        "row 1 of shop.t, to which the undo refers (c_t), is gone or has another key, since 0-1-2: take that"
        " transaction back, too (--with-dependents), or leave out row 7 of shop.c (--skip-conflicts)"
    ]
    dependents = planned(log(*moved), options=UndoOptions(mode=Mode.DEPENDENTS))
    assert dependents.is_printable and dependents.added == ("0-1-2",)
    skipped = planned(log(*moved), options=UndoOptions(mode=Mode.SKIP))
    assert skipped.is_printable and skipped.conflicting == 1 and not skipped.statements
    assert planned(log(*moved, (3, None, row(1)))).is_printable
    assert planned(log(moved[0], (2, row(3, a=8), None))).is_printable


def test_each_of_many_replaced_parents_is_found() -> None:
    """More than 100,000 pairs of a row and a claim look alike: words that only differ in the case of their letters."""
    coded = keyed(WHOLE, "latin1_general_cs")
    children = replace(
        CHILD,
        columns=(*CHILD.columns, Column("b", "varchar", "varchar(30)", "latin1", collation="latin1_general_cs")),
    )
    key = ForeignKey("c_b", children.name, ("b",), coded.name, ("b",))
    words = ["".join(letters) for letters in product(*("xX" for _ in range(10)))]
    lost = range(110)
    connection = log(
        *((1, {"id": f"{id}", "t": "1", "b": words[id]}, {"id": f"{id}", "t": "1", "b": None}) for id in lost),
        *((2, row(id, b=words[id]), row(id, b="-")) for id in lost),
        (3, None, row(5000, b="new")),
    )
    connection.execute(
        "insert into binloom.row_changes select changes.* replace (change_id || id as change_id,"
        " start_pos + id as start_pos, id as pk_values,"
        " map_concat(row_after, map {'id': id::varchar, 'b': word}) as row_after)"
        " from binloom.row_changes as changes, (select unnest(?) as word, generate_subscripts(?, 1) + 5000 as id)"
        " where gtid = '0-1-3'",
        [words, words],
    )
    definitions = Definitions({coded.name: coded, children.name: children}, (key,))
    with Planner(connection, definitions) as planner:
        found = planner.plan(select(connection, "gtid = '0-1-1'"), UndoOptions())
    assert {one.text for one in found.in_the_way} == {
        f"the undo refers (c_b) to row {id} of shop.t, whose value another row has now" for id in lost
    }


def test_a_selected_transaction_is_no_way_out_of_itself() -> None:
    connection = log((1, None, row(1)), (1, None, child(7, 1)))
    found = planned(connection, "table_name = 't'", rows_only=True)
    assert found.problems == [
        "row 7 of shop.c refers (c_t) to a row that the undo removes, since 0-1-1: take the whole transaction back"
        " (leave out --rows-only), or leave out row 1 of shop.t (--skip-conflicts)"
    ]
    later = log((1, None, row(1)), (2, None, child(7, 1)))
    (problem,) = planned(later, "table_name = 't'", rows_only=True).problems
    assert problem.endswith("since 0-1-2: leave out row 1 of shop.t (--skip-conflicts)")


def test_the_rows_of_a_refused_undo_are_those_that_its_message_counts() -> None:
    """Two parents have thirty children that stay, and a third parent was changed since."""
    children = [(2, None, child(10 + id, id % 2 + 1)) for id in range(30)]
    found = planned(log(*((1, None, row(id, a=id)) for id in (1, 2, 3)), *children, (2, row(3, a=3), row(3, a=4))))
    (told,) = grouped(found.problems)
    assert "; also 29 other rows: " in told
    lines = [*found.left.lines()]
    assert len(lines) == found.left.count == 3
    assert [line.split(": ")[0] for line in lines] == ["shop.t 3", "shop.t 1", "shop.t 2"]
    assert lines[1] == "shop.t 1: row 10 of shop.c refers (c_t) to a row that the undo removes, by 0-1-2"
