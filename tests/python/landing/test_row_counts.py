"""The rows of each segment by hour and table map, recorded with the segment."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingest.landing import row_counts
from ingest.landing.compact import FEW_FILES, compact_closed_files, merge_logs
from ingest.landing.held import SpoolFile, StreamLanding
from ingest.landing.options import IngestOptions
from ingest.landing.recorder import now
from ingest.landing.row_counts import RowCounts, count_older_segments, counts_of, merged
from ingest.warehouse.files import data_files, read_rows, segment_folder
from ingest.warehouse.home import raw_table_dir
from ingest.warehouse.record import SourceRecord, read_states
from ingest.warehouse.segments import Segment, SegmentState
from ingest.warehouse.tables import ROW_EVENTS, SEGMENTS
from tests.support.landing.binlogs import SHOP
from tests.support.landing.stored import current_rows

pytestmark = pytest.mark.slow

SOURCE = "shop"
NAMES = ("binlog.000001", "binlog.000002")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with both files of the sample landed in some fifteen segments."""
    with StreamLanding(SOURCE, tmp_path, IngestOptions(segment_bytes=6_000)) as landing:
        landing.open_epoch({"epoch": 0, "server_id": 1, "flavor": "mysql"})
        landing.land([SpoolFile(SHOP / name, 0, (SHOP / name).stat().st_size) for name in NAMES])
    return tmp_path


def completed(home: Path) -> list[SegmentState]:
    states = SourceRecord.load(SOURCE, home).states.values()
    return [state for of_file in states for state in of_file if state.status == "completed"]


def recorded(home: Path) -> dict[tuple[Any, ...], Any]:
    """Return the counts of each segment, as a reader of `segments` sees them who takes the latest state."""
    found = duckdb.sql(
        f"""select binlog_file, segment_start, arg_max(row_event_counts, recorded_at) from
        read_parquet('{raw_table_dir(SEGMENTS.name, home)}/*.parquet', union_by_name = true)
        where status = 'completed' group by all"""
    ).fetchall()
    return {tuple(key): counts for *key, counts in found}


def counted(home: Path) -> dict[tuple[Any, ...], Any]:
    """Return what DuckDB counts in the landed rows."""
    found = duckdb.sql(
        f"""select binlog_file, segment_start, table_map_id, schema_name, table_name,
            strftime(event_timestamp at time zone 'UTC', '%Y-%m-%d-%H') as event_hour,
            count(*) filter (event_type = 'INSERT') as inserts, count(*) filter (event_type = 'UPDATE') as updates,
            count(*) filter (event_type = 'DELETE') as deletes, min(start_pos) as first_pos, max(start_pos) as last_pos,
            min(event_timestamp) as first_event_at, max(event_timestamp) as last_event_at
        from read_parquet('{raw_table_dir(ROW_EVENTS.name, home)}/*/*/*/*/*.parquet', hive_partitioning = true)
        group by binlog_file, segment_start, table_map_id, schema_name, table_name, event_hour
        order by event_hour, table_map_id"""
    )
    counts: dict[tuple[Any, ...], Any] = {(state.binlog_file, state.segment_start): [] for state in completed(home)}
    for file, start, *values in found.fetchall():
        counts[file, int(start)].append(dict(zip(found.columns[2:], values, strict=True)))
    return counts


def test_each_segment_has_the_counts_of_its_rows(home: Path) -> None:
    assert len(completed(home)) > 10
    assert recorded(home) == counted(home)
    # Some segments have rows of two hours, and some have none.
    assert {len({one["event_hour"] for one in counts}) for counts in recorded(home).values()} >= {0, 1, 2}


def batches(home: Path, seed: int) -> Iterator[pa.RecordBatch]:
    """Yield the landed rows in batches of random sizes, with random times of a few hours."""
    chance = random.Random(seed)
    for path in sorted(raw_table_dir(ROW_EVENTS.name, home).rglob("*.parquet")):
        rows = pq.ParquetFile(path, read_dictionary=["table_map_id"] if seed % 2 else []).read()
        times = [1_700_000_000_000_000 + chance.randrange(-1, 4) * 3_600_000_000 for _ in range(rows.num_rows)]
        column = pa.array(times, pa.int64()).cast(rows.schema.field("event_timestamp").type)
        rows = rows.set_column(rows.column_names.index("event_timestamp"), "event_timestamp", column)
        yield from rows.to_batches(max_chunksize=chance.randrange(1, 40))
        yield rows.to_batches()[0][:0]


