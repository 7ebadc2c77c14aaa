"""An ingest that is killed several times and then finishes has the same tables as an uninterrupted one."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ingest.warehouse.home import raw_table_dir
from tests.support.landing.binlogs import SHOP
from tests.support.landing.faulted import SOURCE
from tests.support.landing.stored import stored
from tests.support.places import PROJECT

KILLS = 20
SEED = 20260101

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def start(*arguments: str) -> "subprocess.Popen[str]":
    """Start the program as the leader of its own process group."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.landing.faulted", *arguments],
        cwd=PROJECT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def finish(*arguments: str) -> str:
    """Run the program to its end."""
    process = start(*arguments)
    out, err = process.communicate(timeout=180)
    assert process.returncode == 0, err
    return out


def wait_until_it_writes(process: "subprocess.Popen[str]", home: Path) -> None:
    """Return when the program records its first segments, or has ended: earlier kills leave nothing behind."""
    folder = raw_table_dir("segments", home)
    before = set(folder.glob("*"))
    while process.poll() is None and set(folder.glob("*")) == before:
        time.sleep(0.01)


def digests(home: Path) -> dict[str, object]:
    """Return the digests of the tables' rows."""
    content: dict[str, object] = json.loads(finish("dump", str(home)))
    return content


def committed(home: Path) -> int:
    """Return the number of completed segments."""
    from ingest.follow.overview import status

    return sum(one.segments.get("completed", 0) for one in status(home=home) if one.source_id == SOURCE)


def test_killed_at_twenty_random_instants(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    process = start("land", str(whole), str(SHOP))
    wait_until_it_writes(process, whole)
    began = time.monotonic()
    _, err = process.communicate(timeout=180)
    assert process.returncode == 0, err
    duration = time.monotonic() - began
    expected = digests(whole)
    assert expected["row_events"][0] > 300  # type: ignore[index]
    reference = stored(whole)
    segments = committed(whole)
    assert segments > 10

    chance = random.Random(SEED)
    homes = [tmp_path / "home-0"]
    partial: list[Path] = []
    killed = 0
    # On a busy machine the commits take a smaller part of the time, so random kills hit them later.
    while killed < KILLS or (not partial and killed < 3 * KILLS):
        home = homes[-1]
        process = start("land", str(home), str(SHOP))
        wait_until_it_writes(process, home)
        time.sleep(chance.uniform(0, duration))
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            killed += 1
        process.communicate(timeout=60)
        done = committed(home)
        if 0 < done < segments:
            partial.append(home)
        if done == segments:
            homes.append(tmp_path / f"home-{len(homes)}")
    for home in homes:
        finish("land", str(home), str(SHOP))
        assert stored(home) == reference, home
        # No half-written file is left in a folder that readers list.
        assert not list((home / "warehouse").glob("**/*.tmp"))
    # Also check the metastore, for the homes with the most kills.
    for home in {homes[0], *([partial[-1]] if partial else [])}:
        assert digests(home) == expected, home
    print(f"{killed} kills over {len(homes)} homes, {len(partial)} found a part of the segments committed")
    assert partial, "no kill came between two commits: the test shows little"
