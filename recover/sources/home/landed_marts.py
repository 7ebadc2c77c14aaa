"""The marts as they are by what has landed, computed by DuckDB from the raw tables.

Their queries are the models: `make generate` writes them for DuckDB. Where `row_changes` was built, only rows that have
landed since come from the raw tables, and rows whose names have changed.
"""

import re
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ingest.warehouse.home import raw_table_dir, warehouse_dir
from ingest.warehouse.project import own_project
from ingest.warehouse.tables import RAW_SCHEMA, RAW_TABLES, ROW_EVENTS, RawTable
from recover.sources.engine import literal, quoted
from recover.sources.home.kept_files import KeptFiles, KeptTable, NeedsPartition, all_partitions
from recover.sources.spark_rows import no_rows
from recover.sources.statement_digests import with_digests

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

PARTS: Final = ("binloom_intermediate", "int_row_change_parts")
"""The parts of `row_changes` with their fingerprints."""

ROW_CHANGES: Final = ("binloom", "row_changes")

DIGESTS: Final = ("digest_before", "digest_after")
"""Columns of `row_changes` for the proofs of a build. Answers do not have them: DuckDB lacks their hash."""

_QUARANTINE: Final = ("binloom", "quarantined_row_events")
_BUILT_PARTS: Final = ("binloom_intermediate", "row_changes_built_parts")
_COMPLETED: Final = "binloom_intermediate.int_completed_segments"
_SEEDS: Final = "binloom_seeds"
_VIEW: Final = re.compile(r"^create view (\S+) as\n(.*?);$", re.DOTALL | re.MULTILINE)
_TABLE: Final = re.compile(rf"\b({RAW_SCHEMA}|binloom\w*)\.(\w+)\b")

STATEMENTS: Final = ("binloom_staging", "stg_binlog__statements")
"""The statements of completed segments, under the name that Spark has for them."""

_OWN: Final = "landed"
_AS_LANDED: Final = f"{_OWN}.statements_as_landed"
_PART: Final = "event_hour, source_id, epoch, binlog_file, file_part"
_SEGMENT: Final = "source_id, epoch, binlog_file, segment_start"
# Parts whose rows in `row_changes` are missing or not the present ones, or which have none any more.
_LATE_PARTS: Final = f"""
    create table {_OWN}.late_parts as
    select distinct {_PART}
    from (select {_PART}, fingerprint from {".".join(PARTS)}) as now
    full join {_OWN}.built_parts as built using ({_PART})
    where now.fingerprint is distinct from built.fingerprint"""
# Segments with rows of these parts.
_LATE_SEGMENTS: Final = f"""
    create table {_OWN}.late_segments as
    select distinct {_SEGMENT}
    from binloom_intermediate.int_row_event_counts
    semi join {_OWN}.late_parts using (event_hour, source_id, epoch, binlog_file)"""
# Segments of which rows may be in quarantine, by the bindings where their rows are. The model itself looks for them in
# more segments, and joins these with all rows: that takes DuckDB seconds.
_SUSPECT_SEGMENTS: Final = f"""
    create table {_OWN}.suspect_segments as
    select distinct {_SEGMENT}
    from binloom_intermediate.int_row_event_counts
    inner join (select {_SEGMENT}, file_sequence from {_COMPLETED}) as completed using ({_SEGMENT})
    left join binloom_intermediate.int_table_map_bindings as bindings
        on
            int_row_event_counts.source_id = bindings.source_id
            and int_row_event_counts.table_map_id = bindings.table_map_id
            and [epoch, file_sequence, last_pos] >= [valid_from_epoch, valid_from_file_sequence, valid_from_pos]
            and [epoch, file_sequence, first_pos] < [valid_to_epoch, valid_to_file_sequence, valid_to_pos]
    where bindings.table_map_id is null or bindings.reason is not null or bindings.unknown_hints is not null"""
