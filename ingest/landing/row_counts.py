"""The rows of a segment by hour and table map: the landing counts them while it decodes.

They are recorded with the segment, so that no build has to read all rows to find out of which hours and tables they
are.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ingest.warehouse.files import append_rows, data_files, read_errors, read_table, segment_folder
from ingest.warehouse.names import source_stem
from ingest.warehouse.record import read_states
from ingest.warehouse.segments import Segment, SegmentState, latest_states
from ingest.warehouse.tables import ROW_EVENTS, SEGMENTS

Counts = list[dict[str, Any]]
SegmentKey = tuple[str, int, str, int]

_KINDS: Final = {"INSERT": "inserts", "UPDATE": "updates", "DELETE": "deletes"}
_NAMES: Final = ("table_map_id", "schema_name", "table_name")
_COLUMNS: Final = ("start_pos", "event_type", "event_timestamp", *_NAMES)
_HOUR: Final = 3_600_000_000
"""Microseconds of an hour."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_KEY: Final = ("source_id", "epoch", "binlog_file", "segment_start")


class RowCounts:
    """Counts rows by hour and table map."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], dict[str, Any]] = {}

    @property
    def rows(self) -> Counts:
        """The counts as `segments` has them, in an order that depends on them alone."""
        return [self._found[key] for key in sorted(self._found)]

    def add(self, batch: pa.RecordBatch) -> None:
        """Count the rows of a batch of `row_events`, which is in the order of the log."""
        if not batch.num_rows:
            return
        maps, kinds = _encoded(batch["table_map_id"]), _encoded(batch["event_type"])
        positions = batch["start_pos"].to_numpy()
        times = batch["event_timestamp"].cast(pa.int64()).to_numpy()
        hours, hour_of_row = np.unique(times // _HOUR, return_inverse=True)
        # One number for the hour and the table map of a row.
        group = hour_of_row * len(maps.dictionary) + maps.indices.to_numpy()
        groups = len(hours) * len(maps.dictionary)
        counts = {
            _KINDS[kind]: np.bincount(group[kinds.indices.to_numpy() == place], minlength=groups)
            for place, kind in enumerate(kinds.dictionary.to_pylist())
        }
        rows = np.arange(batch.num_rows)
        first, last = np.full(groups, -1), np.full(groups, -1)
        # Where a place has several values, numpy keeps the last.
        last[group] = rows
        first[group[::-1]] = rows[::-1]
        earliest, latest = np.full(groups, times.max()), np.full(groups, times.min())
        np.minimum.at(earliest, group, times)
        np.maximum.at(latest, group, times)
        for place in np.flatnonzero(first >= 0).tolist():
            row = int(first[place])
            self.add_count(
                {
                    **{name: batch[name][row].as_py() for name in _NAMES},
                    "event_hour": _moment(times[row]).strftime("%Y-%m-%d-%H"),
                    **dict.fromkeys(_KINDS.values(), 0),
                    **{name: int(found[place]) for name, found in counts.items()},
                    "first_pos": int(positions[row]),
                    "last_pos": int(positions[last[place]]),
                    "first_event_at": _moment(earliest[place]),
                    "last_event_at": _moment(latest[place]),
                }
            )

    def add_count(self, one: dict[str, Any]) -> None:
        """Add rows of one hour and table map that are counted already."""
        key = (one["event_hour"], one["table_map_id"])
        before = self._found.get(key, one)
        if before is one:
            self._found[key] = one
            return
        sums = {name: before[name] + one[name] for name in _KINDS.values()}
        lows = {name: min(before[name], one[name]) for name in ("first_pos", "first_event_at")}
        highs = {name: max(before[name], one[name]) for name in ("last_pos", "last_event_at")}
        self._found[key] = {**before, **sums, **lows, **highs}


def merged(counts: Iterable[Counts]) -> Counts:
    """Return the counts of a segment that is made of others."""
    found = RowCounts()
    for one in chain.from_iterable(counts):
        found.add_count(one)
    return found.rows


def counts_of(states: Iterable[SegmentState], home: Path) -> dict[SegmentKey, Counts]:
    """Return the counts of completed segments, by the key of the segment.

    Segments that an older binloom landed have none recorded: their rows are counted.

    Raises
    ------
    StoreError
        A file of the warehouse cannot be read.
    """
    wanted = {state.key: state for state in states}
    recorded = _recorded({state.source_id for state in wanted.values()}, home)
    lacking = _uncounted(home)
    return {key: _counted(state.segment, home) if key in lacking else recorded[key] for key, state in wanted.items()}


def count_older_segments(home: Path) -> None:
    """Record the counts of segments that an older binloom landed without.

    Raises
    ------
    StoreError
        The warehouse cannot be read or written.
    """
    lacking = _uncounted(home)
    for source_id in sorted({key[0] for key in lacking}):
        states = [state for of_file in latest_states(read_states(home, source_id)).values() for state in of_file]
        missing = [state for state in states if state.status == "completed" and state.key in lacking]
        # The same states once more: nothing that was built from them has changed.
        rows = [{**state.row, "row_event_counts": _counted(state.segment, home)} for state in missing]
        if rows:
            latest = max(state.recorded_at for state in missing)
            append_rows(SEGMENTS, rows, f"{source_stem(source_id)}-counted-{latest:%Y%m%d%H%M%S%f}", home)


def _uncounted(home: Path) -> set[SegmentKey]:
    """Return the keys of segments whose latest state is completed and has no counts.

    This is asked at the begin of each run of dbt: Arrow compares the states, because a home may have 100,000.
    """
    states = read_table(SEGMENTS, home, [*_KEY, "recorded_at", "status", "row_event_counts"])
    completed = states.filter(_is_completed(states))
    completed = completed.append_column("is_counted", pc.is_valid(completed["row_event_counts"]))
    by_state = completed.group_by([*_KEY, "recorded_at"]).aggregate([("is_counted", "any")])
    latest = states.group_by(list(_KEY)).aggregate([("recorded_at", "max")])
    uncounted = by_state.filter(pc.invert(by_state["is_counted_any"])).drop_columns("is_counted_any")
    found = uncounted.join(latest, [*_KEY, "recorded_at"], [*_KEY, "recorded_at_max"], join_type="left semi")
    return {tuple(row[name] for name in _KEY) for row in found.to_pylist()}


def _recorded(source_ids: Iterable[str], home: Path) -> dict[SegmentKey, Counts]:
    found: dict[SegmentKey, Counts] = {}
    for source_id in source_ids:
        rows = read_table(SEGMENTS, home, [*_KEY, "status", "recorded_at", "row_event_counts"], source_id=source_id)
        rows = rows.filter(pc.and_(_is_completed(rows), pc.is_valid(rows["row_event_counts"])))
        for row in rows.sort_by("recorded_at").to_pylist():
            found[tuple(row[name] for name in _KEY)] = row["row_event_counts"]
    return found


def _is_completed(rows: pa.Table) -> pa.ChunkedArray:
    return pc.equal(rows["status"], "completed")


def _counted(segment: Segment, home: Path) -> Counts:
    counts = RowCounts()
    for path in data_files(segment_folder(ROW_EVENTS, segment, home)):
        with read_errors(path), pq.ParquetFile(path, read_dictionary=["event_type", *_NAMES]) as file:
            for batch in file.iter_batches(columns=list(_COLUMNS)):
                counts.add(batch)
    return counts.rows


def _encoded(column: pa.Array) -> pa.DictionaryArray:
    return column if pa.types.is_dictionary(column.type) else column.dictionary_encode()


def _moment(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=int(microseconds))
