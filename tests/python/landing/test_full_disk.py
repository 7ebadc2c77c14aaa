"""A full disk at any moment produces one error sentence; once there is space again, the result is complete.

This replays a follower without its server: data is written to the spool, checkpointed, landed and compacted.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ingest.binlog.events.format import read_format
from ingest.errors import StoreError
from ingest.follow.checkpoint import Checkpoint
from ingest.follow.durable_files import DurableFiles
from ingest.follow.overview import status
from ingest.follow.spool import ReceivedFile, Spool
from ingest.landing import IngestOptions, land_snapshot
from ingest.landing.compact import compact_closed_files, merge_logs, remove_replaced
from ingest.landing.held import SpoolFile, StreamLanding
from ingest.sources.snapshots.snapshot_files import read_snapshot_dir
from ingest.warehouse.segments import FIRST_EVENT
from tests.support.command_line import assert_sentence, binloom
from tests.support.landing.binlogs import SHOP, transaction_ends
from tests.support.landing.full_disk import SmallDisk, file_size_limit, full_from_operation
from tests.support.landing.stored import current_rows, stored

pytestmark = pytest.mark.slow

SOURCE = "shop"
NAMES = ("binlog.000001", "binlog.000002")
FILES = {name: (SHOP / name).read_bytes() for name in NAMES}
ENDS = {name: [*transaction_ends(SHOP / name), len(FILES[name])] for name in NAMES}
TABLES = ("row_events", "transactions", "statements", "ddl_actions", "unsupported_events")
IDENTITY = {"epoch": 0, "server_id": 1, "server_uuid": "u", "flavor": "mysql", "server_version": "9.7.4"}
NOW = datetime(2026, 11, 20, tzinfo=UTC)


def follow(home: Path) -> None:
    """Continue from the end of the last attempt, as a follower does when it starts, to the end of the server's log."""
    land_snapshot(SOURCE, read_snapshot_dir(SHOP / "schema"), home)
    with StreamLanding(SOURCE, home, IngestOptions(segment_bytes=20_000)) as landing:
        if not landing.record.identities:
            landing.open_epoch(IDENTITY)
        spool = Spool(SOURCE, home)
        spool.drop_unsynced()
        durable = DurableFiles(spool)
        try:
            for name in NAMES:
                for _ in receive(spool, name):
                    landing.land(durable.files())
                    compact_closed_files(landing)
            remove_replaced(landing)
            merge_logs(landing)
        finally:
            durable.close()


def land(home: Path) -> None:
    """Land the server's files from another folder, so that nothing large is written before the tables."""
    land_snapshot(SOURCE, read_snapshot_dir(SHOP / "schema"), home)
    with StreamLanding(SOURCE, home, IngestOptions(segment_bytes=20_000)) as landing:
        if not landing.record.identities:
            landing.open_epoch(IDENTITY)
        landing.land([SpoolFile(SHOP / name, 0, len(FILES[name])) for name in NAMES])
        compact_closed_files(landing)


