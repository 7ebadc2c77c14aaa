"""Tables before a statement: the names that are told are right, and those that nobody can tell are not told."""

import pytest

from ingest.ddl.backwards import before
from ingest.ddl.shapes import Shape, Shapes
from ingest.ddl.statements import actions_of

TABLE = "create table t (id int primary key, a int, a2 int, b varchar(9)) character set utf8mb4"
TOLD = [
    "add c int",
    "add c int first, add d int after id, add e int after c",
    "add (c int, d int), add key (c)",
    "rename column a to x",
    "rename column a to b, rename column b to a",
    "change a x int",
    "change A a int",
    "rename column B to b",
    "change a a2 int, change a2 a int",
    "modify a bigint, modify b text",
    "change id key_ int, add c int after key_",
    "convert to character set latin1",
    "convert to character set utf16, add c text first",
    "convert to character set binary",
    "add unique (a), drop index a, comment 'x', alter a set default 3, engine innodb",
    "rename column a to x, add a int after id",
    "drop index if exists i, drop foreign key if exists f, add index if not exists (a)",
]
NOT_TOLD = [
    "drop a",
    "drop a, add c int",
    "modify a2 int after id",
    "change a x int first",
    "drop primary key",
    "add column if not exists c int",
    "drop column if exists c",
]


def shapes_of(*statements: str) -> Shapes:
    shapes = Shapes(begins_empty=True)
    for statement in statements:
        for action in actions_of(statement, "s", 0, "mariadb"):
            shapes.apply(action)
    return shapes


def undone(statements: list[str]) -> Shape | None:
    """Return the table before the last statement, as that and the table behind it tell."""
    shape: Shape | None = shapes_of(*statements).tables["s", "t"]
    for action in reversed(actions_of(statements[-1], "s", 0, "mariadb")):
        shape = before(shape, action) if shape is not None else None
    return shape


@pytest.mark.parametrize("change", TOLD)
def test_names_before_a_statement(change: str) -> None:
    expected = shapes_of(TABLE).tables["s", "t"]
    found = undone([TABLE, f"alter table t {change}"])
    assert found is not None
    assert [one.name for one in found.columns] == [one.name for one in expected.columns]
    assert found.primary_key == expected.primary_key
    # A type is that of before or unknown, and so is whether the column takes NULL.
    for one, other in zip(found.columns, expected.columns, strict=True):
        assert one.data_type in (None, other.data_type) and one.is_nullable in (None, other.is_nullable)


@pytest.mark.parametrize("change", NOT_TOLD)
def test_nobody_can_tell_the_names_before_a_statement(change: str) -> None:
    assert undone([TABLE, f"alter table t {change}"]) is None


def test_a_primary_key_that_was_added_was_none() -> None:
    found = undone(["create table t (id int, a int)", "alter table t add primary key (id), add c int"])
    assert found is not None and found.primary_key == ()
    assert [(one.name, one.is_nullable) for one in found.columns] == [("id", None), ("a", True)]


def test_a_statement_on_another_table_is_told_from_this_one() -> None:
    # The snapshot shows no column `c`: the log is not that of the table.
    (action,) = actions_of("alter table t add c int", "s")
    assert before(shapes_of(TABLE).tables["s", "t"], action) is None
    (action,) = actions_of("alter table t rename column c to d", "s")
    assert before(shapes_of(TABLE).tables["s", "t"], action) is None
