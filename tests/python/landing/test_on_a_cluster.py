"""Landing on a standalone Spark cluster: other processes decode, and parts of the cluster die."""

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from binloom.doctor.executors import Facts, checked, facts
from ingest.errors import StoreError
from ingest.landing.task import SegmentWork
from ingest.warehouse.home import raw_table_dir
from ingest.warehouse.masters import require_executor
from ingest.warehouse.record import SourceRecord
from ingest.warehouse.settings_file import CONF_VARIABLE
from ingest.warehouse.spark import SparkLaunch
from tests.servers.spark_cluster import EXECUTORS, SparkCluster, spark_cluster, write_settings
from tests.support.landing.killed_driver import SEGMENTS_A_COMMIT, land
from tests.support.landing.stored import stored
from tests.support.patience import PATIENCE_SECONDS
from tests.support.permissions import GROUP_AND_OTHERS, open_to
from tests.support.places import PROJECT

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The raw tables that Spark in one process lands."""
    home = tmp_path_factory.mktemp("embedded")
    assert land(home).segments > 8
    return stored(home)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, expected: dict[str, list[str]]) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def launch(cluster: SparkCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkLaunch]:
    """A session on the cluster, which all tests use."""
    home = tmp_path_factory.mktemp("home")
    settings = write_settings(home.with_suffix(".conf"), {"spark.master": cluster.address, **EXECUTORS})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CONF_VARIABLE, str(settings))
        with SparkLaunch(home) as open_launch:
            require_executor(open_launch.context())
            # Each of them gets a task when a landing begins, but only if it is there then.
            until = time.monotonic() + PATIENCE_SECONDS
            while len(executors(open_launch.context())) < len(cluster.workers):
                assert time.monotonic() < until
                time.sleep(0.05)
            yield open_launch


def problems(launch: SparkLaunch, here: Facts) -> list[tuple[str, str]]:
    """Return level and message of what the doctor finds on executors; how much is free depends on the machine."""
    found = [(one.level, one.message) for one in checked(launch.context(), launch.home, here) if one.level != "good"]
    return [(level, message) for level, message in found if " GiB free in " not in message]


def executors(context: Any) -> dict[str, int]:
    """Return the number of good tasks of each executor in a process of its own."""
    found = context._jsc.sc().statusStore().executorList(True)
    listed = (found.apply(place) for place in range(found.size()))
    return {one.id(): one.completedTasks() for one in listed if one.id() != "driver"}


def test_executors_in_other_processes_land_the_same_tables(launch: SparkLaunch, expected: dict[str, list[str]]) -> None:
    result = land(launch.home)
    assert (result.exit_code, result.problems) == (0, [])
    assert stored(launch.home) == expected
    done = executors(launch.context())
    assert len(done) == 2 and all(done.values()), done
    # The workers have a umask that is not binloom's. The driver may create the folder of the table before they do.
    assert open_to(GROUP_AND_OTHERS, raw_table_dir("row_events", launch.home) / "source_id=shop") == []
    rows = launch.session().table("binlog_raw.row_events").count()
    assert rows == len(expected["row_events"])


def test_the_doctor_finds_the_same_binloom_on_the_executors(launch: SparkLaunch, tmp_path: Path) -> None:
    assert problems(launch, facts(launch.home)) == []
    # Each executor has a folder of its own.
    number = len(executors(launch.context()))
    found = problems(launch, replace(facts(tmp_path), code="another"))
    assert [level for level, _ in found] == ["error"] * 2 * number, found
    for needle in (r"another version of binloom \(code \w{12}\) than this process \(another\)", "another folder at"):
        assert sum(re.search(needle, message) is not None for _, message in found) == number, found


def test_executors_with_another_binloom_land_nothing(
    launch: SparkLaunch, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("ingest.landing.run.SegmentWork", partial(SegmentWork, code="another"))
    with pytest.raises(StoreError, match=r"another version of binloom \(code \w{12}\) than this command"):
        land(tmp_path / "home")
    assert stored(tmp_path / "home")["row_events"] == []


@pytest.mark.deep
def test_an_ingest_whose_driver_was_killed_is_continued(
    launch: SparkLaunch, expected: dict[str, list[str]], tmp_path: Path
) -> None:
    home = tmp_path / "home"
    killed = subprocess.run(
        [sys.executable, "-m", "tests.support.landing.killed_driver", home],
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        cwd=PROJECT,
        capture_output=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    states = SourceRecord.load("shop", home).states.values()
    before = Counter(state.status for of_file in states for state in of_file)
    assert 0 < before["completed"] <= SEGMENTS_A_COMMIT and before["in_progress"] > 0
    result = land(home)
    rest = len(expected["segments"]) - before["completed"]
    assert (result.exit_code, result.problems, result.segments) == (0, [], rest)
    assert stored(home) == expected


def test_a_worker_that_dies_with_its_tasks_is_replaced(
    launch: SparkLaunch, cluster: SparkCluster, expected: dict[str, list[str]], tmp_path: Path
) -> None:
    # A task on the first worker never ends.
    for pid in cluster.executors_of(0):
        os.kill(pid, signal.SIGSTOP)
    killed = []

    def kill_when_others_are_done(done: int, known: int, word: str) -> None:
        if done and not killed:
            cluster.kill_worker(0)
            killed.append(done)

    result = land(tmp_path / "home", kill_when_others_are_done)
    assert (result.exit_code, result.problems) == (0, [])
    assert killed and stored(tmp_path / "home") == expected


def test_a_landing_goes_on_without_the_master(
    launch: SparkLaunch, cluster: SparkCluster, expected: dict[str, list[str]], tmp_path: Path
) -> None:
    killed = []

    def kill_at_once(done: int, known: int, word: str) -> None:
        if word == "landing" and not killed:
            cluster.kill_master()
            killed.append(done)

    result = land(tmp_path / "home", kill_at_once)
    assert (result.exit_code, result.problems) == (0, [])
    assert killed and stored(tmp_path / "home") == expected


def test_a_master_that_is_away_is_named_at_once(launch: SparkLaunch, cluster: SparkCluster, tmp_path: Path) -> None:
    launch.stop()
    with pytest.raises(StoreError, match=rf"^No Spark master answers at {cluster.address}\. Start it, or set "):
        land(tmp_path / "home")


def test_a_cluster_without_workers_is_named(
    launch: SparkLaunch, cluster: SparkCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("ingest.warehouse.masters.EXECUTOR_SECONDS", 0.5)
    cluster.kill_worker(1)
    cluster.start_master()
    with pytest.raises(StoreError, match=r"gave binloom no executor in 0\.5 seconds: no worker has 512m of memory"):
        land(tmp_path / "home")
