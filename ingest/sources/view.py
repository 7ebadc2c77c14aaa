"""A server as it is seen on one connection: who it is, which files it has, and where its log ends."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ingest.sources.address import ServerAddress
from ingest.sources.information_schema import binlog_position
from ingest.sources.replication import FileHead, Replica, read_head
from ingest.sources.server import Server, ServerIdentity, binary_logs, executed_gtids, server_identity


@dataclass(frozen=True)
class ServerView:
    """What one look at a server has shown.

    Attributes
    ----------
    identity
        Who it is.
    logs
        Name and size in bytes of its files, oldest first.
    end
        File and position of the end of its log.
    gtids
        What it has logged, None without GTIDs.
    """

    identity: ServerIdentity
    logs: Sequence[tuple[str, int]]
    end: tuple[str, int]
    gtids: str | None
    address: ServerAddress
    replica: Replica
    _heads: dict[str, FileHead] = field(default_factory=dict)

    @property
    def oldest(self) -> str:
        """Name of its oldest file."""
        return self.logs[0][0]

    def size(self, binlog_file: str) -> int | None:
        """Return the size of one of its files in bytes, None when it has no such file."""
        return dict(self.logs).get(binlog_file)

    def head_of(self, binlog_file: str) -> FileHead:
        """Ask for the head of one of its files. Ends another stream that the same replica has.

        Raises
        ------
        SourceError
            The server cannot be reached, or has no such file any more.
        """
        if binlog_file not in self._heads:
            self._heads[binlog_file] = read_head(self.address, self.identity.flavor, self.replica, binlog_file)
        return self._heads[binlog_file]


def look(server: Server, replica: Replica) -> ServerView:
    """Look at a server.

    Raises
    ------
    SourceError
        The connection broke, the binary log is off, or a privilege is missing.
    """
    identity = server_identity(server)
    # The end first: the files that are listed afterwards hold it.
    name, position, _ = binlog_position(server, identity)
    return ServerView(identity, binary_logs(server), (name, position), executed_gtids(server), server.address, replica)
