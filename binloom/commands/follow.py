"""`binloom follow`: follow a live server under one source until it is stopped."""

import contextlib
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from binloom.commands.metrics import FollowMetrics, MetricsServer
from binloom.commands.output import human_bytes, print_line, say
from ingest.errors import EXIT_DONE, EXIT_SOURCE
from ingest.follow.follower import Follower, FollowOptions
from ingest.follow.lag import find_lag, last_landed_at
from ingest.follow.spool import Spool
from ingest.landing.held import StreamLanding
from ingest.landing.options import IngestResult
from ingest.sources.servers.address import ServerAddress
from ingest.warehouse.gaps import gaps
from ingest.warehouse.home import binloom_home
from ingest.words import counted


def follow_server(
    source: str,
    address: ServerAddress,
    options: FollowOptions,
    metrics_port: int | None,
    metrics_address: str,
) -> int:
    """Follow a server until it is done or a signal comes; print a line for each landing, and messages to stderr."""
    home = binloom_home().absolute()
    watcher = _Watcher(source, home)
    follower = Follower(source, address, options, home, watcher)
    with contextlib.ExitStack() as stack:
        if metrics_port is not None:
            server = stack.enter_context(MetricsServer(watcher.metrics, metrics_port, metrics_address))
            say(f"metrics are on http://{metrics_address}:{server.port}/metrics")
        with _ended_by_signals(follower):
            follower.run()
    print_line(f"{source}: {watcher.summary()}")
    return EXIT_SOURCE if follower.problems else EXIT_DONE


@contextlib.contextmanager
def _ended_by_signals(follower: Follower) -> Iterator[None]:
    """Let the first SIGINT or SIGTERM stop the follower in order, and a second one at once."""

    def end(number: int, frame: FrameType | None) -> None:
        follower.stop()
        for one, handler in before.items():
            signal.signal(one, handler)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        for number in before:
            signal.signal(number, end)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Watcher:
    """Reports the follower's progress to the user and to Prometheus."""

    def __init__(self, source: str, home: Path) -> None:
        self.metrics = FollowMetrics(source)
        self._source = source
        self._home = home
        self._totals: Counter[str] = Counter()

    def say(self, text: str) -> None:
        say(f"{self._source}: {text}")

    def connected(self) -> None:
        self.metrics.connected()

    def disconnected(self) -> None:
        self.metrics.disconnected()

    def received(self, size: int) -> None:
        self.metrics.received(size)

    def landed(self, result: IngestResult, spool: Spool, landing: StreamLanding) -> None:
        now = datetime.now(UTC)
        self.metrics.landed(result.row_events, result.transactions, last_landed_at(landing.record))
        lag = find_lag(spool, landing.record, now)
        if lag is not None:
            self.metrics.checked(lag, spool.size()[1], Counter(row["status"] for row in gaps(self._source, self._home)))
        if result.segments:
            self._totals.update(rows=result.row_events, transactions=result.transactions, bytes=result.bytes)
            print_line(
                f"{now:%Y-%m-%d %H:%M:%S} {self._source}: {counted(result.row_events, 'row change')} in "
                f"{counted(result.transactions, 'transaction')} landed, {human_bytes(result.bytes)} "
                f"({result.seconds:.1f} s)"
            )
            sys.stdout.flush()

    def summary(self) -> str:
        totals = self._totals
        if not totals["bytes"]:
            return "nothing new, all is landed"
        return (
            f"{counted(totals['rows'], 'row change')} in {counted(totals['transactions'], 'transaction')} landed, "
            f"{human_bytes(totals['bytes'])}"
        )
