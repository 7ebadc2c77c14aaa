"""Files of the raw tables: their paths, and how to write each file atomically.

A file is written under a hidden name, synced, and renamed to its own name; readers see only complete files. Names are
deterministic: writing the same rows again creates the same file at the same path.
"""

import contextlib
import glob
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ingest.errors import StoreError
from ingest.warehouse.home import raw_table_dir
from ingest.warehouse.names import is_of_another_source, partition_step
from ingest.warehouse.segments import Segment
from ingest.warehouse.tables import RawTable

COMPRESSION = "zstd"
# Files of more rows are read with threads, which take longer to start than a small file takes to read.
_FEW_ROWS = 10_000


def partition_folder(values: Mapping[str, str | int]) -> str:
    """Return the path of a partition below its table's folder: `source_id=…/epoch=…`."""
    return "/".join(partition_step(name, value) for name, value in values.items())


def segment_folder(table: RawTable, segment: Segment, home: Path | None = None) -> Path:
    """Return the folder that contains the rows of a segment."""
    return raw_table_dir(table.name, home) / partition_folder(segment.partition)


@contextlib.contextmanager
def store_errors(what: Path) -> Iterator[None]:
    """Turn an operating system error on a file of the warehouse into a `StoreError`."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{what} cannot be written: {os.strerror(error.errno) if error.errno else error}.",
            hint="Free some space or grant permission, and run the same command again; finished work is kept.",
            path=str(what),
        ) from error


LAND_ANEW = (
    "Restore the file from a copy. If there is no copy, set BINLOOM_HOME to an empty folder and land the binlog files "
    "again there: they give the same tables."
)
BUILD_ANEW = "`dbt build --full-refresh` builds the table again."


@contextlib.contextmanager
def read_errors(path: Path, hint: str = LAND_ANEW) -> Iterator[None]:
    """Turn Arrow's error on a truncated or damaged Parquet file into a `StoreError`; let FileNotFoundError pass."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException) as error:
        raise StoreError(
            f"{path} cannot be read; it was truncated or damaged after it was written: {str(error).splitlines()[0]}",
            hint=hint,
            path=str(path),
        ) from error


