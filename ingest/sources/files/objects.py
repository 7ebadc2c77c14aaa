"""Binlog files in object stores: `s3://bucket/key`, `gs://bucket/key`. Only the ranges that are read are fetched.

The file systems of Arrow find the credentials, as the tools of the store do. No address is printed with what it may
contain besides bucket and key.
"""

import fnmatch
import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote, urlsplit

from ingest.binlog.byte_files import Bytes, StoredFile
from ingest.errors import BinlogNotFoundError, BinlogNotReadableError, UsageError

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, FileSystem

_ADDRESS: Final = re.compile(r"^(s3|gs|file)://")
_PATTERN: Final = re.compile(r"[*\[]")
_REASON: Final = re.compile(r"AWS Error (\w+)|google::cloud::Status\((\w+)|\[errno \d+\] ([\w ]+)")
_REFUSALS: Final = ("access denied", "access key id", "signature does not match", "permission denied", "expired")
# A store answers a request late and then fast: blocks are fetched ahead, several at once.
_BLOCK: Final = 4 << 20
_AHEAD: Final = 3
# Without it, Google's client tries again for a quarter of an hour.
_PATIENCE: Final = "retry_limit_seconds=60"


def objects(address: str) -> "list[ObjectFile | Path]":
    """Return the files at an address, whose last part may be a pattern such as `binlog.0000*`, or empty: all files.

    Raises
    ------
    BinlogNotFoundError, BinlogNotReadableError
        There is no such object, or the store does not give it.
    """
    if not _ADDRESS.match(address):
        raise _no_address(_place(address))
    if address.startswith("file:"):
        return [Path(unquote(urlsplit(address).path))]
    place = _place(address)
    system, path = _system(address)
    last = address.partition("?")[0].rpartition("/")[2]
    # Arrow leaves the slash at the end of a folder out.
    parent = path.rpartition("/")[0] if last else path
    if not (_PATTERN.search(last) or not last):
        return [ObjectFile(address)]
    from pyarrow.fs import FileSelector, FileType

    with _told(place):
        infos = system.get_file_info(FileSelector(parent, allow_not_found=True))
    found = sorted(
        info.base_name
        for info in infos
        if info.type == FileType.File and (not last or fnmatch.fnmatchcase(info.base_name, last))
    )
    if not found:
        raise BinlogNotFoundError(f"{place}: no object fits.", hint="Check the address.", path=place)
    return [ObjectFile(beside(address, quote(name))) for name in found]


def beside(address: str, name: str) -> str:
    """Return the address of another object in the folder of an object; that of a folder ends with a slash."""
    given, mark, settings = address.partition("?")
    return f"{given.rpartition('/')[0]}/{name}{mark}{settings}"


def folder(address: str) -> str:
    """Return the address of a folder with a slash at its end."""
    given, mark, settings = address.partition("?")
    return f"{given.rstrip('/')}/{mark}{settings}"


class ObjectFile(StoredFile):
    """An object.

    Parameters
    ----------
    address
        Its address.
    state
        Its size and the time of its last change, if they are known; it must have them whenever it is read.
    """

    is_here = False

    def __init__(self, address: str, state: tuple[int, Any] | None = None) -> None:
        place = _place(address)
        super().__init__(place.rpartition("/")[2], place)
        self._address = address
        self._state = state

    def open(self) -> Bytes:
        system, path = _system(self._address)
        with _told(self.place):
            info = system.get_file_info(path)
        self._state = self._state or self._state_of(info)
        found = _ObjectBytes(self, system, path, self._state[0])
        found.check()
        return found

    def with_name(self, name: str) -> "ObjectFile":
        """Return another object in the same folder."""
        return ObjectFile(beside(self._address, quote(name)))

    def write(self, data: bytes) -> None:
        """Write the object, all of it or nothing."""
        system, path = _system(self._address)
        with _told(self.place, "written"), system.open_output_stream(path) as stream:
            stream.write(data)
        self._state = None

    def require_unchanged(self, info: "FileInfo") -> None:
        """Refuse an object that is not the one that was opened first."""
        if self._state_of(info) != self._state:
            raise BinlogNotReadableError(
                f"{self.place} changed while it was read.", hint="Run the same command again.", path=self.place
            )

    def _state_of(self, info: "FileInfo") -> tuple[int, Any]:
        from pyarrow.fs import FileType

        if info.type != FileType.File:
            raise BinlogNotFoundError(f"{self.place}: no such object.", hint="Check the address.", path=self.place)
        return info.size, info.mtime

    def __reduce__(self) -> tuple[Any, ...]:
        return ObjectFile, (self._address, self._state)


