"""The view of one address: the words that it understands, and the function that answers."""

import os
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from binloom.pages.rendering import render
from binloom.ui.opened_log import OpenedLog
from binloom.ui.words import Words, address
from recover.sources.log import Log

PAGE: Final = 50
"""Number of rows of a page."""
_AROUND: Final = timedelta(minutes=2)


@dataclass(frozen=True)
class Download:
    """A file that is sent, and then deleted.

    Attributes
    ----------
    name
        The name that a browser proposes for it.
    """

    path: Path
    name: str
    media_type: str


@dataclass(frozen=True)
class View:
    """What answers an address.

    Attributes
    ----------
    words
        All words that its address may have.
    answer
        Returns the page as HTML, or a file.
    """

    words: tuple[str, ...]
    answer: Callable[[Log, Words, OpenedLog], str | Download]


def show(template: str, **names: Any) -> str:
    """Return a filled template of the pages, which has links to others."""
    return render(f"ui/{template}", address=address, **names)


def around(at: datetime) -> dict[str, str]:
    """Return the words that select the minutes around a moment."""
    return {"since": f"{at - _AROUND:%Y-%m-%d %H:%M:%S}", "until": f"{at + _AROUND:%Y-%m-%d %H:%M:%S}"}


def new_file(folder: Path) -> Path:
    """Return the path of a new file that nobody else may read."""
    handle, name = tempfile.mkstemp(dir=folder)
    os.close(handle)
    return Path(name)


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines, which have their ends."""
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(lines)
