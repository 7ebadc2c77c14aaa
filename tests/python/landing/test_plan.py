"""Assignment of files to epochs, and the segments of a file that must be landed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ingest.binlog import open_binlog, scan_binlog
from ingest.errors import EncryptedBinlogError, NotABinlogError, SourceIdentityError
from ingest.landing.plan import IdentifiedFile, identify, plan_batches, plan_file
from ingest.sources.files.directory import binlog_path
from ingest.warehouse.record import SourceRecord
from ingest.warehouse.segments import Segment, SegmentState, Status
from tests.support.landing.binlogs import (
    SHOP,
    created_at,
    encrypted_by_mariadb,
    encrypted_by_mysql,
    flip_bit,
    in_use,
    of_41,
    of_server,
    transaction_ends,
)

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
DATA = (SHOP / "binlog.000001").read_bytes()


def recorded(path: Path, epoch: int = 0, **changes: Any) -> dict[str, Any]:
    """Return the row of binlog_files that a scan of this file left."""
    scan = scan_binlog(path)
    return {
        "source_id": "s",
        "epoch": epoch,
        "binlog_file": path.name,
        "file_size": scan.file_size,
        "fingerprint": scan.format.fingerprint,
        "server_version": scan.format.server_version,
        "is_encrypted": scan.is_encrypted,
        "created_at": scan.format.created_at,
        "first_event_at": scan.first_event_at,
        "scanned_at": NOON,
        **changes,
    }


def identity(path: Path, epoch: int = 0) -> dict[str, Any]:
    """Return the row of sources that opened an epoch with this file."""
    log_format = open_binlog(path).format
    return {
        "source_id": "s",
        "epoch": epoch,
        "server_id": log_format.server_id,
        "flavor": log_format.flavor,
        "server_version": log_format.server_version,
        "observed_at": NOON,
        "change": "epoch_opened",
        "start_file": None,
        "start_pos": None,
        "gtids_before": None,
    }


def state(start: int, end: int, status: Status = "completed", **facts: Any) -> SegmentState:
    """Return a state of a segment of binlog.000001 in epoch 0."""
    return Segment("s", 0, "binlog.000001", start, end).state(status, "run", **{"recorded_at": NOON, **facts})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a complete, closed binlog file."""
    path = tmp_path / "binlog.000001"
    path.write_bytes(DATA)
    return path


def epochs(paths: list[Path], record: SourceRecord, new_epoch: bool = False) -> list[int]:
    """Return the epochs that are assigned to the files."""
    return [one.epoch for one in identify([binlog_path(path) for path in paths], record, new_epoch).files]


def test_first_files_open_epoch_0(file: Path) -> None:
    found = identify([binlog_path(file), binlog_path(SHOP / "binlog.000002")], SourceRecord("s"))
    assert [one.epoch for one in found.files] == [0, 0]
    assert [(row["epoch"], row["change"]) for row in found.new_identities] == [(0, "epoch_opened")]


def test_known_server_adds_nothing(file: Path) -> None:
    record = SourceRecord.of("s", [identity(file)], [recorded(file)], [])
    assert identify([binlog_path(file)], record).new_identities == []


def test_other_server_opens_the_next_epoch(file: Path, tmp_path: Path) -> None:
    record = SourceRecord.of("s", [identity(file)], [recorded(file)], [])
    other = tmp_path / "binlog.000009"
    other.write_bytes(of_server(DATA, 77))
    assert epochs([other], record) == [1]
    # A failover: names start over. The server identifies the file, its name does not.
    file.write_bytes(of_server(DATA, 77))
    assert epochs([file], record) == [1]


def test_two_servers_at_once_are_refused(file: Path, tmp_path: Path) -> None:
    first, second, back = file, tmp_path / "binlog.000002", tmp_path / "binlog.000003"
    second.write_bytes(of_server(DATA, 77))
    back.write_bytes(created_at(DATA, 1_800_000_000))
    record = SourceRecord.of("s", [identity(first), identity(second, 1)], [recorded(first), recorded(second, 1)], [])
    assert epochs([first, second], record) == [0, 1]
    with pytest.raises(SourceIdentityError, match="two servers are writing under one source"):
        epochs([back], record)
    assert epochs([back], record, new_epoch=True) == [2]


