"""Landing real files: the landed rows, the skipped files, the effect of a bad file."""

import shutil
from collections import Counter
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from ingest.binlog import TableFilter, open_binlog
from ingest.errors import (
    EncryptedBinlogError,
    IngestInProgressError,
    NotABinlogError,
    SourceIdentityError,
    UnknownSourceError,
    UsageError,
)
from ingest.follow.overview import status
from ingest.landing import IngestOptions, IngestResult, ingest, land_snapshot
from ingest.landing.schema_history import SchemaHistory
from ingest.sources.files.directory import find_binlogs
from ingest.sources.snapshots.snapshot_files import read_snapshot_dir
from ingest.warehouse.locks import SourceLock
from ingest.warehouse.record import SourceRecord
from tests.support.landing.binlogs import (
    SHOP,
    SHOP_MARIADB,
    created_at,
    encrypted_by_mariadb,
    encrypted_by_mysql,
    flip_bit,
    in_use,
    of_41,
    of_server,
    transaction_ends,
)
from tests.support.landing.stored import landed, landed_by_table

pytestmark = pytest.mark.slow

SMALL = IngestOptions(segment_bytes=8_000)
DATA = (SHOP / "binlog.000001").read_bytes()


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A folder with the two files of the sample."""
    for path in SHOP.glob("binlog.*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def land(source: str, folder: Path, home: Path, options: IngestOptions = SMALL, **more: Any) -> IngestResult:
    """Land all files of a folder."""
    return ingest(source, find_binlogs(folder), options, home=home, **more)


def decoded(folder: Path, kind: str = "row_events") -> int:
    """Return the number of rows that the decoder alone counts."""
    return sum(
        batch.num_rows
        for file in find_binlogs(folder)
        for batch_kind, batch in open_binlog(file.path).batches()
        if batch_kind == kind
    )


def test_everything_lands_once(home: Path, logs: Path) -> None:
    done: list[tuple[int, int]] = []
    result = land("all", logs, home, progress=lambda so_far, known, word: done.append((so_far, known)))
    assert (result.exit_code, result.problems) == (0, [])
    assert result.segments > 8
    assert result.row_events == decoded(logs) == len(landed(home, "row_events", "all"))
    assert result.transactions == decoded(logs, "transactions")
    assert result.bytes == sum(path.stat().st_size - 4 for path in logs.glob("binlog.*"))
    assert done[-1] == (result.bytes, result.bytes)
    rows = landed_by_table(home, "all")
    assert len(rows["statements"]) == decoded(logs, "statements")
    assert len(rows["table_maps"]) == len({row["table_map_id"] for row in rows["table_maps"]}) > 3
    files = landed(home, "binlog_files", "all")
    assert [(file["binlog_file"], file["file_size"], file["bytes_covered"]) for file in files] == [
        (path.name, path.stat().st_size, path.stat().st_size) for path in sorted(logs.glob("binlog.*"))
    ]
    assert dict(files[0]["event_counts"])["FORMAT_DESCRIPTION"] == 1
    assert [row["change"] for row in landed(home, "sources", "all")] == ["epoch_opened"]


def test_values_in_the_tables_are_those_of_the_decoder(home: Path, logs: Path) -> None:
    land("values", logs, home)
    names = ["binlog_file", "start_pos", "row_ordinal", "event_type", "event_timestamp", "gtid", "before_values"]
    names += ["after_values", "table_name"]
    found = [tuple(row[name] for name in names) for row in landed(home, "row_events", "values")]
    # The log creates its tables, so it contains everything that their values depend on.
    hints = SchemaHistory.load(SourceRecord.load("values", home), home).hints(0)
    expected = sorted(
        (file.name, *(row[name] for name in names[1:]))
        for file in find_binlogs(logs)
        for batch in open_binlog(file.path, hints=hints).row_batches()
        for row in batch.to_pylist()
    )
    assert "new" in {value for row in expected for value in row[-2]}
    assert found == expected


def test_again_is_skipped_without_a_trace(home: Path, logs: Path) -> None:
    first = land("again", logs, home)
    before = landed_by_table(home, "again")
    second = land("again", logs, home, IngestOptions())
    assert (first.files_skipped, second.files_skipped, second.segments) == (0, 2, 0)
    assert landed_by_table(home, "again") == before


def test_growing_file_is_landed_as_far_as_it_is_complete(home: Path, logs: Path) -> None:
    file = logs / "binlog.000001"
    (logs / "binlog.000002").unlink()
    ends = transaction_ends(file)
    sizes = []
    for size in (ends[3], ends[9] + 21, ends[20], len(DATA)):
        # The server clears the flag when it closes the file.
        file.write_bytes(in_use(DATA[:size]) if size < len(DATA) else DATA)
        result = land("grows", logs, home)
        assert result.exit_code == 0
        sizes.append(result.bytes)
    assert sizes == [ends[3] - 4, ends[9] - ends[3], ends[20] - ends[9], len(DATA) - ends[20]]
    assert land("grows", logs, home).files_skipped == 1
    land("at_once", logs, home)
    names = ["start_pos", "end_pos", "row_ordinal", "transaction_pos", "table_map_id", "before_values", "after_values"]
    grown, at_once = (
        [[row[name] for name in names] for row in landed(home, "row_events", source)] for source in ("grows", "at_once")
    )
    assert grown == at_once


def test_cut_file_costs_only_its_tail_and_heals(home: Path, logs: Path) -> None:
    file = logs / "binlog.000001"
    ends = transaction_ends(file)
    cut = ends[-4] + 40
    file.write_bytes(DATA[:cut])
    result = land("cut", logs, home)
    assert result.exit_code == 3
    (problem,) = result.problems
    assert (problem.binlog_file, problem.position, problem.end) == ("binlog.000001", ends[-4], cut)
    assert "binlog.000001" in str(problem.error) and "run the command again" in str(problem.error)
    (one,) = status("cut", home)
    assert [(each.binlog_file, each.state, each.bytes_landed) for each in one.files] == [
        ("binlog.000001", "failed", ends[-4]),
        ("binlog.000002", "landed", (logs / "binlog.000002").stat().st_size),
    ]
    rows = landed_by_table(home, "cut")
    again = land("cut", logs, home)
    assert (again.exit_code, again.segments, len(again.problems)) == (3, 0, 1)
    assert landed_by_table(home, "cut") == rows
    file.write_bytes(DATA)
    healed = land("cut", logs, home)
    assert healed.exit_code == 0
    assert len(landed(home, "row_events", "cut")) == decoded(logs)
    assert [each.state for each in status("cut", home)[0].files] == ["landed", "landed"]


def test_flipped_bit_fails_where_it_is(home: Path, logs: Path) -> None:
    file = logs / "binlog.000001"
    ends = transaction_ends(file)
    file.write_bytes(flip_bit(DATA, ends[10] + 150))
    result = land("flipped", logs, home)
    assert result.exit_code == 3
    assert result.problems[0].position == ends[10]
    states = [row for row in landed(home, "segments", "flipped") if row["status"] == "failed"]
    assert [(row["segment_start"], row["segment_end"]) for row in states] == [(ends[10], len(DATA))]
    assert "is broken at position" in states[0]["error"]


def test_bad_checksums_are_passed_over_when_asked(home: Path, logs: Path) -> None:
    file = logs / "binlog.000001"
    ends = transaction_ends(file)
    # The damaged event is the last one before the commit event, which has 31 bytes.
    file.write_bytes(flip_bit(DATA, ends[10] - 31 - 10))
    land("passed over", logs, home)
    skipping = IngestOptions(segment_bytes=8_000, skip_bad_checksum=True)
    result = land("passed over", logs, home, skipping)
    assert (result.exit_code, result.problems) == (0, [])
    (warning,) = (one for one in result.warnings if "checksum" in one)
    assert f"{file}: events skipped because of a wrong checksum: 1." in warning
    (found,) = landed(home, "unsupported_events", "passed over")
    assert found["reason"] == "bad_checksum" and ends[9] < found["start_pos"] < found["end_pos"] == ends[10] - 31
    assert [each.state for each in status("passed over", home)[0].files] == ["landed", "landed"]
    # Everything else is landed.
    decoder = open_binlog(file, skip_bad_checksum=True).batches()
    expected = sum(batch.num_rows for kind, batch in decoder if kind == "row_events")
    of_file = [row for row in landed(home, "row_events", "passed over") if row["binlog_file"] == file.name]
    assert len(of_file) == expected < decoded(SHOP)
    again = land("passed over", logs, home)
    assert (again.exit_code, again.segments, again.files_skipped) == (0, 0, 2)


def test_encrypted_files_are_named_and_recorded(home: Path, logs: Path) -> None:
    first, second = logs / "binlog.000001", logs / "binlog.000002"
    first.write_bytes(encrypted_by_mysql(DATA))
    second.write_bytes(encrypted_by_mariadb(second.read_bytes()))
    for _ in range(2):
        result = land("encrypted", logs, home)
        assert result.exit_code == 3
        assert {problem.binlog_file: type(problem.error) for problem in result.problems} == {
            first.name: EncryptedBinlogError,
            second.name: EncryptedBinlogError,
        }
        assert all(str(logs) in str(problem.error) for problem in result.problems)
    files = landed(home, "binlog_files", "encrypted")
    assert [(row["binlog_file"], row["is_encrypted"], row["file_size"]) for row in files] == [
        (first.name, True, first.stat().st_size),
        (second.name, True, second.stat().st_size),
    ]
    assert (files[0]["format_version"], files[0]["server_version"], files[0]["events"]) == (None, None, None)
    assert [each.state for each in status("encrypted", home)[0].files] == ["failed", "failed"]
    for path in (first, second):
        path.write_bytes((SHOP / path.name).read_bytes())
    assert land("encrypted", logs, home).row_events == decoded(SHOP)


def test_files_of_4_1_have_statements_and_no_rows(home: Path, tmp_path: Path) -> None:
    (tmp_path / "binlog.000001").write_bytes(of_41("create table t (a int)", "insert into t values (1)"))
    (tmp_path / "binlog.000002").write_bytes(of_41("update t set a = 2", is_first=False))
    result = land("old", tmp_path, home)
    assert (result.exit_code, result.problems, result.row_events) == (0, [], 0)
    columns = ("format_version", "server_version", "flavor", "checksum_algorithm")
    assert [tuple(row[name] for name in columns) for row in landed(home, "binlog_files", "old")] == [
        (3, "4.1.22-log", "mysql", None),
        (3, None, "mysql", None),
    ]
    assert [(row["kind"], row["sql_text"]) for row in landed(home, "statements", "old")] == [
        ("QUERY", "create table t (a int)"),
        ("QUERY", "insert into t values (1)"),
        ("QUERY", "update t set a = 2"),
    ]
    assert land("old", tmp_path, home).files_skipped == 2


def test_file_that_is_no_binlog_does_not_stop_the_others(home: Path, logs: Path) -> None:
    (logs / "binlog.000003").write_bytes(b"not a binlog at all")
    result = land("others", logs, home)
    assert [problem.binlog_file for problem in result.problems] == ["binlog.000003"]
    assert result.exit_code == 2
    assert result.row_events == decoded(SHOP)
    with pytest.raises(NotABinlogError):
        ingest("others", find_binlogs(logs, ["binlog.000003"]), home=home)


def test_shrunk_and_exchanged_files_are_refused_and_nothing_changes(home: Path, logs: Path) -> None:
    land("identity", logs, home)
    before = landed_by_table(home, "identity")
    file = logs / "binlog.000001"
    file.write_bytes(DATA[:-500])
    with pytest.raises(SourceIdentityError, match="never gets smaller"):
        land("identity", logs, home)
    file.write_bytes(created_at(DATA, 1_800_000_000))
    with pytest.raises(SourceIdentityError, match="is not the file that was landed"):
        land("identity", logs, home)
    assert landed_by_table(home, "identity") == before


def test_reset_is_landed_as_the_next_epoch_when_it_is_meant(home: Path, logs: Path) -> None:
    land("reset", logs, home)
    (logs / "binlog.000001").write_bytes(created_at(DATA, 1_800_000_000))
    (logs / "binlog.000002").unlink()
    for skipped in (0, 1):
        result = land("reset", logs, home, IngestOptions(new_epoch=True))
        assert (result.exit_code, result.files_skipped) == (0, skipped)
    epochs = Counter(row["epoch"] for row in landed(home, "row_events", "reset"))
    assert epochs == {0: decoded(SHOP), 1: decoded(logs)}


def test_failover_opens_the_next_epoch_by_itself(home: Path, logs: Path) -> None:
    land("failover", logs, home)
    (logs / "binlog.000001").write_bytes(of_server(DATA, 4711))
    (logs / "binlog.000002").unlink()
    assert land("failover", logs, home).exit_code == 0
    rows = sorted(landed(home, "sources", "failover"), key=itemgetter("epoch"))
    assert [(row["epoch"], row["change"]) for row in rows] == [(0, "epoch_opened"), (1, "epoch_opened")]
    assert rows[1]["server_id"] == 4711
    late = logs / "binlog.000007"
    late.write_bytes(created_at(DATA, 1_800_000_000))
    with pytest.raises(SourceIdentityError, match="two servers are writing under one source"):
        ingest("failover", find_binlogs(logs, [late.name]), home=home)


def test_second_ingest_of_a_source_stops(home: Path, logs: Path) -> None:
    with SourceLock(home, "busy", "another"), pytest.raises(IngestInProgressError):
        land("busy", logs, home)
    assert landed(home, "binlog_files", "busy") == []
    with SourceLock(home, "other", "another"):
        assert land("busy", logs, home).exit_code == 0


def test_filter_is_recorded_and_another_one_later_is_said(home: Path, logs: Path) -> None:
    only = IngestOptions(tables=TableFilter.of(tables=["orders"]))
    result = land("filtered", logs, home, only)
    assert 0 < result.row_events < decoded(logs)
    assert {row["table_name"] for row in landed(home, "row_events", "filtered")} == {"orders"}
    assert not [one for one in land("filtered", logs, home, only).warnings if "not landed again" in one]
    (warning,) = (one for one in land("filtered", logs, home).warnings if "not landed again" in one)
    assert "tables: orders" in warning


def test_missing_snapshot_is_said_once_and_a_landed_one_is_used(
    home: Path, logs: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # The previous file creates the tables.
    alone = tmp_path_factory.mktemp("alone")
    shutil.copy(logs / "binlog.000002", alone)
    without = land("unnamed", alone, home)
    assert len(without.warnings) == 1 and "binloom snapshot --source unnamed" in without.warnings[0]
    land_snapshot("named", read_snapshot_dir(SHOP / "schema"), home)
    assert land("named", alone, home).warnings == []
    unnamed, named = (
        {(row["hint"], row["unknown_hints"] is None) for row in landed(home, "table_maps", source)}
        for source in ("unnamed", "named")
    )
    assert ("metadata", False) in unnamed
    assert named <= {("snapshot", True), ("metadata", True)}


def test_a_snapshot_that_comes_later_lands_again_what_it_tells_of(
    home: Path, logs: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    alone = tmp_path_factory.mktemp("alone")
    shutil.copy(logs / "binlog.000002", alone)
    land("late", alone, home)
    land_snapshot("late", read_snapshot_dir(SHOP / "schema"), home)
    assert land("late", alone, home).segments > 0
    land("in_time", logs, home)
    values = {source: values_of(home, source, "binlog.000002") for source in ("late", "in_time")}
    assert values["late"] == values["in_time"]
    assert land("late", alone, home).segments == 0


def values_of(home: Path, source: str, binlog_file: str) -> list[list[Any]]:
    """Return positions and values of a file's rows."""
    names = ("start_pos", "row_ordinal", "before_values", "after_values")
    rows = landed(home, "row_events", source)
    return [[row[name] for name in names] for row in rows if row["binlog_file"] == binlog_file]


