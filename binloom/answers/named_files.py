"""The binlog files among those that a command line names: a pattern such as `binlog.*` finds others, too."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ingest.errors import UsageError
from ingest.sources.files.directory import is_companion

if TYPE_CHECKING:
    from ingest.binlog.byte_files import LogPath


def binlogs(files: "Iterable[Path | str]", tell: Callable[[str], None]) -> "list[LogPath]":
    """Return the files and those in archives, without what a server keeps beside its binlogs, and tell of that.

    Raises
    ------
    UsageError
        No other file is named.
    """
    from ingest.sources.files.named import log_files

    named = list(files)
    others = [path for path in named if isinstance(path, Path) and is_companion(path)]
    if others and len(others) == len(named):
        raise UsageError(
            f"{others[0]} is not a binlog: it is a list of binlog files or GTIDs.",
            hint="Give the binlog files in the same folder.",
        )
    for path in others:
        tell(f"{path} is skipped: it is not a binlog, but a list that the server keeps beside its binlogs.")
    return log_files(path for path in named if path not in others)
