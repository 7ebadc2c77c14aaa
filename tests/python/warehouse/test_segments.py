"""States of segments, as rows of table `segments` and as objects."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pyarrow as pa
import pyarrow.parquet as pq

from ingest.warehouse.files import append_rows
from ingest.warehouse.home import raw_table_dir
from ingest.warehouse.record import read_states
from ingest.warehouse.segments import (
    Segment,
    SegmentState,
    Status,
    done_upto,
    has_done,
    landed_end,
    latest_states,
)
from ingest.warehouse.tables import SEGMENTS

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SEGMENT = Segment("shop", 0, "b.000001", 4, 900)
DONE = SEGMENT.state("completed", "run", NOON, row_events=3, transactions=1, gtids="u:1", table_filter="tables: t")


def python_type(arrow_type: pa.DataType) -> type:
    """Return the type of the values that Arrow gives to Python."""
    return type(pa.scalar(0, pa.int64()).cast(arrow_type).as_py())


def test_fields_are_the_columns_of_the_table() -> None:
    hints: dict[str, Any] = get_type_hints(SegmentState)
    # Only those who need the counts read them.
    columns = [field for field in SEGMENTS.columns if field.name != "row_event_counts"]
    assert list(hints) == [field.name for field in columns]
    hints["status"] = str
    for field in columns:
        assert python_type(field.type) in (hints[field.name], *get_args(hints[field.name])), field.name


def test_what_is_written_is_read(tmp_path: Path) -> None:
    failed = SEGMENT.state("failed", "run", NOON, error="broken")
    append_rows(SEGMENTS, [DONE.row, failed.row], "one", tmp_path)
    assert read_states(tmp_path, "shop") == [DONE, failed]
    assert read_states(tmp_path, "other") == []


def test_a_file_of_an_older_version_lacks_columns(tmp_path: Path) -> None:
    append_rows(SEGMENTS, [DONE.row], "old", tmp_path)
    path = raw_table_dir("segments", tmp_path) / "old.parquet"
    pq.write_table(pq.read_table(path).drop_columns(["table_filter", "gtids", "hints_used"]), path)
    older = replace(DONE, table_filter=None, gtids=None, hints_used=None)
    assert read_states(tmp_path, "shop") == [older]
    assert SegmentState.of_row(pq.read_table(path).to_pylist()[0]) == older


def test_a_row_of_a_newer_version_has_columns_that_are_ignored() -> None:
    assert SegmentState.of_row({**DONE.row, "checked_at": NOON}) == DONE


def test_a_compacted_segment_begins_with_the_magic_number() -> None:
    whole = replace(DONE, segment_start=0)
    assert (DONE.is_compacted, whole.is_compacted) == (False, True)
    assert DONE.first_byte == whole.first_byte == 4
    assert whole.segment == replace(SEGMENT, start=0)
    assert whole.key == ("shop", 0, "b.000001", 0)


def test_the_latest_state_counts_then_the_later_status() -> None:
    begun = SEGMENT.state("in_progress", "run", NOON)
    assert latest_states([DONE, begun]) == latest_states([begun, DONE]) == {DONE.file_key: [DONE]}
    reopened = replace(begun, recorded_at=NOON + timedelta(microseconds=1))
    assert latest_states([reopened, DONE]) == {DONE.file_key: [reopened]}


def test_bytes_are_covered_by_one_segment() -> None:
    whole = Segment("shop", 0, "b.000001", 0, 900)
    expected: dict[tuple[Status, Status], list[int]] = {
        ("completed", "in_progress"): [4],
        ("replaced", "completed"): [0],
        ("removed", "completed"): [0],
    }
    for (status, status_of_whole), starts in expected.items():
        states = [SEGMENT.state(status, "run", NOON), whole.state(status_of_whole, "run", NOON)]
        (found,) = latest_states(states).values()
        assert [state.segment_start for state in found] == starts


def test_finished_segments_end_at_a_hole_or_at_an_unfinished_one() -> None:
    second, third = replace(DONE, segment_start=900, segment_end=950), replace(DONE, segment_start=950, segment_end=990)
    assert landed_end([]) == 4
    assert landed_end([DONE, second, third]) == 990
    assert landed_end([DONE, third]) == 900
    assert landed_end([DONE, replace(second, status="failed"), third]) == 900
    assert landed_end([DONE, replace(second, status="skipped"), third]) == 990


def test_the_last_finished_segment_counts_behind_a_hole_too() -> None:
    later = replace(DONE, segment_start=950, segment_end=990)
    failed = replace(DONE, segment_start=990, segment_end=999, status="failed")
    assert (done_upto([]), has_done([])) == (4, False)
    assert (done_upto([failed]), has_done([failed])) == (4, False)
    assert (done_upto([DONE, later, failed]), has_done([DONE, later, failed])) == (990, True)
