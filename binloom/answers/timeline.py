"""Row changes over time, those that filters select beside all others."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from binloom.answers import lacks
from binloom.answers.lacks import Gap
from binloom.answers.schema_changes import SchemaChange, found_schema_changes
from recover.questions.timeline import span_query, step_of, timeline_query
from recover.selection.condition import Selection
from recover.selection.filters import Filters
from recover.sources.files.more_rows import Rest
from recover.sources.log import Log

_LEAST_AROUND: Final = timedelta(minutes=5)
_MOST_GAPS: Final = 20
# Not exceeded by much. A third of them are before and after the selected changes.
_MOST_STEPS: Final = 120


@dataclass(frozen=True, slots=True)
class Step:
    """Row changes between two moments.

    Attributes
    ----------
    at
        The beginning, in UTC.
    selected
        Number of selected row changes by table.
    others
        Number of row changes of the same time that the filters do not select.
    """

    at: datetime
    selected: dict[str, int]
    others: int


@dataclass(frozen=True, slots=True)
class TimedGap:
    """A part of the log that is missing, and the time of the first transaction after it, in UTC."""

    at: datetime
    gap: Gap


@dataclass(frozen=True, slots=True)
class Timeline:
    """The time around selected changes.

    Attributes
    ----------
    first, last
        Times of the first and the last selected change; None if nothing is selected.
    changes
        Number of selected changes.
    step
        Length of a step.
    steps
        Steps in their order, also those without changes.
    definitions
        Statements of that time that define, alter, empty or drop tables or databases.
    gaps
        Parts of the log that are missing in that time: the first ones, if there are many.
    """

    first: datetime | None
    last: datetime | None
    changes: int
    step: timedelta
    steps: tuple[Step, ...]
    definitions: tuple[SchemaChange, ...] = ()
    gaps: tuple[TimedGap, ...] = ()

    @property
    def tables(self) -> dict[str, int]:
        """Number of selected changes by table, most first."""
        found: dict[str, int] = {}
        for step in self.steps:
            for table, count in step.selected.items():
                found[table] = found.get(table, 0) + count
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def timeline_of(log: Log, filters: Filters) -> Timeline:
    """Return the selected changes over time, and the others around them.

    Parameters
    ----------
    log
        It has all row changes.
    """
    selection = log.select(filters)
    first, last, changes = next(log.rows(span_query(selection)))
    if first is None:
        return Timeline(None, None, changes, timedelta(seconds=1), ())
    first, last = first.astimezone(UTC), last.astimezone(UTC)
    step, begin, end = _steps(filters, first, last)
    selected = _sums(log, selection, step)
    # The filters of place stay: changes of other sources are of other servers.
    near = Filters(sources=filters.sources, since=_time(begin, step), until=_time(end + 1, step))
    everything = _sums(log, log.select(near), step) if filters.is_selective else selected
    steps = []
    for number in range(begin, end + 1):
        own = selected.get(number, {})
        others = sum(everything.get(number, {}).values()) - sum(own.values())
        steps.append(Step(_time(number, step), own, max(0, others)))
    gaps = (one for one in _timed_gaps(log, filters.sources) if _time(begin, step) <= one.at < _time(end + 1, step))
    return Timeline(first, last, changes, step, tuple(steps), tuple(_on_tables(log, near)), tuple(gaps))


def _on_tables(log: Log, filters: Filters) -> Iterator[SchemaChange]:
    """Yield the statements on tables and databases, without those on accounts."""
    return (one for one in found_schema_changes(log, filters) if one.tables or one.schema_name)


def rest_of_timeline(log: Log, filters: Filters) -> Iterator[Rest]:
    """Yield the rows that `timeline_of` needs besides the selected ones, and with the same parameters."""
    first, last, _ = next(log.rows(span_query(log.select(filters))))
    if first is not None:
        step, begin, end = _steps(filters, first.astimezone(UTC), last.astimezone(UTC))
        yield Rest(since=_time(begin, step), until=_time(end + 1, step))


def _timed_gaps(log: Log, sources: Sequence[str]) -> Iterator[TimedGap]:
    """Yield the gaps that transactions follow."""
    from sqlglot import exp

    from ingest.warehouse.segments import log_place

    def first_after(gap: Gap) -> exp.Expr:
        epoch, sequence = gap.epoch or 0, log_place(gap.binlog_file, 0)[0]
        in_file = "" if gap.position is None else f" or (file_sequence = {sequence} and start_pos >= {gap.position})"
        place = f"epoch > {epoch} or (epoch = {epoch} and (file_sequence > {sequence}{in_file}))"
        of_source = exp.and_(exp.column("source_id").eq(gap.source_id), place)
        first: exp.Expr = exp.maybe_parse("min(coalesce(started_at, committed_at))")
        return exp.Filter(this=first, expression=exp.Where(this=of_source))

    gaps = lacks.gaps_of(log, sources)[:_MOST_GAPS]
    if not gaps:
        return
    # The transactions are read once, however many gaps there are.
    columns = (exp.alias_(first_after(gap), f"gap_{number}") for number, gap in enumerate(gaps))
    (times,) = log.rows(exp.select(*columns).from_("binloom.transactions"))
    for gap, at in zip(gaps, times, strict=True):
        if at is not None:
            yield TimedGap(at.astimezone(UTC), gap)


def _steps(filters: Filters, first: datetime, last: datetime) -> tuple[timedelta, int, int]:
    """Return the length of a step, and the numbers of the first and the last one, around selected changes."""
    # A change alone says little: what others did in the minutes around it may be the reason.
    around = max((last - first) / 4, _LEAST_AROUND if filters.is_selective else timedelta(seconds=1))
    step = step_of(first - around, last + around, _MOST_STEPS)
    return step, _number(first - around, step), _number(last + around, step)


def _sums(log: Log, selection: Selection, step: timedelta) -> dict[int, dict[str, int]]:
    found: dict[int, dict[str, int]] = {}
    for number, schema, table, changes in log.rows(timeline_query(selection, step)):
        found.setdefault(number, {})[f"{schema}.{table}"] = changes
    return found


def _number(time: datetime, step: timedelta) -> int:
    return (time - datetime.fromtimestamp(0, UTC)) // step


def _time(number: int, step: timedelta) -> datetime:
    return datetime.fromtimestamp(0, UTC) + number * step
