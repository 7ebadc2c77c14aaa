"""DuckDB, as every source uses it: rows that are read while they are used, and texts in its SQL."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

_ROWS_AT_ONCE: Final = 2000
_ROWS_OF_PART: Final = 8192

_LEAST_MEMORY: Final = 400 << 20
# A few values of the largest size that a server writes (1 GB) cannot spill; everything else does.
_SHARE_OF_MEMORY: Final = 16


@dataclass(frozen=True)
class Answer:
    """The answer to a query.

    Attributes
    ----------
    columns
        Names of the columns.
    rows
        The rows, read while they are used.
    """

    columns: list[str]
    rows: Iterator[tuple[Any, ...]]


def in_memory(spill: Path | None = None) -> "DuckDBPyConnection":
    """Return a new connection.

    Parameters
    ----------
    spill
        Folder for data that does not fit into a sixteenth of the machine's memory, or 400 MiB if that is more. None:
        the memory of DuckDB has no limit.
    """
    import duckdb

    connection = duckdb.connect(":memory:")
    # Text of a timestamp has the offset of the time zone; answers are read by cursors, which have the global one.
    connection.execute("set global timezone = 'UTC'")
    # A bar would mix with the rows after two seconds.
    connection.execute("set enable_progress_bar = false")
    # Each query of a view would read the footers of all files again.
    connection.execute("set global parquet_metadata_cache = true")
    if spill is not None:
        connection.execute(f"set memory_limit = '{_memory_limit()}B'; set temp_directory = {literal(str(spill))}")
    return connection


def _memory_limit() -> int:
    """Return how many bytes DuckDB may hold: few, because a question is often asked on a server that is in use."""
    of_machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(_LEAST_MEMORY, of_machine // _SHARE_OF_MEMORY)


@contextmanager
def registered(connection: "DuckDBPyConnection", name: str, data: "pa.Table") -> Iterator[None]:
    """Give a connection an Arrow table under a name.

    DuckDB refuses that while a result of the connection is not read to its end, and `fetchone` leaves it so.
    """
    connection.execute("select null").fetchall()
    connection.register(name, _in_parts(data))
    try:
        yield
    finally:
        connection.unregister(name)


def insert_row(connection: "DuckDBPyConnection", table: str, *values: Any) -> None:
    """Insert one row with a value for each column of a table."""
    connection.execute(f"insert into {table} values ({', '.join('?' * len(values))})", values)


def _in_parts(data: "pa.Table") -> "pa.Table":
    """Return a table in several parts: DuckDB reads each by a thread of its own, and keeps their order."""
    return type(data).from_batches(data.to_batches(max_chunksize=_ROWS_OF_PART), data.schema)


def answer(connection: "DuckDBPyConnection", query: str, parameters: object = None) -> Answer:
    """Return the answer to a query. It is read by a cursor of its own, so that no other query can end it.

    DuckDB forgets the rest of a result, without an error, when its connection runs something else. A cursor has no
    temporary tables or views of the connection.
    """
    cursor = connection.cursor()
    cursor.execute(query, parameters)
    return Answer([column[0] for column in cursor.description or ()], fetched(cursor, connection))


def arrow_table(connection: "DuckDBPyConnection", query: str) -> "pa.Table":
    """Return the answer to a query as an Arrow table, read by a cursor of its own."""
    return connection.cursor().sql(query).to_arrow_table()


def fetched(cursor: "DuckDBPyConnection", connection: "DuckDBPyConnection") -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the last query of a cursor, without all of them in memory.

    Parameters
    ----------
    cursor
        Nothing else may use it until all rows are read.
    connection
        The connection that has made the cursor. The files of a warehouse are open for as long as it exists.
    """
    assert cursor is not connection
    while rows := cursor.fetchmany(_ROWS_AT_ONCE):
        yield from rows


def unchanged(query: str) -> str:
    """Return a query as it is."""
    return query


def quoted(name: str) -> str:
    """Return a name as an identifier of DuckDB's SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as a literal of DuckDB's SQL."""
    return "'" + text.replace("'", "''") + "'"


def has_rows(connection: "DuckDBPyConnection", source: str) -> bool:
    """Return whether there are rows in a table, or in a query in parentheses; a condition may follow."""
    return bool(connection.execute(f"select 1 from {source} limit 1").fetchall())


def escaped(path: str) -> str:
    """Return a path as a pattern that matches only this path: special characters are escaped."""
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in path)


def columns_of_table(cursor: "DuckDBPyConnection", schema: str, table: str) -> set[str]:
    """Return the names of the columns of a table or view; none if there is no such table."""
    # To describe a view would bind it, which reads the footers of all files.
    found = cursor.execute(
        "select column_name from duckdb_columns() where schema_name = ? and table_name = ?", [schema, table]
    )
    return {name for (name,) in found.fetchall()}
