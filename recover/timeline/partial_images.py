"""Rows of a table without a primary key, found by images that lack columns.

A server leaves columns out of an image if a unique key that is never NULL tells the row.
"""

from collections.abc import Iterable
from typing import Protocol, TypeVar

from recover.timeline.events import Image

_Values = tuple[str | None, ...]


class _OfRow(Protocol):
    """A version of a row; without values if the row is gone."""

    @property
    def row(self) -> Image | None: ...


_Version = TypeVar("_Version", bound=_OfRow)


class Latest(dict[str, _Version]):
    """The latest version of each key, also by the values of those columns that partial images have."""

    def __init__(self) -> None:
        super().__init__()
        self._indexes: dict[tuple[str, ...], dict[_Values | None, dict[str, None]]] = {}

    def __setitem__(self, key: str, version: _Version) -> None:
        super().__setitem__(key, version)
        for names, index in self._indexes.items():
            _add(index, names, key, version)

    def fitting(self, image: Image) -> list[_Version]:
        """Return the rows with the values of an image; if there are none, those that may have them.

        The columns of an image that lacks others are a unique key.
        """
        names = tuple(sorted(image))
        index = self._indexes.get(names)
        if index is None:
            index = self._indexes[names] = {}
            for key, version in self.items():
                _add(index, names, key, version)
        values = tuple(image[name] for name in names)
        return self._with(index, names, values) or [
            one for one in self._with(index, names, None) if _agree(one.row or {}, image)
        ]

    def _with(
        self, index: dict[_Values | None, dict[str, None]], names: tuple[str, ...], values: _Values | None
    ) -> list[_Version]:
        keys = index.get(values, {})
        found = []
        for key in [*keys]:
            version = self.get(key)
            if version is not None and version.row is not None and _values(version.row, names) == values:
                found.append(version)
            else:
                # The row has left this key.
                del keys[key]
        return found


def _add(index: dict[_Values | None, dict[str, None]], names: Iterable[str], key: str, version: _OfRow) -> None:
    if version.row is not None:
        index.setdefault(_values(version.row, names), {})[key] = None


def _values(row: Image, names: Iterable[str]) -> _Values | None:
    """Return the values of some columns; None if one of them is unknown."""
    return tuple(row[name] for name in names) if all(name in row for name in names) else None


def _agree(row: Image, image: Image) -> bool:
    return all(row.get(name, value) == value for name, value in image.items())
