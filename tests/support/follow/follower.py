"""`binloom follow` as a process that tests start, end in different ways, and observe from outside.

It runs without Java: following does not need it.
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
from ingest.warehouse.record import read_states
from ingest.warehouse.segments import latest_states
from ingest.warehouse.tables import STREAM_GAPS
from tests.servers import Server
from tests.servers.replication import LogPosition, log_end
from tests.support.follow.spool import assert_same_files
from tests.support.follow.tables import Decoded, Tables, assert_same_tables
from tests.support.patience import PATIENCE_SECONDS
from tests.support.places import PROJECT

SOURCE = "followed"
POLL_SECONDS = 0.1
NOTHING = LogPosition("", 0)
# Final states of a segment: landed, landed as part of a larger segment, or skipped on request.
DONE = {"completed", "replaced", "removed", "skipped"}


class Address(Protocol):
    """Address of a server, or of the proxy in front of it."""

    host: str
    port: int


class FollowerEnded(AssertionError):
    """The follower ended unexpectedly; the message contains its output."""


class Follower:
    """A process that follows a server, with its own home; also a context manager, which kills a running process.

    Parameters
    ----------
    home
        Its `BINLOOM_HOME`.
    address
        The address that it connects to.
    defaults_file
        The user and password for its connection.
    *options
        Further options of the command.
    patience
        Timeout of each wait in seconds.

    Attributes
    ----------
    log
        Its stderr and stdout from all runs.
    """

    def __init__(
        self,
        home: Path,
        address: Address,
        defaults_file: Path,
        *options: str,
        interval: str = "1s",
        source: str = SOURCE,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self.home = home
        self.address = address
        self.defaults_file = defaults_file
        self.options = options
        self.interval = interval
        self.source = source
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
        """Start it; `wait_until_landed` waits for the rest to be landed."""
        assert self._process is None or self._process.poll() is not None, "it runs already"
        environment = {**os.environ, "BINLOOM_HOME": str(self.home), "PYTHONPATH": str(PROJECT)}
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
        """Run it until it ends by itself; return its exit code and its output in this run."""
        before = len(self.output())
        self.start(*more)
        return self.wait(), self.output()[before:]

    def once(self, *more: str) -> str:
        """Run it until it has caught up; return its output. It must succeed."""
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
        """Send SIGTERM and wait; return its exit code."""
        assert self._process is not None
        self.assert_running()
        self._process.send_signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """Kill it and all processes that it started."""
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
        """Whether it still runs."""
        return self._process is not None and self._process.poll() is None

    def assert_running(self) -> None:
        """Fail with the end of its output when it has ended."""
        if not self.is_running:
            code = self._process.returncode if self._process is not None else None
            raise FollowerEnded(f"follow has ended with {code}:\n{self.tail()}")

    def output(self) -> str:
        """Return all its output."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def tail(self) -> str:
        """Return the end of its output."""
        return self.output()[-4000:]

    @property
    def spool(self) -> Path:
        """The folder of the spool."""
        return spool_folder(self.source, self.home)

    @property
    def tables(self) -> Tables:
        """The tables that it has landed."""
        return Tables(self.home, self.source)

    def checkpoint(self) -> Checkpoint | None:
        """Return its checkpoint; None before it has synced anything."""
        return Checkpoint.read(self.spool)

    def received(self) -> LogPosition | None:
        """Return the position up to which it has synced; None before it has synced anything."""
        known = self.checkpoint()
        return LogPosition(known.binlog_file, known.position) if known is not None else None

    def gaps(self) -> list[dict[str, Any]]:
        """Return the latest row of each gap, in the order of discovery."""
        latest: dict[str, dict[str, Any]] = {}
        for row in sorted(read_rows(STREAM_GAPS, self.home, source_id=self.source), key=lambda row: row["recorded_at"]):
            latest[row["gap_id"]] = row
        return list(latest.values())

    def landed(self, epoch: int, binlog_file: str) -> int:
        """Return the position up to which a file is landed or skipped without a gap."""
        states = latest_states(read_states(self.home, self.source)).get((epoch, binlog_file), [])
        end = 4
        for state in states:
            if state.status in DONE and state.segment_start <= end:
                end = max(end, state.segment_end)
        return end

    def start_and_connect(self, *more: str) -> None:
        """Start it and wait until it follows: from then on it survives when the server is down."""
        before = self.checkpoint()
        self.start(*more)
        self.wait_until(lambda: self.checkpoint() != before, "it does not connect")

    def wait_until_received(self, server: Server) -> LogPosition:
        """Wait until it has synced everything that is in the server's log now; return the end of that log."""
        end = log_end(server)
        # MariaDB writes a checkpoint event some time after a rotation, so the log may be longer already.
        self.wait_until(lambda: (self.received() or NOTHING) >= end, f"it has not received up to {end}")
        return end

    def wait_until_landed(self, server: Server) -> LogPosition:
        """Wait until it has landed the server's whole log; nothing may write to the log in the meantime."""
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
        """Compare its spool and tables with the files of its only server; return the numbers of rows."""
        assert_same_files(self.spool_files(0), server.binlogs())
        return assert_same_tables(self.tables, Decoded([(0, path) for path in server.binlogs()], self.tables))

    def spool_files(self, epoch: int) -> list[Path]:
        """Return the spool's files of an epoch, oldest first."""
        folder = self.spool / f"epoch-{epoch}" if epoch else self.spool
        return sorted(path for path in folder.glob("*.*") if path.suffix[1:].isdigit())

    def wait_until(self, is_so: Callable[[], bool], otherwise: str) -> None:
        """Wait until a condition holds while it runs; fail when it ends or on a timeout."""
        deadline = time.monotonic() + self.patience
        while not is_so():
            self.assert_running()
            if time.monotonic() > deadline:
                raise AssertionError(f"{otherwise} after {self.patience:g} s, but {self.checkpoint()}:\n{self.tail()}")
            time.sleep(POLL_SECONDS)
