"""Bytes that arrive in order, such as those of a file that is being decompressed, kept where each can be read again.

They are in a file without a name, in the folder for temporary files. It vanishes with the process, however that ends.
"""

import errno
import os
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Final, Protocol
from weakref import WeakSet, finalize

from ingest.binlog.byte_files import OPEN_END, Bytes
from ingest.errors import BinloomError, SpillError

_BLOCK: Final = 64 << 10
_CHECKED: Final = 1 << 20
# Others may write between two checks.
_MARGIN: Final = 8 << 20
# Whatever else is on the disk, such as a server, needs room to go on.
_RESERVE: Final = 1 << 30
_RESERVED_PART: Final = 20


class Stream(Protocol):
    """Bytes in order."""

    def readinto(self, view: memoryview, /) -> int | None:
        """Read the next bytes; return how many, none at the end."""
        ...


class DamagedStreamError(Exception):
    """The bytes end before they should. Its text is the reason."""


class Spill:
    """Bytes of a stream, which a thread writes to a file while others read it.

    Parameters
    ----------
    open_stream
        Opens the stream. It raises `DamagedStreamError` where its bytes are damaged.
    place
        Where the bytes come from, for messages.
    """

    _all: ClassVar["WeakSet[Spill]"] = WeakSet()
    _lock: ClassVar = threading.Lock()

    def __init__(self, open_stream: Callable[[], Stream], place: str) -> None:
        self._folder = temporary_folder()
        self.place = place
        self.written = 0
        self.readers = 0
        self.has_ended = False
        self.is_kept = False
        self.damage: str | None = None
        self._error: BinloomError | None = None
        self._grown = threading.Condition()
        self.descriptor = nameless_file(self._folder)
        self._release = finalize(self, os.close, self.descriptor)
        self._used_at = time.monotonic()
        with Spill._lock:
            Spill._all.add(self)
        threading.Thread(target=self._fill, args=(open_stream,), name=f"read {place}", daemon=True).start()

    def wait_for(self, end: int) -> int:
        """Wait until the bytes before an offset are there; return how many are."""
        with self._grown:
            while self.written < end and not self.has_ended:
                self._grown.wait()
            if self._error is not None and self.written < end:
                raise self._error
            return self.written

    def _fill(self, open_stream: Callable[[], Stream]) -> None:
        try:
            self._write(open_stream())
        except DamagedStreamError as error:
            self.damage = str(error)
        except BinloomError as error:
            self._error = error
        except OSError as error:
            self._error = self._full() if error.errno == errno.ENOSPC else _unreadable(self.place, error)
        except Exception as error:
            self._error = _unreadable(self.place, error)
        finally:
            with self._grown:
                self.has_ended = True
                self._grown.notify_all()

    def _write(self, stream: Stream) -> None:
        block, checked = memoryview(bytearray(_BLOCK)), 0
        while count := stream.readinto(block):
            if self.written >= checked:
                self._make_room()
                checked = self.written + _CHECKED
            done = 0
            while done < count:
                done += os.pwrite(self.descriptor, block[done:count], self.written + done)
            with self._grown:
                self.written += count
                self._grown.notify_all()

    def _make_room(self) -> None:
        """Give up the bytes of other spills while the disk is nearly full; they are read again when they are needed."""
        while not self._has_room():
            with Spill._lock:
                idle = [one for one in Spill._all if one.has_ended and not (one.readers or one.is_kept)]
                if not idle:
                    raise self._full()
                oldest = min(idle, key=lambda one: one._used_at)
                Spill._all.remove(oldest)
                oldest._release()

    def _has_room(self) -> bool:
        disk = os.fstatvfs(self.descriptor)
        reserve = min(_RESERVE, disk.f_blocks * disk.f_frsize // _RESERVED_PART)
        return disk.f_bavail * disk.f_frsize - _MARGIN >= reserve

    def _full(self) -> SpillError:
        return SpillError(
            f"{self.place} is unpacked while it is read, but {self._folder} has no room for more than"
            f" {self.written:,} bytes of it.",
            hint="Free some space there, or let TMPDIR name a folder of a disk that has enough.",
            path=self.place,
        )

    def open(self) -> "SpillBytes | None":
        """Return its bytes, which are not given up while they are open; None if they were given up."""
        with Spill._lock:
            if not self._release.alive:
                return None
            self.readers += 1
            self._used_at = time.monotonic()
            return SpillBytes(self)

    def done(self) -> None:
        """Note that a reader has closed the bytes."""
        with Spill._lock:
            self.readers -= 1


class SpillBytes(Bytes):
    """The bytes of a spill."""

    def __init__(self, spill: Spill) -> None:
        self._spill = spill
        self._is_open = True

    @property
    def damage(self) -> str | None:  # type: ignore[override]
        return self._spill.damage if self._spill.has_ended else None

    def wait_for(self, end: int) -> int:
        return self._spill.wait_for(end)

    def read_into(self, view: memoryview, offset: int) -> int:
        return os.preadv(self._spill.descriptor, [view], offset)

    @property
    def known_size(self) -> int | None:
        return self._spill.wait_for(OPEN_END) if self._spill.has_ended else None

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._spill.done()


def nameless_file(folder: Path) -> int:
    """Open a new file without a name in a folder, and return its descriptor."""
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError:
        # Some file systems have no files without a name.
        descriptor, name = tempfile.mkstemp(prefix="binloom-", dir=folder)
        os.unlink(name)
        return descriptor


def temporary_folder() -> Path:
    """Return the folder for temporary files: on many systems /tmp is in memory, and /var/tmp is on a disk."""
    large = Path("/var/tmp")
    if not any(os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP")) and os.access(large, os.W_OK):
        return large
    return Path(tempfile.gettempdir())


def _unreadable(place: str, error: Exception) -> SpillError:
    return SpillError(f"{place} cannot be read: {error}.", hint="Check that it is still there.", path=place)
