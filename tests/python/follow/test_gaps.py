"""Unreadable parts of the log are recorded as gaps with start and end; only gaps that a user accepts are skipped."""

import re
import shutil
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ingest.landing import ingest
from ingest.sources.files.directory import binlog_path
from tests.python.follow.conftest import SERVER_OPTIONS
from tests.servers import DISTRIBUTIONS, Server
from tests.servers.accounts import create_account
from tests.servers.load import Load
from tests.servers.replication import LogPosition, begin_again, log_end, purge_before_current
from tests.support.follow.follower import Follower
from tests.support.follow.proxy import Proxy
from tests.support.follow.tables import Decoded, assert_same_tables

pytestmark = pytest.mark.slow


def work(server: Server, first_client: int = 0) -> None:
    """Let a server log some transactions."""
    with Load(server, first_client=first_client) as load:
        load.wait_for(40)


def kept(server: Server, folder: Path) -> list[Path]:
    """Return copies of a server's current files."""
    folder.mkdir()
    return [Path(shutil.copy(path, folder)) for path in server.binlogs()]


def refused(follower: Follower, *words: str) -> str:
    """Run the follower until it stops at a gap; it must report it in a sentence."""
    code, said = follower.run("--once")
    assert code == 3, said
    assert "Traceback" not in said
    for word in (*words, "--accept-gap"):
        assert re.search(word, said), f"{word!r} is not in: {said}"
    return said


def test_purged_logs_that_were_not_read_are_a_gap(server: Server, follower: Follower, tmp_path: Path) -> None:
    work(server)
    follower.once()
    read = follower.received()
    assert read is not None
    before = kept(server, tmp_path / "before")

    work(server, 5)
    first_left = purge_before_current(server)
    work(server, 10)

    refused(follower, re.escape(read.binlog_file), re.escape(first_left.binlog_file))
    (gap,) = follower.gaps()
    assert (gap["reason"], gap["status"]) == ("purged", "found")
    assert (gap["from_epoch"], gap["from_file"], gap["from_pos"]) == (0, read.binlog_file, read.position)
    assert (gap["to_epoch"], LogPosition(gap["to_file"], gap["to_pos"])) == (0, first_left)
    assert gap["missing_gtids"]
    assert gap["detail"]

    # A second run finds the same gap and still skips nothing.
    refused(follower)
    assert [found["gap_id"] for found in follower.gaps()] == [gap["gap_id"]]
    assert_same_tables(follower.tables, Decoded([(0, path) for path in before], follower.tables))

    follower.once("--accept-gap")
    (accepted,) = follower.gaps()
    assert (accepted["gap_id"], accepted["status"], accepted["reason"]) == (gap["gap_id"], "accepted", "purged")
    after = [(0, path) for path in (*before, *server.binlogs())]
    counts = assert_same_tables(follower.tables, Decoded(after, follower.tables))
    assert counts["transactions"] >= 60

    # The gap stays recorded, and needs no second acceptance.
    work(server, 15)
    follower.once()
    assert [found["status"] for found in follower.gaps()] == ["accepted"]
    assert_same_tables(follower.tables, Decoded(after, follower.tables))


def test_a_backup_fills_a_gap(server: Server, follower: Follower, tmp_path: Path) -> None:
    work(server)
    follower.once()
    work(server, 5)
    server.flush()
    work(server, 10)
    server.flush()
    backup = kept(server, tmp_path / "backup")
    purge_before_current(server)
    work(server, 15)
    refused(follower)
    assert [gap["status"] for gap in follower.gaps()] == ["found"]

    # The gap is not filled while a file is missing, even the file in which reading had stopped.
    ingest(follower.source, [binlog_path(path) for path in backup[-2:]], home=follower.home)
    refused(follower)
    ingest(follower.source, [binlog_path(path) for path in backup], home=follower.home)
    follower.once()
    assert [gap["status"] for gap in follower.gaps()] == ["filled"]
    everything = {path.name: path for path in (*backup, *server.binlogs())}
    files = [(0, path) for path in everything.values()]
    ours, theirs = follower.tables, Decoded(files, follower.tables)
    assert ours["row_events"].equals(theirs["row_events"])
    assert ours["transactions"].equals(theirs["transactions"])


def test_purged_logs_that_were_read_are_no_gap(server: Server, follower: Follower, tmp_path: Path) -> None:
    work(server)
    server.flush()
    work(server, 5)
    follower.once()
    before = kept(server, tmp_path / "before")
    purge_before_current(server)
    work(server, 10)
    follower.once()
    assert [gap for gap in follower.gaps() if gap["status"] != "unproven"] == []
    files = [(0, path) for path in (*before, *server.binlogs())]
    # The last read file lacks the event that the server wrote to close it; that event contains no transaction.
    ours, theirs = follower.tables, Decoded(files, follower.tables)
    assert ours["row_events"].equals(theirs["row_events"])
    assert ours["transactions"].equals(theirs["transactions"])


def test_an_event_that_a_kill_cut_off_is_no_gap(server: Server, follower: Follower) -> None:
    work(server)
    follower.once()
    server.kill()
    newest = server.binlogs()[-1]
    # A query event of 200 bytes, of which 29 were written.
    header = struct.pack("<IBIIIH", 0, 2, 1, 200, newest.stat().st_size + 200, 0)
    with newest.open("ab") as file:
        file.write(header + bytes(10))
    server.start()
    work(server, 5)
    follower.once()
    assert not follower.gaps()
    files = follower.spool_files(0)
    assert len(files) > 1 and [path.name for path in files] == [path.name for path in server.binlogs()]
    assert files[-1].stat().st_size == log_end(server).position
    assert_same_tables(follower.tables, Decoded([(0, path) for path in files], follower.tables))