_WAY_OF_ROWS: Final = (
    *("binlog_raw.row_events", "binloom_staging.stg_binlog__row_events"),
    "binloom_intermediate.int_row_events_bound",
)
"""The tables through which a row event gets its names."""
_LARGE: Final = {
    *(*_WAY_OF_ROWS, "binloom.row_changes", "binloom.quarantined_row_events"),
    *("binloom_staging.stg_binlog__transactions", "binloom_intermediate.int_transactions_resolved"),
    *("binloom.transactions", "binloom_staging.stg_binlog__statements"),
}
"""Tables with a row for each row event, transaction or statement: a query reads what it needs of them."""


def has_segments(home: Path) -> bool:
    """Return whether anything of a log is landed in a home."""
    return any(raw_table_dir("segments", home).glob("*.parquet"))


def is_unbuilt(home: Path) -> bool:
    """Return whether rows are landed in a home, and no build has begun to write `row_changes`."""
    return has_segments(home) and not (warehouse_dir(home) / "binloom.db" / "row_changes").exists()


def is_built_in_parts(home: Path) -> bool:
    """Return whether a build has recorded from what it made the parts of `row_changes`."""
    schema, name = _BUILT_PARTS
    return has_segments(home) and (warehouse_dir(home) / f"{schema}.db" / name).exists()


def landed_marts() -> list[tuple[str, str]]:
    """Return schema and name of each mart that has a view."""
    names = (tuple(name.split(".")) for name in _models())
    return [(schema, name) for schema, name in names if schema in ("binloom", "binloom_quality")]


def has_view(schema: str, name: str) -> bool:
    """Return whether a mart is computed without a build."""
    return f"{schema}.{name}" in _models()


