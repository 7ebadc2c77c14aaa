"""Where the sidecar of a binlog file is: beside the file or its archive, or in a folder. They are written whole."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

from ingest.binlog.byte_files import LogPath
from ingest.errors import StoreError
from ingest.sources.files.compressed import CompressedFile
from ingest.sources.files.objects import ObjectFile
from ingest.sources.files.ranges import PartOfFile

SUFFIX: Final = ".binloom-index"


def is_sidecar(file: LogPath) -> bool:
    """Return whether a file is a sidecar by its name."""
    return file.name.endswith(SUFFIX)


def has_sidecar(file: LogPath) -> bool:
    """Return whether a file of this machine has a sidecar beside it; whether it fits is not known."""
    place = sidecar_of(file)
    return isinstance(place, Path) and place.exists()


def stored(file: LogPath) -> Path | ObjectFile | PartOfFile | None:
    """Return a file as it is stored: the compressed one. None for one in a compressed archive, or in a pipe."""
    found = file.origin if isinstance(file, CompressedFile) else file
    if isinstance(found, PartOfFile):
        return found if isinstance(found.whole, Path | ObjectFile) else None
    return found if isinstance(found, Path | ObjectFile) else None


def _archive_and_name(found: Path | ObjectFile | PartOfFile) -> tuple[Path | ObjectFile, str]:
    """Return the file of this machine or of a store that has the bytes, and the name of a sidecar beside it."""
    if isinstance(found, PartOfFile):
        assert isinstance(found.whole, Path | ObjectFile)
        return found.whole, f"{found.whole.name}.{found.name}{SUFFIX}"
    return found, f"{found.name}{SUFFIX}"


def sidecar_of(file: LogPath, folder: Path | None = None) -> Path | ObjectFile | None:
    """Return the place of a file's sidecar; None for a file that cannot have one.

    Parameters
    ----------
    file
        The file.
    folder
        Folder of all sidecars. None: each is beside its file.
    """
    found = stored(file)
    if found is None:
        return None
    beside, name = _archive_and_name(found)
    return beside.with_name(name) if folder is None else folder / name


def write_sidecar(file: LogPath, place: Path | ObjectFile, data: bytes) -> None:
    """Write the sidecar of a file, so that a process that is killed leaves all of it or nothing.

    Who may read the file may read its sidecar.

    Raises
    ------
    BinloomError
        The file cannot be written.
    """
    if isinstance(place, ObjectFile):
        place.write(data)
        return
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
        try:
            with os.fdopen(descriptor, "wb") as written:
                written.write(data)
                written.flush()
                os.fsync(written.fileno())
            if (origin := stored(file)) is not None and isinstance(archive := _archive_and_name(origin)[0], Path):
                shutil.copymode(archive, name)
            Path(name).replace(place)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise StoreError(
            f"{place} cannot be written: {error.strerror}.", hint="Give a folder that you may write to, with --to."
        ) from None
