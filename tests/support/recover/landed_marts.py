"""The marts that questions read are the same before a build, after it, and after more has landed."""

import shutil
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from ingest.warehouse.home import warehouse_dir
from recover.sources.home.marts import BASELINE_ROWS, BASELINES, open_marts
from recover.sources.log import VIEWS
from recover.timeline.table_log import MARTS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

ASKED = tuple(dict.fromkeys((*VIEWS, *MARTS, BASELINES, BASELINE_ROWS)))
"""The marts that questions read."""


def assert_built_as_landed(home: Path, folder: Path) -> None:
    """Compare the marts of a home in which everything was built with those of the same raw tables.

    Parameters
    ----------
    home
        The home.
    folder
        A folder for a home in which nothing was built.
    """
    built = open_marts(home, ASKED, is_current=True)
    _assert_same(built, open_marts(_unbuilt(home, folder), ASKED))
    looked_again = open_marts(home, ASKED)
    assert looked_again.execute("select * from landed.late_parts").fetchall() == []
    _assert_same(built, looked_again)


def assert_late_rows_are_seen(home: Path, folder: Path) -> None:
    """Compare the marts of a home in which something has landed since the last build; see `assert_built_as_landed`."""
    seen = open_marts(home, ASKED)
    assert seen.execute("select * from landed.late_parts").fetchall()
    _assert_same(seen, open_marts(_unbuilt(home, folder), ASKED))


def _unbuilt(home: Path, folder: Path) -> Path:
    """Return a home with the same raw tables in which nothing was built."""
    raw = warehouse_dir(home) / "binlog_raw.db"
    shutil.copytree(raw, warehouse_dir(folder) / raw.name)
    return folder


def _assert_same(one: "DuckDBPyConnection", other: "DuckDBPyConnection") -> None:
    for schema, name in ASKED:
        found = []
        for connection in (one, other):
            columns = sorted(row[0] for row in connection.execute(f"describe {schema}.{name}").fetchall())
            texts = ", ".join(f'"{column}"::varchar' for column in columns)
            rows = connection.execute(f"select {texts} from {schema}.{name} order by all").fetchall()
            found.append((columns, rows))
        (columns, rows), (other_columns, other_rows) = found
        assert columns == other_columns, (schema, name)
        differences = [*zip(columns, *_first_difference(rows, other_rows), strict=True)] if rows != other_rows else []
        assert rows == other_rows, (schema, name, differences)


def _first_difference(
    rows: Collection[tuple[str, ...]], others: Collection[tuple[str, ...]]
) -> tuple[tuple[str, ...], ...]:
    """Return the first row that is not among the others, and the other way round; empty ones if there is none."""
    known, of_others = {*rows}, {*others}
    empty = ("",) * len(next(iter(rows or others)))
    return (
        next((row for row in rows if row not in of_others), empty),
        next((row for row in others if row not in known), empty),
    )
