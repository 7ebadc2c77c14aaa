"""The state of a server as seen on one connection: its identity, its files, and the end of its log."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ingest.sources.servers.address import ServerAddress
from ingest.sources.servers.information_schema import binlog_position
from ingest.sources.servers.replication import FileHead, Replica, read_head
from ingest.sources.servers.server import (
    Server,
    ServerIdentity,
    binary_logs,
    executed_gtids,
    may_be_anonymous,
    server_identity,
)


@dataclass(frozen=True)
class ServerView:
    """The state of a server at one moment.

    Attributes
    ----------
    identity
        The server's identity.
    logs
        Name and size in bytes of its files, oldest first.
    end
        File and position of the end of its log.
    gtids
        GTIDs that it has logged, None if there are none.
    may_be_anonymous
        Whether it may log transactions without a GTID.
    """

    identity: ServerIdentity
    logs: Sequence[tuple[str, int]]
    end: tuple[str, int]
    gtids: str | None
    address: ServerAddress
    replica: Replica
    _heads: dict[str, FileHead] = field(default_factory=dict)
    may_be_anonymous: bool = False

    @property
    def oldest(self) -> str:
        """Name of the server's oldest file."""
        return self.logs[0][0]

    def size(self, binlog_file: str) -> int | None:
        """Return the size of one of the server's files in bytes, None when there is no such file."""
        return dict(self.logs).get(binlog_file)

    def file_after(self, binlog_file: str) -> str | None:
        """Return the name of the file after this one; None if it is the newest, or the server does not have it."""
        names = [name for name, _ in self.logs]
        return names[names.index(binlog_file) + 1] if binlog_file in names[:-1] else None

    def head_of(self, binlog_file: str) -> FileHead:
        """Read the head of one of the server's files. This ends any other stream of the same replica.

        Raises
        ------
        SourceError
            The server cannot be reached, or no longer has the file.
        """
        if binlog_file not in self._heads:
            self._heads[binlog_file] = read_head(self.address, self.identity.flavor, self.replica, binlog_file)
        return self._heads[binlog_file]


def observe_server(server: Server, replica: Replica) -> ServerView:
    """Read the state of a server.

    Raises
    ------
    SourceError
        The connection broke, the binary log is off, or a privilege is missing.
    """
    identity = server_identity(server)
    # Read the end first: the files that are listed afterwards include it.
    name, position, _ = binlog_position(server, identity)
    return ServerView(
        identity,
        binary_logs(server),
        (name, position),
        executed_gtids(server),
        server.address,
        replica,
        may_be_anonymous=may_be_anonymous(server),
    )
