"""The marts as views of DuckDB over their Parquet files."""

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ingest.errors import StoreError, UsageError
from ingest.warehouse.home import warehouse_dir
from recover.sources.engine import in_memory, literal, quoted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MART_SCHEMA: Final = "binloom"
SCHEMAS: Final = (MART_SCHEMA, "binloom_quality")
STATEMENTS: Final = ("binloom_staging", "stg_binlog__statements")
"""The statements of completed segments, under the name that Spark has for them."""
# Types of partition columns that are not text: their values are only in the names of folders.
_PARTITION_TYPES: Final = {"epoch": "integer", "file_part": "integer", "segment_start": "bigint"}


class NoMartError(UsageError):
    """A table is not a mart, or was not built yet."""


class UnfinishedMartError(StoreError):
    """A build of a mart has not ended, or was killed."""


def open_marts(home: Path, tables: Iterable[tuple[str, str]], spill: Path | None = None) -> "DuckDBPyConnection":
    """Return a connection that has some marts as views and can read nothing but the warehouse.

    Parameters
    ----------
    home
        Folder of all data of binloom.
    tables
        Schema and name of each mart.
    spill
        Folder for what does not fit into a memory of 400 MB. None: DuckDB uses as much memory as it likes.

    Raises
    ------
    NoMartError
        A table is not a mart, or was not built yet.
    UnfinishedMartError
        A build writes the table, or was killed while it wrote it.
    """
    import duckdb

    connection = in_memory(spill)
    for schema in (*SCHEMAS, STATEMENTS[0]):
        connection.execute(f"create schema {schema}")
    for schema, name in tables:
        rows = _statements(home) if (schema, name) == STATEMENTS else _rows(home, schema, name)
        try:
            connection.execute(f"create view {quoted(schema)}.{quoted(name)} as {rows}")
        except duckdb.IOException as error:
            if "No files found" not in str(error):
                raise
            raise NoMartError(
                f"{schema}.{name} has no rows yet.", hint="Land a binlog, then run `binloom build`."
            ) from None
    folder = f"{warehouse_dir(home)}/"
    # DuckDB checks a pattern as it is written, and then the files that it found.
    connection.execute(f"set allowed_directories = [{literal(folder)}, {literal(_escaped(folder))}]")
    connection.execute("set enable_external_access = false")
    connection.execute("set lock_configuration = true")
    return connection


def _rows(home: Path, schema: str, name: str) -> str:
    """Return a query of the rows of a mart."""
    if schema not in SCHEMAS or "/" in name or not (warehouse_dir(home) / f"{schema}.db" / name).is_dir():
        raise _no_mart(home, schema, name)
    return _files(home, schema, name)


def _statements(home: Path) -> str:
    """Return a query of the landed statements. Folders of other segments may be incomplete, or replaced."""
    folders = [warehouse_dir(home) / "binlog_raw.db" / "statements"]
    folders.append(warehouse_dir(home) / "binloom_intermediate.db" / "int_completed_segments")
    if not all(folder.is_dir() for folder in folders):
        raise _no_mart(home, *STATEMENTS)
    landed = _files(home, "binlog_raw", "statements")
    completed = _files(home, "binloom_intermediate", "int_completed_segments")
    keys = "source_id, epoch, binlog_file, segment_start"
    return f"select * from ({landed}) semi join ({completed}) using ({keys})"


def _files(home: Path, schema: str, name: str) -> str:
    """Return a query of the rows of a table. A partitioned table has a level of folders for each partition column."""
    folder = warehouse_dir(home) / f"{schema}.db" / name
    partitions: list[str] = []
    level = folder
    while (partition := _first_partition(level)) is not None:
        partitions.append(partition.name.partition("=")[0])
        level = partition
    if _is_unfinished(folder, is_partitioned=bool(partitions)):
        raise UnfinishedMartError(
            f"The last build of {schema}.{name} has not ended: its files may be old, new or missing.",
            hint="Wait for the build that runs, or run `binloom build` if it was killed.",
            path=str(folder),
        )
    pattern = f"{_escaped(str(folder))}{'/*=*' * len(partitions)}/part-*.parquet"
    types = ", ".join(f"{column}: {_PARTITION_TYPES.get(column, 'varchar')}" for column in partitions)
    if not partitions:
        return f"select * from read_parquet({literal(pattern)}, union_by_name = true)"
    # Last and in their order, as Spark has them; DuckDB sorts them by name.
    columns = ", ".join(map(quoted, partitions))
    rows = f"read_parquet({literal(pattern)}, union_by_name = true, hive_types = {{{types}}})"
    return f"select * exclude ({columns}), {columns} from {rows}"


def _is_unfinished(folder: Path, is_partitioned: bool) -> bool:
    """Return whether Spark has begun to write a table and has not ended.

    Until the end, new files of some partitions are in a staging folder; a table without partitions has no `_SUCCESS`.
    """
    names = {path.name for path in folder.iterdir()}
    is_staged = any(name == "_temporary" or name.startswith(".spark-staging") for name in names)
    return is_staged or not (is_partitioned or "_SUCCESS" in names)


def _first_partition(folder: Path) -> Path | None:
    return next((path for path in folder.iterdir() if path.is_dir() and "=" in path.name), None)


def _no_mart(home: Path, schema: str, name: str) -> NoMartError:
    built = [
        f"{one}.{path.name}"
        for one in SCHEMAS
        for path in sorted((warehouse_dir(home) / f"{one}.db").glob("*"))
        if path.is_dir()
    ]
    if not built:
        return NoMartError(
            f"There are no marts in {home}: nothing was built there yet.",
            hint="Run `binloom build`, or set BINLOOM_HOME to the folder of your warehouse.",
        )
    near = difflib.get_close_matches(f"{schema}.{name}", built, n=3) or built
    return NoMartError(f"There is no mart {schema}.{name}.", hint=f"There are {', '.join(near)}.")


def _escaped(path: str) -> str:
    """Return a path for a pattern in which the characters of patterns stand for themselves."""
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in path)
