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
from recover.sources.engine import literal
from recover.sources.log import Log, listed
from recover.timeline.masked_columns import masks_in_filters

if TYPE_CHECKING:
    from sqlglot import exp

    from ingest.binlog.byte_files import LogPath

_GAPS_SHOWN: Final = 5
# Each mart of missing parts: the columns of place and position, and an expression of what is missing there.
_GAPS: Final = {
    # A part that was read twice is not missing.
    "uncovered_bytes where defect <> 'overlap'": (
        *("epoch", "binlog_file", "range_start", "'a part of the file was not read'"),
    ),
    "failed_segments": ("epoch", "binlog_file", "segment_start", "'a part of the file could not be landed'"),
    "lost_events": ("epoch", "binlog_file", "start_pos", "'the server lost events (incident)'"),
    "file_breaks": (
        *("epoch", "binlog_file", "null::bigint"),
        "case when defect = 'missing_files' then concat('the files between it and ', following_binlog_file,"
        " ' are not known') else 'the next file that is known does not continue this one' end",
    ),
    "stream_gaps": ("from_epoch", "from_file", "from_pos", "'the server no longer had what follows'"),
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
    yield from missing(log, selection.filters)
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


def missing(log: Log, filters: Filters) -> Iterator[Note]:
    """Yield which parts of the log are missing in which selected changes may be, and that it goes on after its end."""
    if filters.transactions or filters.change_ids:
        return
    yield from gap_notes(_gaps_within(log, filters))
    if not filters.files:
        yield from end(log, filters.until)


def end(log: Log, until: datetime | None = None) -> Iterator[Note]:
    """Yield that the log continues after the given files, so that the answer lacks changes before a moment."""
    if log.goes_on_after is None:
        return
    if until is not None:
        ((last,),) = log.rows(_parsed("select max(committed_at) from binloom.transactions"))
        if last is not None and until <= last:
            return
    yield _goes_on(log.goes_on_after)


def _goes_on(file: str) -> Note:
    return Note(f"the log goes on after {file}, in files that were not given: later changes are not known.", Kind.END)


def gap_notes(found: Sequence[Gap]) -> Iterator[Note]:
    """Yield which parts of the log are missing."""
    for gap in found[:_GAPS_SHOWN]:
        yield Note(f"the log has a gap at {gap}.", Kind.UNCERTAIN)
    if len(found) > _GAPS_SHOWN:
        yield Note(f"the log has {counted(len(found) - _GAPS_SHOWN, 'more gap')}.", Kind.UNCERTAIN)


def gaps_of(log: Log, sources: Sequence[str] = ()) -> list[Gap]:
    """Return the parts of the log that are missing, in its order."""
    query = " union all ".join(
        f"select source_id, {epoch} as epoch, {file} as binlog_file, {position} as position, {reason} as reason"
        f" from binloom_quality.{mart}"
        for mart, (epoch, file, position, reason) in _GAPS.items()
    )
    found = [Gap(*row) for row in log.rows(_parsed(query)) if not sources or row[0] in sources]
    return sorted(found, key=lambda gap: (gap.source_id, gap.epoch or 0, gap.binlog_file, gap.position or 0))


def _gaps_within(log: Log, filters: Filters) -> list[Gap]:
    """Return the gaps in which selected changes may be."""
    found = gaps_of(log, filters.sources)
    if filters.files:
        return [gap for gap in found if gap.binlog_file in filters.files and gap.position is not None]
    if not found or filters.since is filters.until is None:
        return found
    since, until = filters.since, filters.until
    return [
        gap
        for gap, (before, after) in zip(found, times_around(log, found), strict=True)
        if (since is None or after is None or since < after) and (until is None or before is None or before < until)
    ]


def times_around(log: Log, gaps: Sequence[Gap]) -> Iterator[tuple[datetime | None, datetime | None]]:
    """Yield the times of the last transaction before each gap and of the first after it; None if there is none.

    The transactions are read once, however many gaps there are.
    """
    from ingest.warehouse.segments import log_place

    columns = []
    for gap in gaps:
        epoch, sequence = gap.epoch or 0, log_place(gap.binlog_file, 0)[0]
        in_file = "false" if gap.position is None else f"file_sequence = {sequence} and start_pos >= {gap.position}"
        is_after = f"(epoch > {epoch} or (epoch = {epoch} and (file_sequence > {sequence} or {in_file})))"
        source = f"source_id = {literal(gap.source_id)}"
        columns.append(f"max(committed_at) filter (where {source} and not {is_after})")
        columns.append(f"min(coalesce(started_at, committed_at)) filter (where {source} and {is_after})")
    if gaps:
        (times,) = log.rows(_parsed(f"select {', '.join(columns)} from binloom.transactions"))
        yield from zip(times[::2], times[1::2], strict=True)


def _parsed(query: str) -> "exp.Query":
    """Return a query of DuckDB, which a cluster gets in its own words."""
    from sqlglot import exp, parse_one

    found = parse_one(query, dialect="duckdb")
    assert isinstance(found, exp.Query)
    return found


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