def test_file_that_changed_under_its_name(file: Path) -> None:
    record = SourceRecord.of("s", [identity(file)], [recorded(file)], [])
    file.write_bytes(created_at(DATA, 1_800_000_000))
    with pytest.raises(SourceIdentityError, match="is not the file that was landed under this name") as caught:
        epochs([file], record)
    assert "--new-epoch" in str(caught.value)
    assert epochs([file, SHOP / "binlog.000002"], record, new_epoch=True) == [1, 1]


def test_a_landed_file_under_another_name_is_refused(file: Path, tmp_path: Path) -> None:
    record = SourceRecord.of("s", [identity(file)], [recorded(file)], [])
    copy, other = tmp_path / "backup.000001", tmp_path / "backup.000002"
    copy.write_bytes(DATA)
    with pytest.raises(SourceIdentityError, match=rf"begins with the same event as {file.name}, which is landed"):
        epochs([copy], record)
    # The name of a server's log may change between two files.
    other.write_bytes((SHOP / "binlog.000002").read_bytes())
    assert epochs([other], record) == [0]


def test_file_that_shrank(file: Path) -> None:
    record = SourceRecord.of("s", [identity(file)], [recorded(file)], [])
    file.write_bytes(DATA[:-100])
    with pytest.raises(SourceIdentityError, match="a binlog never gets smaller"):
        epochs([file], record)
    assert epochs([file], record, new_epoch=True) == [1]


def test_series_that_started_over_under_names_that_are_free(tmp_path: Path) -> None:
    fifth, first = tmp_path / "binlog.000005", tmp_path / "binlog.000001"
    fifth.write_bytes(DATA)
    record = SourceRecord.of("s", [identity(fifth)], [recorded(fifth)], [])
    # Older files that are landed later do not start a new series.
    first.write_bytes(created_at(DATA, 1_700_000_000))
    assert epochs([first], record) == [0]
    first.write_bytes(created_at(DATA, 1_800_000_000))
    with pytest.raises(SourceIdentityError, match="have started over"):
        epochs([first], record)
    assert epochs([first], record, new_epoch=True) == [1]


def test_new_epoch_said_again_opens_no_further_one(file: Path, tmp_path: Path) -> None:
    before = [identity(file), identity(file, 1)], [recorded(file)], []
    file.write_bytes(created_at(DATA, 1_800_000_000))
    # A crash came after the epoch was recorded, but before its files were.
    assert epochs([file], SourceRecord.of("s", *before), new_epoch=True) == [1]
    after = SourceRecord.of("s", before[0], [*before[1], recorded(file, 1)], [])
    (tmp_path / "binlog.000002").write_bytes(created_at(DATA, 1_800_000_001))
    assert epochs([file, tmp_path / "binlog.000002"], after, new_epoch=True) == [1, 1]


def test_upgrade_is_recorded_within_the_epoch(file: Path) -> None:
    older = {**identity(file), "server_version": "8.4.0"}
    found = identify([binlog_path(file)], SourceRecord.of("s", [older], [recorded(file)], []))
    assert [(row["epoch"], row["change"]) for row in found.new_identities] == [(0, "server_changed")]


def test_epoch_whose_identity_a_crash_swallowed(file: Path) -> None:
    # Recorded in binlog_files as epoch 1, but not yet in sources.
    record = SourceRecord.of("s", [identity(file)], [recorded(file, 1)], [])
    found = identify([binlog_path(file)], record)
    assert [one.epoch for one in found.files] == [1]
    assert [(row["epoch"], row["change"]) for row in found.new_identities] == [(1, "epoch_opened")]


def test_files_without_a_start_event_belong_to_the_server_before(tmp_path: Path) -> None:
    paths = [tmp_path / f"binlog.00000{number}" for number in (1, 2, 3)]
    for path, statement in zip(paths, ("create table t (a int)", "drop table t", "drop table u"), strict=True):
        # In the later files a replicated statement comes first, with the server_id of its original server.
        path.write_bytes(of_41(statement, is_first=path == paths[0], server_id=1 if path == paths[0] else 9))
    found = identify([binlog_path(path) for path in paths], SourceRecord("s"))
    assert [one.epoch for one in found.files] == [0, 0, 0]
    assert [(row["server_id"], row["server_version"]) for row in found.new_identities] == [(1, "4.1.22-log")]
    alone = identify([binlog_path(paths[1])], SourceRecord("s"))
    assert [(row["server_id"], row["server_version"]) for row in alone.new_identities] == [(None, None)]


