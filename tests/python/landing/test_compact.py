"""Compaction: the same rows in fewer files, each row visible exactly once at any instant, and after any kill."""

import contextlib
import functools
import itertools
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from ingest.landing import compact, run
from ingest.landing.again import reopened
from ingest.landing.compact import (
    FEW_FILES,
    FEW_PARTS,
    clean_up_held,
    compact_closed_files,
    merge_logs,
    remove_replaced,
)
from ingest.landing.held import SpoolFile, StreamLanding
from ingest.landing.options import IngestOptions
from ingest.landing.recorder import now
from ingest.warehouse.files import append_rows, read_rows
from ingest.warehouse.home import raw_table_dir
from ingest.warehouse.locks import folders_locked
from ingest.warehouse.names import source_stem
from ingest.warehouse.record import SourceRecord
from ingest.warehouse.segments import FIRST_EVENT, Segment
from ingest.warehouse.tables import SEGMENTS
from tests.support.depth import at_depth
from tests.support.landing.binlogs import SHOP, in_use, transaction_ends
from tests.support.landing.faulted import SOURCE
from tests.support.landing.stored import current_rows, segment_rows
from tests.support.places import PROJECT

pytestmark = pytest.mark.slow

DATA = (SHOP / "binlog.000001").read_bytes()
NAMES = ("binlog.000001", "binlog.000002")
TABLES = ("row_events", "transactions", "statements", "ddl_actions", "unsupported_events")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SMALL = IngestOptions(segment_bytes=6_000)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with both files of the sample landed in small segments."""
    home = tmp_path / "home"
    land_small(home)
    return home


def land_small(home: Path, options: IngestOptions = SMALL) -> None:
    """Land the sample as a follower would, in many segments."""
    with StreamLanding(SOURCE, home, options) as landing:
        landing.open_epoch({"epoch": 0, "server_id": 1, "flavor": "mysql"})
        landing.land([SpoolFile(SHOP / name, 0, (SHOP / name).stat().st_size) for name in NAMES])


def test_the_same_rows_in_one_segment_for_each_file(home: Path) -> None:
    before = {table: current_rows(home, table, SOURCE) for table in TABLES}
    old = SourceRecord.load(SOURCE, home)
    with StreamLanding(SOURCE, home) as landing:
        compacted = compact_closed_files(landing)
        assert [(one.binlog_file, one.start, one.end) for one in compacted] == [
            (name, 0, (SHOP / name).stat().st_size) for name in NAMES
        ]
        assert {table: current_rows(home, table, SOURCE) for table in TABLES} == before
        # The written record equals the record that is read back, and nothing remains to be done.
        assert landing.record.states == SourceRecord.load(SOURCE, home).states
        assert compact_closed_files(landing) == []
        small = [state for of_file in old.states.values() for state in of_file]
        assert remove_replaced(landing, older_than_seconds=3_600) == 0
        assert remove_replaced(landing) == len(small)
        assert landing.record.replaced == {}
    # Readers need not use `segments` any more: all files in the folders are current.
    assert {table: segment_rows(home, table) for table in TABLES} == before
    folders = {path.parent.name for path in raw_table_dir("row_events", home).rglob("*.parquet")}
    assert folders == {"segment_start=0"}
    (state,) = SourceRecord.load(SOURCE, home).states[0, NAMES[0]]
    assert (state.row_events, state.transactions) == tuple(
        sum(getattr(one, name) for one in old.states[0, NAMES[0]]) for name in ("row_events", "transactions")
    )
    assert state.gtids == "5ca1ab1e-0000-4000-8000-0000b1d1003e:1-56"
    assert state.min_event_at == min(one.min_event_at for one in old.states[0, NAMES[0]] if one.min_event_at)


def test_what_was_landed_before_its_table_got_a_column_is_compacted(home: Path) -> None:
    added = ["undecoded_columns", "json_changes"]
    before = current_rows(home, "row_events", SOURCE)
    for path in raw_table_dir("row_events", home).rglob("*.parquet"):
        pq.write_table(pq.ParquetFile(path).read().drop_columns(added), path)
    with StreamLanding(SOURCE, home) as landing:
        assert len(compact_closed_files(landing)) == len(NAMES)
    assert current_rows(home, "row_events", SOURCE) == before


def test_a_compacted_file_is_landed(home: Path) -> None:
    with StreamLanding(SOURCE, home, SMALL) as landing:
        compact_closed_files(landing)
        remove_replaced(landing)
    with StreamLanding(SOURCE, home, SMALL) as landing:
        result = landing.land([SpoolFile(SHOP / name, 0, (SHOP / name).stat().st_size) for name in NAMES])
    assert (result.files_skipped, result.segments, result.problems) == (2, 0, [])


def test_segments_that_are_large_on_average_stay(home: Path) -> None:
    states = SourceRecord.load(SOURCE, home).states
    average = sum(state.segment.size for state in states[0, NAMES[0]]) // len(states[0, NAMES[0]])
    with StreamLanding(SOURCE, home) as landing:
        assert compact_closed_files(landing, part_bytes=FEW_PARTS * average) == []
        assert landing.record.states == states
        compacted = compact_closed_files(landing, part_bytes=FEW_PARTS * (average + 1))
    assert [one.binlog_file for one in compacted][:1] == [NAMES[0]]


def test_parts_have_the_size_that_is_asked_for(tmp_path: Path) -> None:
    land_small(home := tmp_path / "home", IngestOptions(segment_bytes=1_000))
    before = {table: current_rows(home, table, SOURCE) for table in TABLES}
    with StreamLanding(SOURCE, home) as landing:
        compact_closed_files(landing, part_bytes=20_000)
    (folder,) = raw_table_dir("row_events", home).glob(f"*/*/binlog_file={NAMES[0]}/segment_start=0")
    assert sorted(path.name for path in folder.iterdir()) == ["part-0.parquet", "part-1.parquet", "part-2.parquet"]
    assert {table: current_rows(home, table, SOURCE) for table in TABLES} == before


def test_killed_between_any_two_changes_of_files(home: Path) -> None:
    before = {table: current_rows(home, table, SOURCE) for table in TABLES}
    with StreamLanding(SOURCE, home) as landing:
        # More files than compaction leaves unmerged.
        for _ in range(FEW_FILES):
            landing.record_states(next(iter(landing.record.states.values())))
    kills = 0
    # Deletions persist, so each process gets further; the last one is not killed.
    for operations in itertools.cycle((1, 2, 3, 7, 19, 40)[at_depth(2, 0) :]):
        process = subprocess.run(
            [sys.executable, "-m", "tests.support.landing.faulted", "compact", str(home), str(operations)],
            cwd=PROJECT,
            stderr=subprocess.PIPE,
            check=False,
        )
        # A reader at this instant that uses `segments` finds every row once.
        assert {table: current_rows(home, table, SOURCE) for table in TABLES} == before
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL, process.stderr.decode()
        kills += 1
    assert kills > at_depth(2, 5)
    record = SourceRecord.load(SOURCE, home)
    assert record.replaced == {}
    assert [len(states) for states in record.states.values()] == [1, 1]
    assert {table: segment_rows(home, table) for table in TABLES} == before
    assert len(list(raw_table_dir("segments", home).glob(f"{source_stem(SOURCE)}-*"))) <= FEW_FILES
    assert not list(raw_table_dir("row_events", home).rglob("*.tmp"))


def test_what_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / NAMES[0]
    path.write_bytes(in_use(DATA))
    with StreamLanding(SOURCE, tmp_path / "home", SMALL) as landing:
        landing.land([SpoolFile(path, 0, len(DATA))])
        # The server may still write to it.
        assert compact_closed_files(landing) == []
        landing.land([SpoolFile(SHOP / NAMES[1], 0, 1_471)])
        # The server continued with another file: it was killed, and did not close this one, which is incomplete.
        assert [one.binlog_file for one in compact_closed_files(landing)] == [NAMES[0]]
    with StreamLanding(SOURCE, tmp_path / "at-once") as landing:
        landing.land([SpoolFile(SHOP / NAMES[0], 0, len(DATA))])
        assert compact_closed_files(landing) == []
    with StreamLanding(SOURCE, tmp_path / "skipped", SMALL) as landing:
        landing.open_epoch({"epoch": 0, "start_file": NAMES[0], "start_pos": 158})
        landing.land([SpoolFile(SHOP / NAMES[0], 0, len(DATA))])
        assert compact_closed_files(landing) == []


def test_a_file_that_grew_after_it_was_compacted_keeps_its_rows(tmp_path: Path) -> None:
    end = transaction_ends(SHOP / NAMES[0])[20]
    with StreamLanding(SOURCE, tmp_path / "whole") as landing:
        landing.land([SpoolFile(SHOP / NAMES[0], 0, len(DATA))])
    with StreamLanding(SOURCE, tmp_path / "home", SMALL) as landing:
        for upto in (end, len(DATA)):
            landing.land([SpoolFile(SHOP / NAMES[0], 0, upto)])
            compact_closed_files(landing)
    states = SourceRecord.load(SOURCE, tmp_path / "home").states[0, NAMES[0]]
    assert [state.segment_start for state in states][:2] == [0, end]
    for table in TABLES:
        assert current_rows(tmp_path / "home", table, SOURCE) == current_rows(tmp_path / "whole", table, SOURCE)


def test_nothing_is_deleted_beside_a_process_that_holds_the_metastore(home: Path) -> None:
    with StreamLanding(SOURCE, home) as landing:
        compact_closed_files(landing)
        (home / "metastore").mkdir()
        (home / "metastore" / "dbex.lck").write_bytes(b"held")
        holder = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "import fcntl, sys; file = open(sys.argv[1], 'r+b'); fcntl.lockf(file, fcntl.LOCK_EX);"
                "print('held', flush=True); sys.stdin.read()",
                str(home / "metastore" / "dbex.lck"),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        assert remove_replaced(landing) == 0
        holder.communicate(b"")
        assert remove_replaced(landing) > 5


def test_the_holder_of_the_metastore_deletes_what_was_replaced_beside_the_landing(home: Path) -> None:
    before = {table: current_rows(home, table, SOURCE) for table in TABLES}
    with StreamLanding(SOURCE, home) as landing:
        compact_closed_files(landing)
        replaced = len(landing.record.replaced)
        assert clean_up_held(home, older_than_seconds=3_600) == 0
        assert clean_up_held(home) == replaced > 5
        assert clean_up_held(home) == 0
        assert {table: segment_rows(home, table) for table in TABLES} == before
        # The landing does not know that yet, and records it once more.
        assert remove_replaced(landing) == replaced
        assert landing.record.states == SourceRecord.load(SOURCE, home).states
    assert {table: current_rows(home, table, SOURCE) for table in TABLES} == before


@pytest.mark.parametrize("holds_metastore", [False, True])
def test_a_compacted_file_that_was_landed_again_keeps_its_rows(home: Path, holds_metastore: bool) -> None:
    """The new segment begins where a replaced one began, so both have the same folder."""
    before = {table: current_rows(home, table, SOURCE) for table in TABLES}
    with StreamLanding(SOURCE, home) as landing:
        compacted = compact_closed_files(landing)
        landing.record_states(reopened(compacted, landing.run_id, now(), None))
        landing.land([SpoolFile(SHOP / name, 0, (SHOP / name).stat().st_size) for name in NAMES])
        assert clean_up_held(home) if holds_metastore else remove_replaced(landing)
        assert {table: current_rows(home, table, SOURCE) for table in TABLES} == before
    assert [state.segment_start for state in SourceRecord.load(SOURCE, home).states[0, NAMES[0]]] == [FIRST_EVENT]
    assert {table: segment_rows(home, table) for table in TABLES} == before


def test_a_folder_that_is_written_again_is_not_deleted(home: Path) -> None:
    with StreamLanding(SOURCE, home) as landing, ThreadPoolExecutor() as other:
        segment = compact_closed_files(landing)[0]
        with folders_locked(home, SOURCE):
            # The deletion reads the record when it has the lock, which this landing has.
            removed = other.submit(clean_up_held, home)
            with pytest.raises(TimeoutError):
                removed.result(0.5)
            states = reopened([segment], landing.run_id, now(), None)
            append_rows(SEGMENTS, [state.row for state in states], f"{source_stem(SOURCE)}-again", home)
        assert removed.result(60) == len(landing.record.replaced)
    states = SourceRecord.load(SOURCE, home).states[0, NAMES[0]]
    assert [(state.segment_start, state.status) for state in states] == [(FIRST_EVENT, "in_progress")]


def test_a_clock_that_is_set_back_hides_no_rows(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {table: current_rows(home, table, SOURCE) for table in TABLES}
    times = (datetime.now(UTC) - timedelta(hours=number) for number in itertools.count())
    monkeypatch.setattr(compact, "now", times.__next__)
    with StreamLanding(SOURCE, home) as landing:
        assert len(compact_closed_files(landing)) == len(NAMES)
        assert {table: current_rows(home, table, SOURCE) for table in TABLES} == before
        monkeypatch.undo()
        assert remove_replaced(landing)
        monkeypatch.setattr(run, "now", times.__next__)
        landing.record_states(
            reopened([landing.record.states[0, NAMES[0]][0].segment], landing.run_id, next(times), None)
        )
        landing.land([SpoolFile(SHOP / name, 0, (SHOP / name).stat().st_size) for name in NAMES])
        assert landing.record.states == SourceRecord.load(SOURCE, home).states
    assert {table: current_rows(home, table, SOURCE) for table in TABLES} == before


def test_the_copy_of_a_killed_compaction_is_deleted(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise it would keep the values of rows that expire, or are erased."""
    before = {table: current_rows(home, table, SOURCE) for table in TABLES}
    with StreamLanding(SOURCE, home) as landing:
        monkeypatch.setattr(StreamLanding, "hints_used", killed)
        with pytest.raises(KeyboardInterrupt):
            compact_closed_files(landing)
    assert len(segment_rows(home, "row_events")) > len(before["row_events"])
    with StreamLanding(SOURCE, home) as landing:
        assert remove_replaced(landing) == 1
        assert remove_replaced(landing) == 0
    assert {table: segment_rows(home, table) for table in TABLES} == before


