"""Files that are compressed as a whole. They are decompressed while they are read."""

import contextlib
import io
import os
import threading
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from ingest.binlog.byte_files import Bytes, FileBytes, LogPath, StoredFile, folder_of, open_bytes
from ingest.binlog.events.format import compression_of
from ingest.errors import SpillError
from ingest.sources.files.spill import DamagedStreamError, Spill, Stream

_SUFFIXES: Final = {
    "gzip": (".gz",),
    "zstd": (".zst", ".zstd"),
    "xz": (".xz",),
    "lz4": (".lz4",),
    "bz2": (".bz2",),
}
# Of zstd and lz4; tools such as pzstd begin a file with one.
_SKIPPED: Final = b"\x2a\x4d\x18"
_MOST_SKIPPED: Final = 64
_INPUT: Final = 64 << 10
# Of a cut file, Arrow loses the bytes of its last call.
_STEP: Final = 4 << 10
# zstd has the same limit.
_MOST_MEMORY: Final = 160 << 20


def compression(source: Bytes, at: int = 0) -> str | None:
    """Return the compression of a file by the bytes at its start, behind frames to skip; None without one."""
    for _ in range(_MOST_SKIPPED):
        head = source.read(8, at)
        if head[1:4] != _SKIPPED or head[0] & 0xF0 != 0x50:
            return compression_of(head)
        at += 8 + int.from_bytes(head[4:], "little")
    return None


def plain_name(name: str, method: str) -> str:
    """Return the name of a file without the suffix of its compression."""
    return next((name.removesuffix(suffix) for suffix in _SUFFIXES[method] if name.endswith(suffix)), name)


def without_suffix(name: str) -> str:
    """Return the name of a file without the suffix of any compression."""
    return next((plain for method in _SUFFIXES if (plain := plain_name(name, method)) != name), name)


class CompressedFile(StoredFile):
    """A compressed file. Its bytes are kept after they were decompressed, while there is room for them.

    Parameters
    ----------
    origin
        The file as it is; also an attribute.
    method
        Its compression, as `compression` returns it.
    """

    def __init__(self, origin: LogPath, method: str) -> None:
        super().__init__(plain_name(origin.name, method), str(origin), folder_of(origin))
        self.origin: LogPath = origin.absolute() if isinstance(origin, Path) else origin
        self._method = method
        self._spill: Spill | None = None
        self._lock = threading.Lock()

    def open(self) -> Bytes:
        with self._lock:
            found = self._spill.open() if self._spill is not None else None
            if found is None:
                self._spill = Spill(self.stream, self.place)
                found = self._spill.open()
            assert found is not None
            return found

    def begin(self) -> None:
        """Begin to decompress: other work can be done meanwhile."""
        self.open().close()

    def head(self, size: int) -> bytes:
        """Return the first bytes, without keeping them; fewer if there are no more."""
        view, done = memoryview(bytearray(size)), 0
        with contextlib.suppress(DamagedStreamError):
            stream = self.stream()
            while done < size and (count := stream.readinto(view[done:])):
                done += count
        return bytes(view[:done])

    def stream(self) -> Stream:
        """Return its bytes, decompressed."""
        return _Checked(_OPENERS[self._method](io.BufferedReader(Sequential(open_bytes(self.origin)), 1 << 18)))

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process can read the bytes as long as they are open here.
        with self.open() as found:
            found.size()
            assert self._spill is not None
            return HandedFile, (self.name, self.place, os.getpid(), self._spill.descriptor, found.damage)


class HandedFile(StoredFile):
    """A file that another process of this machine has decompressed and keeps open."""

    def __init__(self, name: str, place: str, process: int, descriptor: int, damage: str | None) -> None:
        super().__init__(name, place)
        self._handed = (name, place, process, descriptor, damage)

    def open(self) -> Bytes:
        _, _, process, descriptor, damage = self._handed
        try:
            found = FileBytes(os.open(f"/proc/{process}/fd/{descriptor}", os.O_RDONLY | os.O_CLOEXEC))
        except OSError:
            raise SpillError(
                f"{self.place} was decompressed by process {process}, which has ended.",
                hint="Run the same command again.",
                path=self.place,
            ) from None
        found.damage = damage
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return HandedFile, self._handed


