"""The versions that one row has in a part of the log, and the last of them, which a snapshot's row is carried to.

A version is a tuple of texts, or None while there is no row. Partial images leave values out: one that no image gives
is `ABSENT`, and is what it was before; one that changed to something that the log does not tell is `UNKNOWN`.
"""

from enum import Enum
from typing import Final


class Missing(Enum):
    """Marks a value that the log does not give."""

    ABSENT = "absent"
    UNKNOWN = "unknown"


ABSENT: Final = Missing.ABSENT
UNKNOWN: Final = Missing.UNKNOWN

Value = str | None | Missing
Image = tuple[Value, ...]
Row = tuple[str | None, ...]


class NotInLogError(Exception):
    """A row is none of the versions that the log has: something wrote it without logging it."""


class ValueNotLoggedError(Exception):
    """The last version has a value that the log does not give."""


class RowVersions:
    """The versions of the row with one key, from before its first logged change on."""

    __slots__ = ("_versions",)

    def __init__(self) -> None:
        self._versions: list[Image | None] = []

    @property
    def last(self) -> Image | None:
        """The version after the last change."""
        return self._versions[-1]

    def change(self, before: Image | None, after: Image | None) -> None:
        """Add a change; None for the image that an insert or a delete does not have.

        Raises
        ------
        NotInLogError
            The change begins with another version than the change before it left.
        """
        if self._versions:
            known = self._versions[-1]
            if not _agree(known, before):
                raise NotInLogError
            if known is not None and before is not None:
                self._versions[-1] = before = tuple(map(_better_known, known, before))
        else:
            self._versions.append(before)
        self._versions.append(after if before is None or after is None else overlaid(before, after))

    def carried(self, row: Row | None) -> Row | None:
        """Return the last version of the row that a snapshot has with this key, None if either has none.

        Raises
        ------
        NotInLogError
            The snapshot's row is none of the versions.
        ValueNotLoggedError
            The log does not give a value of the last version.
        """
        if not any(_agree(version, row) for version in self._versions):
            raise NotInLogError
        if self.last is None:
            return None
        values = self.last if row is None else overlaid(row, self.last)
        found = tuple(value for value in values if not isinstance(value, Missing))
        if len(found) < len(values):
            raise ValueNotLoggedError
        return found


def overlaid(below: Image, above: Image) -> Image:
    """Return an image with the values of another where it has none."""
    return tuple(old if new is ABSENT else new for old, new in zip(below, above, strict=True))


def _better_known(one: Value, other: Value) -> Value:
    """Return the value that two images of the same version give."""
    if isinstance(one, Missing) and not isinstance(other, Missing):
        return other
    return other if one is ABSENT else one


def _agree(one: Image | None, other: Image | None) -> bool:
    if one is None or other is None:
        return one is other
    return all(
        mine == theirs or isinstance(mine, Missing) or isinstance(theirs, Missing)
        for mine, theirs in zip(one, other, strict=True)
    )
