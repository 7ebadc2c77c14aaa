"""`binloom snapshot`, `ingest` and `status` on real files, through Spark."""

import json
import shutil
from pathlib import Path

import pytest

from tests.python.cli.running import SAMPLES, assert_sentence, binloom

pytestmark = pytest.mark.spark

SHOP = SAMPLES / "shop-mysql"


def test_a_cut_file_is_landed_as_far_as_it_goes_and_mended_by_a_whole_copy(tmp_path: Path) -> None:
    home, logs = tmp_path / "home", tmp_path / "logs"
    logs.mkdir()
    whole = (SHOP / "binlog.000001").read_bytes()
    (logs / "binlog.000001").write_bytes(whole[: len(whole) // 2])
    shutil.copy(SHOP / "binlog.000002", logs)
    ingest = ["ingest", "--source", "shop", "--binlog-dir", logs, "--all"]

    snapshot = binloom("snapshot", "--source", "shop", "--from-dir", SHOP / "schema", home=home)
    assert snapshot.returncode == 0 and "3 tables with 29 columns" in snapshot.stdout

    first = binloom(*ingest, home=home)
    assert_sentence(first, 3, "binlog.000001", r"position \d+", "landed")

    states = _states(home, expected=1)
    assert states["binlog.000001"]["state"] == "failed" and "position" in states["binlog.000001"]["error"]
    assert 0 < states["binlog.000001"]["bytes_landed"] <= len(whole) // 2
    assert states["binlog.000001"]["row_events"] > 0
    assert states["binlog.000002"]["state"] == "landed"

    (logs / "binlog.000001").write_bytes(whole)
    second = binloom(*ingest, home=home)
    assert (second.returncode, second.stderr) == (0, "")
    states = _states(home, expected=0)
    assert {file["state"] for file in states.values()} == {"landed"} and len(states) == 2
    assert states["binlog.000001"]["row_events"] == len(binloom("decode", SHOP / "binlog.000001").stdout.splitlines())

    third = binloom(*ingest, home=home)
    assert third.returncode == 0 and "nothing new" in third.stdout


def _states(home: Path, expected: int) -> dict[str, dict[str, object]]:
    status = binloom("status", "--source", "shop", "--format", "json", home=home)
    assert status.returncode == expected, status.stderr
    return {file["binlog_file"]: file for file in map(json.loads, status.stdout.splitlines())}
