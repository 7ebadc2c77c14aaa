"""Copies a folder at instants at which a process that writes into it stands still.

SIGKILL leaves a folder as it is at that instant: the kernel keeps what was written. A copy that is made while all
threads are stopped therefore has the content that SIGKILL would have left, and the process goes on afterwards. So one
process shows many kills.
"""

import itertools
import multiprocessing
import os
import random
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from tests.support.patience import PATIENCE_SECONDS

POLL_SECONDS = 0.01
ATTEMPTS = 5
METASTORE = "spark.hadoop.javax.jdo.option.ConnectionURL"


class Worker:
    """A process that calls functions in turn, with a Java process for all of them; also a context manager."""

    def __init__(self) -> None:
        # A forked process would inherit the sessions of this one.
        self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=_begin)

    def __enter__(self) -> Self:
        self.pid = self.start(os.getpid).result()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(Exception):
            self.call(_end)
        self._pool.shutdown()

    def start(self, function: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        """Begin to call a function."""
        return self._pool.submit(function, *arguments)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function; return its result."""
        return self.start(function, *arguments).result()


class Kills:
    """Calls that change one folder, and copies of the folder as SIGKILL at random instants of a call would leave it.

    Parameters
    ----------
    worker
        The process of the calls.
    folder
        The folder, at the same path for all calls.
    copies
        Where copies are made.
    chance
        Draws the instants.
    progress
        Returns how far the call is that changed a folder or its copy.
    whole
        About the progress of a whole call, if a call does not tell it.
    pause_seconds
        A copy is made up to this long after the progress that was drawn for it.
    """

    def __init__(
        self,
        worker: Worker,
        folder: Path,
        copies: Path,
        chance: random.Random,
        progress: Callable[[Path], float],
        whole: float,
        pause_seconds: float,
    ) -> None:
        self.folder = folder
        self.chance = chance
        self._worker = worker
        self._copies = copies
        self._progress = progress
        self._whole = whole
        self._pause_seconds = pause_seconds
        self._made = 0

    def call(
        self, number: int, function: Callable[..., Any], *arguments: Any, whole: float | None = None
    ) -> tuple[Any, list[Path]]:
        """Call a function; return its result, and copies of the folder at a number of instants.

        The function gets the folder, a file to make when its work is done, and the arguments. A call that is over
        very soon has fewer copies, because no instant is met; the caller makes up for them elsewhere.
        """
        whole = self._whole if whole is None else whole
        before = self._copies / f"before-{self._made}"
        if number:
            shutil.copytree(self.folder, before, symlinks=True)
        result, copies = self._call(number, whole, self._pause_seconds, function, arguments)
        for attempt in range(1, ATTEMPTS + 1):
            if len(copies) == number:
                break
            # The call was over before an instant that was drawn. A short call needs earlier ones.
            whole = self._progress(self.folder) / attempt
            self.return_to(before)
            pause = self._pause_seconds / (attempt + 1)
            result, more = self._call(number - len(copies), whole, pause, function, arguments)
            copies += more
        shutil.rmtree(before, ignore_errors=True)
        return result, copies

    def return_to(self, copy: Path) -> None:
        """Replace the folder by a copy."""
        shutil.rmtree(self.folder)
        shutil.copytree(copy, self.folder, symlinks=True)

    def _call(
        self,
        number: int,
        whole: float,
        pause_seconds: float,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
    ) -> tuple[Any, list[Path]]:
        is_over = self._copies / "over"
        is_over.unlink(missing_ok=True)
        copies: list[Path] = []
        begun = self._progress(self.folder)
        work = self._worker.start(function, self.folder, is_over, *arguments)
        for instant in sorted(self.chance.uniform(begun, whole) for _ in range(number)):
            while not work.done() and self._progress(self.folder) <= instant:
                time.sleep(POLL_SECONDS)
            time.sleep(self.chance.uniform(0, pause_seconds))
            with frozen(self._worker.pid):
                if is_over.exists() or work.done():
                    break
                copy = self._copies / str(self._made)
                shutil.copytree(self.folder, copy, symlinks=True)
            self._made += 1
            copies.append(copy)
        return work.result(), copies


@contextmanager
def frozen(root: int) -> Iterator[None]:
    """Stop all threads of a process and of its descendants for the time of a block."""
    stopped: list[int] = []
    waiting = [root]
    try:
        while waiting:
            process = waiting.pop()
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGSTOP)
                stopped.append(process)
                _wait_until_stopped(process)
            # A stopped process starts no others.
            waiting += children(process)
        yield
    finally:
        for process in stopped:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)


def children(process: int) -> list[int]:
    """Return the processes that a process has started and that still run."""
    parents = {int(path.parent.name): _state(path) for path in Path("/proc").glob("[0-9]*/stat")}
    return [pid for pid, (state, parent) in parents.items() if parent == process and state != "Z"]


def _wait_until_stopped(process: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    # A thread inside a system call stops when the call is done.
    while any(_state(path)[0] not in "TtZX" for path in Path(f"/proc/{process}/task").glob("*/stat")):
        assert time.monotonic() < deadline, f"process {process} does not stop"
        time.sleep(0.001)


def _state(stat: Path) -> tuple[str, int]:
    """Return the state and the parent of a process or thread; X for one that has ended."""
    try:
        state, parent = stat.read_text().rpartition(")")[2].split()[:2]
    except OSError:
        return "X", 0
    return state, int(parent)


def _begin() -> None:
    from ingest.warehouse import spark
    from tests.support.one_jvm import keep_one_jvm

    keep_one_jvm()
    settings_of, sessions = spark.spark_settings, itertools.count(1)

    def settings_of_new_address(home: Path | None = None) -> dict[str, str]:
        settings = settings_of(home)
        settings[METASTORE] = settings[METASTORE].replace("/metastore;", f"{'/.' * next(sessions)}/metastore;")
        return settings

    # Hive keeps what it knows of the metastore at an address, and a copy may have replaced it. The same path that is
    # written in another way is another address.
    spark.spark_settings = settings_of_new_address


def _end() -> None:
    from ingest.warehouse.jvm import Jvm

    Jvm.end_kept()
