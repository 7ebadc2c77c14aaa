"""Which parts of the log are known, and how far they can be trusted."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from binloom.answers import lacks
from binloom.answers.answer import Answer, Cells, known_fields
from binloom.answers.lacks import Gap, gap_notes, gaps_of
from ingest.words import subject
from recover.notes import Kind, Note
from recover.selection.filters import Filters
from recover.sources.log import Log, Quarantined, listed
from recover.timeline.masked_columns import masked_tables

if TYPE_CHECKING:
    from ingest.follow.overview import SourceStatus

Place = tuple[str, int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoveredFile:
    """A binlog file with transactions that are known, or a landed one.

    Attributes
    ----------
    state
        Of a landed file: `landed`, `partly landed`, `failed`, `in progress`, `broken off` or `left out`; otherwise
        `decoded`.
    bytes_landed, file_size
        Of a landed file.
    row_events
        None if that is not known.
    first_commit_at, last_commit_at
        Times of its first and last transaction.
    error
        Why a part of a landed file failed.
    """

    source_id: str
    epoch: int
    binlog_file: str
    state: str
    bytes_landed: int | None
    file_size: int | None
    transactions: int
    row_events: int | None
    first_commit_at: datetime | None
    last_commit_at: datetime | None
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CoveredSource:
    """A landed source.

    Attributes
    ----------
    epoch
        The current one. Another one begins when the log of the server starts over.
    last_file, last_pos, last_event_at
        Where the landed part of the log ends.
    lag_seconds
        Seconds since the last landed event; for a followed server, 0 if all that it has logged is landed.
    """

    source_id: str
    epoch: int | None
    flavor: str | None
    server_version: str | None
    last_file: str | None
    last_pos: int | None
    last_event_at: datetime | None
    lag_seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedColumn:
    """A column whose landed values are not those of the server."""

    source_id: str
    schema_name: str
    table_name: str
    column_name: str
    method: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Proved:
    """The proofs of the last build.

    Attributes
    ----------
    proofs
        Number of proofs.
    violated
        Violations by the name of the proof; empty if all proofs hold.
    is_stale
        Whether something has landed since, which they do not cover.
    """

    proofs: int
    violated: Mapping[str, int]
    is_stale: bool


@dataclass(frozen=True, kw_only=True)
class Coverage(Answer[CoveredFile]):
    """The files of the log in its order, and what is known of the log as a whole.

    Attributes
    ----------
    sources
        Sources that have landed.
    quarantine
        Rows whose names or values are not known with certainty.
    gaps
        Parts of the log that are missing.
    masked
        Columns that are masked.
    proved
        The proofs of the last build; None if nothing was built, and for files.
    """

    sources: tuple[CoveredSource, ...]
    quarantine: tuple[Quarantined, ...]
    gaps: tuple[Gap, ...]
    masked: tuple[MaskedColumn, ...]
    proved: Proved | None


COLUMNS: Final = tuple(one.name for one in fields(CoveredFile))


def coverage_of(log: Log, sources: Sequence[str] = ()) -> Coverage:
    """Return which parts of the log are known, of all sources or of some.

    Parameters
    ----------
    log
        It has the marts of `table_log`.

    Raises
    ------
    UnknownSourceError
        Nothing has landed under a name.
    """
    home = log.home if log.is_landed else None
    landed = [] if home is None else _landed(home, sources)
    files = [*_files(log, sources, landed)]
    quarantine = log.quarantined(Filters(sources=tuple(sources)))
    gaps = gaps_of(log, sources)
    proved = None if home is None else _proved(home, sources)
    notes = (
        *lacks.beginning(log, sources),
        *gap_notes(gaps),
        *_on_quarantine(quarantine),
        *_on_proofs(home, proved),
        *lacks.end(log),
        *lacks.damage(log),
    )
    return Coverage(
        columns=COLUMNS,
        notes=notes,
        read=lambda: iter(files),
        as_row=known_fields(CoveredFile),
        sources=tuple(map(_source, landed)),
        quarantine=tuple(quarantine),
        gaps=tuple(gaps),
        masked=tuple(_masked(log, sources)),
        proved=proved,
    )


def _masked(log: Log, sources: Sequence[str]) -> Iterator[MaskedColumn]:
    for source in sorted({one.source_id for one in log.versions}):
        if source in (sources or (source,)):
            for (schema, table), columns in sorted(masked_tables(log, source).items()):
                for name, method in sorted(columns.items()):
                    yield MaskedColumn(
                        source_id=source, schema_name=schema, table_name=table, column_name=name, method=method
                    )


def _landed(home: Path, sources: Sequence[str]) -> "list[SourceStatus]":
    from ingest.follow.overview import status

    return [one for source in sources or (None,) for one in status(source, home)]


def _files(log: Log, sources: Sequence[str], landed: "Sequence[SourceStatus]") -> Iterator[Cells]:
    """Yield the landed files, and others with transactions."""
    known = _transactions(log, sources)
    for source in landed:
        for file in source.files:
            _, _, first, last = known.pop((source.source_id, file.epoch, file.binlog_file), (0, None, None, None))
            place = (source.source_id, file.epoch, file.binlog_file)
            numbers = (file.bytes_landed, file.file_size, file.transactions, file.row_events)
            yield (*place, file.state, *numbers, first, last, file.error)
    for place, (transactions, row_events, first, last) in known.items():
        yield (*place, "decoded", None, None, transactions, row_events, first, last, None)


def _transactions(log: Log, sources: Sequence[str]) -> dict[Place, tuple[int, int | None, datetime, datetime]]:
    """Return number, row events, first and last time of the transactions by file, in the order of the log."""
    from sqlglot import exp

    place = ("source_id", "epoch", "binlog_file")
    query = (
        exp.select(*place, "count(*)", "sum(row_events)", "min(committed_at)", "max(committed_at)")
        .from_("binloom.transactions")
        .group_by(*place)
        .order_by("source_id", "epoch", "min(file_sequence)")
    )
    rows = (row for row in log.rows(query) if row[0] in (sources or (row[0],)))
    return {
        (source, epoch, file): (number, None if row_events is None else int(row_events), first, last)
        for source, epoch, file, number, row_events, first, last in rows
    }


def _source(one: "SourceStatus") -> CoveredSource:
    return CoveredSource(
        source_id=one.source_id,
        epoch=one.epoch,
        flavor=one.flavor,
        server_version=one.server_version,
        last_file=one.last_landed_file,
        last_pos=one.last_landed_pos,
        last_event_at=one.last_event_at,
        lag_seconds=one.lag_seconds,
    )


def _proved(home: Path, sources: Sequence[str]) -> Proved | None:
    from ingest.quality.proofs import read_proofs

    violated: Counter[str] = Counter()
    found = None
    for source in sources or (None,):
        found = read_proofs(source, home)
        for proof in () if found is None else found.results:
            violated[proof.name] += proof.violations
    if found is None:
        return None
    return Proved(proofs=len(found.results), violated=dict(+violated), is_stale=found.is_stale)


def _on_quarantine(quarantine: Sequence[Quarantined]) -> Iterator[Note]:
    if quarantine:
        yield Note(f"row events are in quarantine: {listed(quarantine)}.", Kind.QUARANTINE)


def _on_proofs(home: Path | None, proved: Proved | None) -> Iterator[Note]:
    if home is None:
        return
    if proved is None:
        yield Note("nothing was built, so nothing proves that no row is missing.", Kind.NOT_BUILT)
        return
    if proved.is_stale:
        yield Note("something has landed since the last build: its proofs do not cover that.", Kind.NOT_BUILT)
    if proved.violated:
        names = ", ".join(sorted(proved.violated))
        found = subject(len(proved.violated), "proof", "does", "do")
        yield Note(f"{found} not hold: {names}. docs/quality.md explains each.", Kind.UNCERTAIN)
