"""What is recorded of a source: its epochs, the files scanned, the states of segments."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ingest.landing.segments import latest_states
from ingest.landing.store import read_rows
from ingest.landing.tables import BINLOG_FILES, SEGMENTS, SOURCES

Row = Mapping[str, Any]

# Every binlog file starts with four bytes of magic, and its first event stands after them.
FIRST_EVENT = 4


@dataclass
class SourceRecord:
    """What the raw tables say about one source: before a run, and with what the run adds to it.

    Attributes
    ----------
    source_id
        The source.
    identities
        Rows of `sources`, oldest first.
    files
        Latest row of `binlog_files` for each epoch and file name.
    states
        Latest rows of `segments` for each epoch and file name, ordered by the start of the segment.
    """

    source_id: str
    identities: list[Row] = field(default_factory=list)
    files: dict[tuple[int, str], Row] = field(default_factory=dict)
    states: dict[tuple[int, str], list[Row]] = field(default_factory=dict)

    @classmethod
    def load(cls, source_id: str, home: Path) -> "SourceRecord":
        """Read what is recorded of a source, without Spark."""
        return cls.of(
            source_id,
            read_rows(SOURCES, home, source_id=source_id),
            read_rows(BINLOG_FILES, home, source_id=source_id),
            read_rows(SEGMENTS, home, source_id=source_id),
        )

    @classmethod
    def of(
        cls, source_id: str, sources: Sequence[Row], files: Sequence[Row], segments: Sequence[Row]
    ) -> "SourceRecord":
        """Build it from the rows of `sources`, `binlog_files` and `segments` of the source."""
        record = cls(source_id)
        for row in sources:
            record.add_identity(row)
        record.add_files(sorted(files, key=lambda row: row["scanned_at"]))
        record.add_states(segments)
        return record

    def add_identity(self, row: Row) -> None:
        """Take one more row of `sources`."""
        self.identities.append(row)
        self.identities.sort(key=lambda row: (row["epoch"], row["observed_at"]))

    def add_files(self, rows: Iterable[Row]) -> None:
        """Take more rows of `binlog_files`, scanned after those that are known."""
        for row in rows:
            self.files[row["epoch"], row["binlog_file"]] = row

    def add_states(self, rows: Iterable[Row]) -> None:
        """Take more rows of `segments`."""
        news: dict[tuple[int, str], list[Row]] = {}
        for row in rows:
            news.setdefault((row["epoch"], row["binlog_file"]), []).append(row)
        for key, of_file in news.items():
            self.states[key] = latest_states([*self.states.get(key, []), *of_file])[key]

    def is_landed(self, epoch: int, name: str, file_size: int) -> bool:
        """Whether a file of this size is wholly landed: completed segments from end to end."""
        end = FIRST_EVENT
        for state in self.states.get((epoch, name), []):
            if state["status"] != "completed" or state["segment_start"] != end:
                return False
            end = state["segment_end"]
        return bool(end == file_size)
