"""Files that are a part of another file, such as those in an archive."""

from pathlib import Path
from typing import Any

from ingest.binlog.byte_files import Bytes, LogPath, StoredFile, folder_of, open_bytes


class PartOfFile(StoredFile):
    """A file whose bytes are a range of another file.

    Parameters
    ----------
    whole
        The other file.
    name
        Name of the part; with the place of the other file, it is its place.
    start, size
        The range.

    Attributes
    ----------
    whole
        The other file.
    """

    def __init__(self, whole: LogPath, name: str, start: int, size: int) -> None:
        super().__init__(name.rpartition("/")[2], f"{whole}/{name}", folder_of(whole))
        self.is_here = isinstance(whole, StoredFile) and whole.is_here
        self.whole: LogPath = whole.absolute() if isinstance(whole, Path) else whole
        self._part = (self.whole, name, start, size)

    def open(self) -> Bytes:
        _, _, start, size = self._part
        return _Range(open_bytes(self.whole), start, size)

    def __reduce__(self) -> tuple[Any, ...]:
        return PartOfFile, self._part


class _Range(Bytes):
    """A range of bytes."""

    def __init__(self, whole: Bytes, start: int, size: int) -> None:
        self._whole = whole
        self._start = start
        self._size = size

    @property
    def damage(self) -> str | None:  # type: ignore[override]
        size = self.known_size
        if size is None or size == self._size:
            return None
        return self._whole.damage or f"the archive ends {self._size - size:,} bytes before the end of the file in it"

    def wait_for(self, end: int) -> int:
        there = self._whole.wait_for(self._start + min(end, self._size))
        return max(min(there - self._start, self._size), 0)

    def read_into(self, view: memoryview, offset: int) -> int:
        return self._whole.read_into(view[: max(self._size - offset, 0)], self._start + offset)

    @property
    def known_size(self) -> int | None:
        return None if self._whole.known_size is None else self.wait_for(self._size)

    def close(self) -> None:
        self._whole.close()
