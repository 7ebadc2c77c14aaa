"""The rows of a state in the order of their key."""

from collections.abc import Iterator, Sequence
from itertools import islice
from json import dumps, loads
from typing import TYPE_CHECKING, Final

from recover.selection.catalog import Column, TableVersion
from recover.selection.comparison import MismatchError, measured
from recover.sources.engine import fetched, registered
from recover.timeline.events import TableEvent
from recover.timeline.state import Row, State

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_ROWS_AT_ONCE: Final = 10_000


def sorted_rows(connection: "DuckDBPyConnection", state: State, versions: Sequence[TableVersion]) -> Iterator[Row]:
    """Yield the rows by their key, each column of which is compared by its type; without a key, by all columns.

    Unknown values come last. DuckDB sorts, on disk if the rows do not fit in memory.

    Parameters
    ----------
    connection
        It sorts.
    state
        Its counts are final when the first row is there.
    versions
        The versions of the tables of the log, among them that of the state.
    """
    import pyarrow as pa

    version = next((one for one in versions if one.table_version_id == state.table_version_id), None)
    columns = () if version is None else (version.key_columns or version.columns)
    cursor = connection.cursor()
    cursor.execute('create temp table unsorted (number bigint, "values" varchar[], content varchar)')
    doubts: dict[tuple[TableEvent, ...], int] = {}
    rows = enumerate(state.rows())
    while part := list(islice(rows, _ROWS_AT_ONCE)):
        lines = [(number, [row.values.get(one.name) for one in columns], _content(row, doubts)) for number, row in part]
        names = ("number", "values", "content")
        types = (pa.int64(), pa.list_(pa.string()), pa.string())
        arrays = [pa.array(values, kind) for values, kind in zip(zip(*lines, strict=True), types, strict=True)]
        with registered(cursor, "part", pa.table(dict(zip(names, arrays, strict=True)))):
            cursor.execute("insert into unsorted select * from part")
    places = range(len(columns))
    order = [f"{_comparable(columns[place], place)} nulls last" for place in places]
    # The text decides between values that are not told apart as numbers, such as NaN or more digits than a DOUBLE has.
    order += [f'"values"[{place + 1}] nulls last' for place in places]
    cursor.execute(f"select content from unsorted order by {', '.join([*order, 'number'])}")
    known = [*doubts]
    for (content,) in fetched(cursor, connection):
        values, unknown, number = loads(content)
        yield Row(values, tuple(unknown), known[number])


def _content(row: Row, doubts: dict[tuple[TableEvent, ...], int]) -> str:
    """Return a row as text, with the number of its doubts: few rows have doubts of their own."""
    return dumps([row.values, row.unknown_columns, doubts.setdefault(row.doubts, len(doubts))])


def _comparable(column: Column, place: int) -> str:
    """Return the value at a place as an expression that compares like the value."""
    import sqlglot

    text = f'"values"[{place + 1}]'
    try:
        return measured(sqlglot.parse_one(text, read="duckdb"), column).sql("duckdb")
    except MismatchError:
        # A DECIMAL of more than 38 digits.
        return f"try_cast({text} as double)"
