"""Sentences about an answer, and what each of them means for it."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Self


class Kind(StrEnum):
    """What a sentence means for an answer."""

    FACT = "fact"
    """The answer lacks nothing because of it."""
    QUARANTINE = "quarantine"
    """Rows are missing: their columns or values are not known with certainty."""
    MASKED = "masked"
    """Values are not those of the server."""
    NOT_BUILT = "not_built"
    """Rows or tables are missing that have landed since they were built."""
    BEGINNING = "beginning"
    """Older rows are missing: their files have expired, or the log begins later than the table."""
    END = "end"
    """Later rows are missing: the log goes on."""
    DAMAGED = "damaged"
    """Rows are missing: a file is damaged."""
    UNCERTAIN = "uncertain"
    """Rows may be missing, or may have other values."""
    REFUSED = "refused"
    """Something was asked for that cannot be done, or only in part."""
    CUT = "cut"
    """More rows were found than asked for."""


class Note(str):
    """A sentence about an answer.

    Attributes
    ----------
    kind
        What it means for the answer.
    quotes_values
        Whether values of rows are in it, such as keys: anybody who writes to the database may have chosen them.
    """

    __slots__ = ("kind", "quotes_values")
    kind: Kind
    quotes_values: bool

    def __new__(cls, sentence: str, kind: Kind = Kind.FACT, *, quotes_values: bool = False) -> Self:
        note = super().__new__(cls, sentence)
        note.kind = kind
        note.quotes_values = quotes_values
        return note

    @property
    def is_lack(self) -> bool:
        """Whether the answer lacks something."""
        return self.kind is not Kind.FACT


def lacking(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Return the notes because of which an answer is not the whole truth."""
    return tuple(note for note in notes if note.is_lack)
