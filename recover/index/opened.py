"""The sidecars of the files of a question. One that does not fit its file is not used, and this is told."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ingest.binlog.byte_files import LogPath, open_bytes
from ingest.errors import BinlogNotFoundError, BinloomError
from ingest.sources.files.sidecars import sidecar_of, stored
from recover.index.sidecar import Identity, Sidecar, UnfitSidecarError

if TYPE_CHECKING:
    from ingest.sources.files.directory import BinlogPath


@dataclass(frozen=True, slots=True)
class Index:
    """Where sidecars are.

    Attributes
    ----------
    folder
        Folder of all sidecars. None: each is beside its file.
    """

    folder: Path | None = None


@dataclass(slots=True)
class Sidecars:
    """Sidecars, by their files.

    Attributes
    ----------
    by_file
        The sidecars that fit.
    notes
        Sentences on those that do not.
    """

    by_file: "dict[BinlogPath, Sidecar]" = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, files: "Iterable[BinlogPath]", index: Index | None) -> "Sidecars":
        """Open the sidecars of files. Without an index there are none."""
        found = cls()
        if index is None:
            return found
        for file in files:
            try:
                sidecar = opened(file.path, index.folder)
            except BinloomError as error:
                found._leave_out(file, error)
            else:
                if sidecar is not None:
                    found.by_file[file] = sidecar
        return found

    def drop(self, file: "BinlogPath", reason: BinloomError) -> None:
        """Use the sidecar of a file no longer."""
        self.by_file.pop(file).close()
        self._leave_out(file, reason)

    def _leave_out(self, file: "BinlogPath", reason: BinloomError) -> None:
        self.notes.append(
            f"the index of {file.path} is not used: {reason.message.rstrip('.')}. The file is read whole."
            " Run `binloom index` again."
        )

    def close(self) -> None:
        """Close them."""
        for sidecar in self.by_file.values():
            sidecar.close()


def opened(path: LogPath, folder: Path | None = None) -> Sidecar | None:
    """Return the sidecar of a file; None if there is none.

    Raises
    ------
    BinloomError
        It does not fit the file, or cannot be read.
    """
    place, whole = sidecar_of(path, folder), stored(path)
    if place is None or whole is None:
        return None
    try:
        found = Sidecar.read(place, path)
    except BinlogNotFoundError:
        return None
    _assert_fits(found, whole)
    return found


def _assert_fits(sidecar: Sidecar, whole: LogPath) -> None:
    known = sidecar.contents.identity
    with open_bytes(whole) as source:
        found = Identity.of(source)
    if found.size != known.size:
        raise UnfitSidecarError(f"it is of a file of {known.size:,} bytes, and this one has {found.size:,}")
    if found != known:
        raise UnfitSidecarError("it is of another file, or the file changed")
