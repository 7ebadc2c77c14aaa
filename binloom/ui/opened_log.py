"""The log that the pages ask: opened once, and anew when it has changed on disk."""

import tempfile
from functools import cached_property
from pathlib import Path
from typing import Self

from binloom.answers.answer import NoteList
from binloom.answers.opening import Inputs, open_full_log
from ingest.warehouse.built import record_states
from ingest.warehouse.raw_state import PLAIN_TABLES, raw_states
from ingest.warehouse.tables import DERIVED_TABLES
from recover.notes import Note
from recover.sources.log import Log

# The file with the good builds of a home.
_BUILDS = "builds.json"


class OpenedLog:
    """A log that is opened when it is first asked. One question at a time may use it.

    A home changes by landing, a build, an expiry, an erasure. Then the log is opened anew before the next question, so
    that no answer has values that are not there any more.

    Parameters
    ----------
    inputs
        What is asked.
    sources
        Names of sources that were given.
    """

    def __init__(self, inputs: Inputs, sources: list[str]) -> None:
        self.inputs = inputs
        self.sources = sources
        self._log: Log | None = None
        self._state: object = None
        self._told = NoteList()
        self._folder = tempfile.TemporaryDirectory(prefix="binloom-ui-")

    @cached_property
    def beside(self) -> "tuple[OpenedLog, ...]":
        """Others of the same home, for questions while a long one uses this one.

        Of files there is none: it would decode them again, and hold their rows twice.
        """
        return () if self.inputs.files else (OpenedLog(self.inputs, self.sources),)

    @property
    def folder(self) -> Path:
        """A folder for what does not fit into memory, and for files that are sent. Nobody else may read it."""
        return Path(self._folder.name)

    @property
    def notes(self) -> tuple[Note, ...]:
        """What was told when the log was opened."""
        return tuple(self._told)

    def log(self) -> Log:
        """Return the log as it is now.

        Raises
        ------
        BinloomError
            It cannot be read, or is not there any more.
        """
        state = self._state_now()
        if self._log is None or state != self._state:
            # The files of the log before are closed first.
            self._log, self._told = None, NoteList()
            self._log = open_full_log(self.inputs, self.sources, spill=self.folder, tell=self._told)
            self._state = state
        return self._log

    def _state_now(self) -> object:
        if self.inputs.files:
            return [_state_of_file(one) for one in self.inputs.files]
        home = self.inputs.folder
        # Tables that follow from others are written by whoever first needs them: also by a question.
        tables = (table for table in PLAIN_TABLES if table not in DERIVED_TABLES)
        return raw_states(home, tables), record_states(home), _state_of_file(home / _BUILDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for one in (self, *self.beside):
            one._log = None
            one._folder.cleanup()


def _state_of_file(path: Path | str) -> tuple[int, ...] | None:
    """Return what tells one content of a file from another; None for a pipe, which is read once, or a stored object.

    Whoever copies a file may set its time, and a file in its place may have its size: the system sets the rest.
    """
    try:
        found = Path(path).stat() if isinstance(path, Path) and path.is_file() else None
    except OSError:
        return None
    if found is None:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
