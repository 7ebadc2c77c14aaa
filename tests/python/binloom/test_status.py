"""`binloom status` of a followed server: received position, lag, gaps."""

import csv
import json
import re
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest

from ingest.follow.checkpoint import CHECKPOINT
from ingest.landing.held import SpoolFile, StreamLanding
from ingest.landing.recorder import now
from ingest.warehouse.files import append_rows, read_rows
from ingest.warehouse.gaps import Gap, record_gap
from ingest.warehouse.segments import Segment
from ingest.warehouse.tables import BINLOG_FILES, SEGMENTS
from tests.support.command_line import assert_sentence
from tests.support.in_process import binloom_here
from tests.support.landing.binlogs import transaction_ends
from tests.support.landing.followed import FILES, FollowedShop
from tests.support.places import SAMPLES

pytestmark = pytest.mark.slow

IDENTITY = {"epoch": 0, "server_id": 1, "server_uuid": "u", "flavor": "mysql", "server_version": "9.7.4"}
GAP = Gap(0, FILES[1], 900, "u:1-5", 0, "binlog.000005", 4, "u:1-9", "u:6-9", "purged", "Two files are gone.", "u")


@pytest.fixture
def shop(tmp_path: Path) -> FollowedShop:
    """The recorded shop on MySQL: the last transaction is not received, the one before it is not landed."""
    shop = FollowedShop(SAMPLES / "shop-mysql", "shop", tmp_path / "home")
    shop.land(FILES[1], shop.transactions[-2][1])
    return shop


def test_one_row_a_source(shop: FollowedShop) -> None:
    result = binloom_here("status", "--sources", "--format", "json", home=shop.home)
    assert (result.returncode, result.stderr) == (0, "")
    (source,) = map(json.loads, result.stdout.splitlines())
    landed = shop.transactions[-3]
    number = landed[3].rpartition(":")[2]
    assert source.pop("lag_seconds") > 0 and source.pop("row_events") > 300 and source.pop("last_event_at")
    assert source.pop("spool_bytes") == sum(shop.spool.path(0, name).stat().st_size for name in FILES)
    assert source.pop("segments") == {"completed": 2}
    assert source == {
        "source_id": "shop",
        "epoch": 0,
        "flavor": "mysql",
        "server_version": shop.server_version,
        "server_id": 1,
        "server_uuid": shop.server_uuid,
        "host": "db1",
        "port": 3306,
        "files": 2,
        "transactions": len(shop.transactions) - 2,
        "snapshots": 0,
        "last_landed_file": FILES[1],
        "last_landed_pos": landed[2],
        "quarantined_rows": None,
        "gaps": {},
        "lag_bytes": shop.size - landed[2],
        "lag_transactions": 2,
        "lag_as_of": "2026-11-20T12:00:05Z",
        "landed_gtids": f"{shop.server_uuid}:1-{number}",
        "received_file": FILES[1],
        "received_pos": shop.received,
        "received_at": "2026-11-20T12:00:00Z",
        "spool_files": 2,
    }
    (row,) = csv.DictReader(StringIO(binloom_here("status", "--sources", "--format", "csv", home=shop.home).stdout))
    assert (row["received_pos"], row["segments"]) == (str(shop.received), '{"completed": 2}')


def test_one_row_a_file_as_ever(shop: FollowedShop) -> None:
    result = binloom_here("status", "--format", "json", home=shop.home)
    assert result.returncode == 0
    files = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(file["binlog_file"], file["state"]) for file in files] == [(FILES[0], "landed"), (FILES[1], "landed")]


def test_many_files_show_the_latest_and_those_that_are_not_landed(shop: FollowedShop) -> None:
    for table in (BINLOG_FILES, SEGMENTS):
        *_, row = sorted(read_rows(table, shop.home, binlog_file=FILES[0]), key=lambda row: row.get("recorded_at", 0))
        rows = [row | {"binlog_file": f"binlog.{n:06}", "file_sequence": n} for n in range(100, 200)]
        if table is SEGMENTS:
            rows[10] |= {"status": "failed", "error": "it is damaged"}
        append_rows(table, rows, f"shop-{table.name}", shop.home)
    text = binloom_here("status", home=shop.home).stdout
    shown = re.findall(r"^ +0 +binlog\.(\d+)", text, re.MULTILINE)
    assert [*map(int, shown)] == [110, *range(180, 200)]
    assert "\n  81 earlier files: all landed or left out. --format csv prints a line for each file.\n" in text
    assert "\n  binlog.000110: it is damaged\n" in text
    assert len(binloom_here("status", "--format", "csv", home=shop.home).stdout.splitlines()) == 1 + 102


