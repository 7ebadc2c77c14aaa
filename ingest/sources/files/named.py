"""The binlog files that a person names: plain files, compressed ones, those in archives, and those of object stores.

All are recognised by their first bytes. Each file is opened again only when its bytes are needed.
"""

from collections.abc import Iterable
from pathlib import Path

from ingest.binlog.byte_files import LogPath, open_bytes
from ingest.binlog.events.format import is_binlog
from ingest.errors import ArchiveError, BinlogError, UsageError
from ingest.sources.files.compressed import CompressedFile, compression
from ingest.sources.files.objects import objects
from ingest.sources.files.piped import STANDARD_INPUT, PipedFile, is_piped
from ingest.sources.files.sidecars import has_sidecar, is_sidecar
from ingest.sources.files.tar import HEADER_SIZE, binlogs_of_tar, is_tar


def log_files(names: Iterable[Path | str]) -> list[LogPath]:
    """Return the binlog files that names stand for, in the same order: paths, and addresses of objects.

    Raises
    ------
    BinlogError
        An archive or an object cannot be read.
    UsageError
        Standard input is named twice, or is a terminal.
    """
    named = [file for name in names for file in (objects(name) if isinstance(name, str) else [name])]
    # A pattern such as `binlog.*` finds them, too.
    given = [file for file in named if not is_sidecar(file)]
    if named and not given:
        raise UsageError(f"{named[0]} is the index of a binlog, not a binlog.", hint="Give the binlog beside it.")
    if given.count(Path(STANDARD_INPUT)) > 1:
        raise UsageError("- is named twice, but standard input can be read only once.", hint="Name it once.")
    files = [file for name in given for file in recognised(opened_once(name))]
    if files and isinstance(files[0], CompressedFile) and not has_sidecar(files[0]):
        files[0].begin()
    return files


def first_bytes(path: LogPath, size: int) -> bytes:
    """Return the first bytes of a file, which may be compressed.

    Raises
    ------
    BinlogError
        The file cannot be read.
    """
    if isinstance(path, CompressedFile):
        return path.head(size)
    with open_bytes(path) as source:
        return source.read(size, 0)


def uncompressed(path: LogPath) -> LogPath:
    """Return a file, or the file that it is when it is decompressed.

    Raises
    ------
    BinlogError
        The file cannot be read.
    """
    with open_bytes(path) as source:
        method = None if is_binlog(source.read(4, 0)) else compression(source)
    return path if method is None else CompressedFile(path, method)


def opened_once(file: LogPath) -> LogPath:
    """Return a file whose bytes are kept if they can be read only once."""
    return PipedFile(file) if isinstance(file, Path) and is_piped(file) else file


def recognised(path: LogPath, is_member: bool = False) -> list[LogPath]:
    """Return the binlog files in a file: itself, what it contains, or itself if its first bytes tell nothing.

    Raises
    ------
    BinlogError
        The file is an archive that is damaged, or that contains what binloom does not read.
    """
    try:
        found = uncompressed(path)
    except BinlogError:
        # Reading it later tells the reason.
        return [path]
    if not is_tar(first_bytes(found, HEADER_SIZE)):
        return [found]
    if is_member:
        raise ArchiveError(
            f"{found} is an archive in an archive, which binloom does not read.",
            hint="Unpack the outer archive, and give this one.",
            path=str(found),
        )
    return [file for part in binlogs_of_tar(found) for file in recognised(part, is_member=True)]
