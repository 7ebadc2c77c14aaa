"""Tests kill builds and landings by copies that are made while these are frozen: see `tests.support.freezing`."""

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.freezing import Kills, Worker, frozen

WRITERS = "(while :; do echo >> child; done) & while :; do echo >> parent; done"


def sizes(folder: Path) -> list[int]:
    """Return the sizes of the files that the writers append to."""
    return [path.stat().st_size for path in sorted(folder.iterdir())]


def test_a_frozen_process_and_its_children_write_nothing_until_they_go_on(tmp_path: Path) -> None:
    process = subprocess.Popen(["sh", "-c", WRITERS], cwd=tmp_path, start_new_session=True)
    try:
        while len(sizes(tmp_path)) < 2:
            time.sleep(0.001)
        with frozen(process.pid):
            before = sizes(tmp_path)
            time.sleep(0.05)
            assert sizes(tmp_path) == before
        while not all(now > then for now, then in zip(sizes(tmp_path), before, strict=True)):
            time.sleep(0.001)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def write_numbers(folder: Path, is_over: Path, upto: int) -> int:
    """Make a file for each number; return how many were there already."""
    there = len(list(folder.iterdir()))
    for number in range(there, upto):
        (folder / str(number)).touch()
        time.sleep(0.01)
    is_over.touch()
    return there


@pytest.mark.slow
def test_each_copy_is_the_folder_at_an_instant_and_can_be_returned_to(tmp_path: Path) -> None:
    folder, copies = tmp_path / "folder", tmp_path / "copies"
    folder.mkdir()
    copies.mkdir()
    with Worker() as worker:
        # More than a call makes: the instants are drawn again when the call has shown how far it goes.
        kills = Kills(worker, folder, copies, random.Random(1), lambda each: len(list(each.iterdir())), 1000, 0.001)
        there, made = kills.call(4, write_numbers, 100)
        assert there == 0
        found = [{path.name for path in copy.iterdir()} for copy in made]
        assert len(found) == 4
        assert all(names == set(map(str, range(len(names)))) for names in found)
        assert min(map(len, found)) > 0
        kills.return_to(made[1])
        assert kills.call(0, write_numbers, 100) == (len(found[1]), [])
    assert len(list(folder.iterdir())) == 100