def test_in_words(shop: FollowedShop) -> None:
    text = binloom_here("status", home=shop.home).stdout
    assert f"server:     db1:3306, uuid {shop.server_uuid}\n" in text
    assert f"received:   {FILES[1]}:{shop.received} at 2026-11-20 12:00:00 UTC\n" in text
    assert re.search(r"lag:        \d+ \w+, [\d.]+ KiB, 2 transactions, as of 2026-11-20 12:00:05 UTC\n", text)
    assert f"GTIDs:      {shop.server_uuid}:1-" in text
    assert "in 2 files\n" in text and FILES[0] in text
    assert FILES[0] not in binloom_here("status", "--sources", home=shop.home).stdout

    assert shop.spool.checkpoint is not None
    shop.spool.write_checkpoint(replace(shop.spool.checkpoint, position=shop.size))
    shop.land(FILES[1], shop.size)
    assert "lag:        none, as of 2026-11-20 12:00:05 UTC\n" in binloom_here("status", home=shop.home).stdout


def test_a_gap_is_shown_and_fails_as_long_as_it_stops_following(shop: FollowedShop) -> None:
    record_gap("shop", GAP, "found", shop.home)
    result = binloom_here("status", home=shop.home)
    assert result.returncode == 1
    assert (
        "gap:        found (purged) from binlog.000002:900 to binlog.000005:4, missing u:6-9: Two files are gone.\n"
        in result.stdout
    )
    record_gap("shop", GAP, "accepted", shop.home)
    result = binloom_here("status", "--sources", "--format", "json", home=shop.home)
    assert (result.returncode, json.loads(result.stdout)["gaps"]) == (0, {"accepted": 1})


def test_a_broken_checkpoint_is_a_sentence(shop: FollowedShop) -> None:
    (shop.spool.folder / CHECKPOINT).write_text("{")
    assert_sentence(binloom_here("status", home=shop.home), 3, r"checkpoint\.json cannot be read")


def test_a_source_that_nobody_follows_has_nothing_of_it(shop: FollowedShop) -> None:
    (shop.spool.folder / CHECKPOINT).unlink()
    result = binloom_here("status", "--sources", "--format", "json", home=shop.home)
    source = json.loads(result.stdout)
    assert source["lag_seconds"] > 0 and source["received_file"] is source["lag_bytes"] is None
    assert "received" not in binloom_here("status", home=shop.home).stdout


@pytest.mark.parametrize("is_running", [True, False])
def test_a_landing_that_broke_off_is_told(is_running: bool, tmp_path: Path) -> None:
    """A killed command leaves its segments in progress, and nobody lands them."""
    file = SAMPLES / "shop-mysql" / FILES[0]
    with StreamLanding("shop", tmp_path) as landing:
        landing.open_epoch(IDENTITY)
        end = transaction_ends(file)[-2]
        landing.land([SpoolFile(file, 0, end)])
        state = Segment("shop", 0, FILES[0], end, file.stat().st_size).state("in_progress", landing.run_id, now())
        landing.record_states([state])
        if is_running:
            _assert_broken_off(tmp_path, is_told=False)
    if not is_running:
        _assert_broken_off(tmp_path, is_told=True)


def _assert_broken_off(home: Path, *, is_told: bool) -> None:
    status = binloom_here("status", home=home)
    assert status.returncode == 0, status.stderr
    assert ("A landing broke off" in status.stdout) is is_told
    state, other = ("broken off", "in progress") if is_told else ("in progress", "broken off")
    assert f"1 {state}" in status.stdout and other not in status.stdout
    for question in (("query", "--table", "shop.nothing"), ("query", "--where", "x = 1"), ("history", "none", "1")):
        told = binloom_here(*question, home=home).stderr
        assert ("binloom: a landing of source shop broke off: 1 segment is missing. Run `binloom" in told) is is_told
