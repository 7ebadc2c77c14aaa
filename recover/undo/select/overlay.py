"""Row changes that an undo reads in the place of the logged ones, and that are taken off for the next question."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

LAYERS: Final = ("unaltered_row_changes", "logged_row_changes")
"""Names of what is below, the lowest first: below the rows of altered tables, and below those that cascades changed."""


def lay_over(connection: "DuckDBPyConnection", below: str, query: str) -> None:
    """Replace `row_changes` by a query on what it was.

    Parameters
    ----------
    below
        The name that `row_changes` gets in the schema `binloom`; one of `LAYERS`.
    query
        The new rows.
    """
    kind = _kind(connection, "row_changes")
    connection.execute(
        f"alter {kind} binloom.row_changes rename to {below}; create view binloom.row_changes as {query}"
    )


@contextmanager
def taken_off(connection: "DuckDBPyConnection") -> Iterator[None]:
    """Take all layers off at the end of the context."""
    try:
        yield
    finally:
        for below in reversed(LAYERS):
            if (kind := _kind(connection, below)) is not None:
                connection.execute(
                    f"drop view if exists binloom.row_changes; alter {kind} binloom.{below} rename to row_changes"
                )


def _kind(connection: "DuckDBPyConnection", name: str) -> str | None:
    found = connection.execute(
        "select table_type from information_schema.tables where table_schema = 'binloom' and table_name = ?", [name]
    ).fetchone()
    return None if found is None else "view" if found[0] == "VIEW" else "table"
