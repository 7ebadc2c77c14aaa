"""The comparisons that the tests of following use find missing, repeated and different rows."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingest.binlog import scan_binlog
from ingest.landing.schema_history import SchemaHistory
from ingest.landing.task import SegmentWork, land_segment
from ingest.warehouse.files import append_rows, append_table, data_files, partition_folder
from ingest.warehouse.home import raw_table_dir
from ingest.warehouse.record import SourceRecord
from ingest.warehouse.segments import Segment, Status
from ingest.warehouse.tables import SEGMENTS, TABLE_MAPS
from tests.support.follow.follower import SOURCE
from tests.support.follow.spool import FLAGS_AT, assert_same_files
from tests.support.follow.tables import Decoded, Tables, assert_same_tables
from tests.support.landing.binlogs import SHOP, flip_bit, in_use

FILE = SHOP / "binlog.000001"
SEGMENT_BYTES = 8_000


def landed(home: Path) -> Tables:
    """A home with one file in several segments, landed without Spark."""
    scan = scan_binlog(FILE, segment_bytes=SEGMENT_BYTES)
    history = SchemaHistory(SourceRecord(SOURCE))
    history.add_scan(0, FILE.name, scan)
    for number, found in enumerate(scan.segments):
        segment = Segment(SOURCE, 0, FILE.name, found.start, found.end)
        result = land_segment(SegmentWork(segment, FILE, home, "run", home / "run"), history.hints(0))
        maps = pa.Table.from_batches(result.table_maps) if result.table_maps else None
        known = Tables(home, SOURCE).table_maps
        if maps is not None:
            fresh = maps.filter(pa.array([key not in known for key in maps["table_map_id"].to_pylist()]))
            source = pa.array([SOURCE] * fresh.num_rows, pa.string())
            append_table(TABLE_MAPS, fresh.append_column("source_id", source), f"maps-{number}", home)
        record(home, segment, "completed")
    return Tables(home, SOURCE)


def record(home: Path, segment: Segment, status: Status) -> None:
    """Append a state of a segment."""
    name = f"{segment.start}-{segment.end}-{status}"
    append_rows(SEGMENTS, [segment.state(status, "run", datetime.now(UTC)).row], name, home)


def folder_of(home: Path, start: int) -> Path:
    """Return the folder of a segment's rows."""
    segment = Segment(SOURCE, 0, FILE.name, start, start + 1)
    return raw_table_dir("row_events", home) / partition_folder(segment.partition)


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    return landed(tmp_path)


def test_segments_of_a_file_are_what_the_file_says(tables: Tables) -> None:
    counts = assert_same_tables(tables, Decoded([(0, FILE)], tables))
    assert counts["row_events"] > 200
    assert counts["transactions"] > 20


def test_another_epoch_is_not_the_same(tables: Tables) -> None:
    with pytest.raises(AssertionError, match=r"missing: \(1, 'binlog.000001', \d+"):
        assert_same_tables(tables, Decoded([(1, FILE)], tables))


def test_rows_of_a_segment_that_is_not_completed_are_missing(tables: Tables) -> None:
    first, *_ = scan_binlog(FILE, segment_bytes=SEGMENT_BYTES).segments
    record(tables.home, Segment(SOURCE, 0, FILE.name, first.start, first.end), "in_progress")
    with pytest.raises(AssertionError, match=r"\d+ missing: \(0, 'binlog.000001'"):
        assert_same_tables(tables, Decoded([(0, FILE)], tables))


def test_rows_that_two_segments_have_are_there_twice(tables: Tables) -> None:
    """For example a merged segment whose parts are still recorded as completed."""
    whole = Segment(SOURCE, 0, FILE.name, 0, FILE.stat().st_size)
    land_segment(
        SegmentWork(Segment(SOURCE, 0, FILE.name, 4, whole.end), FILE, tables.home, "again", tables.home / "run")
    )
    folder_of(tables.home, 4).rename(folder_of(tables.home, 0))
    record(tables.home, whole, "completed")
    with pytest.raises(AssertionError, match=r"row_events has \d+ keys more than once"):
        assert_same_tables(tables, Decoded([(0, FILE)], tables))


def test_a_value_that_differs_is_shown(tables: Tables) -> None:
    path = next(path for path in sorted(tables.home.rglob("row_events/**/*.parquet")))
    rows = pq.ParquetFile(path).read()
    servers = pa.array([99] * rows.num_rows, pa.int64())
    pq.write_table(rows.set_column(rows.schema.get_field_index("server_id"), "server_id", servers), path)
    with pytest.raises(AssertionError, match=r"\d+ different: .*'server_id': \(99, 1\)"):
        assert_same_tables(tables, Decoded([(0, FILE)], tables))


def test_a_table_map_that_is_missing_is_named(tables: Tables) -> None:
    last = list(data_files(raw_table_dir("table_maps", tables.home)))[-1]
    last.unlink()
    with pytest.raises(AssertionError, match="table_maps: "):
        assert_same_tables(Tables(tables.home, SOURCE), Decoded([(0, FILE)], tables))


def test_spool_files_are_compared_byte_for_byte(tmp_path: Path) -> None:
    server = [SHOP / "binlog.000001", SHOP / "binlog.000002"]
    spool = [tmp_path / path.name for path in server]
    for copy, path in zip(spool, server, strict=True):
        copy.write_bytes(path.read_bytes())
    assert_same_files(spool, server)

    whole = server[1].read_bytes()
    spool[1].write_bytes(whole[: len(whole) // 2])
    assert_same_files(spool, server)

    spool[1].write_bytes(in_use(whole))
    with pytest.raises(AssertionError, match=f"binlog.000002 differs from the server's: .* at {FLAGS_AT}: 01"):
        assert_same_files(spool, server)

    spool[1].write_bytes(whole)
    spool[0].write_bytes(flip_bit(server[0].read_bytes(), 3_000))
    with pytest.raises(AssertionError, match=r"binlog\.000001 differs from the server's: .* at 3000"):
        assert_same_files(spool, server)

    spool[0].write_bytes(server[0].read_bytes()[:-1])
    with pytest.raises(AssertionError, match=r"binlog\.000001 differs"):
        assert_same_files(spool, server)


def test_a_file_that_the_spool_lacks_is_told(tmp_path: Path) -> None:
    copy = tmp_path / "binlog.000001"
    copy.write_bytes((SHOP / "binlog.000001").read_bytes())
    with pytest.raises(AssertionError, match="the server has"):
        assert_same_files([copy], [SHOP / "binlog.000001", SHOP / "binlog.000002"])
