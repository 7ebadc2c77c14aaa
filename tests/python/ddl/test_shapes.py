"""What actions come to, one after another."""

import pytest

from ingest.ddl.shapes import ShapeError, Shapes
from ingest.ddl.statements import actions_of


def shapes_of(*statements: str) -> Shapes:
    """Carry statements out."""
    shapes = Shapes()
    for statement in statements:
        for action in actions_of(statement, "d"):
            shapes.apply(action)
    return shapes


def columns_of(*statements: str) -> str:
    """Names of the columns of table t."""
    return " ".join(column.name for column in shapes_of(*statements).tables["d", "t"].columns)


@pytest.mark.parametrize(
    ("alter", "expected"),
    [
        ("add x int, add y int", "a b c x y"),
        ("add x int first, add y int first", "y x a b c"),
        ("add x int after a, add y int after a", "a y x b c"),
        ("modify c int first, drop a", "c b"),
        ("add x int, modify a int after c", "b c a x"),
        ("modify a int after c, add x int", "b c a x"),
        ("change a b int, change b a int", "b a c"),
        ("change a b int, change b c int, change c a int", "b c a"),
        ("rename column a to x, add y int after x", "x y b c"),
        ("change a x int first, add a int", "x b c a"),
        ("add a int, change a x int first", "x b c a"),
        ("drop A, rename column B to a", "a c"),
    ],
)
def test_columns_stand_where_the_server_puts_them(alter: str, expected: str) -> None:
    assert columns_of("create table t (a int, b int, c int)", f"alter table t {alter}") == expected


def test_names_of_tables_go_around() -> None:
    shapes = shapes_of(
        "create table t (a int)",
        "create table u (b int)",
        "rename table t to x, u to t, x to u",
        "create table v like u",
        "alter table v rename to e.w",
        "create database f",
        "create table f.gone (a int)",
        "drop database f",
        "drop table if exists never, t",
    )
    assert {table: shape.columns[0].name for table, shape in shapes.tables.items()} == {
        ("d", "u"): "a",
        ("e", "w"): "a",
    }


def test_a_primary_key_follows_its_columns_and_makes_them_not_null() -> None:
    shape = shapes_of(
        "create table t (a int, b int, c int, primary key (c, A))",
        "alter table t change a x int, modify c bigint",
    ).tables["d", "t"]
    assert shape.primary_key == ("c", "x")
    assert [(column.name, column.is_nullable) for column in shape.columns] == [("x", False), ("b", True), ("c", False)]
    shape = shapes_of("create table t (a int, b int, primary key (a, b))", "alter table t drop a").tables["d", "t"]
    assert shape.primary_key == ("b",)
    shape = shapes_of("create table t (a int, b int)", "alter table t add primary key (b)").tables["d", "t"]
    assert (shape.primary_key, shape.columns[1].is_nullable) == (("b",), False)


def test_columns_take_the_character_set_of_their_table_when_they_come() -> None:
    shape = shapes_of(
        "create database d character set latin1",
        "create table t (a text, b varchar(5) charset koi8r)",
        "alter table t default charset utf8mb4",
        "alter table t add c text",
    ).tables["d", "t"]
    assert [column.character_set for column in shape.columns] == ["latin1", "koi8r", "utf8mb4"]
    shape = shapes_of(
        "create table t (a text, b int) charset latin1", "alter table t convert to character set utf8mb4"
    ).tables["d", "t"]
    assert [(one.column_type, one.character_set) for one in shape.columns] == [("mediumtext", "utf8mb4"), ("int", None)]


def test_what_is_conditional_does_nothing_when_it_cannot() -> None:
    shapes = Shapes()
    for statement in (
        "create table t (a int)",
        "create table if not exists t (b int)",
        "alter table t add column if not exists A int, drop column if exists z",
        "alter table if exists never add b int",
    ):
        for action in actions_of(statement, "d", 0, "mariadb"):
            shapes.apply(action)
    assert [column.name for column in shapes.tables["d", "t"].columns] == ["a"]


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        (["alter table t add a int"], "table d.t is changed, but is not known"),
        (["create table t like u"], "table d.t is made like d.u, which is not known"),
        (["create table t select 1"], "the columns of d.t come from a query"),
        (["create table t (a int)", "create table t (a int)"], "is there already"),
        (["create table t (a int)", "alter table t drop b"], "table d.t has no column b"),
        (["create table t (a int)", "alter table t add c int after b"], "table d.t has no column b"),
        (["alter table t wonder"], "ALTER TABLE is not understood"),
    ],
)
def test_what_does_not_fit_is_said(statements: list[str], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        shapes_of(*statements)
