"""The binlog files in a tar archive: each is a range of the archive, and nothing is unpacked."""

import io
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ingest.binlog.byte_files import Bytes, LogPath, open_bytes
from ingest.binlog.events.format import is_binlog
from ingest.errors import ArchiveError
from ingest.sources.files.compressed import Sequential, compression, without_suffix
from ingest.sources.files.ranges import PartOfFile
from ingest.sources.files.spill import DamagedStreamError

if TYPE_CHECKING:
    import tarfile

HEADER_SIZE: Final = 512

_MAGIC: Final = b"ustar"
_MAGIC_AT: Final = 257
# macOS adds such a file, with attributes and the same name behind `._`, to each file. Source: RFC 1740.
_APPLE_DOUBLE: Final = b"\x00\x05\x16\x07"
_LARGEST_RECORD: Final = 1 << 20
_NUMBERED: Final = re.compile(r"\.\d{6,}$")
# Names of binlogs that a program packed or encrypted which binloom does not know.
_PACKED: Final = re.compile(r"\.\d{6,}\.(zip|z|7z|rar|lzma|lzo|lz|br|sz|qp|gpg|asc|age|enc|aes)$", re.IGNORECASE)
_MOST_FILES: Final = 20_000


def is_tar(head: bytes) -> bool:
    """Return whether a file is a tar archive by its first 512 bytes.

    The oldest form has no magic, so the checksum of the header tells.
    """
    if head[_MAGIC_AT:].startswith(_MAGIC):
        return True
    if is_binlog(head[:4]):
        return False
    import tarfile

    try:
        tarfile.TarInfo.frombuf(head, "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True


def binlogs_of_tar(archive: LogPath) -> list[PartOfFile]:
    """Return the binlog files in a tar archive, in their order there, also those that are compressed.

    Raises
    ------
    ArchiveError
        The archive contains no binlog, a link, or a path out of it, or it is damaged between its files.
    """
    with open_bytes(archive) as source:
        found = []
        for path, part, start, size in _files(archive, source):
            if _may_be_binlog(part.name, source, start, size):
                found.append(part)
            elif _PACKED.search(part.name):
                raise _refused(archive, f"contains {path!r}, which binloom cannot unpack")
    if not found:
        raise ArchiveError(
            f"{archive} is an archive without a binlog.",
            hint="Give the archive of the binlog files.",
            path=str(archive),
        )
    return found


def files_of_tar(archive: LogPath) -> dict[str, PartOfFile]:
    """Return all files in a tar archive by their paths there. Raises like `binlogs_of_tar`."""
    with open_bytes(archive) as source:
        return {path: part for path, part, _, _ in _files(archive, source)}


def _may_be_binlog(name: str, source: Bytes, start: int, size: int) -> bool:
    """Return whether a file has to be looked at: an archive in the archive may have binlogs, too."""
    head = source.read(min(size, HEADER_SIZE), start)
    if head.startswith(_APPLE_DOUBLE):
        return False
    is_numbered = _NUMBERED.search(without_suffix(name)) is not None
    return is_numbered or (
        bool(head) and (is_binlog(head[:4]) or is_tar(head) or compression(source, start) is not None)
    )


def _files(archive: LogPath, source: Bytes) -> Iterator[tuple[str, PartOfFile, int, int]]:
    """Yield each file with its path and its range.

    A file that is cut off is the last one; reading it tells that it is damaged.
    """
    import tarfile

    end = count = 0
    try:
        with tarfile.open(fileobj=io.BufferedReader(Sequential(open_bytes(archive))), mode="r:") as tar:
            while (member := tar.next()) is not None:
                count += 1
                if count > _MOST_FILES:
                    raise _refused(archive, f"has more than {_MOST_FILES:,} files")
                end = member.offset_data + (member.size if member.isreg() else 0)
                if member.isdir():
                    continue
                _check(archive, member)
                part = PartOfFile(archive, member.name, member.offset_data, member.size)
                yield member.name, part, member.offset_data, member.size
            end = max(tar.offset, end)
    except (tarfile.TarError, DamagedStreamError):
        pass  # The bytes behind the last file tell whether any may be missing.
    if source.wait_for(end) < end:
        return
    rest = source.read(_LARGEST_RECORD, -(-end // HEADER_SIZE) * HEADER_SIZE)
    mark = rest[:HEADER_SIZE]
    if len(mark) < HEADER_SIZE or any(mark):
        reason = source.damage or ("is cut off" if len(mark) < HEADER_SIZE else "is damaged")
        raise ArchiveError(
            f"{archive}: the archive {reason} at position {end}, so files may be missing.",
            hint="Copy it again; or unpack what is there with `tar`, and give those files.",
            path=str(archive),
            position=end,
        )
    # Zeros fill the last record.
    if any(rest):
        raise _refused(archive, f"goes on behind its end at position {end}, perhaps with another archive")


def _check(archive: LogPath, member: "tarfile.TarInfo") -> None:
    if member.issym() or member.islnk():
        raise _refused(archive, f"contains {member.name!r}, a link to {member.linkname!r}")
    if not member.isreg() or member.issparse():
        raise _refused(archive, f"contains {member.name!r}, which is not a plain file")
    if member.name.startswith("/") or ".." in member.name.split("/"):
        raise _refused(archive, f"contains {member.name!r}, a path out of the archive")


def _refused(archive: LogPath, reason: str) -> ArchiveError:
    return ArchiveError(
        f"{archive} {reason}; binloom reads no such archive.",
        hint="Unpack the binlog files with `tar`, and give them.",
        path=str(archive),
    )
