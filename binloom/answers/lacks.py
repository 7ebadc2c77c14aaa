"""What an answer about row changes lacks, as notes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from ingest.words import counted
from recover.notes import Kind, Note
from recover.selection.condition import Selection
from recover.selection.emptiness import NothingSelectedError, OutsideTheLogError
from recover.selection.filters import Filters
from recover.sources.log import Log, listed
from recover.timeline.masked_columns import masks_in_filters

if TYPE_CHECKING:
    from sqlglot import exp

    from ingest.binlog.byte_files import LogPath

_GAPS_SHOWN: Final = 5
# Each mart of missing parts: the columns of place and position, and what is missing there. A condition may follow.
_GAPS: Final = {
    "uncovered_bytes": ("epoch", "binlog_file", "range_start", "a part of the file was not read"),
    "failed_segments": ("epoch", "binlog_file", "segment_start", "a part of the file could not be landed"),
    "lost_events": ("epoch", "binlog_file", "start_pos", "the server lost events (incident)"),
    "file_breaks": ("epoch", "binlog_file", None, "the next file that is known does not continue this one"),
    "stream_gaps": ("from_epoch", "from_file", "from_pos", "the server no longer had what follows"),
}


@dataclass(frozen=True, slots=True)
class Gap:
    """A part of the log that is missing.

    Attributes
    ----------
    position
        Where it begins in the file; None if it is after the file.
    reason
        What is missing there.
    """

    source_id: str
    epoch: int | None
    binlog_file: str
    position: int | None
    reason: str

    def __str__(self) -> str:
        place = self.binlog_file if self.position is None else f"{self.binlog_file}:{self.position}"
        return f"{place} of {self.source_id}: {self.reason}"


def of_selection(log: Log, selection: Selection, *, is_explained: bool) -> Iterator[Note]:
    """Yield what an answer about a selection lacks; if there is nothing to show and that `is_explained`, also why.

    Raises
    ------
    UsageError
        There is nothing to show because of a mistake.
    """
    yield from doubts(log, selection)
    yield from nothing(log, selection) if is_explained else quarantine(log, selection.filters)
    yield from damage(log)


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
        yield _goes_on(log.goes_on_after)


def _goes_on(file: str) -> Note:
    return Note(f"the log goes on after {file}, in files that were not given: later changes are not known.", Kind.END)


def gaps(log: Log, sources: Sequence[str] = ()) -> Iterator[Note]:
    """Yield which parts of the log are missing, of all sources or of some; the log has the marts of `table_log`."""
    yield from gap_notes(gaps_of(log, sources))


def gap_notes(found: Sequence[Gap]) -> Iterator[Note]:
    """Yield which parts of the log are missing."""
    for gap in found[:_GAPS_SHOWN]:
        yield Note(f"the log has a gap at {gap}.", Kind.UNCERTAIN)
    if len(found) > _GAPS_SHOWN:
        yield Note(f"the log has {counted(len(found) - _GAPS_SHOWN, 'more gap')}.", Kind.UNCERTAIN)


def gaps_of(log: Log, sources: Sequence[str] = ()) -> list[Gap]:
    """Return the parts of the log that are missing, in its order; the log has the marts of `table_log`."""
    found = [
        Gap(source, epoch, file, position, reason)
        for mart, (*place, reason) in _GAPS.items()
        for source, epoch, file, position in log.rows(_gaps_query(mart, place))
        if source in (sources or (source,))
    ]
    return sorted(found, key=lambda gap: (gap.source_id, gap.epoch or 0, gap.binlog_file, gap.position or 0))


def _gaps_query(mart: str, place: Sequence[str | None]) -> "exp.Query":
    from sqlglot import exp

    columns = [exp.null() if column is None else exp.column(column) for column in place]
    query = exp.select("source_id", *columns).from_(f"binloom_quality.{mart}")
    # A part that was read twice is not missing.
    return query.where("defect <> 'overlap'") if mart == "uncovered_bytes" else query


def beside_files(
    files: "Sequence[LogPath]", *, until: datetime | None = None, is_inside: bool = False
) -> Iterator[Note]:
    """Yield which changes are in files that were not given, between these and after the last one.

    Parameters
    ----------
    until
        End of the time that the answer is about; None: it has none.
    is_inside
        Whether the answer is only about what these files have.
    """
    from ingest.binlog import scan_binlog
    from recover.sources.files import placed

    known = placed(files)
    for one, other in pairwise(known):
        if (other.sequence or 0) > (one.sequence or 0) + 1:
            yield Note(
                f"files between {one.name} and {other.name} were not given: their changes are not known.",
                Kind.UNCERTAIN,
            )
    last = known[-1]
    if is_inside:
        return
    scan = scan_binlog(last.path)
    is_before = until is not None and scan.last_event_at is not None and until <= scan.last_event_at
    if scan.is_closed and not is_before:
        yield _goes_on(last.name)
    elif not is_before:
        yield Note(f"the files end at {last.name}:{scan.complete_end}; later changes are not known.")


def damage(log: Log) -> Iterator[Note]:
    """Yield why rows of damaged files are missing."""
    for problem in log.problems:
        yield Note(str(problem), Kind.DAMAGED)
