"""Prometheus metrics of a running `binloom follow` or `binloom build --every`."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ingest.errors import UsageError
from ingest.escapes import visible

if TYPE_CHECKING:
    from ingest.follow.lag import Lag


class FollowMetrics(Collector):
    """The metrics of one followed source: the follower updates them, a Prometheus scrape collects them.

    An unknown metric is omitted, so that an alert can distinguish it from 0.

    Parameters
    ----------
    source_id
        Name of the source; every metric has it as label `source`.
    """

    def __init__(self, source_id: str) -> None:
        # Prometheus accepts any text, but people who read the page need visible characters.
        self._source_id = visible(source_id)
        self._connections = 0
        self._is_connected = False
        self._received_bytes = 0
        self._landed_row_events = 0
        self._landed_transactions = 0
        self._last_landed_at: datetime | None = None
        self._lag: Lag | None = None
        self._checked_at: datetime | None = None
        self._spool_bytes = 0
        self._gaps: Mapping[str, int] = {}

    def connected(self) -> None:
        """Count a connection, the first one or a reconnection."""
        self._connections += 1
        self._is_connected = True

    def disconnected(self) -> None:
        """Record that the connection has ended."""
        self._is_connected = False

    def received(self, size: int) -> None:
        """Add received bytes of the log."""
        self._received_bytes += size

    def landed(self, row_events: int, transactions: int, last_at: datetime | None) -> None:
        """Add landed rows and transactions; `last_at` is the commit time of the last landed transaction."""
        self._landed_row_events += row_events
        self._landed_transactions += transactions
        self._last_landed_at = last_at or self._last_landed_at

    def checked(self, lag: "Lag", spool_bytes: int, gaps: Mapping[str, int]) -> None:
        """Set the lag, the size of the spool and the number of gaps of each status."""
        self._lag, self._spool_bytes, self._gaps = lag, spool_bytes, dict(gaps)
        self._checked_at = datetime.now(UTC)

    def collect(self) -> Iterator[Metric]:
        """Yield the current metrics."""
        if self._lag is not None and self._checked_at is not None:
            yield self._gauge("lag_seconds", "Seconds that the landed tables are behind.", self._lag.seconds)
            yield self._gauge("lag_bytes", "Bytes of the log that are not landed.", self._lag.bytes)
            yield self._gauge("lag_transactions", "Transactions that are not landed.", self._lag.transactions)
            yield self._gauge("spool_bytes", "Size of the spool.", self._spool_bytes)
            checked_at = self._checked_at.timestamp()
            yield self._gauge("last_check_timestamp_seconds", "When these figures were last updated.", checked_at)
        if self._last_landed_at is not None:
            landed_at = self._last_landed_at.timestamp()
            yield self._gauge("last_landed_timestamp_seconds", "When the last landed transaction committed.", landed_at)
        yield self._gauge("is_connected", "Whether the server sends its log: 1 or 0.", int(self._is_connected))
        yield self._counter("received_bytes", "Bytes of the log that were received.", self._received_bytes)
        yield self._counter("landed_row_events", "Changed rows that were landed.", self._landed_row_events)
        yield self._counter("landed_transactions", "Transactions that were landed.", self._landed_transactions)
        yield self._counter("reconnects", "Connections after the first.", max(0, self._connections - 1))
        gaps = GaugeMetricFamily("binloom_gaps", "Gaps in the log of each status.", labels=["source", "status"])
        for status, number in sorted(self._gaps.items()):
            gaps.add_metric([self._source_id, status], number)
        yield gaps

    def _gauge(self, name: str, help: str, value: float | None) -> Metric:
        family = GaugeMetricFamily(f"binloom_{name}", help, labels=["source"])
        if value is not None:
            family.add_metric([self._source_id], value)
        return family

    def _counter(self, name: str, help: str, value: float) -> Metric:
        family = CounterMetricFamily(f"binloom_{name}", help, labels=["source"])
        family.add_metric([self._source_id], value)
        return family


class BuildMetrics(Collector):
    """The metrics of the builds of one process."""

    def __init__(self) -> None:
        self._builds = {"good": 0, "failed": 0}
        self._seconds: float | None = None
        self._warnings: int | None = None
        self._good_at: datetime | None = None

    def built(self, seconds: float, is_good: bool, warnings: int) -> None:
        """Record the end of a build: its duration, its success, and its number of tests that warned."""
        self._builds["good" if is_good else "failed"] += 1
        self._seconds, self._warnings = seconds, warnings
        if is_good:
            self._good_at = datetime.now(UTC)

    def collect(self) -> Iterator[Metric]:
        """Yield the current metrics."""
        builds = CounterMetricFamily("binloom_builds", "Builds by their outcome.", labels=["outcome"])
        for outcome, number in self._builds.items():
            builds.add_metric([outcome], number)
        yield builds
        if self._seconds is not None and self._warnings is not None:
            yield GaugeMetricFamily("binloom_build_seconds", "Duration of the last build.", self._seconds)
            yield GaugeMetricFamily("binloom_build_warnings", "Tests that warned in the last build.", self._warnings)
        if self._good_at is not None:
            yield GaugeMetricFamily(
                "binloom_last_good_build_timestamp_seconds",
                "When the last good build ended.",
                self._good_at.timestamp(),
            )


class MetricsServer:
    """Serves metrics over HTTP in its own thread, until it is closed.

    Parameters
    ----------
    metrics
        Metrics to serve.
    port
        Port to listen on; 0: any free port, see `port`.
    address
        Address to listen on. There is no authentication: by default only this machine reaches it.

    Raises
    ------
    UsageError
        The port is taken or not allowed, or the address is not one of this machine.
    """

    def __init__(self, metrics: Collector, port: int, address: str = "127.0.0.1") -> None:
        registry = CollectorRegistry()
        registry.register(metrics)
        try:
            self._server, self._thread = start_http_server(port, address, registry)
        except OSError as error:
            raise UsageError(
                f"Metrics cannot be served on {address}:{port}: {error.strerror or error}.",
                hint="Give another --metrics-port or --metrics-address.",
            ) from None
        self.port: int = self._server.server_port

    def close(self) -> None:
        """Stop the server and release the port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
