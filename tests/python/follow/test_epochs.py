"""Properties that the log does not contain come from a snapshot of the same epoch, even when file names repeat."""

from pathlib import Path

import pytest

from ingest.warehouse.partitions import open_tables
from ingest.warehouse.spark import SparkLaunch
from tests.servers import DISTRIBUTIONS, Server
from tests.servers.accounts import create_account
from tests.servers.replication import begin_again
from tests.support.commands import rows_of
from tests.support.follow.follower import Follower
from tests.support.in_process import build

pytestmark = [pytest.mark.mysql, pytest.mark.mariadb, pytest.mark.slow, pytest.mark.spark]

# Table maps contain neither column names nor ENUM labels.
OPTIONS = ["--binlog-row-metadata=MINIMAL"]


def live_through_two_epochs(server: Server, follower: Follower) -> None:
    """Change a table's column with and without a log entry that survives, with a row under each of its names."""
    # This makes the file name of the first snapshot's position higher than the next epoch's first file names.
    for _ in range(3):
        server.flush()
    server.execute("create database shop", "create table shop.t (id int primary key, colour enum('red', 'green'))")
    server.execute("insert into shop.t values (1, 'green')")
    follower.once()

    # No follower runs now, and the log with the ALTER TABLE is deleted.
    server.execute("delete from shop.t", "alter table shop.t change colour size enum('small', 'large')")
    begin_again(server)
    server.execute("insert into shop.t values (2, 'large')")
    follower.once()
    # The second epoch has its own change, and then files with the same numbers as the first epoch.
    server.execute("delete from shop.t", "alter table shop.t change size mood enum('glad', 'sad')")
    server.execute("insert into shop.t values (3, 'sad')")
    for _ in range(4):
        server.flush()
    server.execute("insert into shop.t values (4, 'glad')")
    follower.once()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which each server was followed as a separate source."""
    folder = tmp_path_factory.mktemp("epochs")
    home = folder / "home"
    for name, distribution in DISTRIBUTIONS.items():
        with distribution.start(folder / name, OPTIONS) as server:
            account = create_account(server, folder, f"follower_{name}")
            with Follower(home, server, account.defaults_file, "--from-oldest", source=name) as follower:
                live_through_two_epochs(server, follower)
    with SparkLaunch(home, short_lived=True) as launch:
        open_tables(launch.session(), home)
    build(home, "row_changes")
    return home


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_rows_of_two_epochs_have_their_own_names_and_labels(home: Path, name: str) -> None:
    rows = rows_of(home, "row_changes", name)
    rows.sort(key=lambda row: (row["epoch"], row["file_sequence"], row["start_pos"], row["row_ordinal"]))
    assert [(row["epoch"], dict(row["row_after"])) for row in rows if row["event_type"] == "INSERT"] == [
        (0, {"id": "1", "colour": "green"}),
        (1, {"id": "2", "size": "large"}),
        (1, {"id": "3", "mood": "sad"}),
        (1, {"id": "4", "mood": "glad"}),
    ]
