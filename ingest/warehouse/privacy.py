"""File permissions of a home: only the owner can read it, and the owner's group if `BINLOOM_GROUP_ACCESS` is 1.

A home contains every row that a server has logged. Its folders deny access to other users, whichever program wrote
their files. Files that binloom's commands write are closed too, because the commands run with their own umask.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

GROUP_VARIABLE = "BINLOOM_GROUP_ACCESS"

# Everything that binloom and its tools create directly in a home.
ENTRIES = frozenset(
    {
        "built",
        "cache",
        "conf",
        "demo",
        "erasures",
        "gx",
        "locks",
        "logs",
        "masks.yml",
        "metastore",
        "site",
        "spool",
        "target",
        "tmp",
        "warehouse",
    }
    | {"derby.log"}
)

_persons_umask: int | None = None


def private_umask() -> int:
    """Return the umask for files of a home."""
    return 0o027 if os.environ.get(GROUP_VARIABLE) == "1" else 0o077


def private_opener(path: str, flags: int) -> int:
    """Open a file of a home for `open`, whatever the umask of the process is."""
    return os.open(path, flags, 0o666 & ~private_umask())


def keep_private() -> None:
    """Set the umask of a home for this process. Only for binloom's own processes: a umask applies to all threads."""
    global _persons_umask
    _persons_umask = os.umask(private_umask())


@contextlib.contextmanager
def persons_umask() -> Iterator[None]:
    """Write with the user's umask, for files that belong to the user and are outside the home."""
    if _persons_umask is None:
        yield
        return
    before = os.umask(_persons_umask)
    try:
        yield
    finally:
        os.umask(before)


def close_home(home: Path) -> None:
    """Deny other users access to binloom's folders in a home, and to the home itself if it contains nothing else.

    A folder that contains other things too, such as `/srv`, keeps its permissions. So does a folder of another owner.

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
