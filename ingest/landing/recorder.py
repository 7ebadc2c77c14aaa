"""What a run of landing records about a source: identities of servers, files, states of segments and table maps."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from ingest.landing.plan import Identified, content_name
from ingest.landing.row_counts import Counts, SegmentKey
from ingest.warehouse.files import append_rows, append_table, delete_temporaries, read_table
from ingest.warehouse.locks import folders_locked
from ingest.warehouse.names import source_stem
from ingest.warehouse.record import Row, SourceRecord
from ingest.warehouse.segments import SegmentState
from ingest.warehouse.tables import BINLOG_FILES, SEGMENTS, SOURCES, TABLE_MAPS, RawTable


class Recorder:
    """Writes the record of a source, one file of a raw table after the other.

    Parameters
    ----------
    record
        Record of the source; it gets everything that is written.
    run_id
        The run, whose files have its name.
    home
        Folder of all data of binloom. The lock of the source is held.
    """

    def __init__(self, record: SourceRecord, run_id: str, home: Path) -> None:
        self._record = record
        self._source_id = record.source_id
        self._home = home
        self._stem = f"{source_stem(self._source_id)}-{run_id}"
        self._files_written = 0
        self._known_maps: set[str] | None = None
        for table in (SOURCES, BINLOG_FILES, SEGMENTS, TABLE_MAPS):
            delete_temporaries(table, f"{source_stem(self._source_id)}-", home)

    def add_identities(self, identified: Identified, epoch: int) -> None:
        """Record the new identities of the servers of an epoch."""
        for row in identified.new_identities:
            if row["epoch"] != epoch:
                continue
            if epoch in identified.failovers and row["change"] == "epoch_opened":
                row = {**row, "gtids_before": str(self._record.gtids_done()) or None}
            name = f"{source_stem(self._source_id)}-{epoch}-{content_name([row])}"
            self.add_identity(row, name)

    def add_identity(self, row: Row, name: str | None = None) -> None:
        """Record a row of `sources` as a file of this name; recording it again under this name replaces the file."""
        (observed,) = self._append(SOURCES, [{**row, "observed_at": now()}], name)
        self._record.add_identity(observed)

    def add_files(self, scanned: Sequence[Row]) -> None:
        """Record files, each before any of its segments: an epoch is known by its files."""
        self._record.add_files(self._append(BINLOG_FILES, scanned))

    def add_states(self, states: Sequence[SegmentState], counts: Mapping[SegmentKey, Counts] | None = None) -> None:
        """Record states of segments atomically, later than all earlier states: the clock may have been set back.

        Those of completed segments have the counts of their rows.
        """
        if not states:
            return
        first, until = min(state.recorded_at for state in states), self._record.recorded_until
        if until is not None and first <= until:
            ahead = until - first + timedelta(microseconds=1)
            states = [replace(state, recorded_at=state.recorded_at + ahead) for state in states]
        with folders_locked(self._home, self._source_id):
            rows = [{**state.row, "row_event_counts": (counts or {}).get(state.key)} for state in states]
            self._append(SEGMENTS, rows)
        self._record.add_states(states)

    def _append(self, table: RawTable, rows: Sequence[Row], name: str | None = None) -> list[Row]:
        """Write rows as one file, if there are any; return them with all columns, as a reader gets them."""
        if rows:
            append_rows(table, rows, name or self._next_name(), self._home)
        return [{column: row.get(column) for column in table.columns.names} for row in rows]

    def add_table_maps(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Record the table maps that the source does not have yet."""
        if not batches:
            return
        if self._known_maps is None:
            known = read_table(TABLE_MAPS, self._home, ["table_map_id"], source_id=self._source_id)
            self._known_maps = set(known["table_map_id"].to_pylist())
        maps = pa.Table.from_batches(batches)
        fresh: dict[str, int] = {}
        for index, map_id in enumerate(maps["table_map_id"].to_pylist()):
            if map_id not in self._known_maps:
                fresh.setdefault(map_id, index)
        if fresh:
            new = maps.take(list(fresh.values()))
            source = pa.array([self._source_id] * new.num_rows, pa.string())
            append_table(TABLE_MAPS, new.append_column("source_id", source), self._next_name(), self._home)
            self._known_maps.update(fresh)

    def _next_name(self) -> str:
        self._files_written += 1
        return f"{self._stem}-{self._files_written:05d}"


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def new_run_id() -> str:
    """Return an identifier for a run of landing: the current time, and a random part."""
    return f"{now():%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}"
