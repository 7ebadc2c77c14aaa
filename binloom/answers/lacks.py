"""What an answer about row changes lacks, as notes."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from binloom.answers.connections import reused_ids
from ingest.words import counted, subject
from recover.notes import Kind, Note
from recover.selection.condition import Selection
from recover.selection.emptiness import NothingSelectedError, OutsideTheLogError
from recover.selection.filters import Filters
from recover.sources.cluster.thrift import NoClusterTableError
from recover.sources.log import Log, listed
from recover.timeline.as_of import Moment
from recover.timeline.masked_columns import masks_in_filters

if TYPE_CHECKING:
    from sqlglot import exp

    from ingest.binlog import Scan
    from ingest.binlog.byte_files import LogPath
    from ingest.sources.files.directory import BinlogPath

_GAPS_SHOWN: Final = 5
_FAILED: Final = "a part of the file could not be landed"
# Nothing bounds the time between a change and its commit.
_LONGEST_TRANSACTION: Final = timedelta(days=1)
# Each mart of missing parts: the columns of place and position, and an expression of what is missing there.
_GAPS: Final = {
    # A part that was read twice is not missing.
    "uncovered_bytes where defect <> 'overlap'": (
        *("epoch", "binlog_file", "range_start", "'a part of the file was not read'"),
    ),
    "failed_segments": ("epoch", "binlog_file", "segment_start", f"'{_FAILED}'"),
    "lost_events": ("epoch", "binlog_file", "start_pos", "'the server lost events (incident)'"),
    "file_breaks": (
        *("epoch", "binlog_file", "null::bigint"),
        "case when following_epoch <> epoch and defect = 'missing_files' then concat('the log begins anew after it, and"
        " its files before ', following_binlog_file, ' are not known')"
        " when defect = 'missing_files' then concat('the files between it and ', following_binlog_file,"
        " ' are not known') else 'the next file that is known does not continue this one' end",
    ),
    "stream_gaps": (
        *("from_epoch", "from_file", "from_pos"),
        "case when status = 'unproven' then 'it is not proved that nothing is missing after it'"
        " else 'what follows was not read from the server' end",
    ),
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

    @property
    def place(self) -> str:
        """Where it begins: a file, or a position in it."""
        return self.binlog_file if self.position is None else f"{self.binlog_file}:{self.position}"

    def __str__(self) -> str:
        from recover.sources.files.file_log import SOURCE

        owner = "" if self.source_id == SOURCE else f" of {self.source_id}"
        return f"{self.place}{owner}: {self.reason}"


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
    """Yield what filters mean other than a person may expect, and which sources have lost older files."""
    filters = selection.filters
    if (sentence := masks_in_filters(log, filters)) is not None:
        yield Note(sentence, Kind.MASKED)
    yield from map(Note, selection.notes)
    yield from reused_ids(log, selection)
    yield from beginning(log, filters.sources, filters.since)


def quarantine(log: Log, filters: Filters) -> Iterator[Note]:
    """Yield how many rows in quarantine an answer lacks."""
    if missing := log.quarantined(filters):
        yield Note(
            f"row events that are in quarantine are not shown: {listed(missing)}. {log.way_out_of_quarantine(missing)}",
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
    yield from unlanded(log)


def unlanded(log: Log) -> Iterator[Note]:
    """Yield which sources of a home lack rows because the command that landed them does not run any more."""
    from ingest.warehouse.broken_off import ADVICE, broken_off

    if log.is_landed and log.home is not None:
        found = Counter(source for source, *_ in broken_off(log.home))
        for source, count in sorted(found.items()):
            lost = subject(count, "segment", "is", "are")
            yield Note(f"a landing of source {source} broke off: {lost} missing. {ADVICE}", Kind.UNCERTAIN)


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
    import duckdb

    if filters.transactions or filters.change_ids:
        return
    try:
        found = _gaps_within(log, filters)
    except (duckdb.CatalogException, NoClusterTableError):
        yield Note(
            "gaps of the log are not known: their tables were not built yet. Run `binloom build`.", Kind.UNCERTAIN
        )
    else:
        yield from gap_notes(found)
    if not filters.files:
        yield from end(log, filters.until)
    elif log.open_transaction is not None and _file_of(log.open_transaction) in filters.files:
        yield without_end(log.open_transaction)


def end(log: Log, until: datetime | None = None) -> Iterator[Note]:
    """Yield that the log continues after the given files, or inside a transaction, if the answer lacks changes so.

    Parameters
    ----------
    until
        End of the time that the answer is about; None: it has none.
    """
    if log.goes_on_after is log.open_transaction is None:
        return
    last = max(_times_of_files(log), default=None) if until is not None else None
    if until is not None and last is not None and _is_long_after(last.last, until):
        return
    if log.open_transaction is not None:
        yield without_end(log.open_transaction)
    if log.goes_on_after is not None:
        yield _goes_on(log.goes_on_after)


def end_at(log: Log, moment: Moment) -> Iterator[Note]:
    """Yield that the files end inside a transaction, if an answer is about a moment after their end."""
    if moment.is_end and f"{moment.binlog_file}:{moment.place.pos}" == log.open_transaction:
        yield without_end(log.open_transaction)


def without_end(place: str) -> Note:
    """Return that the log ends inside the transaction at a place."""
    return Note(
        f"the transaction at {place} has no end in the file, so its rows are left out: the server was still writing"
        " it, or the file is cut.",
        Kind.END,
    )


def _file_of(place: str) -> str:
    return place.rpartition(":")[0]


def _goes_on(file: str) -> Note:
    return Note(f"the log goes on after {file}, in files that were not given: later changes are not known.", Kind.END)


def behind(log: Log, source_id: str, moment: Moment) -> Iterator[Note]:
    """Yield which parts of the log are missing behind a moment that is its end only because they are."""
    import duckdb

    from ingest.warehouse.segments import log_place

    if not moment.is_end:
        return
    try:
        found = _without_reason(log, gaps_of(log, [source_id]))
    except (duckdb.CatalogException, NoClusterTableError):
        return
    own = moment.place[:2]
    places = ((gap, (gap.epoch or 0, log_place(gap.binlog_file, 0)[0])) for gap in found)
    yield from gap_notes(
        [
            gap
            for gap, place in places
            if place > own or (place == own and (gap.position is None or gap.position >= moment.place.pos))
        ]
    )


def gap_notes(found: Sequence[Gap]) -> Iterator[Note]:
    """Yield which parts of the log are missing."""
    for gap in found[:_GAPS_SHOWN]:
        yield Note(f"the log has a gap at {gap}.", Kind.UNCERTAIN)
    if len(found) > _GAPS_SHOWN:
        yield Note(f"the log has {counted(len(found) - _GAPS_SHOWN, 'more gap')}.", Kind.UNCERTAIN)


def gaps_of(log: Log, sources: Sequence[str] = ()) -> list[Gap]:
    """Return the parts of the log that are missing, in its order."""
    return [gap for gap in _gaps(log.rows) if not sources or gap.source_id in sources]


def gaps_of_scans(scans: "Mapping[BinlogPath, Scan]", filters: Filters, unread: Collection[str] = ()) -> list[Gap]:
    """Return the parts that files lack in which selected changes may be, as far as their inventories show these.

    Parameters
    ----------
    scans
        The files in the order of the log.
    filters
        Of times.
    unread
        Names of files that are not read as a whole, which is told with the reason.

    Returns
    -------
    list[Gap]
        Without the transaction inside which the last file ends.
    """
    from recover.sources.engine import in_memory
    from recover.sources.files.file_log import SOURCE, open_transaction
    from recover.sources.files.missing_parts import TABLES, add_missing_parts

    ends = {file.name: scan.complete_end for file, scan in scans.items() if file.name in unread}
    with closing(in_memory()) as connection:
        connection.execute(TABLES)
        add_missing_parts(connection, SOURCE, [*scans.items()], ends, has_all_transactions=False)
        found = _gaps(lambda query: iter(connection.execute(query.sql("duckdb")).fetchall()))
    times = [
        _TimesOfFile(SOURCE, 0, file.sequence or 0, scan.first_event_at, scan.last_event_at)
        for file, scan in scans.items()
    ]
    told = open_transaction(*list(scans.items())[-1])
    found = [gap for gap in found if gap.reason != _FAILED and gap.place != told]
    return [gap for gap in found if _may_be_within(gap, times, filters)]


def _gaps(ask: "Callable[[exp.Query], Iterator[tuple[Any, ...]]]") -> list[Gap]:
    query = " union all ".join(
        f"select source_id, {epoch} as epoch, {file} as binlog_file, {position} as position, {reason} as reason"
        f" from binloom_quality.{mart}"
        for mart, (epoch, file, position, reason) in _GAPS.items()
    )
    found = (Gap(*row) for row in ask(_parsed(query)))
    return sorted(found, key=lambda gap: (gap.source_id, gap.epoch or 0, gap.binlog_file, gap.position or 0))


def _without_reason(log: Log, found: Iterable[Gap]) -> list[Gap]:
    """Return the gaps that nothing else tells: damage and an open transaction are told of with the reason."""
    return [gap for gap in found if (gap.reason != _FAILED or not log.problems) and gap.place != log.open_transaction]


def _gaps_within(log: Log, filters: Filters) -> list[Gap]:
    """Return the gaps in which selected changes may be."""
    found = _without_reason(log, gaps_of(log, filters.sources))
    if filters.files:
        return [gap for gap in found if gap.binlog_file in filters.files and gap.position is not None]
    if not found or filters.since is filters.until is None:
        return found
    files = sorted(_times_of_files(log))
    return [gap for gap in found if _may_be_within(gap, files, filters)]


@dataclass(frozen=True, slots=True, order=True)
class _TimesOfFile:
    """When the first and the last transaction of a file were committed, as far as that is known."""

    source_id: str
    epoch: int
    file_sequence: int
    first: datetime | None = field(compare=False)
    last: datetime | None = field(compare=False)


def _times_of_files(log: Log) -> Iterator[_TimesOfFile]:
    query = """select
            source_id, epoch, coalesce(file_sequence, 0) as file_sequence, arg_min(committed_at, start_pos) as first_at,
            arg_max(committed_at, start_pos) as last_at
        from binloom.transactions group by source_id, epoch, coalesce(file_sequence, 0)"""
    return (_TimesOfFile(*row) for row in log.rows(_parsed(query)))


def _may_be_within(gap: Gap, files: Sequence[_TimesOfFile], filters: Filters) -> bool:
    """Return whether a gap may lack changes of a time. The neighbours are of other files than the one with the gap.

    What is lost was committed before the next transaction in the log, and changes are older than their commit.
    """
    from ingest.warehouse.segments import log_place

    place = (gap.epoch or 0, log_place(gap.binlog_file, 0)[0])
    own = [file for file in files if file.source_id == gap.source_id]
    # A gap without a position is after its file.
    behind = place if gap.position is not None else (*place, 0)
    before = [file for file in own if (file.epoch, file.file_sequence) < behind]
    after = [file for file in own if (file.epoch, file.file_sequence) > place]
    is_over = filters.since is not None and after and after[0].first is not None and after[0].first < filters.since
    return not is_over and not (filters.until is not None and before and _is_long_after(before[-1].last, filters.until))


def _is_long_after(at: datetime | None, until: datetime) -> bool:
    """Return whether what was committed after a moment has no change before another one, in any usual transaction."""
    return at is not None and at - until > _LONGEST_TRANSACTION


def _parsed(query: str) -> "exp.Query":
    """Return a query of DuckDB, which a cluster gets in its own words."""
    from sqlglot import exp, parse_one

    found = parse_one(query, dialect="duckdb")
    assert isinstance(found, exp.Query)
    return found


def beside_files(
    files: "Sequence[LogPath]", *, until: datetime | None = None, is_inside: bool = False, tells_gaps: bool = False
) -> Iterator[Note]:
    """Yield which changes are in files that were not given, between these and after the last one.

    Parameters
    ----------
    until
        End of the time that the answer is about; None: it has none.
    is_inside
        Whether the answer is only about what these files have.
    tells_gaps
        Whether the answer itself tells which files are missing between these.
    """
    from ingest.binlog import scan_binlog
    from recover.sources.files.file_log import open_transaction, placed

    known = placed(files)
    for one, other in pairwise(known):
        if not tells_gaps and (other.sequence or 0) > (one.sequence or 0) + 1:
            yield Note(
                f"files between {one.name} and {other.name} were not given: their changes are not known.",
                Kind.UNCERTAIN,
            )
    last = known[-1]
    if is_inside:
        return
    scan = scan_binlog(last.path)
    if until is not None and _is_long_after(scan.last_event_at, until):
        return
    if (place := open_transaction(last, scan)) is not None:
        yield without_end(place)
    if scan.is_closed:
        yield _goes_on(last.name)
    else:
        yield Note(f"the files end at {last.name}:{scan.complete_end}; later changes are not known.")


def damage(log: Log) -> Iterator[Note]:
    """Yield why rows of damaged files are missing."""
    for problem in log.problems:
        yield Note(str(problem), Kind.DAMAGED)