def receive(spool: Spool, name: str) -> Iterator[None]:
    """Write the missing part of a server's file to the spool, and yield after each sync."""
    checkpoint = spool.checkpoint
    if checkpoint is not None and checkpoint.binlog_file > name:
        return
    if checkpoint is None or checkpoint.binlog_file < name:
        spool.write_checkpoint(Checkpoint(0, name, FIRST_EVENT, "u", 1, "mysql", "9.7.4", "db1", 3306, NOW))
    assert spool.checkpoint is not None
    path, data = spool.path(0, name), FILES[name]
    if path.exists():
        file = ReceivedFile(path)
    else:
        format_end = FIRST_EVENT + int.from_bytes(data[FIRST_EVENT + 9 : FIRST_EVENT + 13], "little")
        file = ReceivedFile.begin(path, data[FIRST_EVENT:format_end])
    try:
        for end in [*ENDS[name][14::15], len(data)]:
            if end > file.end:
                file.append(data[file.end : end], end - file.end)
                if end == len(data):
                    file.mark_closed()
                file.sync()
                spool.write_checkpoint(Checkpoint(0, name, file.synced, "u", 1, "mysql", "9.7.4", "db1", 3306, NOW))
            yield
    finally:
        file.close()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home of an undisturbed run."""
    home = tmp_path_factory.mktemp("whole") / "home"
    follow(home)
    return home


def assert_no_row_is_lost(home: Path, whole: Path) -> None:
    """Assert that the tables equal the tables of an undisturbed run."""
    for table in TABLES:
        assert current_rows(home, table, SOURCE) == current_rows(whole, table, SOURCE)
    for table in ("schema_snapshots", "schema_columns", "table_maps", "sources"):
        assert stored(home)[table] == stored(whole)[table]
    assert list(home.rglob("*.tmp")) == []


def assert_nothing_is_lost(home: Path, whole: Path) -> None:
    """Assert that the tables and the spool equal those of an undisturbed run."""
    assert_no_row_is_lost(home, whole)
    assert {path.name: path.read_bytes() for path in Spool(SOURCE, home).folder.glob("binlog.*")} == FILES


def attempt(home: Path, way: Callable[[Path], None] = follow) -> str | None:
    """Continue; return the error sentence when the disk is full, None when all is done."""
    try:
        way(home)
    except StoreError as error:
        assert error.path
        assert "\n" not in str(error)
        return str(error)
    return None


def assert_is_told(sentence: str, home: Path) -> None:
    """Assert that the remaining files can be read, and that no half-written file stays."""
    assert str(home) in sentence
    assert list(home.rglob("*.tmp")) == [], sentence
    status(home=home)


def test_a_file_that_was_cut_before_its_last_event_is_in_use_again(tmp_path: Path) -> None:
    """The follower was killed between the event that closes a file and the checkpoint after it."""
    spool, (name, _) = Spool(SOURCE, tmp_path), NAMES
    for _ in receive(spool, name):
        pass
    assert spool.checkpoint is not None
    assert not read_format(spool.path(0, name)).is_in_use
    spool.write_checkpoint(replace(spool.checkpoint, position=ENDS[name][20]))
    spool.drop_unsynced()
    assert read_format(spool.path(0, name)).is_in_use
    spool.write_checkpoint(replace(spool.checkpoint, position=FIRST_EVENT))
    spool.drop_unsynced()
    # The file had only begun, so the next run starts it again.
    assert not spool.path(0, name).exists()


def test_operations_that_fail(tmp_path: Path, whole: Path) -> None:
    home, number, told = tmp_path / "home", 0, 0
    while True:
        number += 1
        with full_from_operation(number) as done:
            sentence = attempt(home)
        if sentence is None:
            break
        told += 1
        assert_is_told(sentence, home)
    assert told > 40, done
    assert_nothing_is_lost(home, whole)


def test_files_that_may_not_grow(tmp_path: Path, whole: Path) -> None:
    home, told = tmp_path / "home", set()
    for size in (0, 3, 40, 130, 700, *range(1_500, 12_000, 500), 20_000, 30_000, 40_000):
        with file_size_limit(size):
            sentence = attempt(home, land)
        if sentence is not None:
            told.add(sentence)
            assert_is_told(sentence, home)
    assert attempt(home, land) is None
    assert len(told) > 5, told
    assert_no_row_is_lost(home, whole)


def test_a_disk_that_is_full(tmp_path: Path, whole: Path) -> None:
    chance, told = random.Random(9), set()
    with SmallDisk(tmp_path / "disk") as disk:
        home = disk.folder / "home"
        for _ in range(24):
            disk.leave_free(chance.choice([0, 4096, 8192, 16384, 32768, 65536, 131072]))
            sentence = attempt(home)
            if sentence is not None:
                told.add(sentence)
                assert_is_told(sentence, home)
        disk.empty()
        assert attempt(home) is None
        assert len(told) > 5, told
        assert_nothing_is_lost(home, whole)


@pytest.mark.spark
@pytest.mark.deep
def test_a_build_names_the_disk_that_its_metastore_filled(tmp_path: Path, whole: Path) -> None:
    command = ["ingest", "--source", SOURCE, "--binlog-dir", SHOP, "--all"]
    with SmallDisk(tmp_path / "disk") as disk:
        home = disk.folder / "home"
        # The rows of the sample fit, and Spark's metastore does not.
        disk.leave_free(1 << 20)
        landed = binloom(*command, home=home)
        assert landed.returncode == 0, landed.stderr
        built = binloom("build", "--select", "stg_binlog__segments", home=home)
        assert_sentence(built, 3, f"Spark cannot write to {home}: No space left on device")
        disk.empty()
        built = binloom("build", "--select", "stg_binlog__segments", home=home)
        assert built.returncode == 0, built.stderr
        for table in TABLES:
            assert len(current_rows(home, table, SOURCE)) == len(current_rows(whole, table, SOURCE))
