"""DuckDB, as every source uses it: rows that are read while they are used, and texts in its SQL."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_ROWS_AT_ONCE: Final = 2000


def fetched(cursor: "DuckDBPyConnection") -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the last query, without all of them in memory."""
    while rows := cursor.fetchmany(_ROWS_AT_ONCE):
        yield from rows


def literal(text: str) -> str:
    """Return a text as a literal of DuckDB's SQL."""
    return "'" + text.replace("'", "''") + "'"
