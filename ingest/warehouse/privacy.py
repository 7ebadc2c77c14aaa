"""Who may read what binloom keeps: its owner, and the owner's group where `BINLOOM_GROUP_ACCESS` is 1.

A home holds every row that a server has logged. Its folders are closed whatever wrote the files in them, and the
files of binloom's commands are closed too, because those run under a umask of their own.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

GROUP_VARIABLE = "BINLOOM_GROUP_ACCESS"

# Everything that binloom and the tools that it starts make directly in a home.
ENTRIES = frozenset(
    {"cache", "conf", "demo", "gx", "locks", "logs", "metastore", "site", "spool", "target", "tmp", "warehouse"}
    | {"derby.log"}
)

_persons_umask: int | None = None


def private_umask() -> int:
    """Return the umask that files of a home are made with."""
    return 0o027 if os.environ.get(GROUP_VARIABLE) == "1" else 0o077


def keep_private() -> None:
    """Give this process the umask of a home. For a process that is binloom's own: a umask holds for all its threads."""
    global _persons_umask
    _persons_umask = os.umask(private_umask())


@contextlib.contextmanager
def persons_umask() -> Iterator[None]:
    """Write with the umask that the person has: what belongs to them and lies outside the home."""
    if _persons_umask is None:
        yield
        return
    before = os.umask(_persons_umask)
    try:
        yield
    finally:
        os.umask(before)


def close_home(home: Path) -> None:
    """Close binloom's folders in a home to others, and the home itself when everything in it is binloom's.

    A folder that holds other things too, such as `/srv`, keeps its permissions, and so does one of another owner.

    Raises
    ------
    OSError
        The permissions of a folder cannot be changed.
    """
    with os.scandir(home) as found:
        entries = list(found)
    for entry in entries:
        if entry.name in ENTRIES and entry.is_dir(follow_symlinks=False):
            _close(entry.path, entry.stat(follow_symlinks=False))
    if all(entry.name in ENTRIES for entry in entries):
        _close(home, home.stat())


def _close(folder: str | Path, state: os.stat_result) -> None:
    mode = (state.st_mode & 0o7000) | (0o777 & ~private_umask())
    if state.st_mode & 0o7777 != mode and state.st_uid == os.geteuid():
        os.chmod(folder, mode)
