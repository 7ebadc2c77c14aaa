"""Undo of tables without a key: only its image tells a row, so that a later change may be of an equal row."""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from recover.undo.options import Direction, Mode, UndoOptions
from recover.undo.plan.classify import plan_chain
from recover.undo.rows.fold import Change, Row
from recover.undo.rows.operations import apply
from recover.undo.tables.table import Column, Table
from tests.servers import Server
from tests.servers.marked import marked
from tests.support.recover.undo_servers import Case, played, rows_of, run, undone

TABLE = Table(("shop", "t"), (Column("user", "int", "int"), Column("seen", "int", "int")))
REASON = "the table has no key, and an equal row was changed since"

Image = tuple[int, int] | None
Written = tuple[int, Image, Image]
"""Number of a transaction, and the images of one of its changes; transaction 1 is taken back."""


def chain(*changes: Written) -> list[Change]:
    return [_change(number, *change) for number, change in enumerate(changes)]


def _change(number: int, transaction: int, before: Image, after: Image) -> Change:
    kind = "INSERT" if before is None else "DELETE" if after is None else "UPDATE"
    key, key_after = str(before or after), str(after or before)
    return Change(str(number), str(transaction), transaction == 1, kind, key, key_after, _row(before), _row(after))


def _row(image: Image) -> Row | None:
    return None if image is None else dict(zip(("user", "seen"), map(str, image), strict=True))


DOUBTFUL: list[Sequence[Written]] = [
    # The row of transaction 2 may have been user 2 or user 5.
    [(1, (2, 0), (0, 0)), (1, (5, 0), (0, 0)), (2, (0, 0), (0, 1))],
    # It may be a row that another transaction inserted, or one that is older than the log.
    [(1, (2, 0), (0, 0)), (2, None, (0, 0)), (2, (0, 0), (0, 1))],
    [(1, (2, 0), (0, 0)), (2, (0, 0), (0, 1))],
    [(1, (2, 0), (0, 0)), (2, (0, 0), None)],
    [(1, None, (0, 0)), (2, (0, 0), None)],
    # A new row that is equal to a deleted one does not bring that one back.
    [(1, (0, 0), None), (2, None, (0, 0))],
    # The row of the last change may be the one that transaction 2 did not change.
    [(1, (2, 0), (0, 0)), (2, (0, 0), (0, 1)), (1, (0, 0), (7, 0))],
]


@pytest.mark.parametrize("changes", DOUBTFUL)
def test_a_later_change_of_an_equal_row_is_a_conflict(changes: Sequence[Written]) -> None:
    for options in (
        UndoOptions(),
        UndoOptions(mode=Mode.SKIP),
        UndoOptions(by_transaction=True),
        UndoOptions(Direction.REDO),
    ):
        plan = plan_chain(TABLE, chain(*changes), options)
        assert {(one.reason, one.transactions) for one in plan.conflicts} == {(REASON, ("2",))}
        assert not plan.operations and not plan.already
    # It is unknown which row would be overwritten.
    plan = plan_chain(TABLE, chain(*changes), UndoOptions(mode=Mode.FORCE))
    assert {one.reason for one in plan.refusals} == {REASON} and not plan.operations


CERTAIN: list[Sequence[Written]] = [
    [(1, (2, 0), (0, 0)), (1, (5, 0), (0, 0)), (1, (0, 0), None)],
    # Other transactions wrote equal rows, and changed none that may be a selected one.
    [(1, (2, 0), (0, 0)), (2, None, (0, 0)), (2, (2, 0), (0, 0))],
    [(1, (0, 0), (2, 0)), (2, None, (0, 0)), (2, (0, 0), None)],
]


@pytest.mark.parametrize("changes", CERTAIN)
def test_equal_rows_are_taken_back_if_no_other_transaction_changed_one(changes: Sequence[Written]) -> None:
    plan = plan_chain(TABLE, chain(*changes), UndoOptions())
    assert plan.operations and not (plan.conflicts or plan.refusals)


def test_random_changes_are_taken_back_exactly_or_refused() -> None:
    taken_back = 0
    for seed in range(1500):
        start, changes = _random_changes(random.Random(seed))
        first = next((place for place, change in enumerate(changes) if change[0] == 1), len(changes))
        plan = plan_chain(TABLE, chain(*changes[first:]), UndoOptions())
        if plan.conflicts:
            continue
        assert not plan.refusals and not plan.already, seed
        result = apply(plan.operations, _rows(_after(start, changes)))
        without = _rows(_after(start, (change for change in changes if change[0] != 1)))
        assert sorted(map(repr, result)) == sorted(map(repr, without)), seed
        taken_back += bool(plan.operations)
    assert taken_back > 300


def _random_changes(dice: random.Random) -> tuple[list[Image], list[Written]]:
    """Return rows of few values, and changes of them by three transactions."""

    def image() -> Image:
        return dice.randrange(2), dice.randrange(3)

    start = [image() for _ in range(dice.randrange(4))]
    rows, changes = [*start], list[Written]()
    for transaction in sorted(dice.randrange(3) for _ in range(dice.randrange(1, 6))):
        before = rows.pop(dice.randrange(len(rows))) if rows and dice.random() < 0.7 else None
        after = image() if before is None or dice.random() < 0.7 else None
        if before != after:
            changes.append((transaction, before, after))
        if after is not None:
            rows.append(after)
    return start, changes


def _after(start: Iterable[Image], changes: Iterable[Written]) -> "Counter[Image]":
    rows = Counter(start)
    for _, before, after in changes:
        rows.subtract([before])
        rows.update([after])
    del rows[None]
    assert min(rows.values(), default=0) >= 0
    return rows


def _rows(images: "Counter[Image]") -> list[Row]:
    return [row for image in images.elements() if (row := _row(image)) is not None]


@pytest.mark.parametrize("name", marked("mysql", "mysql56", "mariadb", "mariadb118"))
def test_a_server_keeps_the_rows_that_may_be_others(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    case = Case(
        "equal since",
        ("create table t (user int, seen int)", "insert into t values (2, 0), (5, 0), (7, 0)"),
        ("update t set user = 0 where user in (2, 5)", "update t set user = 8 where user = 7"),
        ("update t set seen = 1 where user = 0 limit 1",),
    )
    log, condition = played(server, case, "undo_equal", is_possible_without=False)
    plan, text = undone(server, [log], tmp_path, condition)
    assert not text and [one.reason for one in plan.conflicts] == [REASON] * 2
    _, text = undone(server, [log], tmp_path, condition, UndoOptions(mode=Mode.SKIP))
    assert run(server, text).returncode == 0
    assert sorted(rows_of(server, "undo_equal")["t"]) == [("0", "0"), ("0", "1"), ("7", "0")]
    plan, text = undone(server, [log], tmp_path, condition, UndoOptions(mode=Mode.FORCE))
    assert not text and plan.refused == 2
