"""Segments that must be landed again, and the changes that reopen them; the tests of models check the new rows."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingest.errors import UsageError
from ingest.landing.again import listed_segments, reopened
from ingest.warehouse.home import warehouse_dir
from ingest.warehouse.record import SourceRecord
from ingest.warehouse.segments import Segment

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
COMPACTED = Segment("shop", 0, "b.000001", 0, 900)
PLAIN = Segment("shop", 0, "b.000002", 4, 500)
FAILED = Segment("shop", 0, "b.000003", 4, 500)


def mart(home: Path, model: str, rows: list[dict[str, Any]]) -> None:
    """Write a table as dbt would."""
    folder = warehouse_dir(home) / "binloom_quality.db" / model
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), folder / "part-0.parquet")


def record(table_filter: str | None = None) -> SourceRecord:
    """Return the record of three files, one of which failed."""
    states = [
        segment.state(status, "run", NOON, table_filter=table_filter)
        for segment, status in ((COMPACTED, "completed"), (PLAIN, "completed"), (FAILED, "failed"))
    ]
    return SourceRecord.of("shop", [], [], states)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A warehouse in which dbt lists all three, and a segment of another source."""
    listed = [
        {"source_id": source, "epoch": 0, "binlog_file": segment.binlog_file, "segment_start": segment.start}
        for source, segment in [("shop", COMPACTED), ("shop", PLAIN), ("shop", FAILED), ("other", PLAIN)]
    ]
    mart(tmp_path, "segments_to_land_again", listed)
    return tmp_path


def test_completed_segments_of_the_files_at_hand_are_opened(home: Path) -> None:
    names = ["b.000001", "b.000002", "b.000003"]
    assert listed_segments(record(), names, None, home) == [COMPACTED, PLAIN]
    assert listed_segments(record(), names[1:], None, home) == [PLAIN]


def test_a_compacted_segment_makes_way_for_one_that_can_be_landed() -> None:
    states = reopened([COMPACTED, PLAIN], "again", NOON, None)
    assert [(state.binlog_file, state.segment_start, state.segment_end, state.status) for state in states] == [
        ("b.000001", 0, 900, "replaced"),
        ("b.000001", 4, 900, "in_progress"),
        ("b.000002", 4, 500, "in_progress"),
    ]
    opened = record()
    opened.add_states(states)
    assert [state.status for state in opened.states[0, "b.000001"]] == ["in_progress"]


def test_other_filters_than_they_were_landed_with_are_refused(home: Path) -> None:
    with pytest.raises(UsageError, match=r"b\.000001 was landed with the filter tables: t"):
        listed_segments(record("tables: t"), ["b.000001"], None, home)
