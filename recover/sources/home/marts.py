"""The marts as views of DuckDB over their Parquet files."""

import difflib
import weakref
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ingest.errors import StoreError, UsageError
from ingest.warehouse.home import raw_table_dir, warehouse_dir
from ingest.warehouse.tables import RAW_SCHEMA
from recover.notes import Kind, Note
from recover.sources.engine import escaped, in_memory, literal, quoted, registered, unchanged
from recover.sources.home.kept_files import KeptFiles, KeptTable, NeedsPartition, all_partitions, ignored
from recover.sources.home.key_parts import FOOTERS, ROWS_IN, SCHEMA
from recover.sources.home.landed_marts import (
    DIGESTS,
    ROW_CHANGES,
    STATEMENTS,
    LandedMarts,
    has_segments,
    has_view,
    is_built_in_parts,
    is_unbuilt,
    landed_marts,
)
from recover.sources.home.part_footers import MANY_FILES, footers_query, have_one_shape, read_footers
from recover.sources.spark_rows import no_rows
from recover.sources.statement_digests import add_digest_function, with_digests

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

MART_SCHEMA: Final = "binloom"
SCHEMAS: Final = (MART_SCHEMA, "binloom_quality")
DDL_ACTIONS: Final = ("binloom_staging", "stg_binlog__ddl_actions")
"""The steps of their DDL statements."""
MASKED_SOURCES: Final = ("binloom_staging", "masked_sources")
"""The sources of which rows are masked; the texts of their statements are masked, too."""
SERVER_STARTS: Final = ("binloom_staging", "server_starts")
"""The files with which a server began when it was started: only these have the time of their creation."""
_LANDED: Final = {STATEMENTS: "statements", DDL_ACTIONS: "ddl_actions"}
BASELINES: Final = (MART_SCHEMA, "baselines")
BASELINE_ROWS: Final = (MART_SCHEMA, "baseline_rows")
# For a warehouse that was built before there were baselines.
_NO_BASELINES: Final = """select null::varchar as baseline_id, null::varchar as source_id, null::integer as epoch,
    null::bigint as file_sequence, null::varchar as binlog_file, null::bigint as binlog_pos,
    null::timestamptz as taken_at, null::varchar as schema_name, null::varchar as table_name,
    null::varchar[] as column_names, null::integer[] as primary_key_ordinals,
    null::varchar as table_version_id, null::boolean as is_complete where false"""
# For statements that an older binloom landed.
_NO_DIGESTS: Final = """select null::varchar as digest, null::varchar as digest_text,
    null::map(varchar, varchar) as tags where false"""
_UNBUILT: Final = (
    "nothing was built in this home yet, so the answer is computed from what has landed. `binloom build` makes answers"
    " faster, and proves that nothing is missing."
)
# Types of partition columns that are not text: their values are only in the names of folders.
_PARTITION_TYPES: Final = {"epoch": "integer", "file_part": "integer", "segment_start": "bigint"}

_BEGIN: Final = "Land binlog files with `binloom ingest` (`query`, `history`, `state` and `undo` also read --files)"


class NoMartError(UsageError):
    """A table is not a mart, or was not built yet."""


