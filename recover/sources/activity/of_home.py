"""The activity in what has landed, for `top`: each segment is read once, also one that lands later. Needs no build."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ingest.ddl.actions import Action
from ingest.errors import UsageError
from ingest.landing.bindings import TableNames
from ingest.landing.schema_history import SchemaHistory
from ingest.sources.files.directory import binlog_path
from ingest.warehouse.files import data_files, read_errors, read_part, read_rows, segment_folder
from ingest.warehouse.gaps import gaps
from ingest.warehouse.home import raw_table_dir
from ingest.warehouse.record import SourceRecord
from ingest.warehouse.segments import STATE_COLUMNS, SegmentState, latest_states
from ingest.warehouse.tables import (
    DDL_ACTIONS,
    ROW_EVENTS,
    SEGMENTS,
    STATEMENTS,
    TABLE_MAPS,
    TRANSACTIONS,
    UNSUPPORTED_EVENTS,
    RawTable,
)
from ingest.words import counted
from recover.questions.activity import ROW_COLUMNS, TRANSACTION_COLUMNS, Activity, KnownMap, Place
from recover.questions.removals import STATEMENT_COLUMNS
from recover.selection.catalog import unknown_source
from recover.sources.activity.of_files import known_map

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS_AT_ONCE: Final = 1 << 16
_TRIES: Final = 5
_ACTION_FACTS: Final = ("action", "statement_type", "schema_name", "table_name", "column_name")
_ACTION_COLUMNS: Final = ("start_pos", "payload_ordinal", *_ACTION_FACTS)
_FileKey = tuple[str, int, str]


class ActivityOfHome:
    """Adds the landed segments of a home that it has not added before.

    Parameters
    ----------
    home
        Folder of all data of binloom.
    activity
        What is added to.
    sources
        Only these sources; empty: all.
    """

    def __init__(self, home: Path, activity: Activity, sources: Sequence[str] = ()) -> None:
        self._home = home
        self._activity = activity
        self._sources = frozenset(sources)
        self._read: set[str] = set()
        self._states: dict[str, list[SegmentState]] = {}
        self._added: dict[_FileKey, list[tuple[int, int]]] = {}
        self._names: dict[str, TableNames] = {}
        self._table_maps: dict[tuple[str, str], dict[str, Any]] = {}

    def add_new(self) -> int:
        """Add what has landed since the last call; return the number of its segments.

        Raises
        ------
        UsageError
            A source does not exist.
        StoreError
            A landed file cannot be read.
        """
        found = 0
        for attempt in range(_TRIES):
            self._read_states()
            try:
                for state in self._new():
                    self._add(state)
                    found += 1
                return found
            except FileNotFoundError:
                # Compaction or expiry has deleted the files of this segment; its new state says so.
                if attempt == _TRIES - 1:
                    raise
        return found

    def lacks(self) -> list[str]:
        """Return in sentences what has not landed, or not as a whole."""
        found = []
        for source, states in sorted(self._states.items()):
            current = [one for of_file in latest_states(states).values() for one in of_file]
            for status, told in (
                ("skipped", "were skipped by decision"),
                ("expired", "have expired"),
                ("failed", "could not be landed"),
                ("in_progress", "are being landed"),
            ):
                if count := sum(one.status == status for one in current):
                    found.append(f"{source}: {counted(count, 'segment')} of the log {told}.")
            if any(one.table_filter for one in current):
                found.append(
                    f"{source}: some tables were not landed, because of --schemas, --tables or --exclude-tables."
                )
            lost = [gap for gap in gaps(source, self._home) if gap["status"] != "filled"]
            found += [
                f"{source}: the log has a gap from {gap['from_file']}:{gap['from_pos']} to"
                f" {gap['to_file']}:{gap['to_pos']} ({gap['reason']})."
                for gap in lost
            ]
        return found

    def _read_states(self) -> None:
        """Read the states of segments that have come; also those in a file that replaces others."""
        for path in data_files(raw_table_dir(SEGMENTS.name, self._home)):
            if path.name in self._read:
                continue
            try:
                part = read_part(SEGMENTS, path, STATE_COLUMNS)
            except FileNotFoundError:
                continue
            self._read.add(path.name)
            for row in part.to_pylist():
                state = SegmentState.of_row(row)
                if not self._sources or state.source_id in self._sources:
                    self._states.setdefault(state.source_id, []).append(state)
        if unknown := self._sources - self._states.keys():
            known = {row["source_id"] for row in read_rows(SEGMENTS, self._home, ["source_id"])}
            if not known:
                raise UsageError(
                    "Nothing has landed in this home yet.", hint="Land a log first, or give files with --files."
                )
            raise unknown_source(min(unknown), known)

    def _new(self) -> Iterator[SegmentState]:
        """Yield the completed segments with bytes that are not added yet, in the order of the log."""
        for states in self._states.values():
            for of_file in latest_states(states).values():
                for state in of_file:
                    if state.status == "completed" and not self._has_added(state):
                        yield state

    def _has_added(self, state: SegmentState) -> bool:
        """Return whether the bytes of a segment are added: a compacted one has those of the segments before."""
        reached = state.first_byte
        for first, end in sorted(self._added.get(_file_of(state), ())):
            if first <= reached:
                reached = max(reached, end)
        return reached >= state.segment_end

    def _add(self, state: SegmentState) -> None:
        place = Place(state.source_id, state.epoch, state.binlog_file)
        parts = [
            [(table, path) for path in self._files(table, state)]
            for table in (ROW_EVENTS, TRANSACTIONS, STATEMENTS, DDL_ACTIONS, UNSUPPORTED_EVENTS)
        ]
        if state.row_events and not parts[0]:
            raise FileNotFoundError(segment_folder(ROW_EVENTS, state.segment, self._home))
        rows, transactions, statements, definitions, undecoded = parts
        known = partial(self._known, {}, state)
        for batch in self._batches(rows, ROW_COLUMNS, state):
            self._activity.add_rows(batch, place, known)
        for batch in self._batches(transactions, TRANSACTION_COLUMNS, state):
            self._activity.add_transactions(batch, place)
        for batch in self._batches(statements, ("start_pos", "dml_targets"), state):
            self._activity.add_statement_targets(batch.column("dml_targets"))
        file = f"{state.epoch}/{state.binlog_file}" if state.epoch else state.binlog_file
        texts, actions = self._batches(statements, STATEMENT_COLUMNS, state), self._actions(definitions, state)
        self._activity.removals.add(state.source_id, file, texts, actions)
        for batch in self._batches(undecoded, ("start_pos", "event_type", "reason"), state):
            self._activity.add_undecoded(batch)
        self._added.setdefault(_file_of(state), []).append((state.first_byte, state.segment_end))

    def _actions(
        self, files: Sequence[tuple[RawTable, Path]], state: SegmentState
    ) -> Iterator[tuple[tuple[int, int], Action]]:
        """Yield the actions of a segment in their order, without their columns and keys."""
        for batch in self._batches(files, _ACTION_COLUMNS, state):
            for start, payload_ordinal, *facts in zip(*batch.to_pydict().values(), strict=True):
                yield (start, payload_ordinal), Action(**dict(zip(_ACTION_FACTS, facts, strict=True)))

    def _files(self, table: RawTable, state: SegmentState) -> list[Path]:
        return list(data_files(segment_folder(table, state.segment, self._home)))

    def _batches(
        self, files: Sequence[tuple[RawTable, Path]], columns: Sequence[str], state: SegmentState
    ) -> "Iterator[pa.RecordBatch]":
        """Yield the rows of a segment that are not added yet, some at a time."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.parquet as pq

        added = [one for one in self._added.get(_file_of(state), ()) if one[1] > state.first_byte]
        for table, path in files:
            with read_errors(path):
                for batch in pq.ParquetFile(path).iter_batches(_ROWS_AT_ONCE, columns=list(columns)):
                    for name in columns:
                        if name not in batch.schema.names:
                            batch = batch.append_column(name, pa.nulls(batch.num_rows, table.columns.field(name).type))
                    if added:
                        positions = np.asarray(batch.column("start_pos"))
                        is_new = np.ones(len(positions), dtype=bool)
                        for first, end in added:
                            is_new &= (positions < first) | (positions >= end)
                        batch = batch.filter(pa.array(is_new))
                    if batch.num_rows:
                        yield batch

    def _known(self, known: dict[str, KnownMap], state: SegmentState, table_map_id: str) -> KnownMap:
        """Return the table of a table map, and its keys in the file of a segment."""
        if table_map_id not in known:
            key = (state.source_id, table_map_id)
            if key not in self._table_maps:
                rows = read_rows(TABLE_MAPS, self._home, source_id=state.source_id)
                self._table_maps |= {(state.source_id, row["table_map_id"]): row for row in rows}
                # A table map that is new may have a definition that is new, too.
                history = SchemaHistory.load(SourceRecord.load(state.source_id, self._home), self._home, with_keys=True)
                self._names[state.source_id] = TableNames(state.source_id, history, history.named_versions())
            sequence = binlog_path(Path(state.binlog_file)).sequence or 0
            names = self._names[state.source_id]
            known[table_map_id] = known_map(self._table_maps[key], names, state.epoch, sequence)
        return known[table_map_id]


def _file_of(state: SegmentState) -> _FileKey:
    return state.source_id, state.epoch, state.binlog_file
