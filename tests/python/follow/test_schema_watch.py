"""Rows after a DDL statement are decoded with the schema that it left, no matter how far the server's log has grown.

Table maps do not contain ENUM labels: with the labels from before the statement a row would get a wrong value.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.servers import Distribution, Server
from tests.servers.load import Load
from tests.support.follow.follower import Follower
from tests.support.follow.proxy import Proxy

pytestmark = pytest.mark.slow

# Longer than one wait of a follower for the log, shorter than the longest time that rows wait.
STALLED_SECONDS = 16


@pytest.fixture
def server(distribution: Distribution, tmp_path: Path) -> Iterator[Server]:
    """A server that does not log ENUM labels."""
    with distribution.start(tmp_path / "server", ["--binlog-row-metadata=MINIMAL", "--tls-version="]) as started:
        started.execute("create database shop", "create table shop.t (id int primary key, state enum('s0'))")
        yield started


def relabel(server: Server, number: int) -> None:
    """Add a label to the column, and insert a row with it."""
    server.execute(f"alter table shop.t modify state enum('s{number}')")
    server.execute(f"insert into shop.t values ({number}, 's{number}')", "delete from shop.t")


def labels(follower: Follower) -> list[tuple[str, str]]:
    """Return key and label of the inserted rows."""
    rows = follower.tables["row_events"].to_pylist()
    found = [row for row in rows if row["table_name"] == "t" and row["event_type"] == "INSERT"]
    return [tuple(row["after_values"]) for row in sorted(found, key=lambda row: int(row["after_values"][0]))]


def test_the_log_goes_on_while_once_ends(server: Server, make_follower: Callable[..., Follower]) -> None:
    follower = make_follower()
    # One client is enough for a log that never comes to rest; more of them only give the follower more to land.
    with Load(server, clients=1):
        for number in range(1, 6):
            relabel(server, number)
            follower.once()
    assert labels(follower) == [(str(number), f"s{number}") for number in range(1, 6)]


def test_the_network_stalls_behind_the_statement(
    server: Server, proxy: Proxy, make_follower: Callable[..., Follower]
) -> None:
    follower = make_follower("home", proxy, interval="4s")
    follower.start()
    relabel(server, 1)
    follower.wait_until_landed(server)
    relabel(server, 2)
    follower.wait_until_received(server)
    proxy.stall(binlogs_only=True)
    server.execute("insert into shop.t values (3, 's2')")
    time.sleep(STALLED_SECONDS)
    assert labels(follower) in ([("1", "s1")], [("1", "s1"), ("2", "s2")])
    proxy.resume()
    follower.wait_until_landed(server)
    assert labels(follower) == [("1", "s1"), ("2", "s2"), ("3", "s2")]
