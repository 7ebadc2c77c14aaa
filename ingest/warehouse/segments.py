"""Segments and their states, which record the landed ranges of binlog files."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, get_args

from ingest.sources.directory import binlog_path

# A compacted segment is `completed`. The segments that it was made of are `replaced`, and `removed` when their files
# are deleted. A `skipped` segment is not landed, by decision.
Status = Literal["in_progress", "failed", "skipped", "completed", "replaced", "removed"]

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
    def size(self) -> int:
        """Number of bytes."""
        return self.end - self.start

    def state(self, status: Status, run_id: str, recorded_at: datetime, **facts: Any) -> dict[str, Any]:
        """Return the row of table `segments` that records a new state of the segment."""
        return {
            "source_id": self.source_id,
            "epoch": self.epoch,
            "binlog_file": self.binlog_file,
            "segment_start": self.start,
            "segment_end": self.end,
            "status": status,
            "run_id": run_id,
            "recorded_at": recorded_at,
            **facts,
        }


def latest_states(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[int, str], list[Mapping[str, Any]]]:
    """Return the state of every segment of one source, by epoch and file, ordered by their starts.

    Segments that were replaced by a compacted segment are omitted, and so is an unfinished compacted segment: other
    segments cover the same bytes.

    Parameters
    ----------
    rows
        Rows of table `segments` of one source.
    """
    latest: dict[tuple[int, str, int], Mapping[str, Any]] = {}
    for row in rows:
        key = (row["epoch"], row["binlog_file"], row["segment_start"])
        known = latest.get(key)
        if known is None or rank(known) <= rank(row):
            latest[key] = row
    by_file: dict[tuple[int, str], list[Mapping[str, Any]]] = {}
    for (epoch, name, _), row in sorted(latest.items(), key=lambda item: item[0]):
        of_file = by_file.setdefault((epoch, name), [])
        if is_current(row):
            of_file.append(row)
    return by_file


def is_current(row: Mapping[str, Any]) -> bool:
    """Return whether a segment, by its latest row, covers bytes of its file that no other segment covers."""
    if row["segment_start"] == COMPACTED_START:
        return bool(row["status"] == "completed")
    return row["status"] not in ("replaced", "removed")


def is_done(row: Mapping[str, Any]) -> bool:
    """Return whether a segment needs no more landing."""
    return row["status"] in ("completed", "skipped")


def first_byte(row: Mapping[str, Any]) -> int:
    """Return the offset at which the events of a segment begin."""
    start: int = row["segment_start"]
    return max(start, FIRST_EVENT)


def rank(row: Mapping[str, Any]) -> tuple[datetime, int]:
    """Return the sort key of a segment's rows: the time of recording, then the status."""
    return row["recorded_at"], STATUSES.index(row["status"])


def log_place(binlog_file: str, position: int) -> tuple[int, int]:
    """Return a position in a server's log as a key that compares with other positions of the same epoch."""
    return binlog_path(Path(binlog_file)).sequence or 0, position
