"""The texts that values have after an ALTER TABLE."""

from dataclasses import replace

import duckdb
import pytest

from ingest.ddl.actions import Column
from ingest.ddl.sql_modes import MODES_OF_VALUES, NO_AUTO_VALUE_ON_ZERO, PAD_CHAR_TO_FULL_LENGTH
from ingest.ddl.statements import actions_of
from recover.timeline.alterations import alteration
from recover.timeline.columns import Columns
from recover.timeline.conversions import UNKNOWN, Value, converted, initial, keeps_text
from recover.timeline.events import Effect, Place, Table, TableEvent
from recover.timeline.readings import readings_of, recorded_step
from recover.timeline.table_log import has_moved_keys


def column(definition: str) -> Column:
    """Return a column as a statement defines it."""
    (created,) = actions_of(f"create table t (a {definition})", "d")
    return created.columns[0]


@pytest.mark.parametrize(
    ("value", "old", "new", "expected"),
    [
        ("b,a,b", "varchar(9)", "set('a','b')", "a,b"),
        ("a,a", "text", "set('a','b')", "a"),
        ("b,a", "set('b','a')", "set('a','b')", "a,b"),
        ("", "varchar(9)", "set('a','b')", ""),
    ],
)
def test_a_value_has_the_text_that_the_server_gives_it(value: str | None, old: str, new: str, expected: Value) -> None:
    assert converted(value, column(old), column(new)) == expected


def test_an_added_set_has_each_member_of_its_default_once_and_in_order() -> None:
    assert initial(column("set('a','b') not null default 'b,a,a'")) == "a,b"


@pytest.mark.parametrize(
    ("value", "expected"), [("0", UNKNOWN), ("7", "7"), (None, UNKNOWN)], ids=["zero", "number", "null"]
)
def test_a_zero_and_a_null_get_numbers_in_a_column_that_becomes_auto_increment(
    value: str | None, expected: Value
) -> None:
    before, after = column("int"), column("bigint auto_increment")
    assert converted(value, before, after) == expected
    assert not keeps_text(before, after)


def test_a_zero_stays_in_a_column_that_was_auto_increment_before() -> None:
    before, after = column("int auto_increment"), column("bigint auto_increment")
    assert converted("0", before, after) == "0"
    assert keeps_text(before, after)


@pytest.mark.parametrize("mode", [0, *MODES_OF_VALUES.values()])
def test_the_sql_mode_of_a_statement_decides_values(mode: int) -> None:
    text = "alter table t modify a varchar(9), modify n int auto_increment"
    before = Columns((column("char(5)"), replace(column("int"), name="n")))
    recorded = tuple(map(recorded_step, actions_of(text, "d", mode)))
    row = alteration(readings_of(text, "d", recorded), before).row({"a": "x", "n": "0"})
    is_padded, keeps_zero = (mode == MODES_OF_VALUES[one] for one in (PAD_CHAR_TO_FULL_LENGTH, NO_AUTO_VALUE_ON_ZERO))
    assert row == {"a": "x    " if is_padded else "x"} | ({"n": "0"} if keeps_zero else {})


@pytest.mark.parametrize(
    ("key", "is_moved"), [("0", True), ("10", False), ("a|0", True), ("0.00|b", True), ("00x", False)]
)
def test_a_new_counter_gives_other_keys_only_to_rows_with_a_zero(key: str, is_moved: bool) -> None:
    connection = duckdb.connect()
    connection.execute("create schema binloom")
    connection.execute(
        f"create table binloom.row_changes as select 's' as source_id, 'd' as schema_name, 't' as table_name,"
        f" '{key}' as pk_values, null::varchar as pk_values_after"
    )
    text = "alter table t modify a int auto_increment"
    recorded = tuple(map(recorded_step, actions_of(text, "d")))
    event = TableEvent(Place(0, 1, 4), Effect.ALTERS, "ALTER TABLE", "b.000001", recorded, text, "d")
    columns = {"v": Columns((column("int"),), ("a",))}
    assert has_moved_keys(connection, Table("s", "d", "t"), [event], columns) is is_moved
