"""Receiver: writes the events of one connection to the spool, in its own thread."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from ingest.binlog.events.types import FORMAT_DESCRIPTION, ROTATE, STOP
from ingest.binlog.packets import Run, Special
from ingest.errors import BrokenStreamError
from ingest.follow.checkpoint import Checkpoint, ServerEnd
from ingest.follow.spool import ReceivedFile, Spool
from ingest.sources.servers.address import ServerAddress
from ingest.sources.servers.replication import (
    POSITION_LIMIT,
    Replica,
    ReplicationStream,
    rotate_event_target,
    stream_format,
)
from ingest.warehouse.segments import FIRST_EVENT

SYNC_SECONDS: Final = 1.0
WAIT_SECONDS: Final = 0.1


class Receiver:
    """Receives from the end of the spool, until `stop` is called or the connection breaks.

    Parameters
    ----------
    spool
        Spool to write to; nothing else may write to it at the same time.
    address, replica
        The server, and the replica that binloom registers as.
    standing
        Where to continue: epoch, file, position and server. A file that is not in the spool is started.
    on_change
        Function that is called after each sync, and when the thread ends.

    Attributes
    ----------
    failure
        Error that ended the thread, None while it is running and after `stop`.
    server_end
        End of the server's log. The caller sets it after asking the server; it is written to the checkpoint.
    bytes_received
        Number of bytes received over the connection.
    """

    def __init__(
        self,
        spool: Spool,
        address: ServerAddress,
        replica: Replica,
        standing: Checkpoint,
        on_change: Callable[[], None],
    ) -> None:
        self.failure: Exception | None = None
        self.server_end: ServerEnd | None = standing.server
        self.bytes_received = 0
        self._spool = spool
        self._address = address
        self._replica = replica
        self._standing = standing
        self._on_change = on_change
        self._stop = threading.Event()
        self._file: ReceivedFile | None = None
        self._next_file = standing.binlog_file
        self._is_ended = False
        self._is_dirty = True
        self._told_end = self.server_end
        self._received_at = standing.received_at
        self._thread = threading.Thread(target=self._run, name="receive", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether the thread is running."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """End after the last complete transaction received, and wait for the end of the thread."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._receive()
        except OSError as error:
            self.failure = BrokenStreamError(f"The connection to {self._address} broke: {error}.")
        except Exception as error:  # the owner of the receiver raises it
            self.failure = error
        finally:
            if self._file is not None:
                self._file.close()
            self._on_change()

    def _receive(self) -> None:
        position = FIRST_EVENT
        path = self._spool.path(self._standing.epoch, self._standing.binlog_file)
        if path.exists():
            self._file = ReceivedFile(path)
            position = self._file.end
        # The command has no positions beyond 4 GiB: request such a file from its start, and skip the received bytes.
        asked = position if position <= POSITION_LIMIT else FIRST_EVENT
        flavor = self._standing.flavor
        with ReplicationStream(self._address, flavor, self._replica, self._next_file, asked) as stream:
            synced_at = time.monotonic()
            try:
                while not self._stop.is_set():
                    has_come = stream.wait(WAIT_SECONDS)
                    if has_come:
                        self._take(stream)
                        self._received_at, self._is_dirty = datetime.now(UTC), True
                        self.bytes_received = stream.bytes_received
                    is_news = self._is_dirty or self.server_end is not self._told_end
                    if is_news and (not has_come or time.monotonic() - synced_at > SYNC_SECONDS):
                        self._sync()
                        synced_at = time.monotonic()
            finally:
                if self._file is not None:
                    self._file.roll_back()
                    self._sync()

    def _take(self, stream: ReplicationStream) -> None:
        for piece in stream.receive():
            if isinstance(piece, Run):
                if self._file is None or self._is_ended:
                    raise BrokenStreamError(f"The server at {self._address} sent events before it named their file.")
                known = self._file.end - (stream.packets.position - len(piece.data))
                self._file.append(piece.data[known:], piece.sure - known)
            elif piece.code == ROTATE and (piece.is_artificial or not piece.end_position):
                self._turn_to(rotate_event_target(piece, self._address), stream)
            elif piece.code == FORMAT_DESCRIPTION:
                self._begin(piece, stream)
            elif piece.code in (ROTATE, STOP) and not piece.is_artificial:
                self._end(piece, stream)
            # All other special events are artificial: heartbeats, and MariaDB's GTID list.

    def _turn_to(self, binlog_file: str, stream: ReplicationStream) -> None:
        """Handle the start of a file from the server: the requested file, or the next one."""
        if self._file is not None and self._file.path.name == binlog_file:
            return
        if self._file is not None:
            # After a crash, MySQL clears the in-use flag of the open file when it restarts; MariaDB does not.
            if self._standing.flavor == "mysql":
                self._file.mark_closed()
            self._file.roll_back()
            self._sync()
            self._file.close()
            self._file = None
        self._next_file = binlog_file
        self._is_ended = False
        stream.packets.position = FIRST_EVENT

    def _begin(self, event: Special, stream: ReplicationStream) -> None:
        """Handle a format description: real at the start of a file, or artificial for a file that is continued."""
        format = stream_format(event, self._next_file, self._address)
        if format.has_checksums and not event.has_checksum:
            raise BrokenStreamError(
                f"The format description of {self._next_file} was changed on the way from the server."
            )
        stream.packets.has_checksums = format.has_checksums
        if self._file is not None:
            if event.end_position:
                stream.packets.position = event.end_position
            return
        if event.end_position != FIRST_EVENT + len(event.event):
            raise BrokenStreamError(f"The server at {self._address} did not send {self._next_file} from its beginning.")
        path = self._spool.path(self._standing.epoch, self._next_file)
        self._file = ReceivedFile.begin(path, event.event)
        stream.packets.position = self._file.end

    def _end(self, event: Special, stream: ReplicationStream) -> None:
        """Handle the event that ends a file."""
        end = stream.packets.position + len(event.event)
        if self._file is None or event.end_position != end & POSITION_LIMIT:
            raise BrokenStreamError(
                f"The last event of {self._next_file} is not at the position that its header gives.", position=end
            )
        self._file.append(event.event, len(event.event))
        self._file.mark_closed()
        stream.packets.position = end
        self._is_ended = True

    def _sync(self) -> None:
        if self._file is None:
            return
        self._file.sync()
        self._is_dirty = False
        self._told_end = self.server_end
        self._spool.write_checkpoint(
            replace(
                self._standing,
                binlog_file=self._file.path.name,
                position=self._file.synced,
                received_at=self._received_at,
                server=self._told_end,
            )
        )
        self._on_change()
