"""Files of a warehouse that stay readable while a build replaces them.

A build deletes files and writes others. An open file keeps its content, also when it has no name any more. So the files
of a table are opened at a moment at which no build replaces them, and are read through a folder of links to the open
files.
"""

import contextlib
import errno
import fcntl
import functools
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Self
from urllib.parse import unquote

from ingest.errors import StoreError
from ingest.warehouse.built import Columns, Recorded, TableState, recorded
from ingest.warehouse.home import warehouse_dir
from ingest.warehouse.spark import metastore_holder
from ingest.warehouse.table_format import check_is_parquet
from recover.sources.engine import escaped

PATIENCE_SECONDS: Final = 60.0
"""Time to wait for a build that writes a table."""

_RAW_SCHEMA: Final = "binlog_raw.db"
# A build drops a table before it plans the table's query. A table is missing for longer if no build writes it.
_MISSING_SECONDS: Final = 30.0
_SILENT_SECONDS: Final = 2.0
_PAUSE_SECONDS: Final = 0.03
# For everything else that the process opens.
_OTHER_HANDLES: Final = 256
# Links need no disk, and some file systems take a millisecond for each folder.
_MEMORY: Final = Path("/dev/shm")
_PREFIX: Final = "binloom-files-"
_YOUNG_SECONDS: Final = 60.0


class UnfinishedMartError(StoreError):
    """A build of a mart has not ended, or was killed."""


NeedsPartition = Callable[[str, str], bool]
"""Returns whether a partition is needed, given the name of a partition column and its value."""


def ignored(sentence: str) -> None:
    """Ignore a message."""


def all_partitions(column: str, value: str) -> bool:
    """Need every partition."""
    return True


@dataclass(frozen=True)
class KeptTable:
    """The files of a table.

    Attributes
    ----------
    pattern
        Finds the files.
    partitions
        Names of the partition columns, from the outermost folder to the innermost.
    columns
        If there are no files: the columns of the table with their types in Spark, as far as they are known.
    links
        Paths of the links to the files.
    """

    pattern: str
    partitions: tuple[str, ...]
    columns: Columns = ()
    links: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Look:
    """A table, as it was seen.

    Attributes
    ----------
    exists
        There is a folder, or a build has begun to make one.
    is_whole
        Nothing shows that a build is replacing files, or was killed while it did.
    has_settled
        The table may stay without files: nobody is about to write the first one.
    files
        Paths of the files with rows, below the folder.
    columns
        Those of a table without files.
    """

    exists: bool
    is_whole: bool
    has_settled: bool = False
    files: frozenset[str] = frozenset()
    columns: Columns = ()

    @classmethod
    def at_raw_table(cls, folder: Path, needs: NeedsPartition = all_partitions) -> Self:
        """Look at a table whose files appear one by one, each of them complete."""
        found = _found(folder, needs)
        if found is None:
            return cls(exists=False, is_whole=False)
        return cls(True, True, True, found.files, () if found.files else _raw_columns(folder.name))

    @classmethod
    def at_mart(cls, folder: Path, record: Callable[[], Recorded], needs: NeedsPartition = all_partitions) -> Self:
        """Look at a table that Spark writes as a whole, or by partitions, of which only some may be needed."""
        recorded = record()
        found = _found(folder, needs)
        if found is not None and not found.files:
            found = _found(folder)
            found = found and replace(found, files=frozenset(sorted(found.files)[:1]))
        if found is None:
            return cls(exists=recorded.state in (TableState.HIDDEN, TableState.CUT_SHORT), is_whole=False)
        is_readable = recorded.state in (TableState.WHOLE, TableState.REPLACED)
        if recorded.state is TableState.UNRECORDED:
            # Spark marks a complete table. Later it replaces single partitions, and leaves the mark as it is.
            is_readable = any("/" in file for file in found.files) or (folder / "_SUCCESS").exists()
        return cls(
            exists=True,
            is_whole=is_readable and not found.is_replaced,
            has_settled=recorded.state is not TableState.UNRECORDED,
            files=found.files,
            columns=recorded.columns,
        )


