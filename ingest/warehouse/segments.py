"""Segments and their states, which record the landed ranges of binlog files."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Self, get_args

from ingest.sources.files.directory import binlog_path

# A compacted segment is `completed`. The segments that it was made of are `replaced`, and `removed` when their files
# are deleted. A `skipped` segment is not landed, by decision. An `expired` segment was landed, and `binloom expire`
# dropped its rows: its state is the record of them, and it is not landed again.
Status = Literal["in_progress", "failed", "skipped", "completed", "replaced", "removed", "expired"]

# When two rows of a segment were recorded in the same microsecond, the later state wins.
STATUSES: tuple[str, ...] = get_args(Status)

# Every binlog file starts with a magic number of four bytes; its first event follows.
FIRST_EVENT = 4

# A compacted segment covers the whole file with its magic number. No other segment starts at 0, so no other segment
# has its folder.
COMPACTED_START = 0


@dataclass(frozen=True, order=True)
class Segment:
    """A range of one binlog file from a transaction's start to a transaction's end.

    Attributes
    ----------
    source_id, epoch, binlog_file
        The file.
    start, end
        Physical offsets in the file, in bytes; `end` is just after the last byte.
    """

    source_id: str
    epoch: int
    binlog_file: str
    start: int
    end: int

    @property
    def partition(self) -> dict[str, str | int]:
        """Partition values of the segment's rows, in the order of the folders."""
        return {
            "source_id": self.source_id,
            "epoch": self.epoch,
            "binlog_file": self.binlog_file,
            "segment_start": self.start,
        }

    @property
    def key(self) -> tuple[str, int, str, int]:
        """Key of the segment: source, epoch, file and start."""
        return self.source_id, self.epoch, self.binlog_file, self.start

    @property
    def size(self) -> int:
        """Number of bytes."""
        return self.end - self.start

    @property
    def first_byte(self) -> int:
        """Offset at which the first event begins: a compacted segment also covers the magic number."""
        return max(self.start, FIRST_EVENT)

    def state(self, status: Status, run_id: str, recorded_at: datetime, **facts: Any) -> "SegmentState":
        """Return a new state of the segment."""
        return SegmentState(
            source_id=self.source_id,
            epoch=self.epoch,
            binlog_file=self.binlog_file,
            segment_start=self.start,
            segment_end=self.end,
            status=status,
            run_id=run_id,
            recorded_at=recorded_at,
            **facts,
        )


@dataclass(frozen=True, kw_only=True)
class SegmentState:
    """A state of a segment: a row of table `segments`, whose columns `ingest.warehouse.tables` describes.

    The optional columns are None where they do not apply, and where an older version of binloom did not have them.
    """

    source_id: str
    epoch: int
    binlog_file: str
    segment_start: int
    segment_end: int
    status: Status
    row_events: int | None = None
    transactions: int | None = None
    min_event_at: datetime | None = None
    max_event_at: datetime | None = None
    error: str | None = None
    run_id: str
    recorded_at: datetime
    table_filter: str | None = None
    gtids: str | None = None
    hints_used: str | None = None

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Self:
        """Return the state that a row of `segments` records."""
        return cls(**{field.name: row[field.name] for field in fields(cls) if field.name in row})

    @property
    def row(self) -> dict[str, Any]:
        """Row of `segments` that records the state."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def key(self) -> tuple[str, int, str, int]:
        """Key of the segment: source, epoch, file and start."""
        return self.source_id, self.epoch, self.binlog_file, self.segment_start

    @property
    def file_key(self) -> tuple[int, str]:
        """Key of the file within its source: epoch and name."""
        return self.epoch, self.binlog_file

    @property
    def segment(self) -> Segment:
        """The segment."""
        return Segment(self.source_id, self.epoch, self.binlog_file, self.segment_start, self.segment_end)

    @property
    def first_byte(self) -> int:
        """Offset at which the first event of the segment begins."""
        return self.segment.first_byte

    @property
    def is_compacted(self) -> bool:
        """Whether the segment is merged from others, and covers the whole file."""
        return self.segment_start == COMPACTED_START

    @property
    def is_current(self) -> bool:
        """Whether the segment, if this is its latest state, covers bytes of its file that no other segment covers."""
        if self.is_compacted:
            return self.status in ("completed", "expired")
        return self.status not in ("replaced", "removed")

    @property
    def is_done(self) -> bool:
        """Whether the segment needs no more landing."""
        return self.status in ("completed", "skipped", "expired")

    @property
    def rank(self) -> tuple[datetime, int]:
        """Sort key of a segment's states: the time of recording, then the status."""
        return self.recorded_at, STATUSES.index(self.status)


STATE_COLUMNS = tuple(field.name for field in fields(SegmentState))
"""Columns of `segments` that a `SegmentState` has."""


def latest_states(states: Iterable[SegmentState]) -> dict[tuple[int, str], list[SegmentState]]:
    """Return the latest state of every segment of one source, by epoch and file, ordered by their starts.

    Segments that were replaced by a compacted segment are omitted, and so is an unfinished compacted segment: other
    segments cover the same bytes.

    Parameters
    ----------
    states
        States of segments of one source.
    """
    latest: dict[tuple[str, int, str, int], SegmentState] = {}
    for state in states:
        known = latest.get(state.key)
        if known is None or known.rank <= state.rank:
            latest[state.key] = state
    by_file: dict[tuple[int, str], list[SegmentState]] = {}
    for _, state in sorted(latest.items(), key=lambda item: item[0]):
        of_file = by_file.setdefault(state.file_key, [])
        if state.is_current:
            of_file.append(state)
    return by_file


def landed_end(states: Iterable[SegmentState]) -> int:
    """Return the end offset of the contiguous finished segments at the beginning of a file.

    Parameters
    ----------
    states
        Latest states of the file's segments, ordered by their starts.
    """
    end = FIRST_EVENT
    for state in states:
        if not state.is_done or state.first_byte != end:
            break
        end = state.segment_end
    return end


def done_upto(states: Iterable[SegmentState]) -> int:
    """Return the offset up to which a file is landed or skipped; that of its first event if nothing is."""
    return max((state.segment_end for state in states if state.is_done), default=FIRST_EVENT)


def has_done(states: Iterable[SegmentState]) -> bool:
    """Return whether any part of a file is landed or skipped."""
    return any(state.is_done for state in states)


def log_place(binlog_file: str, position: int) -> tuple[int, int]:
    """Return a position in a server's log as a key that compares with other positions of the same epoch."""
    return binlog_path(Path(binlog_file)).sequence or 0, position
