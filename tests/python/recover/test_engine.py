"""A result that is being read is not ended by other queries of its connection."""

import gc
from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest

from recover.sources import engine
from recover.sources.engine import answer, in_memory, registered

NUMBERS = "select range as number from range(5000)"


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with in_memory() as opened:
        yield opened


def test_another_query_does_not_end_an_answer(connection: duckdb.DuckDBPyConnection) -> None:
    one, other = (answer(connection, NUMBERS) for _ in range(2))
    read = [next(one.rows), next(other.rows)]
    connection.execute("create table other as select 1")
    assert connection.execute("select count(*) from other").fetchone() == (1,)
    assert len(read) + len([*one.rows]) + len([*other.rows]) == 10_000


@pytest.mark.parametrize("size", [engine._ROWS_AT_ONCE - 1, engine._ROWS_AT_ONCE, engine._ROWS_AT_ONCE + 1, 2049])
def test_an_answer_has_all_rows(connection: duckdb.DuckDBPyConnection, size: int) -> None:
    found = answer(connection, "select range as number from range($size)", {"size": size})
    assert found.columns == ["number"]
    first = next(found.rows)
    connection.execute("select 1").fetchall()
    assert [first, *found.rows] == [(number,) for number in range(size)]


def test_the_connection_exists_for_as_long_as_its_answer_is_read() -> None:
    opened = in_memory()
    opened.execute(f"create table numbers as {NUMBERS}")
    found = answer(opened, "from numbers")
    del opened
    gc.collect()
    assert len([*found.rows]) == 5000


def test_answers_have_the_time_zone_of_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    with in_memory() as opened:
        text = "cast(make_timestamptz(0) as varchar)"
        assert [*answer(opened, f"select {text}").rows] == opened.execute(f"select {text}").fetchall()
        assert [*answer(opened, f"select {text}").rows] == [("1970-01-01 00:00:00+00",)]


def test_a_table_can_be_registered_after_a_row_was_fetched(connection: duckdb.DuckDBPyConnection) -> None:
    assert connection.execute("select 7").fetchone() == (7,)
    with registered(connection, "found", pa.table({"a": [1, 2]})):
        assert connection.execute("select sum(a) from found").fetchall() == [(3,)]
    with pytest.raises(duckdb.CatalogException):
        connection.execute("select * from found")