class LandedMarts:
    """Makes the marts in a connection: views of large tables, and tables of the others.

    What lands meanwhile is not seen: the views have the rows of the segments that are completed now.

    Parameters
    ----------
    connection
        The connection.
    home
        Folder of all data of binloom.
    kept
        Keeps the files of the tables.
    rows_of
        Returns a query of the rows of kept files.

    Raises
    ------
    StoreError
        The raw tables cannot be read, or the names of their columns cannot be written beside them.
    """

    def __init__(
        self, connection: "DuckDBPyConnection", home: Path, kept: KeptFiles, rows_of: Callable[[KeptTable], str]
    ) -> None:
        from ingest.landing.published import publish_home

        self._connection = connection
        self._home = home
        self._kept = kept
        self._rows_of = rows_of
        self._made: set[tuple[str, str]] = set()
        self._needs: NeedsPartition = all_partitions
        connection.execute(f"create schema {_OWN}")
        # The segments are listed first: after that, names are published for all that they contain.
        kept.raw_table("segments")
        publish_home(home)

    def use_built_rows(self) -> None:
        """Take the rows of `row_changes` from its files, except those of late parts.

        Call `with_late_rows` for the query of its view.

        Raises
        ------
        UnfinishedMartError
            A build was killed while it wrote the table, or takes too long.
        """
        # Before the files of the table: a part that a build replaces meanwhile is late.
        parts = self._kept.mart(*_BUILT_PARTS)
        self._connection.execute(f"create view {_OWN}.built_parts as {self._rows_of(parts)}")
        self.add(*PARTS)
        self._connection.execute(_LATE_PARTS)
        self._connection.execute(_LATE_SEGMENTS)
        self._find_suspects()
        self._needs = self._are_read("late_segments", "suspect_segments")
        rows = self._of_segments(".".join(ROW_CHANGES), "late_segments")
        self._connection.execute(
            f"create view {_OWN}.late_rows as select * from ({rows}) semi join {_OWN}.late_parts using ({_PART})"
        )

    @staticmethod
    def with_late_rows(built: str) -> str:
        """Return a query of the rows of some files of `row_changes`, with late rows instead of those of late parts."""
        return f"""select * from ({built}) anti join {_OWN}.late_parts using ({_PART})
            union all by name select * from {_OWN}.late_rows"""

    def add(self, schema: str, name: str) -> None:
        """Make a mart that is computed so (`has_view`), and what it reads."""
        if (schema, name) in self._made:
            return
        self._made.add((schema, name))
        query = self._with_tables(self._query(schema, name)).replace(".".join(STATEMENTS), _AS_LANDED)
        # DuckDB plans a view with all that it reads in each query. The files of the seeds cannot be read later.
        kind = "view" if schema == RAW_SCHEMA or f"{schema}.{name}" in _LARGE else "table"
        self._connection.execute(f"create schema if not exists {quoted(schema)}")
        if (schema, name) == STATEMENTS:
            # Models are functions of what has landed; a question has digests of older statements too.
            self._connection.execute(f"create view {_AS_LANDED} as {query}")
            query = with_digests(f"select * from {_AS_LANDED}")
        self._connection.execute(f"create {kind} {quoted(schema)}.{quoted(name)} as {query}")

    def _with_tables(self, query: str) -> str:
        """Return a query after the tables that it reads were made."""
        for schema, table in _TABLE.findall(query):
            # The paths of files have such names, too.
            if schema == _SEEDS or table in RAW_TABLES or has_view(schema, table):
                self.add(schema, table)
        return query

    def _query(self, schema: str, name: str) -> str:
        if schema == RAW_SCHEMA:
            table = RAW_TABLES[name]
            rows = self._raw_rows(table)
            return f"select * from ({rows}) semi join {_COMPLETED} using ({_SEGMENT})" if table.partition else rows
        if schema == _SEEDS:
            file = own_project() / "seeds" / f"{name}.csv"
            return f"select * from read_csv({literal(str(file))}, header = true, all_varchar = true)"
        if (schema, name) == _QUARANTINE:
            self._find_suspects()
            return self._of_segments(f"{schema}.{name}", "suspect_segments")
        return _models()[f"{schema}.{name}"]

    def _find_suspects(self) -> None:
        if (_OWN, "suspect_segments") not in self._made:
            self._made.add((_OWN, "suspect_segments"))
            self._connection.execute(self._with_tables(_SUSPECT_SEGMENTS))

    def _of_segments(self, model: str, segments: str) -> str:
        """Return the query of a model that reads the row events of some segments and of no others."""
        rows = f"select * from ({self._raw_rows(ROW_EVENTS)}) semi join {_OWN}.{segments} using ({_SEGMENT})"
        for name, reader in pairwise([*_WAY_OF_ROWS, model]):
            limited = f"{_OWN}.{name.partition('.')[2]}_of_{segments}"
            self._connection.execute(f"create view {limited} as {rows}")
            rows = self._with_tables(re.sub(rf"\b{re.escape(name)}\b", limited, _models()[reader]))
        return rows

    def _raw_rows(self, table: RawTable) -> str:
        """Return a query of the rows of a raw table, also those of segments that are not completed."""
        from ingest.warehouse.catalog import spark_type

        rows = no_rows((field.name, spark_type(field.type)) for field in table.columns)
        # A folder that does not exist would be waited for while a build runs.
        if not raw_table_dir(table.name, self._home).is_dir():
            return rows
        kept = self._kept.raw_table(table.name, self._needs if table is ROW_EVENTS else all_partitions)
        # Files of an older binloom lack columns.
        return rows if kept.columns else f"{rows} union all by name {self._rows_of(kept)}"

    def _are_read(self, *tables: str) -> NeedsPartition:
        """Return which partitions have the segments of some tables, and perhaps others."""
        found = [
            row
            for table in tables
            for row in self._connection.execute(f"select {_SEGMENT} from {_OWN}.{table}").fetchall()
        ]
        values = {name: {str(row[place]) for row in found} for place, name in enumerate(_SEGMENT.split(", "))}
        return lambda column, value: value in values[column]


@cache
def _models() -> dict[str, str]:
    """Return the query of each view by its name."""
    return dict(_VIEW.findall(Path(__file__).with_suffix(".sql").read_text()))