def test_encrypted_files_are_recorded_once_and_a_readable_copy_takes_their_place(file: Path) -> None:
    file.write_bytes(encrypted_by_mysql(DATA))
    found = identify([binlog_path(file)], SourceRecord("s"))
    (plan,) = found.encrypted
    assert (found.files, found.problems, found.new_identities) == ([], [], [])
    assert plan.row == {
        "source_id": "s",
        "epoch": 0,
        "binlog_file": "binlog.000001",
        "file_sequence": 1,
        "file_size": len(DATA) + 512,
        "flavor": "mysql",
        "is_encrypted": True,
    }
    assert plan.segments == [] and plan.bad is not None and (plan.bad.start, plan.bad.end) == (4, len(DATA) + 512)
    assert plan.problem is not None and isinstance(plan.problem.error, EncryptedBinlogError)
    row = {**plan.row, "fingerprint": None, "scanned_at": NOON}
    failed = state(plan.bad.start, plan.bad.end, "failed", error=str(plan.problem.error))
    record = SourceRecord.of("s", [], [row], [failed])
    (again,) = identify([binlog_path(file)], record).encrypted
    assert again.row is None and again.is_recorded
    file.write_bytes(DATA)
    readable = identify([binlog_path(file)], record)
    assert [one.epoch for one in readable.files] == [0]
    plan = plan_file(readable.files[0], record)
    assert [(one.start, one.end) for one in plan.segments] == [(4, len(DATA))]


def test_nothing_is_landed_of_a_file_that_is_encrypted_behind_its_head(file: Path) -> None:
    file.write_bytes(encrypted_by_mariadb(DATA))
    (found,) = identify([binlog_path(file)], SourceRecord("s")).files
    plan = plan_file(found, SourceRecord("s"))
    assert plan.row is not None and plan.row["is_encrypted"] is True
    assert plan.segments == [] and plan.bad is not None and (plan.bad.start, plan.bad.end) == (4, len(DATA) + 40)
    assert plan.problem is not None and isinstance(plan.problem.error, EncryptedBinlogError)
    assert "--read-from-remote-server" in str(plan.problem.error)
    row = {**plan.row, "scanned_at": NOON}
    record = SourceRecord.of("s", [identity(file)], [row], [state(4, len(DATA) + 40, "failed")])
    # The readable copy is shorter, which is no reason to refuse it.
    file.write_bytes(DATA)
    assert epochs([file], record) == [0]
    plan = plan_file(IdentifiedFile(binlog_path(file), 0, len(DATA), False), record)
    assert [(one.start, one.end) for one in plan.segments] == [(4, len(DATA))]


def test_files_that_are_no_binlogs_are_named_and_others_taken(file: Path, tmp_path: Path) -> None:
    (tmp_path / "binlog.000002").write_bytes(b"")
    found = identify([binlog_path(file), binlog_path(tmp_path / "binlog.000002")], SourceRecord("s"))
    assert [one.file.name for one in found.files] == ["binlog.000001"]
    assert [type(problem.error) for problem in found.problems] == [NotABinlogError]


def planned(path: Path, states: list[SegmentState], segment_bytes: int = 1 << 20) -> list[tuple[int, int]]:
    """Return the ranges that must be landed."""
    record = SourceRecord.of("s", [], [], states)
    plan = plan_file(IdentifiedFile(binlog_path(path), 0, path.stat().st_size, False), record, segment_bytes)
    return [(segment.start, segment.end) for segment in plan.segments]


def test_whole_file_is_cut_at_transaction_ends(file: Path) -> None:
    ranges = planned(file, [], 10_000)
    assert ranges[0][0] == 4
    assert ranges[-1][1] == len(DATA)
    assert [end for _, end in ranges[:-1]] == [start for start, _ in ranges[1:]]
    assert {end for _, end in ranges} <= set(transaction_ends(file))
    assert len(ranges) > 3


def test_completed_segments_are_left_out(file: Path) -> None:
    ranges = planned(file, [], 10_000)
    assert planned(file, [state(*ranges[0]), state(*ranges[1])], 10_000) == ranges[2:]
    assert planned(file, [state(*one) for one in ranges], 10_000) == []


def test_interrupted_segments_are_taken_up_as_they_were_begun(file: Path) -> None:
    ranges = planned(file, [], 10_000)
    begun = [state(*one, "in_progress") for one in ranges]
    begun[1] = replace(begun[1], status="completed")
    # This holds for any current segment size.
    assert planned(file, begun, 1 << 20) == [ranges[0], *ranges[2:]]


