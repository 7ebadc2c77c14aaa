"""The recorded state of a source: its epochs, scanned files, and states of segments."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from ingest.binlog.gtid_sets import GtidSet, gtid_union
from ingest.warehouse.files import read_rows
from ingest.warehouse.segments import STATE_COLUMNS, SegmentState, landed_end, latest_states
from ingest.warehouse.tables import BINLOG_FILES, ERASURES, SEGMENTS, SOURCES

Row = Mapping[str, Any]


@dataclass
class SourceRecord:
    """The rows of the raw tables on one source: loaded before a run, and extended by the run.

    Attributes
    ----------
    source_id
        The source.
    identities
        Rows of `sources`, oldest first.
    files
        Latest row of `binlog_files` for each epoch and file name.
    states
        Latest states of segments for each epoch and file name, ordered by the start of the segment, as
        `ingest.warehouse.segments.latest_states` gives them.
    replaced
        States by the key of the segment, for segments whose rows are now in a compacted segment and whose files
        still exist.
    unfinished
        States by the key of the segment, for compactions that were begun and not finished.
    recorded_until
        Latest time at which a state was recorded, None without states.
    erased
        Epoch and name of files in which rows were erased: landing them again would bring the values back.
    """

    source_id: str
    identities: list[Row] = field(default_factory=list)
    files: dict[tuple[int, str], Row] = field(default_factory=dict)
    states: dict[tuple[int, str], list[SegmentState]] = field(default_factory=dict)
    replaced: dict[tuple[str, int, str, int], SegmentState] = field(default_factory=dict)
    unfinished: dict[tuple[str, int, str, int], SegmentState] = field(default_factory=dict)
    recorded_until: datetime | None = None
    erased: set[tuple[int, str]] = field(default_factory=set)

    @classmethod
    def load(cls, source_id: str, home: Path) -> "SourceRecord":
        """Read the record of a source, without Spark."""
        record = cls.of(
            source_id,
            read_rows(SOURCES, home, source_id=source_id),
            read_rows(BINLOG_FILES, home, source_id=source_id),
            read_states(home, source_id),
        )
        erased = read_rows(ERASURES, home, ["epoch", "binlog_file"], source_id=source_id)
        record.erased = {(row["epoch"], row["binlog_file"]) for row in erased if row["binlog_file"] is not None}
        return record

    @classmethod
    def of(
        cls, source_id: str, sources: Sequence[Row], files: Sequence[Row], states: Sequence[SegmentState]
    ) -> "SourceRecord":
        """Build the record from the source's rows of `sources` and `binlog_files` and the states of its segments."""
        record = cls(source_id)
        for row in sources:
            record.add_identity(row)
        record.add_files(sorted(files, key=lambda row: row["scanned_at"]))
        record.add_states(states)
        return record

    def add_identity(self, row: Row) -> None:
        """Add a row of `sources`."""
        self.identities.append(row)
        self.identities.sort(key=lambda row: (row["epoch"], row["observed_at"]))

    def add_files(self, rows: Iterable[Row]) -> None:
        """Add rows of `binlog_files`, scanned later than the known rows."""
        for row in rows:
            self.files[row["epoch"], row["binlog_file"]] = row

    def add_states(self, states: Iterable[SegmentState]) -> None:
        """Add states of segments."""
        news: dict[tuple[int, str], list[SegmentState]] = {}
        for state in sorted(states, key=lambda state: state.rank):
            news.setdefault(state.file_key, []).append(state)
            # A file that was compacted may be landed again: its first segment is then no longer a replaced one.
            self.replaced.pop(state.key, None)
            self.unfinished.pop(state.key, None)
            if state.status == "replaced":
                self.replaced[state.key] = state
            elif state.is_compacted and state.status == "in_progress":
                self.unfinished[state.key] = state
            self.recorded_until = max(state.recorded_at, self.recorded_until or state.recorded_at)
        for key, of_file in news.items():
            self.states[key] = latest_states([*self.states.get(key, []), *of_file])[key]

    def identity(self, epoch: int) -> Row | None:
        """Return the latest row on the server of an epoch, None when there is none."""
        return next((row for row in reversed(self.identities) if row["epoch"] == epoch), None)

    def opening(self, epoch: int) -> Row | None:
        """Return the row that opened an epoch, None when there is none.

        An epoch is opened again if nothing of it was received the first time: the latest opening counts.
        """
        opened = (row for row in reversed(self.identities) if row["change"] == "epoch_opened")
        return next((row for row in opened if row["epoch"] == epoch), None)

    def has_begun(self, epoch: int) -> bool:
        """Return whether anything of an epoch was landed, or an attempt was made."""
        return any(of == epoch for of, _ in self.states)

    def gtids_done(self) -> GtidSet:
        """Return the GTIDs that must not be landed again, because they are landed or skipped."""
        openings = [row for epoch in {row["epoch"] for row in self.identities} if (row := self.opening(epoch))]
        starts = [self.files.get((row["epoch"], row["start_file"])) for row in openings]
        return gtid_union(
            [
                *(state.gtids for of_file in self.states.values() for state in of_file if state.is_done),
                *(row["gtids_before"] for row in openings),
                *(row["previous_gtids"] for row in starts if row),
            ]
        )

    def is_landed(self, epoch: int, name: str, file_size: int) -> bool:
        """Return whether a file of this size is fully landed: finished segments cover it from start to end."""
        states = self.states.get((epoch, name), [])
        return all(state.is_done for state in states) and landed_end(states) == file_size


def read_states(home: Path, source_id: str | None = None) -> list[SegmentState]:
    """Read all states of the segments of a source, or of all sources, without Spark."""
    of_source = {} if source_id is None else {"source_id": source_id}
    return [SegmentState(**row) for row in read_rows(SEGMENTS, home, STATE_COLUMNS, **of_source)]
