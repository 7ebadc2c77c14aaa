"""The result of actions in sequence."""

from typing import Any

import pytest

from ingest.binlog import SchemaHints
from ingest.ddl.shapes import ShapeError, Shapes
from ingest.ddl.statements import actions_of


def shapes_of(*statements: str) -> Shapes:
    """Apply statements and return the shapes."""
    shapes = Shapes()
    for statement in statements:
        for action in actions_of(statement, "d"):
            shapes.apply(action)
    return shapes


def columns_of(*statements: str) -> str:
    """Return the names of the columns of table t."""
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


PERIOD = "create table t (a date, b date, c date, period for p (a, b))"


@pytest.mark.parametrize(
    ("statements", "never_null"),
    [
        ([PERIOD, "alter table t modify A date first, change b b date null after c"], ["A", "b"]),
        ([PERIOD, "rename table t to u", "create table t like u", "alter table t modify a date"], ["a", "b"]),
        ([PERIOD, "alter table t modify a date, drop period for p"], ["b"]),
        ([PERIOD, "alter table t drop period for p, add period for q (b, c), modify a date, modify b date"],
         ["b", "c"]),
        ([PERIOD, "alter table t drop period for p"], ["a", "b"]),
        (["create table t (a date, b date)", "alter table t add period for p (A, b)", "alter table t modify a date"],
         ["a", "b"]),
    ],
)  # fmt: skip
def test_the_ends_of_a_period_stay_not_null(statements: list[str], never_null: list[str]) -> None:
    columns = shapes_of(*statements).tables["d", "t"].columns
    assert {column.name for column in columns if column.is_nullable is False} == {*never_null}


def test_a_foreign_key_may_have_the_name_of_an_index() -> None:
    table = "create table t (a int, unique f (a), constraint f foreign key (a) references p (id))"
    for drop, left in (
        ("drop foreign key f", [False]),
        ("drop foreign key if exists F", [False]),
        ("drop index f", [True]),
        ("drop constraint f", [False]),
        ("drop check f", [False, True]),
        ("drop foreign key f, add constraint f foreign key (a) references q (id)", [False, True]),
        ("add foreign key if not exists f (a) references q (id)", [False, True]),
        ("add foreign key if not exists g (a) references q (id)", [False, True, True]),
    ):
        keys = shapes_of(table, f"alter table t {drop}").tables["d", "t"].keys
        assert [key.is_foreign for key in keys] == left, drop


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        (["drop index a on t"], ["a_2"]),
        (["drop index a on t", "alter table t add unique (a, c)"], ["a_2", "a"]),
        (["alter table t change a z int"], ["a", "a_2"]),
        (["create table u like t", "rename table u to t", "drop index a on t"], ["a_2"]),
    ],
)
def test_a_key_keeps_the_name_that_the_server_chose(statements: list[str], expected: list[str]) -> None:
    shapes = shapes_of("create table t (a int, b int, c int, unique (a), unique (a, b))", *statements)
    assert [key.name for key in shapes.tables["d", "t"].keys] == expected


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


def character_set_of_t(*statements: str, begins_empty: bool = False) -> str | None:
    """Return the character set of the first column of table t."""
    shapes = Shapes(begins_empty)
    for statement in statements:
        for action in actions_of(statement, "d", 0, "mariadb"):
            shapes.apply(action)
    return shapes.tables["d", "t"].columns[0].character_set


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        (["create table t (a text)"], None),
        (["create database d", "create table t (a text)"], None),
        (["create database d charset greek", "create table t (a text) charset default"], "greek"),
        (
            ["create database d charset greek", "create table t (a text)", "alter table t convert to charset default"],
            "greek",
        ),
        (["create table t (a text)", "alter table t add b text first, charset greek"], "greek"),
        (
            ["create table t (a text)", "alter table t add b text charset latin1 first, convert to charset greek"],
            "greek",
        ),
        (["create database d charset greek", "alter database d charset default", "create table t (a text)"], None),
        (["create table t (a text) collate uca1400_ai_ci"], None),
    ],
)
def test_a_default_is_known_or_it_is_not(statements: list[str], expected: str | None) -> None:
    assert character_set_of_t(*statements) == expected