def open_marts(
    home: Path,
    tables: Iterable[tuple[str, str]],
    spill: Path | None = None,
    tell: Callable[[str], None] = ignored,
    needs: NeedsPartition = all_partitions,
    *,
    is_current: bool = False,
) -> "DuckDBPyConnection":
    """Return a connection that has some marts as views and can read nothing else.

    The files of each mart are as they are now, for all queries of the connection: a build may replace or delete them.

    Parameters
    ----------
    home
        Folder of all data of binloom.
    tables
        Schema and name of each mart.
    spill
        Folder for data that does not fit into memory (`engine.in_memory`). None: the memory of DuckDB has no limit.
    tell
        Is told when a build must be waited for.
    needs
        Partitions of `row_changes` that queries may need.
    is_current
        Whether it is known that the last build had all that has landed. Otherwise, with `row_changes` among the marts,
        those that a question reads are computed with what has landed since.

    Raises
    ------
    NoMartError
        A table is not a mart, or was not built yet.
    UnfinishedMartError
        A build was killed while it wrote the table, or takes too long.
    TableFormatError
        The table is in Iceberg or Delta.
    """
    import duckdb

    connection = in_memory(spill)
    add_digest_function(connection)
    kept = KeptFiles(home, tell, {ROW_CHANGES: needs})
    weakref.finalize(connection, kept.close)
    tables = [*tables]
    for schema in dict.fromkeys((*SCHEMAS, STATEMENTS[0], *(schema for schema, _ in tables))):
        connection.execute(f"create schema {quoted(schema)}")
    landed, has_late_rows, may_lack_rows = None, False, not is_current
    footers: pa.Table | None = None
    built = list[str]()
    if is_unbuilt(home) and any(has_view(*one) for one in tables):
        tell(_UNBUILT)
        landed = LandedMarts(connection, home, kept, _rows_of)
    elif ROW_CHANGES in tables and not is_current and is_built_in_parts(home):
        try:
            landed = LandedMarts(connection, home, kept, _rows_of)
        except StoreError as error:
            # For example for who may only read the home.
            tell(Note(f"what has landed since the last build is not in this answer: {error}", Kind.NOT_BUILT))
            # This says it of all tables.
            may_lack_rows = False
        else:
            landed.use_built_rows()
            has_late_rows = True
    for schema, name in tables:
        is_built = has_late_rows and (schema, name) == ROW_CHANGES
        if landed is not None and not is_built and has_view(schema, name):
            landed.add(schema, name)
            continue
        if landed is not None and (schema, name) == BASELINE_ROWS:
            landed.add(*BASELINES)
            rows = _rows_of_baselines(home, kept, f"select * from {'.'.join(BASELINES)}")
        else:
            rows = _QUERIES.get((schema, name), _rows)(home, kept, schema, name)
            if (schema, name) == ROW_CHANGES and len((parts := kept.mart(*ROW_CHANGES)).links) > MANY_FILES:
                footers = read_footers(home, parts, tell, has_all_files=needs is all_partitions)
                rows = _rows_of(parts, DIGESTS, has_one_shape=have_one_shape(footers))
            if (schema, name) not in _QUERIES and not has_view(schema, name):
                at = built_at(home, schema, name)
                built.append(f"{schema}.{name}" + (f", built at {at:%Y-%m-%d %H:%M:%S}" if at is not None else ""))
        if is_built:
            rows = LandedMarts.with_late_rows(rows)
        try:
            connection.execute(f"create view {quoted(schema)}.{quoted(name)} as {rows}")
        except duckdb.IOException as error:
            if "No files found" not in str(error):
                raise
            raise NoMartError(
                f"{schema}.{name} has no rows yet.", hint="Land a binlog, then run `binloom build`."
            ) from None
        if (schema, name) == ROW_CHANGES:
            _add_parts(connection, kept, footers, LandedMarts.with_late_rows if has_late_rows else unchanged)
    if built and may_lack_rows:
        sentence = f"the answer does not have what has landed since these tables were built: {'; '.join(built)}."
        tell(Note(sentence, Kind.NOT_BUILT))
    # DuckDB checks a pattern as it is written, and then the files that it found: links lead to the names of open files.
    warehouse = warehouse_dir(home)
    folders = [f"{folder}/" for folder in (kept.folder, warehouse, warehouse.resolve())]
    allowed = dict.fromkeys(literal(text) for folder in folders for text in (folder, escaped(folder)))
    connection.execute(f"set allowed_directories = [{', '.join(allowed)}]")
    connection.execute("set enable_external_access = false")
    connection.execute("set lock_configuration = true")
    return connection


def built_at(home: Path, schema: str, name: str) -> datetime | None:
    """Return when Spark last ended a write to a table; None if it has not, or left no sign of it."""
    try:
        return datetime.fromtimestamp((warehouse_dir(home) / f"{schema}.db" / name / "_SUCCESS").stat().st_mtime, UTC)
    except OSError:
        return None


