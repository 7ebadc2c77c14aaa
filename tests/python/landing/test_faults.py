"""An ingest that is killed several times and then finishes has the same tables as an uninterrupted one.

Most kills are copies of the home that are made while the ingest is stopped; the last ones are real.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest.warehouse.home import raw_table_dir
from tests.support.depth import at_depth
from tests.support.freezing import POLL_SECONDS, Kills, Worker
from tests.support.landing.faulted import SOURCE, land
from tests.support.landing.stored import stored
from tests.support.patience import PATIENCE_SECONDS
from tests.support.places import PROJECT

KILLS = at_depth(4, 40)
KILLS_OF_A_LANDING = at_depth(2, 5)
# Kills of landings that repair what a killed one left.
KILLS_OF_REPAIRS = at_depth(1, 10)
REAL_KILLS = 2
SEED = os.environ.get("BINLOOM_KILLS_SEED", "20260101")
PAUSE_SECONDS = 0.3

pytestmark = pytest.mark.slow


def states_recorded(home: Path) -> int:
    """Return the number of files with states of segments: each commit writes one."""
    return len(list(raw_table_dir("segments", home).glob("*.parquet")))


def committed(home: Path) -> int:
    """Return the number of completed segments."""
    from ingest.follow.overview import status

    return sum(one.segments.get("completed", 0) for one in status(home=home) if one.source_id == SOURCE)


class Landings:
    """Landings of the same files into a home at the same path.

    Attributes
    ----------
    reference, segments
        Rows by table and number of segments of an uninterrupted landing.
    """

    def __init__(self, folder: Path, worker: Worker) -> None:
        self.home, self._empty = folder / "home", folder / "empty"
        self.home.mkdir()
        self._empty.mkdir()
        worker.call(land, self.home, folder / "whole")
        self.reference = stored(self.home)
        self.segments = committed(self.home)
        whole = states_recorded(self.home)
        self.kills = Kills(worker, self.home, folder, random.Random(SEED), states_recorded, whole, PAUSE_SECONDS)

    def empty(self) -> None:
        """Begin with an empty home."""
        self.kills.return_to(self._empty)

    def land(self, number: int = 0) -> list[Path]:
        """Land what the home has not; return copies of the home at a number of instants; then it must be whole."""
        found = f"{committed(self.home)} of {self.segments} segments were committed"
        _, copies = self.kills.call(number, land)
        assert stored(self.home) == self.reference, found
        # No half-written file is left in a folder that readers list.
        assert not list((self.home / "warehouse").glob("**/*.tmp")), found
        return copies

    def repair(self, broken: Path, number: int = 0) -> list[Path]:
        """Land what is missing in a copy; return copies at a number of instants."""
        self.kills.return_to(broken)
        return self.land(number)


@pytest.fixture(scope="module")
def landings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Landings]:
    """A home whose files are landed."""
    print(f"BINLOOM_KILLS_SEED={SEED}")
    with Worker() as worker:
        yield Landings(tmp_path_factory.mktemp("landings"), worker)


def test_killed_at_random_instants(landings: Landings) -> None:
    assert len(landings.reference["row_events"]) > 300
    assert landings.segments > 10
    first: list[Path] = []
    while len(first) < KILLS - KILLS_OF_REPAIRS:
        landings.empty()
        first += landings.land(KILLS_OF_A_LANDING)
    partial = [copy for copy in first if 0 < committed(copy) < landings.segments]
    assert partial, "no kill came between two commits: the test shows little"
    again: list[Path] = []
    for broken in first:
        # A repair may be over before it can be killed; then another one is.
        again += landings.repair(broken, int(broken in partial and len(again) < KILLS_OF_REPAIRS))
    while len(again) < KILLS_OF_REPAIRS:
        again += landings.repair(landings.kills.chance.choice(partial), 1)
    for broken in again:
        landings.repair(broken)
    assert len(first + again) >= KILLS
    print(f"{len(first + again)} kills, {len(partial)} found a part of the segments committed")


def test_killed_for_good(landings: Landings) -> None:
    landings.empty()
    for _ in range(REAL_KILLS):
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.landing.faulted", "land", str(landings.home)],
            cwd=PROJECT,
            start_new_session=True,
        )
        before, deadline = states_recorded(landings.home), time.monotonic() + PATIENCE_SECONDS
        while states_recorded(landings.home) == before:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(POLL_SECONDS)
        time.sleep(landings.kills.chance.uniform(0, PAUSE_SECONDS))
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    landings.land()
