"""Checkpoint of a followed server: how far its log is received, in `checkpoint.json` beside the spool files."""

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
    """Return the folder of a source's spool."""
    name = escape(source_id)
    # `.` and `..` are existing folders.
    return home / "spool" / (name.replace(".", "%2E") if name in (".", "..") else name)


@dataclass(frozen=True)
class ServerEnd:
    """The end of a server's log, as the server last reported it.

    Attributes
    ----------
    binlog_file, position
        Position of the end, as SHOW BINARY LOG STATUS reports it.
    gtids
        GTID set of everything that the server has logged, None without GTIDs.
    observed_at
        When the server was asked, UTC.
    bytes_ahead
        Bytes between the end of the received log at that time and this end.
    """

    binlog_file: str
    position: int
    gtids: str | None
    observed_at: datetime
    bytes_ahead: int


@dataclass(frozen=True)
class Checkpoint:
    """The position up to which a server's log is received and synced to the spool.

    Attributes
    ----------
    epoch
        Epoch of the source that the server's files belong to.
    binlog_file, position
        End of the last complete transaction that is synced.
    server_uuid, server_id, flavor, server_version, host, port
        The server that sent the log.
    received_at
        When the last byte or heartbeat arrived, UTC.
    server
        End of the server's log, None until the server is asked for it the first time.
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
        """Return whether the log is received up to a position in the same epoch."""
        return log_place(self.binlog_file, self.position) >= log_place(binlog_file, position)

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """Return the checkpoint of a spool, None when nothing was received yet.

        Raises
        ------
        StoreError
            The file exists but cannot be read, or was not written by `write`.
        """
        path = folder / CHECKPOINT
        try:
            return cls._of(json.loads(path.read_bytes()))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise StoreError(
                f"{path} cannot be read: {error}.",
                hint="Restore the file, or move the folder away: following then continues after the landed events.",
                path=str(path),
            ) from error

    @classmethod
    def _of(cls, values: Mapping[str, Any]) -> Self:
        server = values["server"]
        return cls(
            **{
                **values,
                "received_at": datetime.fromisoformat(values["received_at"]),
                "server": server
                and ServerEnd(**{**server, "observed_at": datetime.fromisoformat(server["observed_at"])}),
            }
        )

    def write(self, folder: Path) -> None:
        """Replace the checkpoint of a spool, atomically and durably.

        Raises
        ------
        StoreError
            The folder cannot be written.
        """
        with replacing(folder / CHECKPOINT) as temporary:
            temporary.write_text(json.dumps(asdict(self), default=datetime.isoformat, indent=2) + "\n")