class _ObjectBytes(Bytes):
    """The bytes of an object. Those that are read one after the other are fetched ahead."""

    def __init__(self, file: ObjectFile, system: "FileSystem", path: str, size: int) -> None:
        self._file = file
        self._system = system
        self._path = path
        self._size = size
        with _told(file.place):
            self._object = system.open_input_file(path)
        self._next = -1
        self._pool: ThreadPoolExecutor | None = None
        self._blocks: dict[int, Future[bytes]] = {}

    def check(self) -> None:
        """Refuse the object if it has changed."""
        with _told(self._file.place):
            self._file.require_unchanged(self._system.get_file_info(self._path))

    def wait_for(self, end: int) -> int:
        return self._size

    @property
    def known_size(self) -> int:
        return self._size

    def read_into(self, view: memoryview, offset: int) -> int:
        size = min(len(view), self._size - offset)
        if size <= 0:
            return 0
        if offset == self._next:
            number, start = divmod(offset, _BLOCK)
            found = self._block(number)[start : start + size]
        else:
            found = self._fetch(offset, size)
        view[: len(found)] = found
        self._next = offset + len(found)
        return len(found)

    def _block(self, number: int) -> bytes:
        """Return a block, and let those behind it be fetched."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_AHEAD, thread_name_prefix="fetch")
        for wanted in range(number, number + 1 + _AHEAD):
            if wanted not in self._blocks and wanted * _BLOCK < self._size:
                self._blocks[wanted] = self._pool.submit(self._fetch, wanted * _BLOCK, _BLOCK)
        for old in [known for known in self._blocks if not number <= known <= number + _AHEAD]:
            self._blocks.pop(old).cancel()
        return self._blocks[number].result()

    def _fetch(self, offset: int, size: int) -> bytes:
        with _told(self._file.place):
            found: bytes = self._object.read_at(min(size, self._size - offset), offset)
        self.check()
        return found

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
        self._blocks.clear()
        self._object.close()


def _place(address: str) -> str:
    """Return an address without a user's name, a password, and settings."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{unquote(parts.path)}"


def _system(address: str) -> "tuple[FileSystem, str]":
    import pyarrow as pa
    from pyarrow.fs import FileSystem

    if address.startswith("gs:") and "retry_limit_seconds" not in address:
        address += f"{'&' if '?' in address else '?'}{_PATIENCE}"
    place = _place(address)
    try:
        with _told(place):
            system, path = FileSystem.from_uri(address)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise _no_address(place) from None
    return system, path


def _no_address(place: str) -> UsageError:
    return UsageError(
        f"{place} is not the address of an object.", hint="It has the form s3://bucket/key or gs://bucket/key."
    )


@contextmanager
def _told(place: str, verb: str = "read") -> Iterator[None]:
    """Tell an error of the store in a sentence. Its own text may contain the name of a key for signing."""
    try:
        yield
    except FileNotFoundError:
        raise BinlogNotFoundError(f"{place}: no such object.", hint="Check the address.", path=place) from None
    except OSError as error:
        found = _REASON.search(str(error))
        reason = next(filter(None, found.groups()), "").replace("_", " ").lower() if found else "the store failed"
        is_refused = any(word in reason for word in _REFUSALS) or "credential" in str(error).lower()
        raise BinlogNotReadableError(
            f"{place} cannot be {verb}: {reason}.",
            hint="Check that the credentials which the store's own tools find (AWS_PROFILE, AWS_ACCESS_KEY_ID, or"
            " GOOGLE_APPLICATION_CREDENTIALS) may do that."
            if is_refused
            else "Check the address, the region (AWS_REGION) and the endpoint (AWS_ENDPOINT_URL).",
            path=place,
        ) from None
