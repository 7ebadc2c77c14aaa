"""The definitions of tables that a person gives for files: a folder, statements, or a server."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from ingest.errors import UsageError
from recover.sources.home.kept_files import ignored
from recover.timeline.baselines import sequence_of_file

if TYPE_CHECKING:
    from ingest.binlog.byte_files import LogPath
    from ingest.sources.servers.address import ServerAddress
    from ingest.sources.snapshots.snapshot import SchemaSnapshot

NO_POSITION: Final = (
    "the server did not tell its position, so it is not known which statements of the log these definitions follow:"
    " grant REPLICATION CLIENT (BINLOG MONITOR on MariaDB) to the user"
)


@dataclass(frozen=True)
class GivenDefinitions:
    """Where the definitions of tables are that a log does not contain. One place suffices.

    Attributes
    ----------
    folder
        Folder of a schema snapshot.
    ddl
        File of CREATE and ALTER statements, such as a dump.
    server
        A live server, which has the newest definitions.
    is_told_if_used
        Whether the server is given for another reason, too. The answer then tells that it used its definitions.
    """

    folder: Path | None = None
    ddl: Path | None = None
    server: "ServerAddress | None" = None
    is_told_if_used: bool = False

    def or_of_server(self, server: "ServerAddress | None") -> Self:
        """Return what is given, or a server that is given for another reason, too."""
        return self if self.options else replace(self, server=server, is_told_if_used=True)

    @property
    def options(self) -> list[str]:
        """The options that were given."""
        named = {"--snapshot-dir": self.folder, "--ddl": self.ddl, "--schema-from": self.server}
        return [option for option, value in named.items() if value is not None]

    def snapshot(self, files: "Sequence[LogPath]", tell: Callable[[str], None] = ignored) -> "SchemaSnapshot | None":
        """Return the snapshot for some binlog files, None if none is given; tell from which server it is.

        Raises
        ------
        UsageError
            Several places are given.
        SnapshotInputError
            A file cannot be read.
        SourceError
            The server cannot be reached, or refuses the user.
        """
        if len(self.options) > 1:
            raise UsageError(
                f"{' and '.join(self.options)} all give the definitions of the tables.", hint="Give one of them."
            )
        found = self._read(files, tell)
        if found is not None and found.doubt is not None:
            tell(found.doubt)
        return found

    def _read(self, files: "Sequence[LogPath]", tell: Callable[[str], None]) -> "SchemaSnapshot | None":
        if self.folder is not None:
            from ingest.sources.snapshots.snapshot_files import read_snapshot_dir

            return read_snapshot_dir(self.folder)
        if self.ddl is not None:
            from ingest.sources.snapshots.snapshot_ddl import read_snapshot_ddl

            return read_snapshot_ddl(self.ddl)
        if self.server is None:
            return None
        return _snapshot_of_server(self.server, files, tell, is_told_if_used=self.is_told_if_used)


def _snapshot_of_server(
    address: "ServerAddress", files: "Sequence[LogPath]", tell: Callable[[str], None], *, is_told_if_used: bool
) -> "SchemaSnapshot":
    """Return the present definitions of a server, which are from after some binlog files; tell where they are from."""
    from ingest.sources.servers.information_schema import read_definitions
    from ingest.sources.servers.server import Server

    address = replace(address, warn=lambda sentence: tell(f"warning: {sentence}"))
    with Server(address) as server:
        snapshot = read_definitions(server)
    if not is_told_if_used:
        at = "now" if snapshot.binlog_file is None else f"at {snapshot.binlog_file}:{snapshot.binlog_pos}"
        tell(f"the definitions of tables that the log does not contain are those of the server {address} {at}.")
        if snapshot.binlog_file is None:
            tell(f"{NO_POSITION}.")
    last = max(sequence_of_file(path.name) for path in files)
    if snapshot.binlog_file is not None and sequence_of_file(snapshot.binlog_file) < last:
        # The server has begun its log anew, or its log is another one.
        return replace(snapshot, binlog_file=None, binlog_pos=None, gtid_executed=None)
    return snapshot