def killed(*_: Any) -> None:
    """End the command as Ctrl-C does."""
    raise KeyboardInterrupt


def record_states(landing: StreamLanding, segments: int) -> None:
    """Record states of some segments, as landings of a busy server do: two files of `segments` for each."""
    for end in range(segments):
        segment = Segment(landing.source_id, 0, "binlog.000001", end, end + 1)
        landing.record_states([segment.state("in_progress", landing.run_id, NOON)])
        landing.record_states([segment.state("completed", landing.run_id, NOON, gtids="a:1")])


def test_small_files_of_the_logs_are_put_together(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for source in (SOURCE, "other"):
        with StreamLanding(source, home) as landing:
            record_states(landing, FEW_FILES)
    before = sorted(map(str, read_rows(SEGMENTS, home)))
    with StreamLanding(SOURCE, home) as landing:
        assert merge_logs(landing) == 2 * FEW_FILES
        assert merge_logs(landing) == 0
    assert sorted(map(str, read_rows(SEGMENTS, home))) == before
    # Files of another source stay untouched, because its lock is not held.
    assert len(list(raw_table_dir("segments", home).glob("other-*"))) == 2 * FEW_FILES
    assert len(list(raw_table_dir("segments", home).glob(f"{SOURCE}-*"))) == 1


def test_the_holder_of_the_metastore_merges_the_files_of_all_sources_beside_their_landings(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with contextlib.ExitStack() as stack:
        landings = [stack.enter_context(StreamLanding(source, home)) for source in (SOURCE, "other")]
        for landing in landings:
            landing.open_epoch({"epoch": 0, "server_id": 1, "flavor": "mysql"})
            record_states(landing, 2 * FEW_FILES)
        before = sorted(map(str, read_rows(SEGMENTS, home)))
        assert clean_up_held(home) == 0
        assert sorted(map(str, read_rows(SEGMENTS, home))) == before
        assert len(list(raw_table_dir("segments", home).glob("*.parquet"))) == 2
        # A landing goes on, and what it adds is merged too.
        record_states(landings[0], FEW_FILES)
        clean_up_held(home)
        assert len(list(raw_table_dir("segments", home).glob("*.parquet"))) == 2


def test_two_processes_that_merge_the_same_files_lose_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    has_merged = False

    def merge_before(operation: Callable[..., Any], *arguments: Any) -> Any:
        # The other process does all of its work at this moment of the first one.
        nonlocal has_merged
        if not has_merged:
            has_merged = True
            clean_up_held(home)
        return operation(*arguments)

    with StreamLanding(SOURCE, home) as landing:
        landing.open_epoch({"epoch": 0, "server_id": 1, "flavor": "mysql"})
        for operation in (compact.read_part, compact.append_table, compact.store_errors):
            record_states(landing, FEW_FILES)
            before = set(map(str, read_rows(SEGMENTS, home)))
            has_merged = False
            with monkeypatch.context() as patch:
                patch.setattr(compact, operation.__name__, functools.partial(merge_before, operation))
                clean_up_held(home)
            assert has_merged
            assert set(map(str, read_rows(SEGMENTS, home))) == before
