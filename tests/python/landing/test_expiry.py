"""Old files expire: their rows go, the record of them stays, and they are not landed again."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ingest.landing import land_snapshot
from ingest.landing.expiry import OldFile, delete_expired, expire, files_by_age, keep_from
from ingest.landing.held import SpoolFile, StreamLanding
from ingest.landing.schema_history import SchemaHistory
from ingest.sources.snapshots.snapshot import SchemaSnapshot
from ingest.sources.snapshots.snapshot_files import read_snapshot_dir
from ingest.warehouse.files import segment_folder
from ingest.warehouse.tables import SEGMENT_TABLES
from recover.retention.carried import _definitions
from tests.support.landing.binlogs import SHOP

FILES = [SpoolFile(SHOP / name, 0, (SHOP / name).stat().st_size) for name in ("binlog.000001", "binlog.000002")]
AFTER_ALL = datetime(2027, 1, 1, tzinfo=UTC)


@pytest.fixture
def landing(tmp_path: Path) -> Iterator[StreamLanding]:
    land_snapshot("shop", read_snapshot_dir(SHOP / "schema"), tmp_path)
    with StreamLanding("shop", tmp_path) as landing:
        landing.open_epoch({"epoch": 0, "server_id": 1, "flavor": "mysql"})
        landing.land(FILES)
        yield landing


def folders(landing: StreamLanding, name: str) -> list[Path]:
    (state,) = landing.record.states[0, name]
    paths = [segment_folder(table, state.segment, landing.home) for table in SEGMENT_TABLES.values()]
    return [path for path in paths if path.exists()]


def decisions(files: list[OldFile]) -> list[str | None]:
    return [file.why_kept for file in files]


def test_whole_files_expire_from_the_oldest_on_and_the_newest_stays(landing: StreamLanding) -> None:
    newest = "it is the newest file"
    files = files_by_age(landing.record, AFTER_ALL)
    assert decisions(files) == [None, newest]
    assert files[0].last_event_at is not None
    assert decisions(files_by_age(landing.record, files[0].last_event_at)) == [
        "its last event is not old enough",
        newest,
    ]
    keep_from(files, files[0], "it is needed")
    assert decisions(files) == ["it is needed", newest]


def test_an_expired_file_is_gone_and_is_not_landed_again(landing: StreamLanding) -> None:
    gtids = landing.record.gtids_done()
    expire(landing, files_by_age(landing.record, AFTER_ALL)[:1])
    # A command that was killed here has recorded the expiry, and the next one deletes the folders.
    assert folders(landing, "binlog.000001")
    assert delete_expired(landing) == 1 and delete_expired(landing) == 0
    assert folders(landing, "binlog.000001") == [] and len(folders(landing, "binlog.000002")) > 1
    landing.__exit__(None, None, None)
    with StreamLanding("shop", landing.home) as again:
        assert str(again.record.gtids_done()) == str(gtids)
        result = again.land(FILES)
        assert (result.files_skipped, result.row_events) == (2, 0)
        assert folders(again, "binlog.000001") == []
        assert decisions(files_by_age(again.record, AFTER_ALL)) == ["it is the newest file"]


def test_the_definitions_at_the_new_beginning_decode_the_log_as_before(landing: StreamLanding) -> None:
    history = SchemaHistory.load(landing.record, landing.home)
    before, shapes = history.hints(0), history.shapes_before(0, "binlog.000002")
    assert before is not None
    columns, defaults = _definitions(shapes)
    expire(landing, files_by_age(landing.record, AFTER_ALL)[:1])
    snapshot = SchemaSnapshot(
        "binlog", AFTER_ALL, binlog_file="binlog.000002", binlog_pos=4, columns=columns, defaults=defaults
    )
    land_snapshot("shop", snapshot, landing.home, epoch=0)
    after = SchemaHistory.load(landing.record, landing.home).hints(0)
    assert after is not None
    assert {table: entries[-1][1] for table, entries in after.tables.items()} == {
        table: entries[-1][1] for table, entries in before.tables.items()
    }