def test_a_database_that_may_have_been_there_has_no_known_default() -> None:
    created, table = "create database if not exists d charset greek", "create table t (a text)"
    assert character_set_of_t(created, table) is None
    assert character_set_of_t(created, table, begins_empty=True) == "greek"
    assert character_set_of_t("drop database if exists d", created, table) == "greek"
    assert character_set_of_t("create database d charset latin1", created, table) == "latin1"
    assert character_set_of_t("create or replace database d charset latin1", table) == "latin1"


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        ("text binary", ("text", "greek", "greek_bin")),
        ("text(200)", ("tinytext", "greek", "greek_general_ci")),
        ("text collate default", ("text", "greek", None)),
        ("text charset utf8mb4 collate uca1400_as_ci", ("text", "utf8mb4", "utf8mb4_uca1400_as_ci")),
        ("text collate latin1_bin", ("text", "latin1", "latin1_bin")),
        ("int", ("int", None, None)),
    ],
)
def test_a_column_has_what_it_says_and_the_rest_from_its_table(
    definition: str, expected: tuple[str | None, ...]
) -> None:
    shapes = Shapes()
    for statement in (
        "create database d charset greek collate greek_general_ci",
        f"create table t (a {definition})",
    ):
        for action in actions_of(statement, "d", 0, "mariadb"):
            shapes.apply(action)
    (column,) = shapes.tables["d", "t"].columns
    assert (column.data_type, column.character_set, column.collation) == expected


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


def column_row(table: str, ordinal: int, name: str, column_type: str, **facts: Any) -> dict[str, Any]:
    """Return a row of `schema_columns` of a table in schema `d`."""
    return {
        "schema_name": "d",
        "table_name": table,
        "column_name": name,
        "ordinal_position": ordinal,
        "primary_key_ordinal": None,
        "data_type": column_type.partition("(")[0],
        "column_type": column_type,
        "character_set": None,
        "collation": None,
        "is_nullable": True,
        "is_generated": False,
        "extra": "",
        **facts,
    }


def default_row(table: str | None, character_set: str | None) -> dict[str, Any]:
    """Return a row of `schema_defaults` of schema `d`, or of one of its tables."""
    return {"schema_name": "d", "table_name": table, "character_set": character_set, "collation": None}


def test_statements_go_on_from_a_snapshot() -> None:
    shapes = shapes_of(
        "create database d charset koi8r",
        "create table kept (a text)",
        "create table t (gone int)",
        "create table u (a text) charset latin1",
    )
    latin = {"character_set": "latin1", "collation": "latin1_bin"}
    shapes.observe(
        [
            column_row("t", 3, "c", "enum('x','y')", **latin),
            column_row("t", 1, "a", "int", primary_key_ordinal=2, is_nullable=False, extra="auto_increment"),
            column_row("t", 2, "b", "varchar(9)", primary_key_ordinal=1, is_nullable=False, **latin),
            column_row("u", 1, "a", "text", **latin),
        ],
        [default_row(None, "greek"), default_row("t", "cp1251")],
    )
    for statement in (
        "alter table t add d text, modify c enum('x','y','z')",
        "alter table u add b text, add c int",
        "create table v (a text)",
        "alter table kept add b text",
    ):
        for action in actions_of(statement, "d"):
            shapes.apply(action)
    columns = {
        table: [(row["column_name"], row["ordinal_position"], row["character_set"]) for row in shape.column_rows(table)]
        for table, shape in shapes.tables.items()
    }
    assert columns == {
        ("d", "kept"): [("a", 1, "koi8r"), ("b", 2, "koi8r")],
        ("d", "t"): [("a", 1, None), ("b", 2, "latin1"), ("c", 3, "cp1251"), ("d", 4, "cp1251")],
        # The default of this table is no longer known: a new text column in it has no known character set.
        ("d", "u"): [("a", 1, "latin1"), ("b", 2, None), ("c", 3, None)],
        ("d", "v"): [("a", 1, "greek")],
    }


def test_the_rows_of_a_table_are_what_it_was_observed_with() -> None:
    rows = [
        column_row("t", 1, "a", "int", primary_key_ordinal=2, is_nullable=False, extra="auto_increment"),
        column_row("t", 2, "B", "set('x','y')", primary_key_ordinal=1, character_set="latin1", collation="latin1_bin"),
        column_row("t", 3, "c", "bigint", is_generated=True, extra="VIRTUAL GENERATED"),
    ]
    shapes = Shapes()
    shapes.observe(reversed(rows))
    assert [*shapes.tables["d", "t"].column_rows(("d", "t"))] == rows
    (hints,) = SchemaHints.from_columns(shapes.tables["d", "t"].column_rows(("d", "t"))).definitions("d", "t")
    assert hints is not None
    assert [(one.name, one.charset, one.members, one.primary_key_ordinal, one.is_virtual) for one in hints] == [
        ("a", None, None, 2, False),
        ("B", "latin1", ("x", "y"), 1, False),
        ("c", None, None, None, True),
    ]


def test_a_column_that_is_added_comes_before_the_hashes_of_unique_keys() -> None:
    hidden = {"is_generated": True, "extra": "VIRTUAL GENERATED, INVISIBLE"}
    shapes = Shapes()
    shapes.observe([column_row("t", 1, "a", "text"), column_row("t", 2, "DB_ROW_HASH_1", "bigint", **hidden)])
    for action in actions_of("alter table t add b int", "d", 0, "mariadb"):
        shapes.apply(action)
    assert [column.name for column in shapes.tables["d", "t"].columns] == ["a", "b", "DB_ROW_HASH_1"]
