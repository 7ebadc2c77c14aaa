"""Reports who may read the files of a folder."""

from collections.abc import Iterator
from pathlib import Path

GROUP_AND_OTHERS = 0o077
OTHERS = 0o007


def open_to(who: int, folder: Path) -> list[str]:
    """Return the folder and its content, as far as these may read, write or enter it, as relative paths."""
    return sorted(str(path.relative_to(folder)) for path in _all(folder) if path.lstat().st_mode & who)


def closed_to_the_group(folder: Path) -> list[str]:
    """Return the folder and its content, as far as the group may not read it, as relative paths."""
    return sorted(
        str(path.relative_to(folder))
        for path in _all(folder)
        if path.lstat().st_mode & 0o070 != (0o050 if path.is_dir() else 0o040)
    )


def _all(folder: Path) -> Iterator[Path]:
    yield folder
    yield from folder.rglob("*")
