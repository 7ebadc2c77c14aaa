"""The metrics endpoint of a follower, scraped over HTTP."""

import re
import urllib.request
from datetime import UTC, datetime

import pytest
from prometheus_client.parser import text_string_to_metric_families

from binloom.commands.metrics import FollowMetrics, MetricsServer
from ingest.errors import UsageError
from ingest.follow.lag import Lag
from tests.servers.ports import ReservedPort
from tests.support.patience import PATIENCE_SECONDS
from tests.support.places import PROJECT

NOON = datetime(2026, 11, 20, 12, 0, 0, tzinfo=UTC)


def scraped(server: MetricsServer) -> dict[str, float]:
    """Return the endpoint's values, by name and labels without the source's label."""
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=PATIENCE_SECONDS) as answer:
        text = answer.read().decode()
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        for name, labels, value, *_ in family.samples:
            assert labels.pop("source") == 'shop "1"'
            found[name + "".join(f" {value}" for value in labels.values())] = value
    return found


def test_figures_are_those_that_the_follower_told() -> None:
    metrics = FollowMetrics('shop "1"')
    with MetricsServer(metrics, 0) as server:
        assert scraped(server) == {
            "binloom_is_connected": 0,
            "binloom_received_bytes_total": 0,
            "binloom_landed_row_events_total": 0,
            "binloom_landed_transactions_total": 0,
            "binloom_reconnects_total": 0,
        }
        before = datetime.now(UTC).timestamp()
        metrics.connected()
        metrics.received(1000)
        metrics.disconnected()
        metrics.connected()
        metrics.received(500)
        metrics.landed(70, 8, NOON)
        metrics.landed(1, 1, None)
        metrics.checked(Lag(1.5, 4096, 3), 8192, {"found": 1, "accepted": 2})
        figures = scraped(server)
        assert figures.pop("binloom_last_check_timestamp_seconds") >= before
        assert figures == {
            "binloom_lag_seconds": 1.5,
            "binloom_lag_bytes": 4096,
            "binloom_lag_transactions": 3,
            "binloom_last_landed_timestamp_seconds": NOON.timestamp(),
            "binloom_is_connected": 1,
            "binloom_spool_bytes": 8192,
            "binloom_received_bytes_total": 1500,
            "binloom_landed_row_events_total": 71,
            "binloom_landed_transactions_total": 9,
            "binloom_reconnects_total": 1,
            "binloom_gaps found": 1,
            "binloom_gaps accepted": 2,
        }
        metrics.disconnected()
        metrics.checked(Lag(None, 0, None), 0, {})
        figures = scraped(server)
        assert figures["binloom_is_connected"] == figures["binloom_lag_bytes"] == 0
        # An unknown value must not appear as 0.
        assert not {"binloom_lag_seconds", "binloom_lag_transactions", "binloom_gaps found"} & figures.keys()


def test_the_documented_figures_are_those_that_are_served() -> None:
    metrics = FollowMetrics('shop "1"')
    metrics.landed(0, 0, NOON)
    metrics.checked(Lag(0, 0, 0), 0, {"found": 1})
    with MetricsServer(metrics, 0) as server:
        served = {name.partition(" ")[0] for name in scraped(server)}
    documented = re.findall(r"binloom_\w+", (PROJECT / "docs" / "follow.md").read_text())
    assert set(documented) == served


def test_a_port_that_is_taken_is_a_sentence_and_a_closed_one_is_free() -> None:
    with ReservedPort() as port:
        with MetricsServer(FollowMetrics("a"), port.number) as server:
            assert server.port == port.number
            with pytest.raises(UsageError, match=rf"cannot be served on 127\.0\.0\.1:{port.number}: .*in use"):
                MetricsServer(FollowMetrics("b"), port.number)
        MetricsServer(FollowMetrics("b"), port.number).close()


def test_an_address_of_another_machine_is_a_sentence() -> None:
    for address in ("203.0.113.1", "no.such.host.invalid"):
        with pytest.raises(UsageError, match=f"cannot be served on {address}:0"):
            MetricsServer(FollowMetrics("a"), 0, address)


def test_followers_in_one_process_do_not_mix() -> None:
    first, second = FollowMetrics('shop "1"'), FollowMetrics("other")
    second.received(5)
    with MetricsServer(first, 0) as server, MetricsServer(second, 0):
        assert scraped(server)["binloom_received_bytes_total"] == 0