def test_snapshot_lands_once(home: Path) -> None:
    snapshot = read_snapshot_dir(SHOP / "schema")
    first, second = (land_snapshot("snapshots", snapshot, home) for _ in range(2))
    assert (first.is_new, second.is_new) == (True, False)
    assert first.snapshot_id == second.snapshot_id
    columns = [row for row in landed(home, "schema_columns") if row["snapshot_id"] == first.snapshot_id]
    assert len(columns) == len(snapshot.columns) == first.columns
    places = [row["primary_key_ordinal"] for row in columns if row["table_name"] == "order_items"]
    assert sorted(place for place in places if place is not None) == [1, 2]


def test_names_that_need_escaping(home: Path, tmp_path: Path) -> None:
    odd = "it's a/b=c%d \\ ü"
    (tmp_path / "bin#log:a.000001").write_bytes(DATA)
    result = land(odd, tmp_path, home)
    rows = landed(home, "row_events", odd)
    assert {row["binlog_file"] for row in rows} == {"bin#log:a.000001"}
    assert len(rows) == result.row_events
    with pytest.raises(UsageError):
        land("  ", tmp_path, home)


def test_mariadb_lands_too(home: Path) -> None:
    result = land("mariadb", SHOP_MARIADB, home)
    assert result.exit_code == 0
    assert result.row_events == decoded(SHOP_MARIADB) > 0
    assert status("mariadb", home)[0].flavor == "mariadb"


def test_status_of_an_unknown_source(home: Path, logs: Path) -> None:
    land("known", logs, home)
    with pytest.raises(UnknownSourceError, match="known"):
        status("unknown", home)
