"""The record of the tables that dbt builds: which are whole, for readers that cannot ask the metastore.

Files and their times do not tell it. Spark deletes the files of a table one by one, and a build that is killed leaves
some of them. So a build records a table before it changes the table's files, and again when the table is built. While
it runs it holds a lock on the record; without the lock, the build was killed or has failed. The table is whole again
when a build of it has ended well.
"""

import contextlib
import enum
import fcntl
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ingest.warehouse.privacy import private_umask

_FOLDER: Final = "built"
_STATE_BYTES: Final = 8


class TableState(enum.Enum):
    """The state of a table, as far as it is recorded. The texts have equal lengths: one overwrites another."""

    UNRECORDED = b""
    """An older binloom built the table, or nobody did."""
    WHOLE = b"whole   "
    REPLACED = b"replaced"
    """A build that runs writes new rows beside the old ones, and then puts them in their place."""
    HIDDEN = b"hidden  "
    """A build that runs deletes rows, or has not written all of them yet."""
    CUT_SHORT = b"cut short"
    """A build was killed or failed while it changed the table. This is not written: it is what a dead build leaves."""


Columns = tuple[tuple[str, str], ...]
"""Names and types of Spark of the columns of a table."""


@dataclass(frozen=True)
class Recorded:
    """A record as it was read.

    Attributes
    ----------
    state
        The state of the table.
    columns
        The columns of a table without rows: no file has them.
    """

    state: TableState = TableState.UNRECORDED
    columns: Columns = ()


def recorded(home: Path, schema: str, name: str) -> Recorded:
    """Return the record of a table that dbt builds."""
    while True:
        try:
            handle = os.open(_path(home, schema, name), os.O_RDONLY)
        except FileNotFoundError:
            return Recorded()
        with open(handle, "rb") as file:
            state, columns = TableState(file.read(_STATE_BYTES)), _columns_in(file.read())
            if state is TableState.WHOLE:
                return Recorded(state, columns)
            try:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return Recorded(state, columns)
            # The build may have ended since, and put another record in the place of this one.
            if os.fstat(handle).st_nlink:
                return Recorded(TableState.CUT_SHORT)


def record_states(home: Path) -> list[tuple[str, int]]:
    """Return name and time of the last change of each record: they change when a build changes a table."""
    states = []
    for path in sorted((home / _FOLDER).glob("[!.]*")):
        with contextlib.suppress(FileNotFoundError):
            states.append((path.name, path.stat().st_mtime_ns))
    return states


def tables_cut_short(home: Path) -> list[tuple[str, str]]:
    """Return schema and name of each table that a build was changing when it was killed, or failed."""
    tables = [tuple(path.name.split(".", 1)) for path in sorted((home / _FOLDER).glob("[!.]*"))]
    return [(schema, name) for schema, name in tables if recorded(home, schema, name).state is TableState.CUT_SHORT]


class TableRecord:
    """The record of a table while one build has it.

    Parameters
    ----------
    home
        Folder of all data of binloom.
    schema, name
        The table.
    """

    def __init__(self, home: Path, schema: str, name: str) -> None:
        self._path = _path(home, schema, name)
        self._before = recorded(home, schema, name)
        self._lock: int | None = None

    @contextlib.contextmanager
    def changing(self, *, hides: bool) -> Iterator[None]:
        """Record that the files of the table change during a block.

        Parameters
        ----------
        hides
            Whether files are deleted or made that readers would notice, so that they have to wait.
        """
        if self._lock is None:
            self._lock = self._write(TableState.HIDDEN, self._before.columns)
        # What a dead build left is not readable before all of it is built again.
        stays_hidden = self._before.state is TableState.CUT_SHORT
        self._change_to(TableState.HIDDEN if hides or stays_hidden else TableState.REPLACED)
        yield
        if not stays_hidden:
            self._change_to(TableState.REPLACED)

    def end(self, *, is_whole: bool, columns_if_empty: Callable[[], Columns] = tuple) -> None:
        """Record the end of the build.

        Parameters
        ----------
        is_whole
            Whether the table has all rows that it should have.
        columns_if_empty
            Returns the columns of the table if it has no file.
        """
        if is_whole and (self._lock is not None or self._before.state is not TableState.WHOLE):
            os.close(self._write(TableState.WHOLE, columns_if_empty()))
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _write(self, state: TableState, columns: Columns) -> int:
        """Put a record in the place of the one before, in one step; return its file, which is locked."""
        os.makedirs(self._path.parent, 0o777 & ~private_umask(), exist_ok=True)
        draft = self._path.with_name(f".{self._path.name}.{os.getpid()}.tmp")
        handle = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o666 & ~private_umask())
        os.write(handle, state.value + json.dumps(columns).encode())
        fcntl.flock(handle, fcntl.LOCK_EX)
        os.rename(draft, self._path)
        return handle

    def _change_to(self, state: TableState) -> None:
        assert self._lock is not None
        os.pwrite(self._lock, state.value, 0)


def _path(home: Path, schema: str, name: str) -> Path:
    return home / _FOLDER / f"{schema}.{name}"


def _columns_in(text: bytes) -> Columns:
    return tuple((name, kind) for name, kind in json.loads(text))
