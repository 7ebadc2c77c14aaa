"""A table whose column is renamed in a log that is lost, in an epoch whose file names occur again in the next epoch."""

from tests.servers import Server
from tests.servers.replication import begin_again
from tests.support.follow.follower import Follower

# Table maps contain neither column names nor ENUM labels.
SERVER_OPTIONS = ["--binlog-row-metadata=MINIMAL"]
# The epoch and the content of each inserted row.
INSERTED = [
    (0, {"id": "1", "colour": "green"}),
    (1, {"id": "2", "size": "large"}),
    (1, {"id": "3", "mood": "sad"}),
    (1, {"id": "4", "mood": "glad"}),
]


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
