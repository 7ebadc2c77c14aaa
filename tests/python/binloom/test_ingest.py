"""`binloom snapshot`, `ingest` and `status` on real files."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.command_line import assert_sentence, binloom
from tests.support.in_process import binloom_here
from tests.support.landing.binlogs import encrypted_by_mysql, flip_bit
from tests.support.places import SAMPLES

pytestmark = pytest.mark.slow

SHOP = SAMPLES / "shop-mysql"


def run(home: Path, *arguments: object) -> "subprocess.CompletedProcess[str]":
    return binloom_here(*arguments, env={"BINLOOM_HOME": str(home)})


def test_a_cut_file_is_landed_as_far_as_it_goes_and_mended_by_a_whole_copy(tmp_path: Path) -> None:
    home, logs = tmp_path / "home", tmp_path / "logs"
    logs.mkdir()
    whole = (SHOP / "binlog.000001").read_bytes()
    (logs / "binlog.000001").write_bytes(whole[: len(whole) // 2])
    shutil.copy(SHOP / "binlog.000002", logs)
    ingest = ["ingest", "--source", "shop", "--binlog-dir", logs, "--all"]

    snapshot = run(home, "snapshot", "--source", "shop", "--from-dir", SHOP / "schema")
    assert snapshot.returncode == 0 and "3 tables with 29 columns" in snapshot.stdout

    first = run(home, *ingest)
    assert_sentence(first, 3, "binlog.000001", r"position \d+", "landed")

    states = _states(home, expected=1)
    assert states["binlog.000001"]["state"] == "failed" and "position" in states["binlog.000001"]["error"]
    assert 0 < states["binlog.000001"]["bytes_landed"] <= len(whole) // 2
    assert states["binlog.000001"]["row_events"] > 0
    assert states["binlog.000002"]["state"] == "landed"

    (logs / "binlog.000001").write_bytes(whole)
    second = run(home, *ingest)
    assert (second.returncode, second.stderr) == (0, "")
    states = _states(home, expected=0)
    assert {file["state"] for file in states.values()} == {"landed"} and len(states) == 2
    assert states["binlog.000001"]["row_events"] == len(binloom("decode", SHOP / "binlog.000001").stdout.splitlines())

    third = run(home, *ingest)
    assert third.returncode == 0 and "nothing new" in third.stdout


def test_landing_again_needs_what_dbt_lists(tmp_path: Path) -> None:
    again = binloom("ingest", "--source", "shop", "--binlog-dir", SHOP, "--all", "--again", home=tmp_path)
    assert_sentence(again, 2, "segments_to_land_again", "dbt build")


def test_bad_checksums_and_encrypted_files(tmp_path: Path) -> None:
    home, logs = tmp_path / "home", tmp_path / "logs"
    logs.mkdir()
    whole = (SHOP / "binlog.000001").read_bytes()
    (logs / "binlog.000001").write_bytes(flip_bit(whole, 9000))
    (logs / "binlog.000002").write_bytes(encrypted_by_mysql(whole))
    ingest = ["ingest", "--source", "shop", "--binlog-dir", logs]

    stopped = run(home, *ingest, "--all")
    assert stopped.returncode == 3
    assert "binlog.000001 is broken at position 8796" in stopped.stderr and "--skip-bad-checksum" in stopped.stderr
    assert (
        "binlog.000002 is encrypted by its server" in stopped.stderr and "--read-from-remote-server" in stopped.stderr
    )
    assert {file["state"] for file in _states(home, expected=1).values()} == {"failed"}

    skipped = run(home, *ingest, "--files", "binlog.000001", "--skip-bad-checksum")
    assert skipped.returncode == 0 and "skipped because of a wrong checksum: 1." in skipped.stderr
    states = _states(home, expected=1)
    assert (states["binlog.000001"]["state"], states["binlog.000001"]["bytes_landed"]) == ("landed", len(whole))
    decoded = binloom("decode", "--skip-bad-checksum", logs / "binlog.000001")
    # Its output lacks the event.
    assert decoded.returncode == 3
    assert states["binlog.000001"]["row_events"] == len(decoded.stdout.splitlines())


def _states(home: Path, expected: int) -> dict[str, dict[str, object]]:
    status = run(home, "status", "--source", "shop", "--format", "json")
    assert status.returncode == expected, status.stderr
    return {file["binlog_file"]: file for file in map(json.loads, status.stdout.splitlines())}
