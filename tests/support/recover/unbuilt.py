"""A home in which nothing was built has the marts of one that was built."""

import shutil
from collections.abc import Collection
from pathlib import Path

from ingest.warehouse.home import warehouse_dir
from recover.sources.log import VIEWS
from recover.sources.marts import BASELINE_ROWS, BASELINES, open_marts
from recover.timeline.table_log import MARTS

ASKED = tuple(dict.fromkeys((*VIEWS, *MARTS, BASELINES, BASELINE_ROWS)))
"""The marts that questions read."""


def assert_same_unbuilt(home: Path, folder: Path, marts: Collection[tuple[str, str]] = ASKED) -> None:
    """Compare each mart of a home with that of a home with the same raw tables.

    Parameters
    ----------
    home
        The home; everything in it was built.
    folder
        A folder for the other home.
    marts
        The marts.
    """
    raw = warehouse_dir(home) / "binlog_raw.db"
    shutil.copytree(raw, warehouse_dir(folder) / raw.name)
    built, unbuilt = open_marts(home, marts), open_marts(folder, marts)
    for schema, name in marts:
        found = []
        for connection in (built, unbuilt):
            columns = sorted(row[0] for row in connection.execute(f"describe {schema}.{name}").fetchall())
            texts = ", ".join(f'"{column}"::varchar' for column in columns)
            rows = connection.execute(f"select {texts} from {schema}.{name} order by all").fetchall()
            found.append((columns, rows))
        (columns, rows), (other_columns, other_rows) = found
        assert columns == other_columns, (schema, name)
        assert rows == other_rows, (schema, name, [*zip(columns, *_first_difference(rows, other_rows), strict=True)])


def _first_difference(rows: list[tuple[str, ...]], others: list[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """Return the first row that is not among the others, and the other way round; empty ones if there is none."""
    known, of_others = {*rows}, {*others}
    empty = ("",) * len((rows or others)[0])
    return (
        next((row for row in rows if row not in of_others), empty),
        next((row for row in others if row not in known), empty),
    )
