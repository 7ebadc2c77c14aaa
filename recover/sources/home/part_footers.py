"""What the footers of the files of `row_changes` say, kept in the home.

A warehouse may have a hundred thousand files, and reading all of their footers takes minutes. A file never changes, so
its footer is read once: it is known for as long as a file of its path has its size and its time of change. Who may not
write to the home reads all footers each time.
"""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ingest.warehouse.privacy import private_opener
from ingest.words import counted
from recover.sources.engine import escaped, in_memory, literal, registered
from recover.sources.home.kept_files import KeptTable

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

MANY_FILES: Final = 1000
"""With more files, what their footers say is kept."""

_FILES_AT_ONCE: Final = 500
_KEPT: Final = "path, size, changed_at, filters, has_new_keys, shape"


def footers_query(files: str) -> str:
    """Return a query of what is needed of footers.

    Parameters
    ----------
    files
        Argument of DuckDB's `parquet_metadata`: a pattern, or a list of files.

    Returns
    -------
    str
        Its columns: `file_name`; `filters`, with the offset of the bloom filter of `pk_hash` of each row group, or
        NULL; `has_new_keys`, whether a row may have got another key; `shape`, a hash of the columns.
    """
    return f"""select * replace ([one.at for one in filters] as filters)
        from (
            select
                file_name,
                list({{'at': bloom_filter_offset}}) filter (path_in_schema = 'pk_hash') as filters,
                bool_or(path_in_schema = 'pk_values_after' and stats_null_count is distinct from num_values)
                    as has_new_keys,
                md5(string_agg(path_in_schema || ' ' || type, ',' order by column_id) filter (row_group_id = 0))
                    as shape
            from parquet_metadata({files})
            group by file_name
        )"""


def read_footers(home: Path, table: KeptTable, tell: Callable[[str], None], *, has_all_files: bool) -> "pa.Table":
    """Return the rows of `footers_query` for files of `row_changes`, of which there are many.

    Parameters
    ----------
    home
        Folder of all data of binloom.
    table
        The files.
    tell
        Is told when many footers must be read.
    has_all_files
        Whether files of the index that are none of these are gone.
    """
    index = home / "cache" / "row_changes_footers.parquet"
    connection = in_memory()
    # Each footer is read once.
    connection.execute("set global parquet_metadata_cache = false")
    with registered(connection, "described", _described(table)):
        connection.execute("create table files as select * from described")
    _take_known(connection, index)
    query = "select file_name from files anti join footers using (file_name) order by file_name"
    new = [name for (name,) in connection.execute(query).fetchall()]
    if len(new) > MANY_FILES:
        tell(f"reading the footers of {counted(len(new), 'file')} of row_changes, once.")
    for first in range(0, len(new), _FILES_AT_ONCE):
        some = ", ".join(literal(escaped(name)) for name in new[first : first + _FILES_AT_ONCE])
        read = footers_query(f"[{some}]")
        connection.execute(f"insert into footers by name select * from files inner join ({read}) using (file_name)")
    if new:
        _keep(connection, index, "footers" if has_all_files else "(from footers union by name from others)")
    return connection.sql("select file_name, filters, has_new_keys, shape from footers").to_arrow_table()


def have_one_shape(footers: "pa.Table") -> bool:
    """Return whether all files have the same columns."""
    return len(footers.column("shape").unique()) == 1


def _described(table: KeptTable) -> "pa.Table":
    """Return the links to files, each with the path, the size and the time of change of its file."""
    import pyarrow as pa

    facts = [os.stat(link) for link in table.links]
    return pa.table(
        {
            "file_name": list(table.links),
            "path": [_path(link, len(table.partitions)) for link in table.links],
            "size": pa.array([one.st_size for one in facts], pa.int64()),
            "changed_at": pa.array([one.st_mtime_ns for one in facts], pa.int64()),
        }
    )


def _path(link: str, partitions: int) -> str:
    """Return the path of a file in its table. Links have the folders of partitions in any order."""
    *folders, name = link.split("/")[-1 - partitions :]
    return "/".join([*sorted(folders), name])


def _take_known(connection: "DuckDBPyConnection", index: Path) -> None:
    """Make tables of the files that the index has and that have not changed, and of the other files that it has."""
    import duckdb

    connection.execute(
        """create table footers (
            file_name varchar, path varchar, size bigint, changed_at bigint, filters bigint[], has_new_keys boolean,
            shape varchar
        );
        create table others as from footers;"""
    )
    known = f"(select {_KEPT} from read_parquet({literal(escaped(str(index)))}))"
    # What nobody can read is made anew.
    with contextlib.suppress(duckdb.Error):
        connection.execute(f"insert into footers by name from files inner join {known} using (path, size, changed_at)")
        connection.execute(f"insert into others by name from {known} anti join files using (path)")


def _keep(connection: "DuckDBPyConnection", index: Path, rows: str) -> None:
    """Replace the index."""
    import duckdb

    part = index.with_name(f".{index.name}.{os.getpid()}")
    # It only saves time.
    with contextlib.suppress(duckdb.Error, OSError):
        index.parent.mkdir(mode=0o700, exist_ok=True)
        with open(part, "wb", opener=private_opener):
            pass
        connection.execute(
            f"copy (select {_KEPT} from {rows} order by path) to {literal(str(part))} (format parquet, codec zstd)"
        )
        part.replace(index)
    with contextlib.suppress(OSError):
        part.unlink(missing_ok=True)
