"""The recorded shop as a followed server: its spool and tables, received and landed up to any position."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

from ingest.binlog import open_binlog
from ingest.follow.checkpoint import Checkpoint, ServerEnd
from ingest.follow.spool import Spool
from ingest.landing.held import SpoolFile, StreamLanding

FILES = ("binlog.000001", "binlog.000002")
RECEIVED_AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
ASKED_AT = datetime(2026, 11, 20, 12, 0, 5, tzinfo=UTC)


class FollowedShop:
    """A source whose server wrote the two files of a sample; everything except the last transaction is received.

    Parameters
    ----------
    sample
        Folder of the files.
    source_id, home
        Its source id, and its home.
    """

    def __init__(self, sample: Path, source_id: str, home: Path) -> None:
        self.source_id = source_id
        self.home = home
        self.spool = Spool(source_id, home)
        self.spool.folder.mkdir(parents=True)
        for name in FILES:
            shutil.copy(sample / name, self.spool.folder)
        first = open_binlog(self.spool.path(0, FILES[0])).format
        self.flavor, self.server_version = first.flavor, first.server_version
        self.transactions = [
            (name, row["start_pos"], row["end_pos"], row["gtid"])
            for name in FILES
            for kind, batch in open_binlog(sample / name).batches()
            if kind == "transactions"
            for row in batch.to_pylist()
        ]
        self.size = self.spool.path(0, FILES[1]).stat().st_size
        self.received = self.transactions[-1][1]
        end = ServerEnd(FILES[1], self.size, self._executed(), ASKED_AT, self.size - self.received)
        self.spool.write_checkpoint(
            Checkpoint(
                0,
                FILES[1],
                self.received,
                self.server_uuid,
                1,
                self.flavor,
                self.server_version,
                "db1",
                3306,
                RECEIVED_AT,
                end,
            )
        )

    @property
    def server_uuid(self) -> str | None:
        """The uuid of the server that wrote the files; None for MariaDB, which has none."""
        return self.transactions[0][3].partition(":")[0] if self.flavor == "mysql" else None

    def _executed(self) -> str:
        """Return the server's executed GTIDs: a set, or the last one of each domain and server."""
        last: str = self.transactions[-1][3]
        return f"{self.server_uuid}:1-{last.rpartition(':')[2]}" if self.flavor == "mysql" else last

    def land(self, name: str, upto: int) -> None:
        """Land the files up to the end of a transaction."""
        with StreamLanding(self.source_id, self.home) as landing:
            if not landing.record.identities:
                landing.open_epoch(
                    {
                        "epoch": 0,
                        "server_id": 1,
                        "server_uuid": self.server_uuid,
                        "host": "db1",
                        "port": 3306,
                        "flavor": self.flavor,
                        "server_version": self.server_version,
                    }
                )
            whole = [SpoolFile(self.spool.path(0, one), 0, self.spool.path(0, one).stat().st_size) for one in FILES]
            before = whole[: FILES.index(name)]
            assert landing.land([*before, SpoolFile(self.spool.path(0, name), 0, upto)]).problems == []
