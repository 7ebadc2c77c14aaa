"""Binlog files of a directory, in the order in which they were written."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import overload

from ingest.binlog.byte_files import LogPath
from ingest.binlog.events.format import innodb_binlog, is_binlog
from ingest.errors import BinlogError, BinlogNotFoundError, BinlogNotReadableError, UsageError
from ingest.sources.files.compressed import without_suffix
from ingest.sources.files.named import first_bytes, recognised
from ingest.sources.files.objects import beside, folder, objects

# A server numbers its files with at least six digits; numbers beyond 999999 have more.
_NUMBERED = re.compile(r"^(?P<base>.+)\.(?P<sequence>\d{6,})$")
_ANY_NUMBER = re.compile(r"\.(?P<sequence>\d+)$")


@dataclass(frozen=True)
class BinlogPath:
    """A binlog file, known by its name only; its content has not been read.

    Attributes
    ----------
    path
        Where the file is.
    name
        Name without the folder, as the server knows it.
    sequence
        Number at the end of the name, None when there is none.
    """

    path: LogPath
    name: str
    sequence: int | None

    @property
    def base(self) -> str:
        """Name without the number."""
        return self.name if self.sequence is None else self.name.rpartition(".")[0]


@dataclass(frozen=True)
class PlainBinlog(BinlogPath):
    """A binlog file that is a plain file."""

    path: Path


@overload
def binlog_path(path: Path) -> PlainBinlog: ...


@overload
def binlog_path(path: LogPath) -> BinlogPath: ...


def binlog_path(path: LogPath) -> BinlogPath:
    """Return the file with its name split into base and number."""
    match = _ANY_NUMBER.search(path.name)
    sequence = int(match["sequence"]) if match else None
    kind = PlainBinlog if isinstance(path, Path) else BinlogPath
    return kind(path, path.name, sequence)  # type: ignore[arg-type]


def is_companion(path: Path) -> bool:
    """Return whether a file is one that a server keeps beside its binlogs, and not a binlog.

    A pattern such as `binlog.*` finds the list of the files (`.index`), and on MariaDB the state of the GTIDs
    (`.state`) and their index in each file (`.idx`). The list is empty where a server never wrote a binlog.
    """
    if path.suffix not in (".index", ".state", ".idx") or not path.is_file():
        return False
    return path.stat().st_size == 0 or not _may_be_binlog(path)


def find_binlogs(directory: Path | str, files: Sequence[str] | None = None) -> list[BinlogPath]:
    """Return the binlog files of a directory in the order in which the server wrote them.

    Parameters
    ----------
    directory
        Folder that contains the files, or its address in an object store.
    files
        Names of the files to take; None for all files named like a binlog (`<base>.<number>`, compressed ones also
        with the suffix of the compression), except a series whose files all begin with other bytes than a binlog.
        A file that is also there as a plain file is taken once.

    Returns
    -------
    list of BinlogPath
        Ordered by base name, then by number (`.1000000` after `.999999`).

    Raises
    ------
    BinlogNotFoundError
        The directory, a named file, or any binlog in the directory is missing.
    BinlogNotReadableError
        The directory may not be listed.
    UsageError
        A name in `files` is empty or points out of the directory.
    """
    if isinstance(directory, str):
        return _in_order(_in_store(folder(directory), files))
    present = _entries(directory)
    if files is None:
        numbered = list(_numbered(directory, present))
        found = _series_of_binlogs(numbered)
        if not found:
            if pages := sorted(name for name in present if name.endswith(".ibb")):
                raise innodb_binlog(directory / pages[0])
            raise BinlogNotFoundError(
                f"{directory} holds no binlog"
                + (
                    f": {numbered[0].name} does not begin like one."
                    if numbered
                    else ", no file with a name such as binlog.000001."
                ),
                hint="Give the folder that the server's log_bin_basename names, or name the files with --files.",
                path=str(directory),
            )
    else:
        named = (directory / name for name in _checked_names(directory, files, present))
        found = _with_own_names(binlog_path(file) for path in named for file in recognised(path))
    return _in_order(found)


def _in_order(files: Iterable[BinlogPath]) -> list[BinlogPath]:
    return sorted(files, key=lambda file: (file.base, -1 if file.sequence is None else file.sequence, file.name))


def _in_store(address: str, files: Sequence[str] | None) -> list[BinlogPath]:
    """Return files in a folder of an object store; None for all that are named like a binlog."""
    if files is not None:
        found = (file for name in files for file in objects(beside(address, name.strip())))
    else:
        found = (file for file in objects(address) if _NUMBERED.match(without_suffix(str(file).rpartition("/")[2])))
    binlogs = _with_own_names(binlog_path(part) for file in found for part in recognised(file))
    if not binlogs:
        raise BinlogNotFoundError(
            f"{address.partition('?')[0]} holds no binlog: no object has a name such as binlog.000001.",
            hint="Check --binlog-dir.",
        )
    return binlogs


def _numbered(directory: Path, present: set[str]) -> Iterator[BinlogPath]:
    """Yield the files named like a binlog; a compressed one unless it is also there as a plain file."""
    for name in sorted(present):
        plain = without_suffix(name)
        if _NUMBERED.match(plain) and (plain == name or plain not in present) and (directory / name).is_file():
            yield from map(binlog_path, recognised(directory / name))


def _with_own_names(files: Iterable[BinlogPath]) -> list[BinlogPath]:
    found: dict[str, BinlogPath] = {}
    for file in files:
        if (other := found.setdefault(file.name, file)) is not file:
            raise UsageError(
                f"{other.path} and {file.path} are the same file of the log, {file.name}.", hint="Name one of them."
            )
    return list(found.values())


def _series_of_binlogs(numbered: Sequence[BinlogPath]) -> list[BinlogPath]:
    """Return the files whose series has a binlog: MariaDB keeps its `aria_log.00000001` in the same folder.

    A damaged file of a series stays in it, so that it is reported and not skipped.
    """
    bases = {file.base for file in numbered if _may_be_binlog(file.path)}
    return [file for file in _with_own_names(numbered) if file.base in bases]


def _may_be_binlog(path: LogPath) -> bool:
    try:
        return is_binlog(first_bytes(path, 4))
    except BinlogError:
        # Reading it later tells the reason.
        return True


def _entries(directory: Path) -> set[str]:
    try:
        return set(os.listdir(directory))
    except FileNotFoundError as error:
        raise BinlogNotFoundError(
            f"There is no directory {directory}.", hint="Check --binlog-dir.", path=str(directory)
        ) from error
    except NotADirectoryError as error:
        raise UsageError(
            f"{directory} is a file, not a directory.",
            hint="Give its folder with --binlog-dir and its name with --files.",
            path=str(directory),
        ) from error
    except OSError as error:
        raise BinlogNotReadableError(
            f"The directory {directory} cannot be listed: {error.strerror}.",
            hint="Run binloom as a user who may read it, such as the one that the server runs as.",
            path=str(directory),
        ) from error


def _checked_names(directory: Path, files: Sequence[str], present: set[str]) -> list[str]:
    names = list(dict.fromkeys(name.strip() for name in files))
    if not names:
        raise UsageError("No file is named.", hint="Name files with --files a,b or take all with --all.")
    for name in names:
        if name in ("", ".", "..") or Path(name).name != name:
            raise UsageError(
                f"{name!r} is not the name of a file in {directory}.",
                hint="Give names without folders, separated by commas.",
            )
    missing = [name for name in names if name not in present]
    if missing:
        near = sorted(name for name in present if _NUMBERED.match(name))
        have = f" It holds {near[0]} to {near[-1]}." if near else ""
        raise BinlogNotFoundError(
            f"{directory} holds no file {', '.join(missing)}.{have}",
            hint="Check --files.",
            path=str(directory / missing[0]),
        )
    return names