def tables_of(home: Path) -> list[tuple[str, str]]:
    """Return schema and name of the marts of a home: all tables that dbt built, and those that need no build."""
    built = [
        (path.parent.name.removesuffix(".db"), path.name)
        for path in sorted(warehouse_dir(home).glob("*.db/*"))
        if path.is_dir() and path.parent.name != f"{RAW_SCHEMA}.db" and path.name[0] not in "._"
    ]
    return sorted({*built, *landed_marts()}) if is_unbuilt(home) else built


def _rows(home: Path, kept: KeptFiles, schema: str, name: str) -> str:
    """Return a query of the rows of a mart: a table that dbt built, in whatever schema."""
    if schema == RAW_SCHEMA or "/" in f"{schema}{name}":
        raise _no_mart(home, schema, name)
    try:
        return _rows_of(kept.mart(schema, name), DIGESTS if (schema, name) == ROW_CHANGES else ())
    except FileNotFoundError:
        raise _no_mart(home, schema, name) from None


def _landed(home: Path, kept: KeptFiles, schema: str, name: str) -> str:
    """Return a query of landed rows. Folders of other segments may be incomplete, or replaced."""
    try:
        landed = _rows_of(kept.raw_table(_LANDED[schema, name]))
        completed = _rows_of(kept.mart("binloom_intermediate", "int_completed_segments"))
    except FileNotFoundError:
        raise _no_mart(home, schema, name) from None
    keys = "source_id, epoch, binlog_file, segment_start"
    rows = f"select * from ({landed}) semi join ({completed}) using ({keys})"
    return with_digests(f"{_NO_DIGESTS} union all by name {rows}") if (schema, name) == STATEMENTS else rows


def _masked_sources(home: Path, kept: KeptFiles, schema: str, name: str) -> str:
    """Return a query of the sources with masks."""
    none = "select null::varchar as source_id, null::varchar[] as masked_columns where false"
    try:
        # Table maps that an older binloom landed lack the column.
        maps = _rows_of(kept.raw_table("table_maps"))
        landed = f"select source_id, masked_columns from ({none} union all by name select * from ({maps}))"
    except FileNotFoundError:
        landed = none
    return f"select distinct source_id from ({landed}) where masked_columns is not null"


def _server_starts(home: Path, kept: KeptFiles, schema: str, name: str) -> str:
    """Return a query of the files with which a server was started. The file of a relay log has the time of its own."""
    try:
        landed = _rows_of(kept.raw_table("binlog_files"))
    except FileNotFoundError:
        landed = """select null::varchar as source_id, null::integer as epoch, null::bigint as file_sequence,
            null::varchar as binlog_file, null::timestamptz as created_at, null::boolean as is_relay_log where false"""
    return f"""select distinct source_id, epoch, file_sequence, binlog_file
        from ({landed}) where created_at is not null and not is_relay_log"""


def _baselines(home: Path, kept: KeptFiles, schema: str, name: str) -> str:
    """Return a query of the tables of baselines."""
    try:
        # A mart that an older binloom built lacks columns until it is built again.
        return f"{_NO_BASELINES} union all by name {_rows_of(kept.mart(schema, name))}"
    except FileNotFoundError:
        return _NO_BASELINES


def _baseline_rows(home: Path, kept: KeptFiles, schema: str, name: str) -> str:
    return _rows_of_baselines(home, kept, _baselines(home, kept, *BASELINES))


def _rows_of_baselines(home: Path, kept: KeptFiles, baselines: str) -> str:
    """Return a query of the rows of baselines, as the view of Spark has them, from the raw table."""
    if not any(raw_table_dir("baseline_rows", home).glob("*.parquet")):
        return f"""select *, 0::bigint as row_number, null::varchar as pk_values,
            null::map(varchar, varchar) as "row" from ({_NO_BASELINES})"""
    key_value = r"replace(replace(row_values[place + 1], '\', '\\'), '|', '\|')"
    return f"""select
            baselines.baseline_id, baselines.source_id, baselines.epoch, baselines.file_sequence,
            baselines.binlog_file, baselines.binlog_pos, baselines.schema_name, baselines.table_name,
            baselines.table_version_id, landed.row_number,
            array_to_string(list_transform(primary_key_ordinals, lambda place: {key_value}), '|') as pk_values,
            case when known_columns is null then map(column_names, row_values) else map(
                list_transform(known_columns, lambda place: column_names[place + 1]),
                list_transform(known_columns, lambda place: row_values[place + 1])
            ) end as "row"
        from ({baselines}) as baselines
        inner join (
            select null::integer[] as known_columns where false
            union all by name
            {_rows_of(kept.raw_table("baseline_rows"))}
        ) as landed
            using (baseline_id, schema_name, table_name)"""


