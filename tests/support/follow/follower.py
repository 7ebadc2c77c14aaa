"""`binloom follow` as a process: started, ended in one way or another, and watched from outside.

It runs without Java unless told otherwise: following needs none, and without Java no end of a run takes the seconds
in which Spark would be told of the partitions.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, Self

from ingest.follow.checkpoint import Checkpoint, spool_folder
from ingest.warehouse.files import read_rows
from ingest.warehouse.segments import latest_states
from ingest.warehouse.tables import SEGMENTS, STREAM_GAPS
from tests.servers import Server
from tests.servers.replication import LogPosition, log_end
from tests.support.follow.spool import assert_same_files
from tests.support.follow.tables import Decoded, Tables, assert_same_tables
from tests.support.places import PROJECT

SOURCE = "followed"
WAIT_SECONDS = 120
POLL_SECONDS = 0.1
NOTHING = LogPosition("", 0)
# What a segment's rows may be in: read, read as part of a larger one, or left out on purpose.
DONE = {"completed", "replaced", "removed", "skipped"}


class Address(Protocol):
    """Where something listens: a server, or the proxy before it."""

    host: str
    port: int


class FollowerEnded(AssertionError):
    """The follower ended when it should not have; the message holds what it said."""


class Follower:
    """A process that follows a server, with a home of its own; also a context manager, which kills what still runs.

    Parameters
    ----------
    home
        Its `BINLOOM_HOME`.
    address
        Where it connects to.
    defaults_file
        The user and password that it connects with.
    *options
        Further options of the command.
    has_java
        Whether it may use Spark when it ends.
    patience
        Seconds after which what it is waited for is not expected any more.

    Attributes
    ----------
    log
        What it writes to stderr and stdout, of all runs.
    """

    def __init__(
        self,
        home: Path,
        address: Address,
        defaults_file: Path,
        *options: str,
        interval: str = "1s",
        source: str = SOURCE,
        has_java: bool = False,
        patience: float = WAIT_SECONDS,
    ) -> None:
        self.home = home
        self.address = address
        self.defaults_file = defaults_file
        self.options = options
        self.interval = interval
        self.source = source
        self.has_java = has_java
        self.patience = patience
        self.log = home.with_name(f"{home.name}.follow.log")
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def command(self, *more: str) -> list[str]:
        """Return the command line."""
        live = ["--server", self.address.host, "--port", str(self.address.port)]
        account = ["--defaults-file", str(self.defaults_file)]
        settings = ["--source", self.source, "--interval", self.interval]
        return [sys.executable, "-m", "binloom.cli", "follow", *settings, *live, *account, *self.options, *more]

    def start(self, *more: str) -> None:
        """Start it; whatever is not landed yet waits for `wait_until_landed`."""
        assert self._process is None or self._process.poll() is not None, "it runs already"
        environment = {**os.environ, "BINLOOM_HOME": str(self.home), "PYTHONPATH": str(PROJECT)}
        if not self.has_java:
            environment["JAVA_HOME"] = "/nonexistent"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command(*more),
                cwd=PROJECT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                umask=0,
            )

    def run(self, *more: str) -> tuple[int, str]:
        """Run it until it ends by itself; return its exit code and what it said in this run."""
        said = len(self.said())
        self.start(*more)
        return self.wait(), self.said()[said:]

    def once(self, *more: str) -> str:
        """Catch up and end well; return what it said."""
        code, said = self.run("--once", *more)
        assert code == 0, f"--once ended with {code}:\n{said}"
        return said

    def wait(self) -> int:
        """Wait until it ends; return its exit code, which is negative for a signal."""
        assert self._process is not None
        try:
            return self._process.wait(self.patience)
        except subprocess.TimeoutExpired:
            self.kill()
            raise FollowerEnded(f"it does not end:\n{self.tail()}") from None

    def stop(self) -> int:
        """Ask it to end (SIGTERM) and wait; return its exit code."""
        assert self._process is not None
        self.assert_running()
        self._process.send_signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """End it at once, and whatever it has started."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        return self._process is not None and self._process.poll() is None

    def assert_running(self) -> None:
        """Fail with what it said last when it has ended."""
        if not self.is_running:
            code = self._process.returncode if self._process is not None else None
            raise FollowerEnded(f"follow has ended with {code}:\n{self.tail()}")

    def said(self) -> str:
        """Return all that it has said."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def tail(self) -> str:
        """Return the end of what it has said."""
        return self.said()[-4000:]

    @property
    def spool(self) -> Path:
        """The folder of the spool."""
        return spool_folder(self.source, self.home)

    @property
    def tables(self) -> Tables:
        """What it has landed."""
        return Tables(self.home, self.source)

    def checkpoint(self) -> Checkpoint | None:
        """Return what it has synced, None while that is nothing."""
        return Checkpoint.read(self.spool)

    def received(self) -> LogPosition | None:
        """Return up to where it has synced, None while that is nothing."""
        known = self.checkpoint()
        return LogPosition(known.binlog_file, known.position) if known is not None else None

    def gaps(self) -> list[dict[str, Any]]:
        """Return the latest row of each gap, in the order in which they were found."""
        latest: dict[str, dict[str, Any]] = {}
        for row in sorted(read_rows(STREAM_GAPS, self.home, source_id=self.source), key=lambda row: row["recorded_at"]):
            latest[row["gap_id"]] = row
        return list(latest.values())

    def landed(self, epoch: int, binlog_file: str) -> int:
        """Return up to where a file is landed without a gap, or was left out on purpose."""
        states = latest_states(read_rows(SEGMENTS, self.home, source_id=self.source)).get((epoch, binlog_file), [])
        end = 4
        for state in states:
            if state["status"] in DONE and state["segment_start"] <= end:
                end = max(end, state["segment_end"])
        return end

    def start_and_connect(self, *more: str) -> None:
        """Start it and wait until it follows: from then on it survives that the server is away."""
        before = self.checkpoint()
        self.start(*more)
        self.wait_until(lambda: self.checkpoint() != before, "it does not connect")

    def wait_until_received(self, server: Server) -> LogPosition:
        """Wait until it has synced all that is in the server's log now; return where that is."""
        end = log_end(server)
        # MariaDB writes a checkpoint behind a rotation when it has the time, so there may be more already.
        self.wait_until(lambda: (self.received() or NOTHING) >= end, f"it has not received up to {end}")
        return end

    def wait_until_landed(self, server: Server) -> LogPosition:
        """Wait until it has landed all that is in the server's log now; nothing may write to it in the meantime."""
        end = self.wait_until_received(server)
        known = self.checkpoint()
        assert known is not None
        sizes = {path.name: path.stat().st_size for path in self.spool_files(known.epoch)}
        sizes[end.binlog_file] = end.position
        self.wait_until(
            lambda: all(self.landed(known.epoch, name) >= size for name, size in sizes.items()),
            f"it has not landed all of {sizes}",
        )
        return end

    def assert_has_all_of(self, server: Server) -> dict[str, int]:
        """Compare its spool and its tables with the files of the one server that it followed; return how many rows."""
        assert_same_files(self.spool_files(0), server.binlogs())
        return assert_same_tables(self.tables, Decoded([(0, path) for path in server.binlogs()], self.tables))

    def spool_files(self, epoch: int) -> list[Path]:
        """Return the spool's files of an epoch, oldest first."""
        folder = self.spool / f"epoch-{epoch}" if epoch else self.spool
        return sorted(path for path in folder.glob("*.*") if path.suffix[1:].isdigit())

    def wait_until(self, is_so: Callable[[], bool], otherwise: str) -> None:
        """Wait until something is so while it runs; fail when it ends or takes too long."""
        deadline = time.monotonic() + self.patience
        while not is_so():
            self.assert_running()
            if time.monotonic() > deadline:
                raise AssertionError(f"{otherwise} after {self.patience:g} s, but {self.checkpoint()}:\n{self.tail()}")
            time.sleep(POLL_SECONDS)
