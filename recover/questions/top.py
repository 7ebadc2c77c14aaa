"""The answer of `binloom top`, and its parts: who and what changed most, and when."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from statistics import median
from typing import Final

SPIKE: Final = 5
"""A spike has at least this many times the changes of the median."""


class Step(StrEnum):
    """Length of a step of the timeline."""

    SECOND = "second"
    MINUTE = "minute"
    HOUR = "hour"

    @property
    def microseconds(self) -> int:
        """Length in microseconds."""
        return {"second": 1, "minute": 60, "hour": 3600}[self.value] * 1_000_000


@dataclass(frozen=True, slots=True)
class TableSums:
    """Row changes of a table.

    `event_bytes` are those of the events, without those in compressed transactions. `has_key` is None if the log does
    not tell whether the table has a primary key. `updates_without_change` have the same image before and after.
    """

    source_id: str
    schema_name: str
    table_name: str
    changes: int
    inserts: int
    updates: int
    deletes: int
    transactions: int
    event_bytes: int
    updates_without_change: int
    has_key: bool | None


@dataclass(frozen=True, slots=True)
class Moment:
    """A step of the timeline: changes by the time of their events, transactions and bytes by the time of the commit."""

    at: datetime
    changes: int
    transactions: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Spike:
    """A step with far more changes than the median, and the table that has most of them."""

    at: datetime
    changes: int
    times_median: float
    schema_name: str
    table_name: str
    table_changes: int


@dataclass(frozen=True, slots=True)
class TransactionSums:
    """A transaction with its selected changes; `bytes` are those of the whole transaction in the log.

    `seconds` are whole: the servers log the time of the first event without a fraction.
    """

    transaction_id: str
    gtid: str | None
    thread_id: int | None
    committed_at: datetime | None
    outcome: str
    seconds: int | None
    changes: int
    bytes: int
    tables: Sequence[str]


@dataclass(frozen=True, slots=True)
class ThreadSums:
    """Transactions of a connection; `thread_id` is None if the log does not tell it."""

    source_id: str
    server_id: int
    thread_id: int | None
    changes: int
    transactions: int
    bytes: int


@dataclass(frozen=True, slots=True)
class HotRow:
    """A row that was written again and again: at least `writes` times, and at most `writes_at_most` times."""

    source_id: str
    schema_name: str
    table_name: str
    pk_values: str
    writes: int
    writes_at_most: int


@dataclass(frozen=True, slots=True)
class Removal:
    """A statement that took tables, rows or columns away without listing them.

    `position` is that of its transaction, as `--transaction` takes it, and `--as-of` for what was there before.
    `removed` has names of databases, tables and columns; of a table, some partitions or all rows may be gone.
    """

    source_id: str
    position: str
    at: datetime | None
    thread_id: int | None
    statement: str
    removed: Sequence[str]


@dataclass(frozen=True, slots=True)
class Top:
    """The answer; `lacks` tells in sentences what it does not have."""

    step: Step
    changes: int
    transactions: int
    bytes: int
    first_at: datetime | None
    last_at: datetime | None
    tables: Sequence[TableSums]
    tables_in_all: int
    timeline: Sequence[Moment]
    median_changes: float
    spikes: Sequence[Spike]
    biggest: Sequence[TransactionSums]
    longest: Sequence[TransactionSums]
    removals: Sequence[Removal]
    removals_in_all: int
    threads: Sequence[ThreadSums]
    hot_rows: Sequence[HotRow]
    without_key: Sequence[str]
    lacks: Sequence[str] = field(default=())


def spikes_of(
    changes: dict[int, dict[int, int]], names: Sequence[tuple[str, str, str]], step: Step, limit: int
) -> tuple[float, list[Spike]]:
    """Return the median of the steps that have changes, and the steps with far more, the highest first.

    Parameters
    ----------
    changes
        Changes by number of the step and number of the table.
    names
        Source, schema and name of the tables by number.
    step
        Length of a step.
    limit
        Number of spikes.
    """
    sums = {number: sum(by_table.values()) for number, by_table in changes.items()}
    if not sums:
        return 0.0, []
    middle = float(median(sums.values()))
    found = sorted(
        (number for number, changed in sums.items() if changed >= SPIKE * middle), key=lambda n: (-sums[n], n)
    )
    return middle, [_spike(number, changes[number], sums[number] / middle, names, step) for number in found[:limit]]


def moment_of(number: int, step: Step) -> datetime:
    """Return the time at which a step begins."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=number * step.microseconds)


def _spike(
    number: int, by_table: dict[int, int], times: float, names: Sequence[tuple[str, str, str]], step: Step
) -> Spike:
    table = max(by_table, key=lambda one: by_table[one])
    _, schema, name = names[table]
    return Spike(moment_of(number, step), sum(by_table.values()), round(times, 1), schema, name, by_table[table])


def bars(timeline: Sequence[Moment], step: Step, width: int, height: int) -> list[str]:
    """Return a plot of the changes over time, as lines from top to bottom.

    A column is a step, or the highest of several steps if there are more than `width`.
    """
    if not timeline:
        return []
    numbers = [int(one.at.timestamp()) * 1_000_000 // step.microseconds for one in timeline]
    each = -(-(numbers[-1] - numbers[0] + 1) // width)
    columns = [0] * ((numbers[-1] - numbers[0]) // each + 1)
    for number, one in zip(numbers, timeline, strict=True):
        place = (number - numbers[0]) // each
        columns[place] = max(columns[place], one.changes)
    highest = max(columns) or 1
    eighths = [-(-8 * height * column // highest) for column in columns]
    return ["".join(_BLOCKS[min(max(n - 8 * row, 0), 8)] for n in eighths) for row in reversed(range(height))]


_BLOCKS: Final = " ▁▂▃▄▅▆▇█"