@pytest.mark.parametrize("seed", range(6))
def test_counts_do_not_depend_on_batches(home: Path, seed: int) -> None:
    counts = RowCounts()
    by_hand: dict[tuple[str, str], dict[str, Any]] = {}
    for batch in batches(home, seed):
        counts.add(batch)
        for row in batch.to_pylist():
            hour = row["event_timestamp"].strftime("%Y-%m-%d-%H")
            one = by_hand.setdefault((hour, row["table_map_id"]), {"inserts": 0, "updates": 0, "deletes": 0, "at": []})
            one[f"{row['event_type'].lower()}s"] += 1
            one["at"].append((row["start_pos"], row["event_timestamp"]))
    assert counts.rows == [
        {
            "table_map_id": table_map_id,
            "schema_name": "shop",
            "table_name": next(one["table_name"] for one in counts.rows if one["table_map_id"] == table_map_id),
            "event_hour": hour,
            **{name: one[name] for name in ("inserts", "updates", "deletes")},
            "first_pos": min(position for position, _ in one["at"]),
            "last_pos": max(position for position, _ in one["at"]),
            "first_event_at": min(time for _, time in one["at"]),
            "last_event_at": max(time for _, time in one["at"]),
        }
        for (hour, table_map_id), one in sorted(by_hand.items())
    ]
    halves = [RowCounts(), RowCounts()]
    for number, batch in enumerate(batches(home, seed)):
        halves[number % 2].add(batch)
    assert merged(half.rows for half in halves) == counts.rows


def as_an_older_binloom_left(home: Path) -> None:
    for path in raw_table_dir(SEGMENTS.name, home).glob("*.parquet"):
        pq.write_table(pq.ParquetFile(path).read().drop_columns("row_event_counts"), path)


def test_the_rows_of_older_segments_are_counted_once(home: Path) -> None:
    expected, states = recorded(home), SourceRecord.load(SOURCE, home).states
    as_an_older_binloom_left(home)
    assert counts_of(completed(home), home) == {(SOURCE, 0, *key): counts for key, counts in expected.items()}
    count_older_segments(home)
    assert recorded(home) == expected
    assert SourceRecord.load(SOURCE, home).states == states
    # The same states once more, so that nothing is built again from them.
    assert len(read_states(home)) > len(set(read_states(home)))
    files = sorted(raw_table_dir(SEGMENTS.name, home).iterdir())
    count_older_segments(home)
    assert sorted(raw_table_dir(SEGMENTS.name, home).iterdir()) == files


def test_segments_that_need_no_counts_are_not_looked_at(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    as_an_older_binloom_left(home)
    with StreamLanding(SOURCE, home) as landing:
        first, second, *_ = completed(home)
        # The states of before have no counts for ever.
        landing.record_states([replace(first, status="replaced"), replace(second, status="expired")])
    count_older_segments(home)
    monkeypatch.delattr(row_counts, "read_states")
    count_older_segments(home)


def test_a_segment_that_an_older_binloom_landed_again_is_counted_again(home: Path) -> None:
    state = next(state for state in completed(home) if state.row_events)
    with StreamLanding(SOURCE, home) as landing:
        landing.record_states([replace(state, run_id=landing.run_id)])
    (path,) = data_files(segment_folder(ROW_EVENTS, state.segment, home))
    pq.write_table(pq.ParquetFile(path).read().slice(1), path)
    assert counts_of([state], home) == {state.key: counted(home)[state.binlog_file, state.segment_start]}
    count_older_segments(home)
    assert recorded(home) == counted(home)


@pytest.mark.parametrize("is_older", [False, True])
def test_counts_remain_when_files_are_merged(home: Path, is_older: bool) -> None:
    if is_older:
        as_an_older_binloom_left(home)
        count_older_segments(home)
    expected = recorded(home)
    another = Segment(SOURCE, 0, "binlog.000003", 4, 100)
    with StreamLanding(SOURCE, home) as landing:
        for _ in range(FEW_FILES + 1):
            landing.record_states([another.state("in_progress", landing.run_id, now())])
        assert merge_logs(landing) > FEW_FILES
    assert recorded(home) == expected


@pytest.mark.parametrize("is_older", [False, True])
def test_a_compacted_segment_has_the_counts_of_its_parts(home: Path, is_older: bool) -> None:
    if is_older:
        as_an_older_binloom_left(home)
    parts = counts_of(completed(home), home)
    rows = current_rows(home, "row_events", SOURCE)
    with StreamLanding(SOURCE, home) as landing:
        compact_closed_files(landing)
    assert current_rows(home, "row_events", SOURCE) == rows
    assert {key: counts for key, counts in recorded(home).items() if key[1] == 0} == {
        (name, 0): merged(counts for key, counts in parts.items() if key[2] == name) for name in NAMES
    }
    assert not any(row["row_event_counts"] for row in read_rows(SEGMENTS, home) if row["status"] == "replaced")