def test_the_latest_state_counts(file: Path) -> None:
    whole = (4, len(DATA))
    later = NOON + timedelta(seconds=1)
    assert planned(file, [state(*whole, recorded_at=later), state(*whole, "in_progress")]) == []
    assert planned(file, [state(*whole), state(*whole, "failed", recorded_at=later)]) == [whole]


def test_growing_file_goes_on_where_it_ended(file: Path) -> None:
    ends = transaction_ends(file)
    middle, later = ends[len(ends) // 2], ends[-3]
    file.write_bytes(in_use(DATA[:middle]))
    assert planned(file, []) == [(4, middle)]
    # The file ends inside a transaction: land only the complete part.
    file.write_bytes(in_use(DATA[: later + 50]))
    record = SourceRecord.of("s", [], [], [state(4, middle)])
    plan = plan_file(IdentifiedFile(binlog_path(file), 0, later + 50, False), record)
    assert [(one.start, one.end) for one in plan.segments] == [(middle, later)]
    assert plan.problem is None
    assert plan.unfinished_bytes == 50
    file.write_bytes(DATA)
    assert planned(file, [state(4, middle), state(middle, later)]) == [(later, len(DATA))]


def test_cut_file_fails_from_the_last_complete_transaction(file: Path) -> None:
    ends = transaction_ends(file)
    cut = ends[5] + 30
    file.write_bytes(DATA[:cut])
    record = SourceRecord("s")
    plan = plan_file(IdentifiedFile(binlog_path(file), 0, cut, False), record)
    assert [(one.start, one.end) for one in plan.segments] == [(4, ends[5])]
    assert plan.bad is not None and (plan.bad.start, plan.bad.end) == (ends[5], cut)
    assert plan.problem is not None and "is broken at position" in str(plan.problem.error)
    failed = state(ends[5], cut, "failed", error=str(plan.problem.error))
    again = plan_file(
        IdentifiedFile(binlog_path(file), 0, cut, False), SourceRecord.of("s", [], [], [state(4, ends[5]), failed])
    )
    assert again.segments == [] and again.is_recorded
    # The whole file is available now: the failed range ended where the copy was cut, not at the end of a transaction.
    file.write_bytes(DATA)
    assert planned(file, [state(4, ends[5]), failed]) == [(ends[5], len(DATA))]


def test_flipped_bit_fails_from_its_transaction(file: Path) -> None:
    ends = transaction_ends(file)
    file.write_bytes(flip_bit(DATA, ends[7] + 120))
    plan = plan_file(IdentifiedFile(binlog_path(file), 0, len(DATA), False), SourceRecord("s"))
    assert plan.segments[-1].end == ends[7]
    assert plan.bad is not None and (plan.bad.start, plan.bad.end) == (ends[7], len(DATA))
    assert plan.row is not None and plan.row["checksum_failures"] == 1


def test_bad_checksums_are_passed_over_when_asked(file: Path) -> None:
    ends = transaction_ends(file)
    bad = flip_bit(DATA, ends[7] + 120)
    file.write_bytes(bad)
    this = IdentifiedFile(binlog_path(file), 0, len(DATA), False)
    stopped = plan_file(this, SourceRecord("s"))
    assert stopped.problem is not None and "--skip-bad-checksum" in str(stopped.problem.error)
    # Segments that failed without the option are landed with it.
    states = [state(4, ends[7]), state(ends[7], len(DATA), "failed", error=str(stopped.problem.error))]
    plan = plan_file(this, SourceRecord.of("s", [], [], states), skip_bad_checksum=True)
    assert [(one.start, one.end) for one in plan.segments] == [(ends[7], len(DATA))]
    assert (plan.problem, plan.passed_over) == (None, 1)
    # Segments that were landed with it stay landed without it; newer parts fail.
    later = ends[-3]
    file.write_bytes(in_use(bad))
    plan = plan_file(this, SourceRecord.of("s", [], [], [state(4, later)]))
    assert plan.segments == []
    assert plan.bad is not None and (plan.bad.start, plan.bad.end) == (later, len(DATA))


def test_files_are_planned_in_batches_in_order(file: Path) -> None:
    files = [IdentifiedFile(binlog_path(SHOP / f"binlog.00000{n}"), 0, 1, False) for n in (1, 2)] * 200
    batches = list(plan_batches(files, SourceRecord("s")))
    assert len(batches) == 2
    assert [plan.file.file.name for batch in batches for plan in batch] == [one.file.name for one in files]
