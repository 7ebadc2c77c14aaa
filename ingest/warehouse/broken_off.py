"""Segments whose landing was begun by a command that does not run any more: it was killed, or failed."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from ingest.warehouse.files import read_rows
from ingest.warehouse.locks import landing_processes
from ingest.warehouse.names import source_stem
from ingest.warehouse.record import Row
from ingest.warehouse.segments import STATE_COLUMNS, SegmentState, latest_states
from ingest.warehouse.tables import SEGMENTS

Key = tuple[str, int, str, int]
ADVICE = "Run `binloom ingest` or `binloom follow` again, which lands the rest."


def broken_off(home: Path, rows: Iterable[Row] | None = None) -> set[Key]:
    """Return the keys of these segments: source, epoch, file and start.

    Parameters
    ----------
    rows
        The rows of `segments`, if they were read.
    """
    begun = {*_begun(_rows(home) if rows is None else rows)}
    if not begun:
        return set()
    running = {name for name, _ in landing_processes(home)}
    # A command that has ended since has recorded how.
    return {key for key, _ in begun.intersection(_begun(_rows(home))) if source_stem(key[0]) not in running}


def _rows(home: Path) -> Iterable[Row]:
    return read_rows(SEGMENTS, home, STATE_COLUMNS)


def _begun(rows: Iterable[Row]) -> Iterator[tuple[Key, str]]:
    """Yield the key and the run of each segment that is in progress as far as its last state tells."""
    by_source: dict[str, list[SegmentState]] = {}
    for row in rows:
        state = SegmentState.of_row(row)
        by_source.setdefault(state.source_id, []).append(state)
    for states in by_source.values():
        for of_file in latest_states(states).values():
            yield from ((state.key, state.run_id) for state in of_file if state.status == "in_progress")