def test_a_purge_under_a_running_follower_is_no_gap(server: Server, follower: Follower) -> None:
    with Load(server) as load:
        follower.start()
        # From here on the server keeps a file until it has sent it completely.
        follower.wait_until_received(server)
        load.wait_for(60)
        purge_before_current(server)
        load.wait_for(60)
        purge_before_current(server)
        load.wait_for(60)
    follower.wait_until_landed(server)
    assert not follower.gaps()
    files = [(0, path) for path in follower.spool_files(0)]
    assert len(files) == 3
    assert_same_tables(follower.tables, Decoded(files, follower.tables))


def test_logs_that_started_over_open_an_epoch(server: Server, follower: Follower, tmp_path: Path) -> None:
    work(server)
    follower.once()
    end = log_end(server)
    before = kept(server, tmp_path / "before")
    begin_again(server)
    work(server, 5)
    follower.once()
    (gap,) = follower.gaps()
    assert (gap["reason"], gap["status"]) == ("reset", "unproven")
    assert (gap["from_epoch"], LogPosition(gap["from_file"], gap["from_pos"])) == (0, end)
    assert (gap["to_epoch"], gap["to_file"]) == (1, server.binlogs()[0].name)
    files = [*((0, path) for path in before), *((1, path) for path in server.binlogs())]
    assert_same_tables(follower.tables, Decoded(files, follower.tables))


def test_logs_that_started_over_before_all_was_read_are_a_gap(
    server: Server, proxy: Proxy, tmp_path: Path, make_follower: Callable[..., Follower]
) -> None:
    follower = make_follower("home", proxy)
    work(server)
    follower.start()
    follower.wait_until_landed(server)
    read = follower.received()
    before = kept(server, tmp_path / "before")

    # The follower learns of a longer log than it receives.
    proxy.stall(binlogs_only=True)
    work(server, 5)
    end = log_end(server)
    follower.wait_until(lambda: _end_known_to(follower) == end, f"it does not know that the server is at {end}")
    follower.kill()
    assert follower.received() == read
    proxy.resume()
    begin_again(server)
    work(server, 10)

    refused(follower)
    (gap,) = follower.gaps()
    assert (gap["reason"], gap["status"]) == ("reset", "found")
    assert (gap["from_epoch"], LogPosition(gap["from_file"], gap["from_pos"])) == (0, read)

    follower.once("--accept-gap")
    assert [found["status"] for found in follower.gaps()] == ["accepted"]
    files = [*((0, path) for path in before), *((1, path) for path in server.binlogs())]
    assert_same_tables(follower.tables, Decoded(files, follower.tables))


def test_logs_that_started_over_are_found_although_their_first_files_are_deleted(
    server: Server, follower: Follower, tmp_path: Path
) -> None:
    work(server)
    server.flush()
    work(server, 5)
    follower.once()
    read = follower.received()
    assert read is not None
    before = kept(server, tmp_path / "before")

    # The new files get beyond the received file's number, but their GTIDs stay below the received ones.
    begin_again(server)
    server.execute("create database other")
    for _ in before:
        server.flush()
    first_left = purge_before_current(server)
    assert first_left > read
    work(server, 10)

    refused(follower, "started over", re.escape(read.binlog_file), re.escape(first_left.binlog_file))
    (gap,) = follower.gaps()
    assert (gap["reason"], gap["status"], gap["to_epoch"]) == ("reset", "found", 1)
    assert (gap["from_file"], gap["from_pos"], gap["to_file"]) == (*_place(read), first_left.binlog_file)

    follower.once("--accept-gap")
    assert [(found["reason"], found["status"]) for found in follower.gaps()] == [("reset", "accepted")]
    files = [*((0, path) for path in before), *((1, path) for path in server.binlogs())]
    assert_same_tables(follower.tables, Decoded(files, follower.tables))


@pytest.mark.mysql
def test_without_gtids_only_a_next_file_that_began_when_the_last_one_ended_is_no_gap(tmp_path: Path) -> None:
    options = [*SERVER_OPTIONS["mysql"], "--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"]
    with DISTRIBUTIONS["mysql"].start(tmp_path / "server", options) as server:
        account = create_account(server, tmp_path)
        with Follower(tmp_path / "home", server, account.defaults_file, "--from-oldest") as follower:
            work(server)
            follower.start()
            follower.wait_until_landed(server)
            server.flush()
            follower.wait_until_received(server)
            follower.kill()
            _forget_the_last_file(follower)
            server.execute(f"purge binary logs to '{server.binlogs()[-1].name}'")
            follower.once()
            assert follower.gaps() == []

            work(server, 5)
            purge_before_current(server)
            refused(follower)
            assert [(gap["reason"], gap["status"]) for gap in follower.gaps()] == [("purged", "found")]


def _forget_the_last_file(follower: Follower) -> None:
    """Set the checkpoint back to the end of the file before, as if the follower had been killed in this moment."""
    known, (ended, begun) = follower.checkpoint(), follower.spool_files(0)
    assert known is not None
    replace(known, binlog_file=ended.name, position=ended.stat().st_size).write(follower.spool)
    begun.unlink()


def _place(position: LogPosition) -> tuple[str, int]:
    return position.binlog_file, position.position


def _end_known_to(follower: Follower) -> LogPosition | None:
    known = follower.checkpoint()
    if known is None or known.server is None:
        return None
    return LogPosition(known.server.binlog_file, known.server.position)
