"""What an answer about row changes lacks, as notes."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from recover.notes import Kind, Note
from recover.selection.condition import Selection
from recover.selection.emptiness import NothingSelectedError, OutsideTheLogError
from recover.selection.filters import Filters
from recover.sources.log import Log, listed
from recover.timeline.masked_columns import masks_in_filters


def doubts(log: Log, selection: Selection) -> Iterator[Note]:
    """Yield which of the filtered columns are masked or have other types, and which sources have lost older files."""
    filters = selection.filters
    if (sentence := masks_in_filters(log, filters)) is not None:
        yield Note(sentence, Kind.MASKED)
    yield from map(Note, selection.notes)
    yield from beginning(log, filters.sources, filters.since)


def quarantine(log: Log, filters: Filters) -> Iterator[Note]:
    """Yield how many rows in quarantine an answer lacks."""
    if missing := log.quarantined(filters):
        yield Note(
            f"row events that are in quarantine are not shown: {listed(missing)}."
            " docs/questions.md tells how to see them.",
            Kind.QUARANTINE,
        )


def nothing(log: Log, selection: Selection) -> Iterator[Note]:
    """Yield why nothing is selected.

    Raises
    ------
    UsageError
        A name, place or time does not exist, or all rows are in quarantine: that is a mistake. Filters that fit
        nothing are an answer.
    """
    reason = log.why_nothing(selection)
    if not isinstance(reason, NothingSelectedError) or isinstance(reason, OutsideTheLogError):
        raise reason
    yield from quarantine(log, selection.filters)
    yield Note(str(reason))


def beginning(log: Log, sources: Sequence[str], since: datetime | None = None) -> Iterator[Note]:
    """Yield where the log of each source begins, if older files expired and the answer may need them.

    Without `sources`, check all sources.
    """
    for source, one in log.beginnings.items():
        is_later = since is not None and one.last_event_at is not None and since > one.last_event_at
        if source in (sources or (source,)) and not is_later:
            yield Note(str(one), Kind.BEGINNING)


def end(log: Log) -> Iterator[Note]:
    """Yield that the log continues after the given files, so that the answer lacks later changes."""
    if log.goes_on_after is not None:
        yield Note(
            f"the log goes on after {log.goes_on_after}, in files that were not given: later changes are not known.",
            Kind.END,
        )


def damage(log: Log) -> Iterator[Note]:
    """Yield why rows of damaged files are missing."""
    for problem in log.problems:
        yield Note(str(problem), Kind.DAMAGED)