class KeptFiles:
    """Files of tables that are open.

    Parameters
    ----------
    home
        Folder of all data of binloom.
    tell
        Is told what a long wait is for.
    needs
        By schema and name of a mart: which of its partitions are needed. The files of others are left out. If no file
        is needed, the table has one all the same, because a query needs its columns.

    Attributes
    ----------
    folder
        Folder of the links. It has the folders of the warehouse.
    """

    def __init__(
        self,
        home: Path,
        tell: Callable[[str], None],
        needs: Mapping[tuple[str, str], NeedsPartition] | None = None,
    ) -> None:
        place = _MEMORY if os.access(_MEMORY, os.W_OK) else Path(tempfile.gettempdir())
        _delete_left_links(place)
        self.folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
        self._handles = [os.open(self.folder, os.O_RDONLY)]
        fcntl.flock(self._handles[0], fcntl.LOCK_SH)
        self._home = home
        self._tell = tell
        self._needs = needs or {}
        self._links: list[str] = []
        # In the order in which they were made.
        self._folders: dict[str, None] = {str(self.folder): None}
        self._tables: dict[Path, KeptTable] = {}

    def close(self) -> None:
        """Close all files and delete the links."""
        # Much faster than rmtree, which has to look for what there is.
        with contextlib.suppress(OSError):
            for link in self._links:
                os.unlink(link)
            for folder in reversed(self._folders):
                os.rmdir(folder)
        self._links.clear()
        self._folders.clear()
        _close(self._handles)
        self._handles.clear()

    def mart(self, schema: str, name: str) -> KeptTable:
        """Return the files of a table that a build writes: all old ones or all new ones of each partition.

        Raises
        ------
        FileNotFoundError
            There is no such table.
        UnfinishedMartError
            A build was killed while it wrote the table, or is not done with it after `PATIENCE_SECONDS`.
        TableFormatError
            The table is in Iceberg or Delta.
        """
        needs = self._needs.get((schema, name), all_partitions)
        record = functools.partial(recorded, self._home, schema, name)
        return self._table(Path(f"{schema}.db") / name, functools.partial(_Look.at_mart, record=record, needs=needs))

    def raw_table(self, name: str, needs: NeedsPartition = all_partitions) -> KeptTable:
        """Return the files of a raw table, each of which is written at once.

        Parameters
        ----------
        needs
            Which of its partitions are needed, when the table is first asked for.

        Raises
        ------
        FileNotFoundError
            There is no such table.
        """
        return self._table(Path(_RAW_SCHEMA) / name, functools.partial(_Look.at_raw_table, needs=needs))

    def _table(self, table: Path, look: Callable[[Path], _Look]) -> KeptTable:
        if table not in self._tables:
            self._tables[table] = self._kept(table, look)
        return self._tables[table]

    def _kept(self, table: Path, look: Callable[[Path], _Look]) -> KeptTable:
        folder = warehouse_dir(self._home) / table
        check_is_parquet(folder)
        begun, is_told, existed = time.monotonic(), False, False
        while True:
            # A build that ends after this moment has written its files before the look.
            writer = metastore_holder(self._home)
            seen = look(folder)
            handles = _opened(folder, seen.files) if seen.is_whole else None
            is_same = self._nobody_writes(table, writer) or look(folder) == seen
            seconds = time.monotonic() - begun
            existed |= seen.exists
            has_patience = seconds < (PATIENCE_SECONDS if existed else _MISSING_SECONDS)
            # A build may be about to write the first file.
            may_be_begun = not seen.files and not seen.has_settled
            is_empty_for_now = may_be_begun and writer is not None and seconds < _MISSING_SECONDS
            if handles is not None:
                if is_same and not is_empty_for_now:
                    return self._linked(table, handles, seen.columns)
                _close(handle for handle in handles.values() if handle is not None)
            if is_same and writer is None:
                raise _unreadable(table, folder, seen)
            if seconds > _SILENT_SECONDS and not is_told:
                is_told = True
                self._tell(f"waiting until a build has written {_name_of(table)}.")
            if not has_patience:
                raise _unreadable(table, folder, seen)
            time.sleep(_PAUSE_SECONDS)

    def _nobody_writes(self, table: Path, writer: int | None) -> bool:
        """Return whether no process wrote a table since the holder of the metastore was looked up.

        Raw tables are written without it.
        """
        return writer is None and table.parent.name != _RAW_SCHEMA and metastore_holder(self._home) is None

    def _linked(self, table: Path, handles: dict[str, int | None], columns: Columns) -> KeptTable:
        """Make links to open files; return them as a table."""
        self._handles += [handle for handle in handles.values() if handle is not None]
        here = str(self.folder / table)
        partitions: tuple[str, ...] = ()
        first = len(self._links)
        try:
            self._make_folder(here)
            for (file, handle), link in zip(handles.items(), _with_few_folders(list(handles)), strict=True):
                partitions = tuple(step.partition("=")[0] for step in file.split("/")[:-1])
                path = f"{here}/{link}"
                self._make_folder(os.path.dirname(path))
                target = warehouse_dir(self._home) / table / file
                os.symlink(target if handle is None else f"/proc/{os.getpid()}/fd/{handle}", path)
                self._links.append(path)
        except OSError as error:
            raise StoreError(
                f"Links to {len(handles)} files cannot be made in {self.folder}: {error.strerror}.",
                hint="Free some space there.",
                path=str(self.folder),
            ) from error
        pattern = f"{escaped(here)}{'/*=*' * len(partitions)}/*.parquet"
        return KeptTable(pattern, partitions, () if handles else columns, tuple(self._links[first:]))

    def _make_folder(self, folder: str) -> None:
        if folder not in self._folders:
            self._make_folder(os.path.dirname(folder))
            os.mkdir(folder)
            self._folders[folder] = None


