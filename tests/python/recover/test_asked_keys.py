"""A person may write a value of a key in another way than the log does."""

import pytest

from ingest.ddl.actions import Column
from ingest.masking.methods import HASH_DIGITS
from recover.timeline.history import UnknownRowError, _key_value


@pytest.mark.parametrize(
    ("column_type", "given", "logged"),
    [
        ("int unsigned", "007", "7"),
        ("bigint", "-12", "-12"),
        ("decimal(10,2)", "1.5", "1.50"),
        ("decimal(10,2)", "-1", "-1.00"),
        # No key of the table has more digits.
        ("decimal(10,2)", "1.505", "1.505"),
        ("year", "26", "2026"),
        ("date", "2026-11-17 00:00", "2026-11-17"),
        # Fractions may be left out, or be zero.
        ("datetime(3)", "2026-11-17 09:30:00", "2026-11-17 09:30:00"),
        ("uuid", "123E4567E89B12D3A456426614174000", "123e4567-e89b-12d3-a456-426614174000"),
        ("varchar(20)", "007", "007"),
        ("varbinary(20)", "plain", "plain"),
    ],
)
def test_a_value_is_read_as_the_log_writes_it(column_type: str, given: str, logged: str) -> None:
    assert _key_value(given, Column("k", column_type.split("(")[0].split(" ")[0], column_type)) == logged


@pytest.mark.parametrize("column_type", ["int", "decimal(10,2)", "date"])
def test_a_masked_value_is_itself_in_each_type(column_type: str) -> None:
    hashed = "0f" * (HASH_DIGITS // 2)
    assert _key_value(hashed, Column("k", column_type.partition("(")[0], column_type)) == hashed


@pytest.mark.parametrize(
    ("column_type", "given", "finding"),
    [
        ("int", "x", "'x' is not a number, and column k is int. Give a number for k."),
        ("decimal(10,2)", "status=new", '.* is not a number.* --where "status=new"`'),
        ("date", "soon", "'soon' is not a date or time, and column k is date."),
    ],
)
def test_a_value_of_another_type_is_a_sentence(column_type: str, given: str, finding: str) -> None:
    with pytest.raises(UnknownRowError, match=finding):
        _key_value(given, Column("k", column_type.partition("(")[0], column_type))
