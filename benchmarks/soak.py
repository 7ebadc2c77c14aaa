"""Follows a server under load for a long time and records lag, throughput and memory throughout.

    python -m benchmarks.soak --minutes 10 --rate 20M --work DIR
    python -m benchmarks --sections soak

One MySQL server and one `binloom follow` run on this machine. The phases in turn: the load that the server reaches
alone; the same with the follower beside it; a load of a given rate for a long time; one transaction of a given size.
"""

import argparse
import json
import shutil
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.generate import log_size, prepare, rounds, size_in_bytes
from benchmarks.measure import forget_peak, peak_bytes, processor_seconds, resident_bytes
from benchmarks.plot import Curve, Panel, write_svg
from ingest.warehouse.record import read_states
from tests.servers import Server, mysql
from tests.servers.accounts import create_account
from tests.servers.replication import LogPosition, log_end, purge_before_current
from tests.support.follow.follower import Follower

LOOK_SECONDS = 0.5
SAMPLE_SECONDS = 5.0
MARK_SECONDS = 10.0
LARGEST_LOG = 256 << 20
DOCUMENT_BYTES = 4096
DOCUMENTS_A_STATEMENT = 8192


@dataclass(frozen=True)
class Look:
    """One sample; bytes count from the beginning of the phase.

    Attributes
    ----------
    seconds
        Time since the phase began.
    written, received
        Bytes of binlog that the server has written, and that the follower has synced.
    follower_memory
        The follower's resident memory in bytes.
    follower_processor, server_processor
        Processor time of each process in seconds.
    """

    seconds: float
    written: int
    received: int
    follower_memory: int
    follower_processor: float
    server_processor: float


class Watch:
    """Samples a server and its follower repeatedly; also a context manager."""

    def __init__(self, server: Server, follower: Follower | None) -> None:
        self.looks: list[Look] = []
        self._server = server
        self._follower = follower
        self._sizes: dict[str, int] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._first_written = self._written()

    def __enter__(self) -> "Watch":
        self.began = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while True:
            self.looks.append(self._look())
            if self._ended.wait(LOOK_SECONDS):
                self.looks.append(self._look())
                return

    def _look(self) -> Look:
        pid = self._follower.pid if self._follower is not None else 0
        assert self._server.pid is not None
        # Read in this order so that received bytes never exceed written bytes.
        received, written = self._received(), self._written()
        return Look(
            time.monotonic() - self.began,
            written - self._first_written,
            max(0, received - self._first_written),
            resident_bytes(pid) if pid else 0,
            processor_seconds(pid) if pid else 0.0,
            processor_seconds(self._server.pid),
        )

    def _written(self) -> int:
        # A purged file still counts.
        for path in self._server.binlogs():
            self._sizes[path.name] = path.stat().st_size
        return sum(self._sizes.values())

    def _received(self) -> int:
        place = self._follower.received() if self._follower is not None else None
        return self.offset_of(place) if place is not None else 0

    def offset_of(self, place: LogPosition) -> int:
        """Return how many bytes of binlog precede a position."""
        return sum(size for name, size in self._sizes.items() if name < place.binlog_file) + place.position

    def rate(self) -> float:
        """Return the bytes written per second."""
        return self.looks[-1].written / self.looks[-1].seconds

    def received_lags(self) -> list[tuple[float, float]]:
        """Return the lag at each look in seconds: the time since the server had written the bytes received by then."""
        lags, at = [], 0
        for look in self.looks:
            while at + 1 < len(self.looks) and self.looks[at + 1].written <= look.received:
                at += 1
            behind = look.written > look.received
            lags.append((look.seconds, max(0.0, look.seconds - self.looks[at].seconds) if behind else 0.0))
        return lags


@dataclass(frozen=True)
class Mark:
    """A committed transaction whose latency is measured: its end in the log, and its commit time."""

    place: LogPosition
    committed_at: datetime


