"""The marts of a home in which nothing was built, as views of DuckDB over the raw tables.

The views are the models themselves: `make generate` writes them for DuckDB.
"""

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ingest.warehouse.home import raw_table_dir, warehouse_dir
from ingest.warehouse.project import own_project
from ingest.warehouse.tables import RAW_SCHEMA, RAW_TABLES, RawTable
from recover.sources.engine import literal, quoted
from recover.sources.kept_files import KeptFiles, KeptTable
from recover.sources.spark_rows import no_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from duckdb import DuckDBPyConnection

_SEEDS: Final = "binloom_seeds"
_SEGMENTS: Final = "binloom_intermediate.int_completed_segments"
_VIEW: Final = re.compile(r"^create view (\S+) as\n(.*?);$", re.DOTALL | re.MULTILINE)
_TABLE: Final = re.compile(rf"\b({RAW_SCHEMA}|binloom\w*)\.(\w+)\b")


def is_unbuilt(home: Path) -> bool:
    """Return whether rows are landed in a home, and no build has begun to write `row_changes`."""
    has_segments = any(raw_table_dir("segments", home).glob("*.parquet"))
    return has_segments and not (warehouse_dir(home) / "binloom.db" / "row_changes").exists()


def unbuilt_marts() -> list[tuple[str, str]]:
    """Return schema and name of each mart that has a view."""
    names = [tuple(name.split(".")) for name in _models()]
    return [(schema, name) for schema, name in names if schema in ("binloom", "binloom_quality")]


class UnbuiltMarts:
    """Makes the views in a connection.

    What lands meanwhile is not seen: the views have the rows of the segments that are completed now.

    Parameters
    ----------
    connection
        The connection.
    home
        Folder of all data of binloom.
    kept
        Keeps the files of the raw tables.
    rows_of
        Returns a query of the rows of kept files.

    Raises
    ------
    StoreError
        The raw tables cannot be read, or the names of their columns cannot be written beside them.
    """

    def __init__(
        self, connection: "DuckDBPyConnection", home: Path, kept: KeptFiles, rows_of: "Callable[[KeptTable], str]"
    ) -> None:
        from ingest.landing.published import publish_home

        self._connection = connection
        self._home = home
        self._kept = kept
        self._rows_of = rows_of
        self._made: set[tuple[str, str]] = set()
        # The segments are listed first: after that, names are published for all that they contain.
        kept.raw_table("segments")
        publish_home(home)

    def add(self, schema: str, name: str) -> bool:
        """Make the view of a mart; return whether there is one."""
        if f"{schema}.{name}" not in _models():
            return False
        self._add(schema, name)
        return True

    def _add(self, schema: str, name: str) -> None:
        if (schema, name) in self._made:
            return
        self._made.add((schema, name))
        query = self._query(schema, name)
        for other, table in _TABLE.findall(query):
            # The paths of files have such names, too.
            if other == _SEEDS or table in RAW_TABLES or f"{other}.{table}" in _models():
                self._add(other, table)
        # The folder of the seeds cannot be read later.
        kind = "table" if schema == _SEEDS else "view"
        self._connection.execute(f"create schema if not exists {quoted(schema)}")
        self._connection.execute(f"create {kind} {quoted(schema)}.{quoted(name)} as {query}")

    def _query(self, schema: str, name: str) -> str:
        match schema:
            case _ if schema == RAW_SCHEMA:
                return self._raw_rows(RAW_TABLES[name])
            case _ if schema == _SEEDS:
                file = own_project() / "seeds" / f"{name}.csv"
                return f"select * from read_csv({literal(str(file))}, header = true, all_varchar = true)"
        return _models()[f"{schema}.{name}"]

    def _raw_rows(self, table: RawTable) -> str:
        from ingest.warehouse.catalog import spark_type

        rows = no_rows((field.name, spark_type(field.type)) for field in table.columns)
        # A folder that does not exist would be waited for while a build runs.
        if raw_table_dir(table.name, self._home).is_dir():
            kept = self._kept.raw_table(table.name)
            if not kept.columns:
                # Files of an older binloom lack columns.
                rows = f"{rows} union all by name {self._rows_of(kept)}"
        if table.partition:
            return f"select * from ({rows}) semi join {_SEGMENTS} using ({', '.join(table.partition)})"
        return rows


@cache
def _models() -> dict[str, str]:
    """Return the query of each view by its name."""
    return dict(_VIEW.findall(Path(__file__).with_name("unbuilt_models.sql").read_text()))
