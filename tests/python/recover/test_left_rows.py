"""Rows that get no statement: one line for each reason, table and column."""

from recover.undo.plan.classify import Conflict, Refusal
from recover.undo.plan.left_rows import LeftRows, grouped
from recover.undo.tables.table import Column, Table

TABLE = Table(("shop", "t"), (Column("id", "int", "int"), Column("a1", "int", "int")), ("id",))


def texts(*rows: Conflict | Refusal) -> list[str]:
    left = LeftRows()
    for row in rows:
        left.add(row)
    assert len([*left.lines()]) == left.count == len(rows)
    return [*map(str, left.groups)]


def test_reasons_that_differ_only_in_values_are_one_line() -> None:
    reasons = [f"'it\\'s {n}' is no value of column a1, and {n}.5 is none of a2" for n in range(9)]
    assert texts(*(Refusal(TABLE, str(n), reason) for n, reason in enumerate(reasons))) == [
        "shop.t: 9 rows (0, 1, 2, 3, 4, …): … is no value of column a1, and … is none of a2"
    ]
    broken = "the images do not link at change s/0/b.000001/{}/0/0: its image before differs in column a1"
    (line,) = texts(*(Refusal(TABLE, str(n), broken.format(n)) for n in range(2)))
    assert line == "shop.t: 2 rows (0, 1): the images do not link at change …: its image before differs in column a1"


def test_other_columns_are_another_line() -> None:
    one, other = (Refusal(TABLE, "1", f"the log does not contain the value of column a{n}") for n in (1, 2))
    assert texts(one, other) == [
        f"shop.t 1: the log does not contain the value of column {name}" for name in ("a1", "a2")
    ]


def test_a_line_names_the_first_transactions() -> None:
    (line,) = texts(*(Conflict(TABLE, str(n), "changed since", ("a1",), (f"0-1-{n}",)) for n in range(7)))
    assert line == (
        "shop.t: 7 rows (0, 1, 2, 3, 4, …): changed since (a1), by 0-1-0, 0-1-1, 0-1-2, 0-1-3, 0-1-4 and 2 more"
    )


def test_problems_of_many_rows_are_one_sentence() -> None:
    problems = [f"row {n}|x of shop.c refers (c_t) to a row that the undo removes, since 0-1-{n}" for n in range(8)]
    assert [*grouped([*problems, "shop.t was altered since"])] == [
        f"{problems[0]}; also 7 other rows: 1|x, 2|x, 3|x, 4|x, 5|x, …",
        "shop.t was altered since",
    ]
