"""The bytes of a binlog file, wherever they are: in a file of this machine, in an archive, or in an object store.

Everything that reads a binlog reads `Bytes`. A plain file is known by its `Path`; any other place is a `StoredFile`.
"""

import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Final, Self

from ingest.errors import BinlogNotFoundError, BinlogNotReadableError

_SMALL: Final = 64 << 10
OPEN_END: Final = 1 << 62
"""An offset behind every file: the end of a file whose size is not known yet."""


class Bytes(ABC):
    """The bytes of an open file. They may still be arriving, such as those of a file that is being decompressed.

    Attributes
    ----------
    damage
        Why the bytes end before the file does, for an archive that is damaged; known when the end is reached.
    """

    damage: str | None = None

    @abstractmethod
    def wait_for(self, end: int) -> int:
        """Wait until the bytes before the offset `end` are there; return how many are, fewer if the file has fewer."""

    @abstractmethod
    def read_into(self, view: memoryview, offset: int) -> int:
        """Read bytes that are there from an offset on; return how many, fewer than the view has room for or not."""

    @property
    @abstractmethod
    def known_size(self) -> int | None:
        """The size of the file; None while its bytes are still arriving."""

    @abstractmethod
    def close(self) -> None:
        """Release the file."""

    def size(self) -> int:
        """Return the size of the file, after waiting for its last byte."""
        return self.wait_for(OPEN_END)

    def read(self, size: int, offset: int) -> bytes:
        """Return bytes from an offset on, fewer than `size` at the end of the file."""
        found = bytearray(max(min(size, self.wait_for(offset + size) - offset), 0))
        view, done = memoryview(found), 0
        while done < len(found) and (count := self.read_into(view[done:], offset + done)):
            done += count
        return bytes(view[:done])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class FileBytes(Bytes):
    """The bytes of a plain file. They are read, not mapped: if the file is cut meanwhile, no process dies of it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def wait_for(self, end: int) -> int:
        return os.fstat(self._descriptor).st_size

    def read(self, size: int, offset: int) -> bytes:
        # A question may read ten thousands of small parts. One that is cut needs the size of the file.
        if 0 < size <= _SMALL and len(found := os.pread(self._descriptor, size, offset)) == size:
            return found
        return super().read(size, offset)

    def read_into(self, view: memoryview, offset: int) -> int:
        return os.preadv(self._descriptor, [view], offset)

    @property
    def known_size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def close(self) -> None:
        os.close(self._descriptor)


class BytesInMemory(Bytes):
    """Bytes that are in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)

    def wait_for(self, end: int) -> int:
        return len(self._data)

    def read_into(self, view: memoryview, offset: int) -> int:
        found = self._data[offset : offset + len(view)]
        view[: len(found)] = found
        return len(found)

    @property
    def known_size(self) -> int:
        return len(self._data)

    def close(self) -> None:
        self._data.release()


class StoredFile(ABC):
    """A file that is not a plain file of this machine: its bytes are in an archive, in an object store, or arrive.

    Its text is the place that a person can look up.

    Attributes
    ----------
    name
        Name of the binlog file, as the server knows it.
    place
        Where the file is.
    folder
        Folder in which the archive of the file is, if it is a folder of this machine.
    is_here
        Whether only processes of this machine can read it.
    """

    is_here: bool = True

    def __init__(self, name: str, place: str, folder: Path | None = None) -> None:
        self.name = name
        self.place = place
        self.folder = folder

    def __str__(self) -> str:
        return self.place

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.place!r})"

    @abstractmethod
    def open(self) -> Bytes:
        """Open the file."""


LogPath = Path | StoredFile
"""Where a binlog file is."""


def open_bytes(path: LogPath) -> Bytes:
    """Open a file for reading.

    Raises
    ------
    BinlogNotFoundError, BinlogNotReadableError
        The file does not exist, or reading it is not permitted.
    """
    if isinstance(path, StoredFile):
        return path.open()
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise BinlogNotFoundError(f"{path}: no such file.", hint="Check the path.", path=str(path)) from None
    except OSError as error:
        raise _not_readable(path, error) from None
    if path.is_dir():
        os.close(descriptor)
        raise BinlogNotFoundError(
            f"{path} is a directory, not a binlog file.",
            hint=f"Name the files in it, such as {path}/binlog.0*, or land it with `binloom ingest --binlog-dir`.",
            path=str(path),
        )
    return FileBytes(descriptor)


def size_of(path: LogPath) -> int:
    """Return the size of a file in bytes; that of the binlog, for one in an archive.

    Raises
    ------
    BinloomError, OSError
        The file cannot be read.
    """
    if isinstance(path, Path):
        return path.stat().st_size
    with path.open() as found:
        return found.size()


def folder_of(path: LogPath) -> Path | None:
    """Return the folder that a file is in, or the archive of the file; None if it is in no folder of this machine."""
    return path.parent if isinstance(path, Path) else path.folder


def _not_readable(path: Path, error: OSError) -> BinlogNotReadableError:
    return BinlogNotReadableError(
        f"{path} cannot be read: {error.strerror}.",
        hint="Read it as the user that the server runs as, or as root.",
        path=str(path),
    )