class Sequential(io.RawIOBase):
    """Bytes as a file object of Python."""

    def __init__(self, source: Bytes) -> None:
        self._source = source
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        there = self._source.wait_for(self._at + 1) - self._at
        count = self._source.read_into(view[: max(there, 0)], self._at) if there > 0 else 0
        if not count and self._source.damage is not None:
            raise DamagedStreamError(self._source.damage)
        self._at += count
        return count

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at}.get(whence)
        self._at = offset + (self._source.size() if base is None else base)
        return self._at

    def tell(self) -> int:
        return self._at

    def close(self) -> None:
        if not self.closed:
            self._source.close()
        super().close()


class _Checked:
    """A stream that tells every defect of compressed data as `DamagedStreamError`."""

    def __init__(self, read: Callable[[memoryview], int]) -> None:
        self._read = read
        self._done = 0

    def readinto(self, view: memoryview) -> int:
        with self._defects():
            count = self._read(view)
            self._done += count
            return count

    @contextlib.contextmanager
    def _defects(self) -> Iterator[None]:
        import lzma

        try:
            yield
        except EOFError:
            raise DamagedStreamError(self._defect("is cut off")) from None
        except (OSError, zlib.error, lzma.LZMAError) as error:
            # What the operating system reports has a number; a defect of the data has none.
            if isinstance(error, OSError) and error.errno is not None:
                raise
            is_cut = "Truncated compressed stream" in str(error)
            raise DamagedStreamError(self._defect("is cut off" if is_cut else f"is damaged ({error})")) from None

    def _defect(self, reason: str) -> str:
        return f"its compressed data {reason} after {self._done:,} decompressed bytes"


# Of a cut file, `readinto1` gives every byte; `readinto` would lose those of its last call.


def _gzip(file: io.BufferedReader) -> Callable[[memoryview], int]:
    import gzip

    return gzip.GzipFile(fileobj=file).readinto1


def _bz2(file: io.BufferedReader) -> Callable[[memoryview], int]:
    import bz2

    return bz2.BZ2File(file).readinto1


def _xz(file: io.BufferedReader) -> Callable[[memoryview], int]:
    return _Xz(file).read


def _arrow(method: str, file: io.BufferedReader) -> Callable[[memoryview], int]:
    return _Arrow(method, file).read


class _Arrow:
    """The decompressed bytes of a file that Arrow can read."""

    def __init__(self, method: str, file: io.BufferedReader) -> None:
        import pyarrow as pa

        self._stream = pa.CompressedInputStream(file, method)
        self._error: Exception | None = None

    def read(self, view: memoryview) -> int:
        done = 0
        while self._error is None and done < len(view):
            try:
                count = self._stream.readinto(view[done : done + _STEP])
            except (OSError, DamagedStreamError) as error:
                self._error = error
            else:
                done += count
                if not count:
                    break
        if self._error is not None and not done:
            raise self._error
        return done


class _Xz:
    """The decompressed bytes of an xz file. A file can ask for gigabytes of memory, and `LZMAFile` would take them."""

    def __init__(self, file: io.BufferedReader) -> None:
        self._file = file
        self._next()

    def _next(self) -> None:
        import lzma

        self._stream = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MOST_MEMORY)

    def read(self, view: memoryview) -> int:
        data = b""
        while True:
            if self._stream.eof:
                # Zeros may fill up the file between two streams and behind the last one.
                data = self._stream.unused_data
                while not (data := data.lstrip(b"\0")):
                    if not (data := self._file.read1(_INPUT)):
                        return 0
                self._next()
            elif self._stream.needs_input and not (data := self._file.read1(_INPUT)):
                raise EOFError
            if found := self._stream.decompress(data, len(view)):
                view[: len(found)] = found
                return len(found)
            data = b""


_OPENERS: Final[dict[str, Callable[[io.BufferedReader], Callable[[memoryview], int]]]] = {
    "gzip": _gzip,
    "bz2": _bz2,
    "xz": _xz,
    "zstd": partial(_arrow, "zstd"),
    "lz4": partial(_arrow, "lz4"),
}
