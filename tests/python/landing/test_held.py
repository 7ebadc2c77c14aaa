"""Landing a stream's files piece by piece gives the same tables as an ingest of the whole files."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest.binlog import scan_binlog
from ingest.errors import CorruptBinlogError, IngestInProgressError
from ingest.landing import IngestOptions, ingest, land_snapshot
from ingest.landing.held import SpoolFile, StreamLanding
from ingest.sources.files.directory import find_binlogs
from ingest.sources.snapshots.snapshot_files import read_snapshot_dir
from ingest.warehouse.home import warehouse_dir
from ingest.warehouse.record import SourceRecord
from tests.support.landing.binlogs import SHOP, flip_bit, in_use, transaction_ends
from tests.support.landing.stored import segment_rows, stored

pytestmark = pytest.mark.slow

DATA = (SHOP / "binlog.000001").read_bytes()
IDENTITY = {"epoch": 0, "server_id": 1, "flavor": "mysql", "server_version": "9.7.0"}
NAMES = ("binlog.000001", "binlog.000002")
SMALL = IngestOptions(segment_bytes=8_000)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder for each test."""
    return tmp_path / "home"


@pytest.fixture
def landing(home: Path) -> Iterator[StreamLanding]:
    """A landing of source `stream` whose epoch 0 is open."""
    with StreamLanding("stream", home, SMALL) as held:
        held.open_epoch(IDENTITY)
        yield held


def whole(path: Path) -> SpoolFile:
    """Return a file to its end."""
    return SpoolFile(path, 0, path.stat().st_size)


def files_of(home: Path) -> set[Path]:
    """Return all files of the warehouse."""
    return {path for path in warehouse_dir(home).rglob("*") if path.is_file()}


def test_the_same_files_as_from_an_ingest(home: Path, tmp_path: Path) -> None:
    with StreamLanding("stream", home, SMALL) as landing:
        landing.open_epoch(IDENTITY)
        result = landing.land([whole(SHOP / name) for name in NAMES])
    assert (result.problems, result.exit_code) == ([], 0)
    at_once = ingest("stream", find_binlogs(SHOP), SMALL, home=tmp_path / "ingest")
    assert (result.row_events, result.transactions, result.segments, result.bytes) == (
        at_once.row_events,
        at_once.transactions,
        at_once.segments,
        at_once.bytes,
    )
    assert result.row_events > 300
    here, there = stored(home), stored(tmp_path / "ingest")
    assert here.pop("sources") != there.pop("sources")  # no file records the host, and the test is not the server
    assert here == there


def test_piece_by_piece_at_every_transaction_end(landing: StreamLanding, home: Path, tmp_path: Path) -> None:
    path = tmp_path / "spool" / "binlog.000001"
    path.parent.mkdir()
    ends = transaction_ends(SHOP / path.name)
    for end in ends[:-1]:
        # The part of the next transaction that the follower has already received is not landed.
        path.write_bytes(in_use(DATA[: end + 40]))
        result = landing.land([SpoolFile(path, 0, end)])
        assert (result.problems, result.segments, result.exit_code) == ([], 1, 0)
    path.write_bytes(DATA)
    landing.land([whole(path)])
    assert landing.record.is_landed(0, path.name, len(DATA))
    with StreamLanding("stream", tmp_path / "at-once") as other:
        other.land([whole(path)])
    for table in ("row_events", "transactions", "statements", "ddl_actions", "unsupported_events"):
        assert segment_rows(home, table) == segment_rows(tmp_path / "at-once", table)
    assert stored(home)["table_maps"] == stored(tmp_path / "at-once")["table_maps"]
    # The file's last row equals the result of scanning the whole file.
    last, once = (one.files[0, path.name] for one in (landing.record, other.record))
    assert {**last, "scanned_at": None} == {**once, "scanned_at": None}