def _add_parts(
    connection: "DuckDBPyConnection", kept: KeptFiles, footers: "pa.Table | None", completed: Callable[[str], str]
) -> None:
    """Add what `key_parts` needs: the footers of the files of row_changes, and the rows of some of the files.

    Parameters
    ----------
    footers
        The footers if they have been read.
    completed
        Adds the rows that no file has.
    """
    table = kept.mart(*ROW_CHANGES)
    if table.columns:
        return
    connection.execute(f"create schema {SCHEMA}")
    if footers is None:
        connection.execute(f"create view {FOOTERS} as {footers_query(literal(table.pattern))}")
    else:
        with registered(connection, "batch", footers):
            connection.execute(f"create table {FOOTERS} as select * from batch")
    rows = completed(_rows_in("files", table.partitions, DIGESTS))
    connection.execute(f"create macro {ROWS_IN}(files) as table {rows}")


def _rows_of(table: KeptTable, hidden: Sequence[str] = (), *, has_one_shape: bool = False) -> str:
    """Return a query of the rows of a table, without some columns."""
    if table.columns:
        return no_rows((name, kind) for name, kind in table.columns if name not in hidden)
    return _rows_in(literal(table.pattern), table.partitions, hidden, has_one_shape=has_one_shape)


def _rows_in(files: str, partitions: Sequence[str], hidden: Sequence[str] = (), *, has_one_shape: bool = False) -> str:
    """Return a query of the rows of files.

    Parameters
    ----------
    files
        A pattern or a list.
    partitions
        Names of the partition columns.
    hidden
        Columns that the answer lacks; files may lack them.
    has_one_shape
        Whether all files have the same columns. Otherwise, DuckDB reads all footers before it reads rows.
    """
    by_name = "" if has_one_shape else ", union_by_name = true"
    if not partitions:
        return f"select * from read_parquet({files}{by_name})"
    types = ", ".join(f"{column}: {_PARTITION_TYPES.get(column, 'varchar')}" for column in partitions)
    # Last and in their order, as Spark has them; DuckDB sorts them by name.
    columns = ", ".join(map(quoted, partitions))
    rows = f"read_parquet({files}{by_name}, hive_types = {{{types}}})"
    others = ", ".join(map(literal, (*partitions, *hidden)))
    return f"select columns(lambda name: name not in ({others})), {columns} from {rows}"


def _no_mart(home: Path, schema: str, name: str) -> NoMartError:
    known = [f"{one}.{table}" for one, table in tables_of(home)]
    other = "set BINLOOM_HOME to the folder of your warehouse."
    if not home.is_dir():
        return NoMartError(
            f"There is no folder {home} (BINLOOM_HOME).",
            hint=f"{_BEGIN}, or {other}",
        )
    if not known and not has_segments(home):
        return NoMartError(
            f"There are no marts in {home}: nothing was landed there yet.",
            hint=f"{_BEGIN}, or {other}",
        )
    listed = "`binloom sql 'show tables'` lists all of them."
    if is_unbuilt(home):
        return NoMartError(
            f"There is no mart {schema}.{name} in {home}: nothing was built there yet.",
            hint=f"Run `binloom build`. Some marts need no build; {listed}",
        )
    near = difflib.get_close_matches(f"{schema}.{name}", known, n=3)
    return NoMartError(
        f"There is no mart {schema}.{name}.", hint=f"There are {', '.join(near)}; {listed}" if near else listed
    )


_QUERIES: Final = {
    **dict.fromkeys(_LANDED, _landed),
    MASKED_SOURCES: _masked_sources,
    SERVER_STARTS: _server_starts,
    BASELINES: _baselines,
    BASELINE_ROWS: _baseline_rows,
}
"""Queries of tables that are not simply the files of a mart."""
