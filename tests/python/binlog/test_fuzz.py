"""Hostile input raises only binloom's own errors and never ends the process."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.servers import Server
from tests.support.binlog import recordings, workload_tables
from tests.support.depth import at_depth
from tests.support.patience import PATIENCE_SECONDS
from tests.support.places import FIXTURES, PROJECT, SAMPLES

MOST_MEGABYTES = 1500
FILES = sorted(FIXTURES.glob("*.binlog")) + sorted(SAMPLES.glob("*/binlog.000002"))


def survive(seed: int, count: int, files: list[Path], environment: Mapping[str, str] | None = None) -> None:
    """Decode mutations of files in a separate process; its output is enough to reproduce a failing mutation."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.binlog.mutations", str(seed), str(count), *map(str, files)],
        cwd=PROJECT,
        env=os.environ | dict(environment or {}),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr[-2000:]}"
    said = re.fullmatch(r"(\d+) mutations, (\d+) MB\n", done.stdout)
    assert said and int(said[1]) == count
    assert int(said[2]) < MOST_MEGABYTES


@pytest.mark.slow
def test_mutated_files_end_in_errors_of_binloom() -> None:
    assert len(FILES) > 10
    survive(seed=20, count=at_depth(1000, 3000), files=FILES)


@pytest.mark.mysql
@pytest.mark.slow
def test_mutated_rows_of_every_type(mysql_server: Server, tmp_path: Path) -> None:
    setting = recordings.Setting.of("mysql", row_metadata="FULL")
    tables = workload_tables.tables(mysql_server, ["utf8mb4", "latin1", "gbk", "utf16"])
    recording = recordings.record(mysql_server, setting, tables, tmp_path)
    survive(seed=21, count=at_depth(60, 150), files=[recording.binlog])
