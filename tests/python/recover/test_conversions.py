"""The texts that values have after an ALTER TABLE."""

import pytest

from ingest.ddl.actions import Column
from ingest.ddl.statements import actions_of
from recover.timeline.conversions import Value, converted, initial


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
