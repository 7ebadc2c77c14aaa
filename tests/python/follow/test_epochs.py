"""What the log does not say of a table comes from a snapshot of its own epoch, though files have the same names."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ingest.landing.partitions import open_tables
from ingest.landing.session import SparkLaunch
from tests.python.commands import build, rows_of
from tests.python.follow.follower import SOURCE, Follower
from tests.servers import Distribution, Server
from tests.servers.replication import begin_again

pytestmark = [pytest.mark.slow, pytest.mark.spark]


@pytest.fixture
def server(distribution: Distribution, tmp_path: Path) -> Iterator[Server]:
    """A server whose table maps say neither the names of columns nor the labels of an ENUM."""
    with distribution.start(tmp_path / "server", ["--binlog-row-metadata=MINIMAL"]) as started:
        yield started


def inserted(follower: Follower) -> list[tuple[int, dict[str, str]]]:
    """Epoch and values of each row that was inserted, in order."""
    rows = rows_of(follower.home, "row_changes", SOURCE)
    rows.sort(key=lambda row: (row["epoch"], row["file_sequence"], row["start_pos"], row["row_ordinal"]))
    return [(row["epoch"], dict(row["row_after"])) for row in rows if row["event_type"] == "INSERT"]


def test_rows_of_two_epochs_have_their_own_names_and_labels(
    server: Server, make_follower: Callable[..., Follower]
) -> None:
    follower = make_follower()
    # The schema is known from a place on that the next epoch reaches much later.
    for _ in range(3):
        server.flush()
    server.execute("create database shop", "create table shop.t (id int primary key, colour enum('red', 'green'))")
    server.execute("insert into shop.t values (1, 'green')")
    follower.once()

    # Nobody follows, and the statement that changes the table goes with its log.
    server.execute("delete from shop.t", "alter table shop.t change colour size enum('small', 'large')")
    begin_again(server)
    server.execute("insert into shop.t values (2, 'large')")
    follower.once()
    # The epoch has a change of its own, and then files with the numbers that the first one had.
    server.execute("delete from shop.t", "alter table shop.t change size mood enum('glad', 'sad')")
    server.execute("insert into shop.t values (3, 'sad')")
    for _ in range(4):
        server.flush()
    server.execute("insert into shop.t values (4, 'glad')")
    follower.once()

    with SparkLaunch(follower.home, short_lived=True) as launch:
        open_tables(launch.session(), follower.home)
    build(follower.home, "row_changes")
    assert inserted(follower) == [
        (0, {"id": "1", "colour": "green"}),
        (1, {"id": "2", "size": "large"}),
        (1, {"id": "3", "mood": "sad"}),
        (1, {"id": "4", "mood": "glad"}),
    ]
