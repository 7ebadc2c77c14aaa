"""Measures the time from the commit of a row until it is in an answer of `binloom query`, and until it is in
`row_changes`, with a plot.

    python -m benchmarks.latency --minutes 60 --rate 5M --work DIR

A MySQL server under load, `binloom follow`, `binloom build --every` and one question after the other share the cores
of this machine. The load begins before the first build, which makes all tables in a Java process that has just
started. The minutes that are measured begin some minutes later.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow.compute as compute
import pyarrow.parquet as parquet

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.generate import size_in_bytes
from benchmarks.measure import processor_seconds, resident_bytes
from benchmarks.plot import Curve, Panel, write_svg
from benchmarks.soak import LARGEST_LOG, SAMPLE_SECONDS, Mark, Marks, Watch, load, new_shop, samples
from benchmarks.warehouse import BINLOOM
from ingest.warehouse.files import data_files
from tests.servers import mysql
from tests.servers.accounts import create_account
from tests.support.follow.follower import Follower

LOOK_SECONDS = 1.0
PAUSE_SECONDS = 0.5
# Questions take processor time from the builds, so only every third row or so is asked for.
REST_SECONDS = 20.0
# A question is about rows that are so young.
ASKED_MINUTES = 10
# Bytes of disk for a byte of binlog: the server's log, the spool, the raw tables and row_changes.
DISK_BYTES = 3.3
MINUTES_TO_WAIT = 15


class Build:
    """`binloom build --selector changes --every` as a process; also a context manager, which ends it."""

    def __init__(self, home: Path, every: str) -> None:
        self.log = home.with_name("build.log")
        command = [BINLOOM, "build", "--selector", "changes", "--every", every]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                command, env={**os.environ, "BINLOOM_HOME": str(home)}, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(120)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def assert_running(self) -> None:
        """Fail with the output when it has ended."""
        if self._process.poll() is not None:
            raise RuntimeError(f"the build has ended with {self._process.returncode}:\n{self.log.read_text()[-4000:]}")

    def seconds(self) -> list[float]:
        """Return the seconds that each build took, in order."""
        told = [line.partition(" built in ")[2] for line in self.log.read_text().splitlines() if " built in " in line]
        return [float(words.split(" s:")[0]) for words in told]


@dataclass
class Arrivals:
    """Looks for the rows of `marks` in `row_changes`, as a reader of the table's files would.

    Attributes
    ----------
    seen_at
        When a row was seen first, by its binlog file and the end of its event in it.
    """

    folder: Path
    seen_at: dict[tuple[str, int], datetime] = field(default_factory=dict)
    _read: set[Path] = field(default_factory=set)

    def look(self) -> None:
        """Read the files that are new."""
        for path in set(self._files()) - self._read:
            try:
                rows = parquet.ParquetFile(path).read(["table_name", "end_pos"])
            except FileNotFoundError:
                continue
            self._read.add(path)
            binlog_file = next(part for part in path.parts if part.startswith("binlog_file=")).partition("=")[2]
            for end in rows.filter(compute.equal(rows["table_name"], "marks"))["end_pos"].to_pylist():
                self.seen_at.setdefault((binlog_file, end), datetime.now(UTC))

    def _files(self) -> Iterator[Path]:
        # Spark writes into hidden folders, and moves what is complete out of them. `os.walk` passes over a folder that
        # disappears meanwhile.
        for folder, below, _ in os.walk(self.folder):
            below[:] = [name for name in below if not name.startswith((".", "_"))]
            yield from data_files(Path(folder))


class Answers:
    """Asks for a new row of `marks` until an answer has it, rests, and waits for the next one, as a person would.

    Also a context manager, which ends that.

    Attributes
    ----------
    seen_at
        When the command ended whose answer had a row first, by the number of its mark.
    seconds
        How long each command took.
    """

    def __init__(self, home: Path, marks: Marks) -> None:
        self.seen_at: dict[int, datetime] = {}
        self.seconds: list[float] = []
        self._home = home
        self._marks = marks
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()

    def _ask(self) -> None:
        while not self._is_over.wait(REST_SECONDS):
            number = len(self._marks.made)
            while len(self._marks.made) == number and not self._is_over.wait(PAUSE_SECONDS):
                pass
            while not self._is_over.wait(PAUSE_SECONDS):
                rows = dict.fromkeys(self._answer(), datetime.now(UTC))
                if number in seen_of(rows, list(self._marks.made)):
                    self.seen_at[number] = datetime.now(UTC)
                    break

    def _answer(self) -> Iterator[tuple[str, int]]:
        since = datetime.now(UTC) - timedelta(minutes=ASKED_MINUTES)
        command = [BINLOOM, "query", "--table", "*.marks", "--since", f"{since:%Y-%m-%d %H:%M:%S}"]
        begun = time.monotonic()
        done = subprocess.run(
            [*command, "--format", "json"],
            env={**os.environ, "BINLOOM_HOME": str(self._home)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )
        # Before anything of the source has landed, there is nothing to ask.
        if done.returncode == 0:
            self.seconds.append(time.monotonic() - begun)
            yield from ((row["binlog_file"], row["end_pos"]) for row in map(json.loads, done.stdout.splitlines()))


def seen_of(seen_at: Mapping[tuple[str, int], datetime], marks: Sequence[Mark]) -> dict[int, datetime]:
    """Return by the number of a mark when its row was seen first.

    A mark's place is the end of the log after its commit, so its row is the only one between the place of the mark
    before it and its own.
    """
    places = [(mark.place.binlog_file, mark.place.position) for mark in marks]
    return {number: at for row, at in seen_at.items() if (number := bisect_left(places, row)) < len(places)}


@dataclass
class BuildWatch:
    """Processor time and memory of the build: (seconds, processor seconds, bytes) at each look."""

    pid: int
    began: float = field(default_factory=time.monotonic)
    looks: list[tuple[float, float, int]] = field(default_factory=list)

    def look(self) -> None:
        """Take a sample, unless the last one is recent."""
        seconds = time.monotonic() - self.began
        if not self.looks or seconds - self.looks[-1][0] >= SAMPLE_SECONDS:
            self.looks.append((seconds, processor_seconds(self.pid), resident_bytes(self.pid)))

    def samples(self) -> list[dict[str, float]]:
        """Return the samples; the share of the cores is since the last one."""
        return [
            {
                "seconds": round(after[0], 1),
                "cores": round((after[1] - before[1]) / (after[0] - before[0]), 2),
                "megabytes": round(after[2] / 1e6, 1),
            }
            for before, after in pairwise(self.looks)
        ]


def run(work: Path, *, minutes: float, warm_up: float, rate: int, interval: str, every: str) -> dict[str, Any]:
    """Run the server, the follower and the builds; return the measurements as they go into the JSON file."""
    shutil.rmtree(work, ignore_errors=True)
    needed, free = rate * (warm_up + minutes) * 60 * DISK_BYTES, shutil.disk_usage(work.parent).free
    if free < needed:
        raise SystemExit(f"{work.parent} has {free / 1e9:.0f} GB free, and this run needs {needed / 1e9:.0f} GB")
    home = work / "home"
    options = [f"--max-binlog-size={LARGEST_LOG}", "--innodb-buffer-pool-size=512M"]
    with mysql.start(work / "server", options) as server:
        account = create_account(server, work)
        new_shop(server)
        with Follower(
            home, server, account.defaults_file, "--from-now", interval=interval, source="shop", patience=900
        ) as follower:
            follower.start()
            follower.wait_until_received(server)
            arrivals = Arrivals(home / "warehouse" / "binloom.db" / "row_changes")
            with (
                Build(home, every) as build,
                Marks(server) as marks,
                Answers(home, marks) as answers,
                Watch(server, follower) as watch,
            ):
                built = BuildWatch(build.pid)

                def look() -> None:
                    build.assert_running()
                    follower.assert_running()
                    built.look()
                    arrivals.look()
                    time.sleep(LOOK_SECONDS)

                with load(server, rate, documents=0):
                    while time.monotonic() < watch.began + (warm_up + minutes) * 60:
                        look()
                made = list(marks.made)
                deadline = time.monotonic() + MINUTES_TO_WAIT * 60
                while len(seen_of(arrivals.seen_at, made)) < len(made) and time.monotonic() < deadline:
                    look()
            seen = seen_of(arrivals.seen_at, made)
            if missing := [mark.place for number, mark in enumerate(made) if number not in seen]:
                raise RuntimeError(f"{len(missing)} of {len(made)} rows did not arrive in row_changes: {missing}")
            follower.stop()
            first = made[0].committed_at
            result = {
                "interval": interval,
                "every": every,
                "minutes": minutes,
                "warm_up": warm_up,
                "rate": rate,
                "marks": [
                    {
                        "seconds": round((mark.committed_at - first).total_seconds(), 1),
                        "latency": round((seen[number] - mark.committed_at).total_seconds(), 1),
                        "answered": None
                        if (answered := answers.seen_at.get(number)) is None
                        else round((answered - mark.committed_at).total_seconds(), 1),
                    }
                    for number, mark in enumerate(made)
                ],
                "bytes_a_second": bytes_a_second(watch, (warm_up + minutes) * 60),
                "builds": build.seconds(),
                "questions": [round(seconds, 2) for seconds in answers.seconds],
                "build": built.samples(),
                "samples": samples(watch),
            }
    shutil.rmtree(work / "server", ignore_errors=True)
    return result


def bytes_a_second(watch: Watch, seconds: float) -> float:
    """Return the bytes of binlog per second while the load ran."""
    last = [look for look in watch.looks if look.seconds <= seconds][-1]
    return last.written / last.seconds


def draw(result: dict[str, Any], path: Path) -> None:
    """Draw latency, throughput, and the share of the cores."""
    found: Sequence[dict[str, float]] = result["samples"]

    def curve(name: str, key: str) -> Curve:
        return Curve(name, [(sample["seconds"], sample[key]) for sample in found])

    def build(name: str, key: str) -> Curve:
        return Curve(name, [(sample["seconds"], sample[key]) for sample in result["build"]])

    panels = [
        Panel(
            "from commit to an answer and to row_changes, seconds",
            [
                Curve("in row_changes", [(mark["seconds"], mark["latency"]) for mark in result["marks"]]),
                Curve("in an answer of query", [(mark["seconds"], mark["answered"]) for mark in asked_for(result)]),
            ],
        ),
        Panel(
            "binlog, MB/s",
            [
                curve("written by the server", "written_megabytes_a_second"),
                curve("received by binloom", "received_megabytes_a_second"),
            ],
        ),
        Panel(
            "processor, cores",
            [build("build", "cores"), curve("server", "server_cores"), curve("follow", "follower_cores")],
        ),
        Panel("memory, MB", [build("build", "megabytes"), curve("follow", "follower_megabytes")]),
    ]
    minutes = result["warm_up"] + result["minutes"]
    title = f"binloom follow and build beside a MySQL server, {minutes:g} minutes, all on the same cores"
    write_svg(path, title, panels)


def asked_for(result: dict[str, Any]) -> list[dict[str, float]]:
    """Return the marks whose rows were asked for."""
    return [mark for mark in result["marks"] if mark["answered"] is not None]


def lines(result: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return the lines of the table: label, value, target."""
    begin = result["warm_up"] * 60
    inorder = [mark["latency"] for mark in result["marks"] if mark["seconds"] >= begin]
    before = [mark["latency"] for mark in result["marks"] if mark["seconds"] < begin]
    half = len(inorder) // 2
    builds = sorted(result["builds"])
    answered = sorted(mark["answered"] for mark in asked_for(result) if mark["seconds"] >= begin)
    questions = sorted(result["questions"])
    return [
        (
            "until it is in an answer of `query`, in the same minutes",
            f"{answered[len(answered) // 2]:.1f} s in the middle, {answered[-1]:.1f} s at most",
            "6 s",
        ),
        (
            f"all {len(questions)} questions",
            f"{questions[len(questions) // 2]:.1f} s in the middle, {questions[-1]:.1f} s at most",
            "",
        ),
        (
            f"from the commit of a row until it is in `row_changes`, {result['minutes']:g} minutes at "
            f"{result['bytes_a_second'] / 1e6:.1f} MB/s, --interval {result['interval']}, --every {result['every']}",
            f"{sorted(inorder)[half]:.0f} s in the middle, {max(inorder):.0f} s at most",
            "90 s",
        ),
        (f"the {result['warm_up']:g} minutes before", f"{max(before, default=0):.0f} s at most", ""),
        (
            "the same, first and second half",
            " and ".join(
                f"{sorted(part)[len(part) // 2]:.0f} s in the middle, {max(part):.0f} s at most"
                for part in (inorder[:half], inorder[half:])
            ),
            "flat",
        ),
        (
            f"all {len(builds)} builds",
            f"{builds[len(builds) // 2]:.0f} s in the middle, {builds[-1]:.0f} s at most",
            "",
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.latency", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60, help="of load that are measured")
    parser.add_argument("--warm-up", type=float, default=5, help="minutes of load before them")
    parser.add_argument("--rate", type=size_in_bytes, default=size_in_bytes("5M"), help="bytes of binlog a second")
    parser.add_argument("--interval", default="10s", help="of the follower")
    parser.add_argument("--every", default="5s", help="of the build")
    parser.add_argument("--work", type=Path, required=True, help="folder for everything; latency.* stay")
    arguments = parser.parse_args()
    work = arguments.work.absolute()
    work.mkdir(parents=True, exist_ok=True)
    settings = {name: value for name, value in vars(arguments).items() if name != "work"}
    result = run(work / "latency", **settings)
    (work / "latency.json").write_text(json.dumps(result, indent=1) + "\n")
    draw(result, work / "latency.svg")
    for what, figure, gate in lines(result):
        print(f"| {what} | {figure} | {gate} |")


if __name__ == "__main__":
    main()
