"""How far a followed server is received: `checkpoint.json` beside the files of the spool."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from ingest.errors import StoreError
from ingest.warehouse.files import replacing
from ingest.warehouse.names import escape
from ingest.warehouse.segments import log_place

CHECKPOINT = "checkpoint.json"


def spool_folder(source_id: str, home: Path) -> Path:
    """Return the folder that the spool of a source lies in."""
    name = escape(source_id)
    # These are folders that are there already.
    return home / "spool" / (name.replace(".", "%2E") if name in (".", "..") else name)


@dataclass(frozen=True)
class ServerEnd:
    """The end of a server's log, as it said last.

    Attributes
    ----------
    binlog_file, position
        Where it is, as SHOW BINARY LOG STATUS says.
    gtids
        GTID set of all that the server has logged, None without GTIDs.
    observed_at
        When it was asked, UTC.
    bytes_ahead
        Bytes between what was received by then and this end.
    """

    binlog_file: str
    position: int
    gtids: str | None
    observed_at: datetime
    bytes_ahead: int


@dataclass(frozen=True)
class Checkpoint:
    """What is received of a server and durable: the spool is synced up to here.

    Attributes
    ----------
    epoch
        Epoch of the source that the server's files belong to.
    binlog_file, position
        The end of the last complete transaction that is synced.
    server_uuid, server_id, flavor, server_version, host, port
        The server that it comes from.
    received_at
        When its last byte or heartbeat came, UTC.
    server
        The end of the server's log, None before it was asked for the first time.
    """

    epoch: int
    binlog_file: str
    position: int
    server_uuid: str | None
    server_id: int
    flavor: str
    server_version: str
    host: str
    port: int
    received_at: datetime
    server: ServerEnd | None = None

    def is_at_least(self, binlog_file: str, position: int) -> bool:
        """Whether a position in the same epoch's log is received."""
        return log_place(self.binlog_file, self.position) >= log_place(binlog_file, position)

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """Return the checkpoint of a spool, None where nothing was received yet.

        Raises
        ------
        StoreError
            The file is there and cannot be read, or is not what `write` made.
        """
        path = folder / CHECKPOINT
        try:
            return cls._of(json.loads(path.read_bytes()))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise StoreError(
                f"{path} cannot be read: {error}.",
                hint="Put it back as it was, or move the folder away: following then goes on from what is landed.",
                path=str(path),
            ) from error

    @classmethod
    def _of(cls, said: Mapping[str, Any]) -> Self:
        server = said["server"]
        return cls(
            **{
                **said,
                "received_at": datetime.fromisoformat(said["received_at"]),
                "server": server
                and ServerEnd(**{**server, "observed_at": datetime.fromisoformat(server["observed_at"])}),
            }
        )

    def write(self, folder: Path) -> None:
        """Replace the checkpoint of a spool, in one step and durably.

        Raises
        ------
        StoreError
            The folder cannot be written.
        """
        with replacing(folder / CHECKPOINT) as temporary:
            temporary.write_text(json.dumps(asdict(self), default=datetime.isoformat, indent=2) + "\n")
