"""The rows of indexed files that a question needs besides those that its filters select."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

Read = TypeVar("Read")


@dataclass(frozen=True)
class Rest:
    """Rows that are needed besides those that filters select.

    Attributes
    ----------
    tables
        Only rows of these tables, `schema.table` in lower case; None: of all tables.
    since, until
        Only rows of events from this time on, and before this time.
    """

    tables: frozenset[str] | None = None
    since: datetime | None = None
    until: datetime | None = None


RestOf = Callable[[Read], Iterable[Rest]]
"""Tells by what was read of a log which other rows are needed."""
