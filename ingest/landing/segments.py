"""Segments and their states: the record of what has been landed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

Status = Literal["in_progress", "completed", "failed"]

# When two rows of a segment were recorded in the same microsecond, the later state wins.
_ORDER = {"in_progress": 0, "failed": 1, "completed": 2}


@dataclass(frozen=True, order=True)
class Segment:
    """A range of one binlog file from a transaction's start to a transaction's end.

    Attributes
    ----------
    source_id, epoch, binlog_file
        The file.
    start, end
        Physical offsets in the file, in bytes; `end` is that just after the last byte.
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
        """Return the row of table `segments` that says what state the segment went into."""
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

    Parameters
    ----------
    rows
        Rows of table `segments` of one source.
    """
    latest: dict[tuple[int, str, int], Mapping[str, Any]] = {}
    for row in rows:
        key = (row["epoch"], row["binlog_file"], row["segment_start"])
        known = latest.get(key)
        if known is None or _rank(known) <= _rank(row):
            latest[key] = row
    by_file: dict[tuple[int, str], list[Mapping[str, Any]]] = {}
    for (epoch, name, _), row in sorted(latest.items(), key=lambda item: item[0]):
        by_file.setdefault((epoch, name), []).append(row)
    return by_file


def _rank(row: Mapping[str, Any]) -> tuple[datetime, int]:
    return row["recorded_at"], _ORDER.get(row["status"], -1)