class Marks:
    """Commits a row of its own at intervals until the block ends."""

    def __init__(self, server: Server) -> None:
        self.made: list[Mark] = []
        self._server = server
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._make, daemon=True)

    def __enter__(self) -> "Marks":
        self._server.execute("create table bench.marks (id int auto_increment primary key)")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _make(self) -> None:
        while not self._ended.wait(MARK_SECONDS):
            self._server.execute("insert into bench.marks values (null)")
            committed_at = datetime.now(UTC)
            # Other transactions may come in between, which can only make the measured latency larger.
            self.made.append(Mark(log_end(self._server), committed_at))

    def latencies(self, follower: Follower) -> list[float]:
        """Return for each mark the seconds from its commit until its segment was committed."""
        done = [state for state in read_states(follower.home, follower.source) if state.status == "completed"]
        return [
            min(
                (state.recorded_at - mark.committed_at).total_seconds()
                for state in done
                if state.binlog_file == mark.place.binlog_file and state.segment_end >= mark.place.position
            )
            for mark in self.made
        ]


@contextmanager
def load(server: Server, bytes_a_second: float | None, documents: int) -> Iterator[None]:
    """Run the shop's load beside the block, unlimited or at a rate, with this many documents in each round."""
    ended = threading.Event()
    began, first = time.monotonic(), log_size(server)

    def work() -> None:
        with server.connect(autocommit=False) as connection:
            for _ in rounds(connection):
                change_documents(connection, documents)
                while bytes_a_second and log_size(server) - first > bytes_a_second * (time.monotonic() - began):
                    time.sleep(0.005)
                if ended.is_set():
                    return

    with ThreadPoolExecutor(1, thread_name_prefix="load") as pool:
        worker = pool.submit(work)
        try:
            yield
        finally:
            ended.set()
        worker.result()


def new_shop(server: Server) -> None:
    """Recreate the tables."""
    server.execute("drop database if exists bench")
    prepare(server)
    server.execute("create table bench.documents (id int auto_increment primary key, body text not null)")


