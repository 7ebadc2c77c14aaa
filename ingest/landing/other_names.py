"""Landed rows whose names differ between two sets of bindings."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingest.landing.bindings import FOREVER, Position
from ingest.warehouse.files import data_files, read_part, segment_folder
from ingest.warehouse.record import SourceRecord
from ingest.warehouse.segments import log_place
from ingest.warehouse.tables import ROW_EVENTS

Names = tuple[str, ...] | None
"""Names of columns; None for rows in quarantine."""


def rows_with_other_names(
    before: Iterable[Mapping[str, Any]], after: Iterable[Mapping[str, Any]], record: SourceRecord, home: Path
) -> int:
    """Return how many landed rows of a source have other names by a later set of bindings.

    Parameters
    ----------
    before, after
        Rows of `table_bindings`, of one set each.
    record
        Record of the source.
    home
        Folder that binloom keeps everything under.

    Raises
    ------
    StoreError
        The warehouse cannot be read.
    """
    old, new = _by_table_map(before), _by_table_map(after)
    changed = pa.array(sorted(key for key, ranges in new.items() if old.get(key) != ranges), pa.string())
    if not changed:
        return 0
    segments = [state.segment for states in record.states.values() for state in states if state.status == "completed"]
    rows = 0
    for segment in segments:
        file = segment.epoch, log_place(segment.binlog_file, 0)[0]
        for path in data_files(segment_folder(ROW_EVENTS, segment, home)):
            part = read_part(ROW_EVENTS, path, ["table_map_id", "start_pos"])
            part = part.filter(pc.is_in(part["table_map_id"], changed))
            for key in pc.unique(part["table_map_id"]).to_pylist():
                positions = np.sort(part.filter(pc.equal(part["table_map_id"], key))["start_pos"].to_numpy())
                rows += _differing(old.get(key, []), new[key], file, positions)
    return rows


def _by_table_map(bindings: Iterable[Mapping[str, Any]]) -> dict[str, list[tuple[Position, Names]]]:
    """Return for each table map the positions from which on other names count."""
    found: dict[str, list[tuple[Position, Names]]] = {}
    for row in sorted(bindings, key=_first):
        names = tuple(row["column_names"]) if row["reason"] is None else None
        ranges = found.setdefault(row["table_map_id"], [])
        if not ranges or ranges[-1][1] != names:
            ranges.append((_first(row), names))
    return found


def _first(row: Mapping[str, Any]) -> Position:
    return row["valid_from_epoch"], row["valid_from_file_sequence"], row["valid_from_pos"]


def _differing(
    old: Sequence[tuple[Position, Names]],
    new: Sequence[tuple[Position, Names]],
    file: tuple[int, int],
    positions: npt.NDArray[np.int64],
) -> int:
    """Return how many of the sorted positions in a file have other names."""
    edges = sorted({first for first, _ in (*old, *new)})
    return sum(
        int(np.subtract(*np.searchsorted(positions, [_within(end, file), _within(first, file)])))
        for first, end in pairwise([*edges, FOREVER])
        if _names_at(old, first) != _names_at(new, first)
    )


def _within(position: Position, file: tuple[int, int]) -> float:
    """Return a position as one of a file: before or behind all of it, if it is in another file."""
    if position[:2] == file:
        return position[2]
    return inf if position[:2] > file else -inf


def _names_at(ranges: Sequence[tuple[Position, Names]], position: Position) -> Names:
    number = bisect_right([first for first, _ in ranges], position)
    return ranges[number - 1][1] if number else None
