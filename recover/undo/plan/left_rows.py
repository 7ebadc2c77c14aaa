"""Rows with something in their way: one group for each reason, table and columns, and a file of those left out."""

import re
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from io import TextIOWrapper
from typing import Final

from ingest.escapes import visible
from ingest.words import counted
from recover.undo.plan.classify import Conflict, Refusal
from recover.undo.prove.against import Difference, in_words
from recover.undo.tables.table import TableName

LeftRow = Conflict | Refusal | Difference


class Treatment(StrEnum):
    """What happens to rows that later transactions changed, or that no statement can change."""

    LEFT = "left as it is"
    DONE = "nothing to do"
    OVERWRITTEN = "overwritten"


_SHOWN: Final = 5
# Reasons of two rows that differ only in these are one reason.
_VALUE: Final = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|(?<!\w)-?\d+(?:\.\d+)?\b|(?<=change )\S+(?=:)")
# A problem of one row, which names its key and a transaction.
_ROW: Final = re.compile(r"\brow (?P<key>\S+)(?= of )")
_SINCE: Final = re.compile(r", since \S+")


@dataclass
class Group:
    """Rows of one table that have one thing in their way.

    Attributes
    ----------
    first
        The first of them.
    treatment
        What happens to the rows.
    has_one_reason
        Whether the reasons do not even differ in values.
    keys, transactions
        The first keys, and all transactions that stand in the way.
    """

    first: LeftRow
    treatment: Treatment
    rows: int = 0
    has_one_reason: bool = True
    keys: dict[str, None] = field(default_factory=dict)
    transactions: dict[str, None] = field(default_factory=dict)

    def add(self, row: LeftRow) -> None:
        """Add a row."""
        self.rows += 1
        self.has_one_reason &= row.reason == self.first.reason
        if len(self.keys) < _SHOWN:
            self.keys[row.key] = None
        self.transactions.update(dict.fromkeys(_transactions(row)))

    def __str__(self) -> str:
        if self.rows == 1:
            return described(self.first)
        keys = ", ".join([*self.keys, *(["…"] if self.rows > len(self.keys) else [])])
        reason = self.first.reason if self.has_one_reason else _VALUE.sub("…", self.first.reason)
        names = _columns(self.first)
        which = f" ({', '.join(names)})" if names else ""
        by = _by(tuple(self.transactions))
        return visible(f"{self.first.table.text}: {counted(self.rows, 'row')} ({keys}): {reason}{which}{by}")


class LeftRows:
    """All rows that get no statement."""

    def __init__(self) -> None:
        self._groups: dict[tuple[object, ...], Group] = {}
        self._told: set[tuple[TableName, str]] = set()
        self._file: TextIOWrapper | None = None

    def add(self, row: LeftRow, treatment: Treatment = Treatment.LEFT) -> None:
        """Add a row, which is not kept in memory."""
        identity = (type(row), row.table.name, _VALUE.sub("…", row.reason), _columns(row), treatment)
        if identity not in self._groups:
            self._groups[identity] = Group(row, treatment)
        self._groups[identity].add(row)
        if treatment is Treatment.LEFT:
            self._write(row)

    def add_told(self, row: LeftRow) -> None:
        """Add a row with a problem that is told for itself, once."""
        if (place := (row.table.name, row.key)) not in self._told:
            self._told.add(place)
            self._write(row)

    def _write(self, row: LeftRow) -> None:
        if self._file is None:
            # It is open as long as the plan is there.
            opened = tempfile.TemporaryFile(prefix="binloom-undo-")  # noqa: SIM115
            self._file = TextIOWrapper(opened, "utf-8", newline="\n")
        self._file.write(f"{described(row)}\n")

    @property
    def groups(self) -> list[Group]:
        """The groups: first those of rows that an undo would have to change."""
        return sorted(self._groups.values(), key=lambda group: [*Treatment].index(group.treatment))

    @property
    def count(self) -> int:
        """Number of rows that an undo would have to change."""
        left = sum(group.rows for group in self._groups.values() if group.treatment is Treatment.LEFT)
        return left + len(self._told)

    def lines(self) -> Iterator[str]:
        """Yield each of these rows and its reason, in one line."""
        if self._file is not None:
            self._file.seek(0)
            yield from (line.removesuffix("\n") for line in self._file)


def grouped(problems: Iterable[str]) -> Iterator[str]:
    """Yield problems; of those that differ only in the row and its transaction, the first with the other keys."""
    groups: dict[str, list[str]] = {}
    for problem in problems:
        groups.setdefault(_SINCE.sub("", _ROW.sub("row", problem)), []).append(problem)
    for first, *others in groups.values():
        keys = [found["key"] for other in others if (found := _ROW.search(other))]
        more = ", …" if len(keys) > _SHOWN else ""
        yield f"{first}; also {counted(len(keys), 'other row')}: {', '.join(keys[:_SHOWN])}{more}" if keys else first


def described(row: LeftRow) -> str:
    """Return a row and what is in its way, in one line."""
    if isinstance(row, Difference):
        return visible(in_words(row))
    columns = row.columns if isinstance(row, Conflict) else ()
    which = f" ({', '.join(columns)})" if columns else ""
    return visible(f"{row.table.text} {row.key}: {row.reason}{which}{_by(_transactions(row))}")


def _columns(row: LeftRow) -> tuple[str, ...]:
    if isinstance(row, Difference):
        return tuple(one.column for one in row.columns)
    return row.columns if isinstance(row, Conflict) else ()


def _transactions(row: LeftRow) -> tuple[str, ...]:
    return row.transactions if isinstance(row, Conflict) else ()


def _by(transactions: tuple[str, ...]) -> str:
    more = f" and {len(transactions) - _SHOWN} more" if len(transactions) > _SHOWN else ""
    return f", by {', '.join(transactions[:_SHOWN])}{more}" if transactions else ""