def sync_folder(folder: Path) -> None:
    """Sync a folder, so that renames in it survive a power loss."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(folder: Path) -> None:
    """Create a folder and its parents, durably."""
    missing = []
    step = folder
    while not step.exists():
        missing.append(step)
        step = step.parent
    for step in reversed(missing):
        step.mkdir(exist_ok=True)
        sync_folder(step.parent)


@contextlib.contextmanager
def replacing(final: Path) -> Iterator[Path]:
    """Yield a hidden path to write a file to; rename it to its own name at the end, or delete it on failure.

    Raises
    ------
    StoreError
        The file cannot be written, or its folder cannot be made.
    """
    temporary = final.parent / f".{final.name}.{os.getpid()}.tmp"
    with store_errors(final):
        try:
            make_folder(final.parent)
            yield temporary
            publish(temporary, final)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise


def delete_temporaries(table: RawTable, beginning: str, home: Path) -> None:
    """Delete temporary files in an unpartitioned table that a killed process left.

    Parameters
    ----------
    table
        Table whose folder is searched.
    beginning
        Beginning of the file names. The caller holds a lock without which nobody writes them.
    home
        Folder of all data of binloom.

    Raises
    ------
    StoreError
        A file cannot be deleted.
    """
    for leftover in raw_table_dir(table.name, home).glob(f".{glob.escape(beginning)}*.tmp"):
        with store_errors(leftover):
            leftover.unlink(missing_ok=True)


def publish(temporary: Path, final: Path) -> None:
    """Sync a finished file and rename it to its own name."""
    with open(temporary, "rb") as handle:
        os.fsync(handle.fileno())
    os.replace(temporary, final)
    sync_folder(final.parent)


def append_rows(table: RawTable, rows: Sequence[Mapping[str, Any]], name: str, home: Path | None = None) -> None:
    """Write rows as one file of an unpartitioned table, atomically.

    Parameters
    ----------
    table
        Table to append to.
    rows
        Rows as mappings from column names; a missing column is NULL.
    name
        Name of the file without its extension. Writing the same name again replaces the file.
    """
    append_table(table, pa.Table.from_pylist([dict(row) for row in rows], schema=table.columns), name, home)


def append_table(table: RawTable, data: pa.Table, name: str, home: Path | None = None) -> None:
    """Write an Arrow table as one file of an unpartitioned table, atomically."""
    if not data.num_rows:
        return
    rows = data.select(table.columns.names).cast(table.columns)
    with replacing(raw_table_dir(table.name, home) / f"{name}.parquet") as temporary:
        pq.write_table(rows, temporary, **writer_options(table.columns))


def writer_options(schema: pa.Schema) -> dict[str, Any]:
    """Return the options of the Parquet writer: dictionaries and statistics for scalar columns, not for nested ones."""
    scalars = [field.name for field in schema if not pa.types.is_nested(field.type)]
    return {
        "compression": COMPRESSION,
        "use_dictionary": scalars,
        "write_statistics": scalars,
        "write_batch_size": 1 << 16,
        "store_schema": False,
    }


def read_rows(
    table: RawTable, home: Path | None = None, columns: Sequence[str] | None = None, **equal: Any
) -> list[dict[str, Any]]:
    """Return the rows of an unpartitioned raw table, without Spark.

    Parameters
    ----------
    table
        Table to read.
    columns
        Columns to read; None for all.
    **equal
        Column values that a row must have, such as `source_id="shop"`.
    """
    rows: list[dict[str, Any]] = read_table(table, home, columns, **equal).to_pylist()
    return rows


def read_table(
    table: RawTable, home: Path | None = None, columns: Sequence[str] | None = None, **equal: Any
) -> pa.Table:
    """Return an unpartitioned raw table as an Arrow table, without Spark."""
    while True:
        # Compaction merges files: when a listed file is gone, list the folder again.
        with contextlib.suppress(FileNotFoundError):
            return _read_table(table, home, columns, **equal)


def _read_table(
    table: RawTable, home: Path | None = None, columns: Sequence[str] | None = None, **equal: Any
) -> pa.Table:
    wanted = table.columns.names if columns is None else list(columns)
    needed = list(dict.fromkeys([*wanted, *equal]))
    paths = data_files(raw_table_dir(table.name, home))
    if "source_id" in equal:
        paths = [path for path in paths if not is_of_another_source(path.name, equal["source_id"])]
    found = pa.concat_tables(
        [_schema(table, needed).empty_table(), *(read_part(table, path, needed) for path in paths)]
    )
    for name, value in equal.items():
        found = found.filter(pc.equal(found[name], value))
    return found.select(wanted)


def read_part(table: RawTable, path: Path, columns: Sequence[str]) -> pa.Table:
    """Return columns of one file of a raw table; a column that is newer than the file is filled with nulls."""
    with read_errors(path):
        file = pq.ParquetFile(path)
        part = file.read(columns=list(columns), use_threads=file.metadata.num_rows > _FEW_ROWS)
    for name in columns:
        if name not in part.column_names:
            part = part.append_column(name, pa.nulls(part.num_rows, table.columns.field(name).type))
    wanted = _schema(table, columns)
    part = part.select(columns)
    return part if part.schema.equals(wanted) else part.cast(wanted)


def _schema(table: RawTable, columns: Sequence[str]) -> pa.Schema:
    """Return the schema of some columns of a raw table."""
    return pa.schema([table.columns.field(name) for name in columns])


def data_files(folder: Path) -> Iterable[Path]:
    """Return the complete data files directly in a folder, sorted by name."""
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    return [folder / name for name in names if name.endswith(".parquet") and not name.startswith((".", "_"))]
