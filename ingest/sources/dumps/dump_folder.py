"""The files of a dump that is a folder, wherever they are."""

import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ingest.binlog.byte_files import LogPath, open_bytes
from ingest.errors import BinlogError, SnapshotInputError
from ingest.sources.files.compressed import Sequential, without_suffix
from ingest.sources.files.named import uncompressed
from ingest.sources.files.spill import DamagedStreamError

if TYPE_CHECKING:
    from hashlib import _Hash

_BLOCK: Final = 1 << 20
_DAMAGED: Final = "Copy the dump again, or write it again."


class DumpFolder:
    """The files of a dump.

    Parameters
    ----------
    place
        Where they are, for messages.
    files
        The files by their names.
    """

    def __init__(self, place: str, files: Mapping[str, LogPath]) -> None:
        self.place = place
        self._files = {without_suffix(name): file for name, file in files.items()}

    @classmethod
    def of(cls, folder: Path) -> "DumpFolder":
        """Return the files in a folder of this machine."""
        return cls(str(folder), {path.name: path for path in sorted(folder.iterdir()) if path.is_file()})

    @property
    def names(self) -> tuple[str, ...]:
        """Their names, without the suffix of a compression, in alphabetical order."""
        return tuple(sorted(self._files))

    def __contains__(self, name: object) -> bool:
        return name in self._files

    def text(self, name: str) -> str:
        """Return the text of a small file."""
        with self.open(name) as file:
            return file.read().decode("utf-8", "replace")

    @contextmanager
    def open(self, name: str) -> Iterator["io.BufferedReader[Sequential]"]:
        """Open a file for reading; its compression is known by its first bytes.

        Raises
        ------
        SnapshotInputError
            The file is not there, is damaged, or cannot be read.
        """
        place = f"{self.place}/{name}"
        if name not in self._files:
            raise SnapshotInputError(
                f"{place} is missing, so rows of the dump may be.", hint="Copy the dump again, all of it.", path=place
            )
        try:
            file = uncompressed(self._files[name])
            with io.BufferedReader(Sequential(open_bytes(file)), _BLOCK) as opened:
                yield opened
        except (DamagedStreamError, BinlogError, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise SnapshotInputError(
                f"{place} cannot be read: {reason.rstrip('.')}.", hint=_DAMAGED, path=place
            ) from None

    @cached_property
    def content(self) -> str:
        """Hash of the names and the bytes of the files, as they are."""
        digest = sha256()
        for name in self.names:
            digest.update(name.encode())
            hash_file(self._files[name], digest)
        return digest.hexdigest()


def hash_file(file: LogPath, digest: "_Hash") -> None:
    """Add the bytes of a file to a hash."""
    at = 0
    with open_bytes(file) as source:
        while block := source.read(_BLOCK, at):
            digest.update(block)
            at += len(block)


def after(first: bytes, file: "io.BufferedReader[Sequential]") -> Callable[[memoryview], int]:
    """Return a function that writes bytes that were read already, and then the rest of their file."""
    rest = memoryview(first)

    def read(view: memoryview) -> int:
        nonlocal rest
        if not rest:
            return file.readinto1(view)
        count = min(len(rest), len(view))
        view[:count] = rest[:count]
        rest = rest[count:]
        return count

    return read