def write_documents(cursor: Any, number: int) -> None:
    """Insert this many rows of text."""
    cursor.execute(
        "insert into bench.documents (body) select concat(repeat(sha2(rand(), 256), %s), n.n)"
        " from bench.numbers as n join bench.numbers as m limit %s",
        (DOCUMENT_BYTES // 64, number),
    )


def change_documents(connection: Any, number: int) -> None:
    """Insert and delete this many rows of text: bytes that cost the server little."""
    if number:
        with connection.cursor() as cursor:
            write_documents(cursor, number)
            connection.commit()
            cursor.execute("delete from bench.documents order by id limit %s", (number,))
            connection.commit()


def one_transaction(server: Server, size: int) -> None:
    """Write rows of text in one transaction of this many bytes."""
    with server.connect(autocommit=False) as connection, connection.cursor() as cursor:
        for _ in range(-(-size // (DOCUMENT_BYTES * DOCUMENTS_A_STATEMENT))):
            write_documents(cursor, DOCUMENTS_A_STATEMENT)
        connection.commit()


def until_landed(server: Server, follower: Follower) -> float:
    """Return the seconds until the follower has landed everything."""
    began = time.monotonic()
    follower.wait_until_landed(server)
    return time.monotonic() - began


def run(
    work: Path,
    *,
    minutes: float = 10,
    rate: int = 20 << 20,
    interval: str = "30s",
    full_load_seconds: float = 60,
    transaction: int = 1 << 30,
    documents: int = 0,
) -> dict[str, Any]:
    """Run all phases; return the measurements as they go into the JSON file.

    Parameters
    ----------
    minutes, rate
        Duration of the long phase, and the bytes of binlog per second that it tries to write.
    interval
        The follower's landing interval.
    full_load_seconds
        How long the server runs at full speed, once without and once with the follower.
    transaction
        Size of the large transaction in bytes.
    documents
        Number of 4 KB rows that are inserted and deleted in each round of the shop's load.
    """
    shutil.rmtree(work, ignore_errors=True)
    options = [f"--max-binlog-size={LARGEST_LOG}", "--innodb-buffer-pool-size=512M"]
    with mysql.start(work / "server", options) as server:
        account = create_account(server, work)
        new_shop(server)
        with Watch(server, None) as alone, load(server, None, documents):
            time.sleep(full_load_seconds)

        with Follower(
            work / "home", server, account.defaults_file, "--from-now", interval=interval, source="soak", patience=900
        ) as follower:
            new_shop(server)
            follower.start()
            follower.wait_until_received(server)
            with Watch(server, follower) as beside, load(server, None, documents):
                time.sleep(full_load_seconds)
            caught_up = until_landed(server, follower)

            new_shop(server)
            purge_before_current(server)
            follower.wait_until_received(server)
            with Marks(server) as marks, Watch(server, follower) as soak, load(server, rate, documents):
                time.sleep(minutes * 60)
            soak_caught_up = until_landed(server, follower)
            latencies = marks.latencies(follower)

            purge_before_current(server)
            before = log_end(server)
            forget_peak(follower.pid)
            at_rest = resident_bytes(follower.pid)
            with Watch(server, follower) as large:
                one_transaction(server, transaction)
                committed = time.monotonic()
                until_landed(server, follower)
                large_landed = time.monotonic() - committed
            after = log_end(server)
            large_peak = peak_bytes(follower.pid)
            large_bytes = large.offset_of(after) - large.offset_of(before)
            code = follower.stop()
    shutil.rmtree(work / "server", ignore_errors=True)
    return {
        "interval": interval,
        "alone": {"seconds": full_load_seconds, "bytes_a_second": alone.rate()},
        "beside": {"seconds": full_load_seconds, "bytes_a_second": beside.rate(), "caught_up_seconds": caught_up},
        "soak": {
            "minutes": minutes,
            "rate": rate,
            "bytes_a_second": soak.rate(),
            "caught_up_seconds": soak_caught_up,
            "latencies": latencies,
            "samples": samples(soak),
        },
        "transaction": {
            "bytes": large_bytes,
            "memory_before": at_rest,
            "peak_memory": large_peak,
            "landed_seconds": large_landed,
        },
        "exit_code": code,
    }


def samples(watch: Watch) -> list[dict[str, float]]:
    """Return the samples of a watch, one for each five seconds: rates and shares are since the last one."""
    lags = dict(watch.received_lags())
    chosen = [watch.looks[0]]
    for look in watch.looks:
        if look.seconds - chosen[-1].seconds >= SAMPLE_SECONDS - LOOK_SECONDS / 2:
            chosen.append(look)
    found = []
    for last, look in pairwise(chosen):
        elapsed = look.seconds - last.seconds
        found.append(
            {
                "seconds": round(look.seconds, 1),
                "written_megabytes_a_second": round((look.written - last.written) / elapsed / 1e6, 3),
                "received_megabytes_a_second": round((look.received - last.received) / elapsed / 1e6, 3),
                "lag_seconds": round(lags[look.seconds], 2),
                "lag_megabytes": round((look.written - look.received) / 1e6, 3),
                "follower_megabytes": round(look.follower_memory / 1e6, 1),
                "follower_cores": round((look.follower_processor - last.follower_processor) / elapsed, 2),
                "server_cores": round((look.server_processor - last.server_processor) / elapsed, 2),
            }
        )
    return found


def draw(result: dict[str, Any], path: Path) -> None:
    """Draw throughput, lag and memory of the long phase."""
    found: Sequence[dict[str, float]] = result["soak"]["samples"]

    def curve(name: str, key: str) -> Curve:
        return Curve(name, [(sample["seconds"], sample[key]) for sample in found])

    title = f"binloom follow beside a MySQL server, {result['soak']['minutes']:g} minutes, both on the same cores"
    panels = [
        Panel(
            "binlog, MB/s",
            [
                curve("written by the server", "written_megabytes_a_second"),
                curve("received by binloom", "received_megabytes_a_second"),
            ],
        ),
        Panel("lag of what is received, seconds", [curve("lag", "lag_seconds")]),
        Panel("memory of binloom, MB", [curve("resident", "follower_megabytes")]),
        Panel("processor, cores", [curve("server", "server_cores"), curve("binloom", "follower_cores")]),
    ]
    write_svg(path, title, panels)


def lines(result: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return the lines of the table: label, value, target."""
    soak, alone, beside, large = (result[name] for name in ("soak", "alone", "beside", "transaction"))
    latencies = sorted(soak["latencies"])
    memory = [sample["follower_megabytes"] for sample in soak["samples"]]
    lags = sorted(sample["lag_seconds"] for sample in soak["samples"])
    middle = len(memory) // 2
    return [
        ("load that the server reaches alone", f"{alone['bytes_a_second'] / 1e6:.1f} MB/s of binlog", ""),
        (
            "the same with `binloom follow` beside it",
            f"{beside['bytes_a_second'] / 1e6:.1f} MB/s; all landed {beside['caught_up_seconds']:.0f} s after its end",
            "20 MB/s",
        ),
        (
            f"{soak['minutes']:g} minutes of load, asked for {soak['rate'] / 1e6:.0f} MB/s",
            f"{soak['bytes_a_second'] / 1e6:.1f} MB/s; all landed {soak['caught_up_seconds']:.0f} s after its end",
            "",
        ),
        (
            "lag of what is received in that time",
            f"{lags[len(lags) // 2]:.1f} s in the middle, {lags[-1]:.1f} s at most",
            "",
        ),
        (
            f"from the commit of a row until it is in `row_events`, --interval {result['interval']}",
            f"{latencies[len(latencies) // 2]:.1f} s in the middle, {latencies[-1]:.1f} s at most",
            f"{result['interval']} + 5 s",
        ),
        (
            "memory of the follower in that time",
            f"{max(memory[:middle]):.0f} MB at most in the first half, {max(memory[middle:]):.0f} MB in the second",
            "flat",
        ),
        (
            f"one transaction of {large['bytes'] / 1e9:.2f} GB",
            f"landed {large['landed_seconds']:.0f} s after its commit; peak memory "
            f"{large['peak_memory'] / 1e6:.0f} MB, {large['memory_before'] / 1e6:.0f} MB before",
            "bounded",
        ),
    ]


def measure(work: Path, **settings: Any) -> list[tuple[str, str, str]]:
    """Run all phases; write `soak.json` and `soak.svg` to a folder, and return the lines of the table."""
    result = run(work / "soak", **settings)
    (work / "soak.json").write_text(json.dumps(result, indent=1) + "\n")
    draw(result, work / "soak.svg")
    return lines(result)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10, help="of the long phase")
    parser.add_argument("--rate", type=size_in_bytes, default=size_in_bytes("20M"), help="bytes of binlog a second")
    parser.add_argument("--interval", default="30s", help="of the follower")
    parser.add_argument("--full-load-seconds", type=float, default=60, help="of each of the two phases of full load")
    parser.add_argument("--transaction", type=size_in_bytes, default=size_in_bytes("1G"))
    parser.add_argument("--documents", type=int, default=0, help="rows of 4 KB in each round besides")
    parser.add_argument("--work", type=Path, required=True, help="folder for everything; soak.json and soak.svg stay")
    arguments = parser.parse_args()
    settings = {name: value for name, value in vars(arguments).items() if name != "work"}
    for what, figure, gate in measure(arguments.work.absolute(), **settings):
        print(f"| {what} | {figure} | {gate} |")


if __name__ == "__main__":
    main()
