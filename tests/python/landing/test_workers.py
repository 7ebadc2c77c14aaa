"""Processes that land segments: the same files as from one process, and what remains when one of them is killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ingest.landing import IngestOptions, IngestResult, ingest
from ingest.landing.worker import Worker
from ingest.sources.files.directory import find_binlogs
from ingest.warehouse.record import read_states
from tests.support.landing.binlogs import SHOP, transaction_ends
from tests.support.landing.stored import stored
from tests.support.patience import PATIENCE_SECONDS
from tests.support.places import PROJECT

pytestmark = pytest.mark.slow

SMALL = IngestOptions(segment_bytes=8_000)
IN_PROCESSES = replace(SMALL, processes=2)


def land(home: Path, options: IngestOptions = IN_PROCESSES, **more: Any) -> IngestResult:
    return ingest("shop", find_binlogs(SHOP), options, home=home, **more)


def test_processes_land_the_same_tables_as_one(tmp_path: Path) -> None:
    result, alone = land(tmp_path / "processes"), land(tmp_path / "alone", SMALL)
    assert result.exit_code == 0 and result.segments == alone.segments > 8
    assert stored(tmp_path / "processes") == stored(tmp_path / "alone")


def test_files_of_the_current_folder_are_no_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ingest.py", "pickle.py"):
        (tmp_path / name).write_text("raise SystemExit(7)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    assert land(tmp_path / "home").problems == []


def test_a_process_that_dies_costs_only_its_segment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    victim = transaction_ends(SHOP / "binlog.000001")[0]
    run = Worker.run

    def dying(self: Worker, works: Sequence[Any], hints: Any) -> Any:
        segments = [work.segment for work in works]
        if any(one.binlog_file == "binlog.000001" and one.start <= victim < one.end for one in segments):
            os.kill(self._process.pid, signal.SIGKILL)
        return run(self, works, hints)

    monkeypatch.setattr(Worker, "run", dying)
    home = tmp_path / "home"
    result = land(home)
    (problem,) = result.problems
    assert (result.exit_code, problem.binlog_file) == (3, "binlog.000001")
    assert "died: its process ended with signal SIGKILL" in str(problem.error)
    monkeypatch.undo()
    whole = land(tmp_path / "whole")
    assert 0 < result.row_events < whole.row_events
    again = land(home)
    assert again.exit_code == 0 and again.row_events == whole.row_events - result.row_events


def test_processes_end_with_a_landing_that_is_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Worker] = []
    begin = Worker.__init__

    def noted(self: Worker) -> None:
        begin(self)
        started.append(self)

    def interrupt(done: int, known: int, word: str) -> None:
        if word == "landing" and started:
            raise KeyboardInterrupt

    monkeypatch.setattr(Worker, "__init__", noted)
    with pytest.raises(KeyboardInterrupt):
        land(tmp_path / "home", progress=interrupt)
    assert started and all(worker._process.returncode is not None for worker in started)
    monkeypatch.undo()
    assert land(tmp_path / "home").exit_code == 0


def test_processes_end_when_the_landing_is_killed(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys; from pathlib import Path\n"
        "from tests.python.landing.test_workers import land\n"
        "from ingest.landing import run\n"
        "def die(self, tasks, results):\n"
        "    print(*(worker._process.pid for worker in tasks._workers), flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "run.Run._commit = die\n"
        "land(Path(sys.argv[1]))\n"
    )
    home = tmp_path / "home"
    killed = subprocess.run([sys.executable, "-c", script, str(home)], cwd=PROJECT, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    workers = [Path("/proc", pid) for pid in killed.stdout.split()]
    assert len(workers) == 2
    until = time.monotonic() + PATIENCE_SECONDS
    while any(worker.exists() for worker in workers):
        assert time.monotonic() < until
        time.sleep(0.02)
    assert all(state.status == "in_progress" for state in read_states(home, "shop"))
    assert land(home).exit_code == 0
    land(tmp_path / "whole")
    assert stored(home) == stored(tmp_path / "whole")