def test_what_is_held_in_memory_is_what_is_recorded(landing: StreamLanding, home: Path) -> None:
    first, second = (SHOP / name for name in NAMES)
    landing.land([SpoolFile(first, 0, transaction_ends(first)[3])])
    landing.record_identity({**IDENTITY, "server_version": "9.8.0", "host": "db2"})
    landing.land([whole(first), SpoolFile(second, 0, transaction_ends(second)[1])])
    loaded = SourceRecord.load("stream", home)
    assert landing.record.identities == loaded.identities
    assert landing.record.states == loaded.states
    for rows in (landing.record.files, loaded.files):
        rows.update({key: {**row, "event_counts": dict(row["event_counts"])} for key, row in rows.items()})
    assert landing.record.files == loaded.files
    assert len(loaded.identities) == 2


def test_a_cycle_with_nothing_new_writes_nothing(landing: StreamLanding, home: Path, tmp_path: Path) -> None:
    path = tmp_path / "binlog.000001"
    path.write_bytes(in_use(DATA))
    landing.land([whole(path)])
    before = files_of(home)
    result = landing.land([whole(path)])
    assert (result.files, result.files_skipped, result.segments) == (1, 1, 0)
    assert files_of(home) == before
    # The file is closed: that is recorded, and nothing is landed again.
    path.write_bytes(DATA)
    assert landing.land([whole(path)]).segments == 0
    assert [file.parent.name for file in files_of(home) - before] == ["binlog_files"]
    assert landing.record.files[0, path.name]["is_in_use"] is False


def test_a_scan_that_is_at_hand_is_used(landing: StreamLanding, tmp_path: Path) -> None:
    path = SHOP / "binlog.000001"
    end = transaction_ends(path)[5]
    scan = scan_binlog(path, end=end, segment_bytes=SMALL.segment_bytes)
    assert (scan.file_size, scan.complete_end, scan.defect) == (end, end, None)
    result = landing.land([SpoolFile(path, 0, end, scan)])
    assert result.bytes == end - 4


def test_a_broken_event_fails_as_in_ingest(landing: StreamLanding, home: Path, tmp_path: Path) -> None:
    path = tmp_path / "binlog.000001"
    ends = transaction_ends(SHOP / path.name)
    path.write_bytes(flip_bit(DATA, ends[7] + 120))
    result = landing.land([whole(path)])
    (problem,) = result.problems
    assert isinstance(problem.error, CorruptBinlogError)
    assert (problem.position, problem.end, result.exit_code) == (ends[7], len(DATA), 3)
    assert [state.status for state in landing.record.states[0, path.name]][-1] == "failed"
    # It is reported again, but recorded only once.
    before = files_of(home)
    assert len(landing.land([whole(path)]).problems) == 1
    assert files_of(home) == before


def test_names_that_are_missing_are_said_once(landing: StreamLanding, home: Path) -> None:
    # The previous file creates the tables.
    path = SHOP / NAMES[1]
    assert len(landing.land([SpoolFile(path, 0, transaction_ends(path)[6])]).warnings) == 1
    assert landing.land([whole(path)]).warnings == []
    land_snapshot("stream", read_snapshot_dir(SHOP / "schema"), home)
    landing.reload_snapshots()
    assert landing.land([whole(path)]).warnings == []


def test_one_landing_of_a_source_at_a_time(landing: StreamLanding, home: Path) -> None:
    with pytest.raises(IngestInProgressError), StreamLanding("stream", home):
        pass


def test_the_next_landing_goes_on_where_the_last_one_ended(home: Path) -> None:
    path = SHOP / "binlog.000001"
    end = transaction_ends(path)[6]
    with StreamLanding("again", home) as first:
        first.land([SpoolFile(path, 0, end)])
    with StreamLanding("again", home) as second:
        result = second.land([whole(path)])
    assert result.bytes == len(DATA) - end
    assert second.record.is_landed(0, path.name, len(DATA))


def test_what_progress_raises_ends_the_landing(landing: StreamLanding) -> None:
    class Enough(Exception):
        pass

    def stop(done: int, known: int, word: str) -> None:
        raise Enough

    with pytest.raises(Enough):
        landing.land([whole(SHOP / "binlog.000001")], stop)
    assert landing.land([whole(SHOP / name) for name in NAMES]).problems == []
    assert landing.record.is_landed(0, "binlog.000001", len(DATA))
