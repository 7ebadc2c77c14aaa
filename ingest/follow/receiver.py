"""Receiving: the events of one connection into the spool, on a thread of its own."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from ingest.binlog.events import FORMAT_DESCRIPTION, ROTATE, STOP
from ingest.binlog.packets import Run, Special
from ingest.errors import BrokenStreamError
from ingest.follow.checkpoint import Checkpoint, ServerEnd
from ingest.follow.spool import FIRST_EVENT, ReceivedFile, Spool
from ingest.sources.address import ServerAddress
from ingest.sources.replication import (
    POSITION_LIMIT,
    Replica,
    ReplicationStream,
    rotate_event_target,
    stream_format,
)

SYNC_SECONDS: Final = 1.0
WAIT_SECONDS: Final = 0.1


class Receiver:
    """Receives from where the spool ends, until it is told to stop or the connection breaks.

    Parameters
    ----------
    spool
        Where the events go; nobody else writes there meanwhile.
    address, replica
        The server, and who asks.
    standing
        Where to go on: epoch, file and position, and whose log it is. A file that the spool does not have is begun.
    on_change
        Called after each sync, and when the thread ends.

    Attributes
    ----------
    failure
        Why the thread ended, None while it is at work and when it was told to stop.
    server_end
        The end of the server's log, set by whoever asks the server; it goes into the checkpoint.
    bytes_received
        Bytes that came over the connection.
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
        """Begin."""
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether it is at work."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """End at the last complete transaction that came, and wait for it."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._receive()
        except OSError as error:
            self.failure = BrokenStreamError(f"The connection to {self._address} broke: {error}.")
        except Exception as error:  # whoever asks for the failure raises it
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
        # The command cannot say a position beyond 4 GiB: such a file is sent again, and what is there is passed over.
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
                    raise BrokenStreamError(f"The server at {self._address} sent events before it said of which file.")
                known = self._file.end - (stream.packets.position - len(piece.data))
                self._file.append(piece.data[known:], piece.sure - known)
            elif piece.code == ROTATE and (piece.is_artificial or not piece.end_position):
                self._turn_to(rotate_event_target(piece, self._address), stream)
            elif piece.code == FORMAT_DESCRIPTION:
                self._begin(piece, stream)
            elif piece.code in (ROTATE, STOP) and not piece.is_artificial:
                self._end(piece, stream)
            # What is left is made up for replicas: heartbeats, and MariaDB's list of GTIDs.

    def _turn_to(self, binlog_file: str, stream: ReplicationStream) -> None:
        """The server begins to send a file: the one that was asked for, or the next."""
        if self._file is not None and self._file.path.name == binlog_file:
            return
        if self._file is not None:
            # MySQL clears the flag of a file that a crash left open, when it starts again; MariaDB does not.
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
        """Take a format description: of a file that begins, or made up of the one that is gone on with."""
        format = stream_format(event, self._next_file, self._address)
        if format.has_checksums and not event.has_checksum:
            raise BrokenStreamError(f"The format description of {self._next_file} was changed on its way.")
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
        """Take the event that ends a file."""
        end = stream.packets.position + len(event.event)
        if self._file is None or event.end_position != end & POSITION_LIMIT:
            raise BrokenStreamError(f"The end of {self._next_file} does not stand where it says.", position=end)
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
