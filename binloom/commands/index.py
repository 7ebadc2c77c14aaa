"""`binloom index`: write the sidecars of binlog files."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from binloom.answers.named_files import binlogs
from binloom.commands.output import human_bytes, print_line, say, waiting
from ingest.errors import EXIT_DONE, BinloomError, UsageError
from ingest.sources.files.directory import find_binlogs
from ingest.sources.files.sidecars import sidecar_of, write_sidecar
from ingest.words import counted
from recover.index.indexing import NotIndexedError, index_of
from recover.index.opened import opened

if TYPE_CHECKING:
    from ingest.binlog.byte_files import LogPath


def index_files(locations: "Sequence[Path | str]", folder: Path | None) -> int:
    """Write the index of each file that has none; return the exit code."""
    exit_code, kept = EXIT_DONE, 0
    files = list(_files(locations))
    _assert_own_names(files, folder)
    for path in files:
        try:
            if _has_index(path, folder):
                kept += 1
                continue
            with waiting(f"indexing {path}"):
                size = _write(path, folder)
        except BinloomError as error:
            say(str(error))
            exit_code = max(exit_code, error.exit_code)
            continue
        print_line(f"{path}: {human_bytes(size)} of index")
    if kept:
        say(f"{counted(kept, 'file')} had an index already.")
    return exit_code


def _files(locations: "Sequence[Path | str]") -> "Iterator[LogPath]":
    for location in locations:
        if (isinstance(location, Path) and location.is_dir()) or (
            isinstance(location, str) and location.partition("?")[0].endswith("/")
        ):
            yield from (file.path for file in find_binlogs(location))
        else:
            yield from binlogs([location], say)


def _assert_own_names(files: "Sequence[LogPath]", folder: Path | None) -> None:
    """Refuse two files that would have the same sidecar."""
    places: dict[str, LogPath] = {}
    for file in files:
        place = str(sidecar_of(file, folder) or file)
        if (other := places.setdefault(place, file)) is not file:
            raise UsageError(
                f"{other} and {file} would have the same index, {place}.", hint="Index each folder into its own."
            )


def _has_index(path: "LogPath", folder: Path | None) -> bool:
    try:
        found = opened(path, folder)
    except BinloomError:
        # It is of another state of the file, or damaged: it is written again.
        return False
    if found is None:
        return False
    found.close()
    return True


def _write(path: "LogPath", folder: Path | None) -> int:
    data = index_of(path)
    place = sidecar_of(path, folder)
    if place is None:
        raise NotIndexedError(f"{path} has no place for an index.", hint="It is read whole.", path=str(path))
    write_sidecar(path, place, data)
    return len(data)