def _with_few_folders(files: list[str]) -> Iterator[str]:
    """Yield the paths of files with the columns of few values first: DuckDB knows the columns by their names."""
    steps = [file.split("/") for file in files]
    order = sorted(range(len(steps[0]) - 1), key=lambda place: len({step[place] for step in steps})) if steps else []
    for step in steps:
        yield "/".join([*(step[place] for place in order), step[-1]])


def _delete_left_links(place: Path) -> None:
    """Delete the links of readers that were killed; a reader holds a lock on its folder."""
    for folder in place.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if folder.stat().st_uid != os.getuid() or time.time() - folder.stat().st_mtime < _YOUNG_SECONDS:
                continue
            handle = os.open(folder, os.O_RDONLY)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(handle)


@dataclass(frozen=True)
class _Found:
    files: frozenset[str]
    is_replaced: bool


def _found(folder: Path, needs: NeedsPartition = all_partitions) -> _Found | None:
    """Return the needed files with rows, and whether a build replaces any; None if there is no folder."""
    while folder.is_dir():
        files: set[str] = set()
        # A folder may vanish while its parent is read.
        with contextlib.suppress(FileNotFoundError):
            is_replaced = _is_replaced(str(folder), "", files, needs)
            return _Found(frozenset(files), is_replaced)
    return None


def _is_replaced(table: str, step: str, files: set[str], needs: NeedsPartition) -> bool:
    """Return whether a folder shows that needed files are being replaced; add the needed files with rows to a set."""
    is_replaced = False
    with os.scandir(f"{table}/{step}") as entries:
        for entry in entries:
            name = entry.name
            if "=" in name and entry.is_dir():
                if needs(*_partition(name)):
                    is_replaced |= _is_replaced(table, f"{step}{name}/", files, needs)
            elif name == "_temporary":
                is_replaced = True
            elif name.startswith(".spark-staging"):
                is_replaced |= _replaces_partitions(entry.path)
            elif name.endswith(".parquet") and name[0] not in "._":
                files.add(f"{step}{name}")
    return is_replaced


def _raw_columns(name: str) -> Columns:
    from ingest.warehouse.catalog import spark_type
    from ingest.warehouse.tables import RAW_TABLES

    return tuple((field.name, spark_type(field.type)) for field in RAW_TABLES[name].columns)


def _partition(folder: str) -> tuple[str, str]:
    """Return the column and the value of a folder's name; Hive escapes signs that a path may not have."""
    column, _, value = folder.partition("=")
    return column, unquote(value)


def _replaces_partitions(staging: str) -> bool:
    """Return whether Spark has moved the first complete partition into its staging folder.

    Before, it changes nothing outside; then, it replaces one partition after the other, and deletes the folder.
    """
    with os.scandir(staging) as entries:
        return any("=" in entry.name for entry in entries)


def _opened(folder: Path, files: frozenset[str]) -> dict[str, int | None] | None:
    """Return handles of files; None for a file that cannot be kept open, and instead of all if one has vanished."""
    handles: dict[str, int | None] = {}
    can_keep = _has_room(len(files))
    try:
        for file in sorted(files):
            handles[file] = _handle(folder / file) if can_keep else None
    except FileNotFoundError:
        _close(handle for handle in handles.values() if handle is not None)
        return None
    return handles


def _handle(path: Path) -> int | None:
    try:
        return os.open(path, os.O_RDONLY)
    except OSError as error:
        if error.errno not in (errno.EMFILE, errno.ENFILE):
            raise
        return None


def _has_room(files: int) -> bool:
    """Return whether the process may open so many files, and others can be linked to open files here."""
    needed = files + _OTHER_HANDLES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (soft == resource.RLIM_INFINITY or soft >= needed) and os.path.isdir("/proc/self/fd")


def _close(handles: Iterable[int]) -> None:
    for handle in handles:
        os.close(handle)


def _unreadable(table: Path, folder: Path, seen: _Look) -> Exception:
    if not seen.exists:
        return FileNotFoundError(str(folder))
    if seen.is_whole:
        return UnfinishedMartError(
            f"The files of {_name_of(table)} have been changing for {PATIENCE_SECONDS:.0f} seconds.",
            hint="Try again when the command that writes them has ended.",
            path=str(folder),
        )
    return UnfinishedMartError(
        f"The last build of {_name_of(table)} has not ended, or left rows out: its files may be old, new or missing.",
        hint="Wait for the build that runs. If it was killed, failed, or had --empty or --sample, run `binloom build`.",
        path=str(folder),
    )


def _name_of(table: Path) -> str:
    return f"{table.parent.name.removesuffix('.db')}.{table.name}"
