"""Bytes that can be read only once: standard input, and named pipes."""

import io
import stat
import sys
import threading
from pathlib import Path
from typing import Final

from ingest.binlog.byte_files import Bytes, StoredFile
from ingest.errors import UsageError
from ingest.sources.files.spill import Spill

STANDARD_INPUT: Final = "-"
"""The word for standard input, as a file name."""

# The bytes do not tell the name of their file. A name of its own is the same whatever they are, and cannot be taken for
# that of another file.
_NAME: Final = "stdin"


def is_piped(path: Path) -> bool:
    """Return whether the bytes of a file can be read only once."""
    try:
        return str(path) == STANDARD_INPUT or stat.S_ISFIFO(path.stat().st_mode)
    except OSError:
        return False


class PipedFile(StoredFile):
    """Bytes that arrive. They are kept, because a command reads a file more than once.

    Parameters
    ----------
    path
        A named pipe, or `STANDARD_INPUT`.

    Raises
    ------
    UsageError
        Standard input is a terminal.
    """

    def __init__(self, path: Path) -> None:
        self._path = None if str(path) == STANDARD_INPUT else path
        super().__init__(*((_NAME, "standard input") if self._path is None else (path.name, str(path))))
        if self._path is None and sys.stdin is not None and sys.stdin.isatty():
            raise UsageError(
                "- is standard input, but that is this terminal.",
                hint="Let another program write the file: zcat binlog.000042.gz | binloom inspect -",
            )
        self._spill: Spill | None = None
        self._lock = threading.Lock()

    def open(self) -> Bytes:
        with self._lock:
            if self._spill is None:
                self._spill = Spill(self._stream, self.place)
                self._spill.is_kept = True
            found = self._spill.open()
            assert found is not None
            return found

    def _stream(self) -> io.FileIO:
        return io.FileIO(0, closefd=False) if self._path is None else io.FileIO(self._path)
