"""A part of a server's log, read from the server as a replica does, into files without a name.

The bytes get the offsets that they have on the server. In front of them is the format description, and a hole. The
values of rows vanish with the process, however that ends.
"""

import os
import time
from typing import Final
from weakref import finalize

from ingest.binlog.byte_files import Bytes, FileBytes, StoredFile
from ingest.binlog.events.format import MAGIC
from ingest.binlog.events.types import FORMAT_DESCRIPTION, ROTATE, STOP
from ingest.binlog.packets import Run, Special
from ingest.errors import BrokenStreamError, SourceError
from ingest.sources.files.spill import nameless_file, temporary_folder
from ingest.sources.servers.address import ServerAddress
from ingest.sources.servers.information_schema import Position
from ingest.sources.servers.replication import (
    FIRST_POSITION,
    POSITION_LIMIT,
    Replica,
    ReplicationStream,
    rotate_event_target,
    stream_format,
)
from ingest.sources.servers.server import ServerIdentity

MOST_BYTES: Final = 1 << 30
ARRIVAL_SECONDS: Final = 60.0
"""A server that sends no event for this long does not have the part that it named."""


class LogPart(StoredFile):
    """A range of a file of the server's log.

    Attributes
    ----------
    start, end
        Its offsets; `end` is None at the end of the file.
    """

    def __init__(self, name: str, address: ServerAddress, start: int, end: int | None) -> None:
        super().__init__(name, f"{name} of the server at {address}")
        self.start, self.end = start, end
        self._descriptor = nameless_file(temporary_folder())
        finalize(self, os.close, self._descriptor)

    def open(self) -> Bytes:
        return FileBytes(os.dup(self._descriptor))

    def write(self, data: bytes | memoryview, offset: int) -> None:
        """Write bytes at their offset."""
        while data:
            count = os.pwrite(self._descriptor, data, offset)
            data, offset = data[count:], offset + count


def log_between(address: ServerAddress, identity: ServerIdentity, begin: Position, end: Position) -> list[LogPart]:
    """Read the log of a server between two of its positions.

    Raises
    ------
    AccessRefusedError
        The user lacks the privilege to read the log.
    SourceError
        The connection broke, the part is too large, or the disk is full.
    """
    receiving = _Receiving(address, begin, end)
    # The command that asks for a stream has no positions beyond 4 GiB.
    asked = begin[1] if begin[1] <= POSITION_LIMIT else FIRST_POSITION
    with ReplicationStream(address, identity.flavor, Replica.drawn(), begin[0], asked) as stream:
        try:
            receiving.receive(stream)
        except OSError as error:
            raise SourceError(
                f"The log of the server at {address} cannot be written to {temporary_folder()}: {error.strerror}.",
                hint="Free some space there, or let TMPDIR name a folder of a disk that has enough.",
            ) from None
    return receiving.parts


class _Receiving:
    def __init__(self, address: ServerAddress, begin: Position, end: Position) -> None:
        self.parts: list[LogPart] = []
        self._address = address
        self._begin, self._end = begin, end
        self._name = begin[0]
        self._part: LogPart | None = None
        self._bytes = 0

    def receive(self, stream: ReplicationStream) -> None:
        """Read up to the end of the part."""
        until = time.monotonic() + ARRIVAL_SECONDS
        while not self._is_complete(stream):
            before = stream.packets.position
            for piece in stream.receive():
                self._take(piece, stream)
                if self._is_complete(stream):
                    break
            if stream.packets.position != before:
                until = time.monotonic() + ARRIVAL_SECONDS
            elif time.monotonic() > until:
                raise BrokenStreamError(
                    f"The server at {self._address} does not send its log up to {self._end[0]}:{self._end[1]}.",
                    hint="Try again.",
                )

    def _is_complete(self, stream: ReplicationStream) -> bool:
        return self._part is not None and self._name == self._end[0] and stream.packets.position >= self._end[1]

    def _take(self, piece: Run | Special, stream: ReplicationStream) -> None:
        if isinstance(piece, Run):
            self._write(piece.data, stream.packets.position - len(piece.data))
        elif piece.code == ROTATE and (piece.is_artificial or not piece.end_position):
            name = rotate_event_target(piece, self._address)
            if name != self._name:
                self._name, self._part = name, None
                stream.packets.position = FIRST_POSITION
        elif piece.code == FORMAT_DESCRIPTION:
            self._open(piece, stream)
        elif piece.code in (ROTATE, STOP) and not piece.is_artificial:
            self._write(piece.event, stream.packets.position)
            stream.packets.position += len(piece.event)

    def _open(self, event: Special, stream: ReplicationStream) -> None:
        stream.packets.has_checksums = stream_format(event, self._name, self._address).has_checksums
        if event.end_position:
            stream.packets.position = event.end_position
        if self._part is not None:
            return
        is_first, is_last = self._name == self._begin[0], self._name == self._end[0]
        start = self._begin[1] if is_first else FIRST_POSITION
        self._part = LogPart(self._name, self._address, start, self._end[1] if is_last else None)
        self.parts.append(self._part)
        self._write(MAGIC + event.event, 0)

    def _write(self, data: bytes | memoryview, offset: int) -> None:
        if self._part is None:
            raise BrokenStreamError(f"The server at {self._address} sent events before it named their file.")
        self._bytes += len(data)
        if self._bytes > MOST_BYTES:
            raise SourceError(
                f"The server at {self._address} wrote more than {MOST_BYTES >> 30} GiB of log while a snapshot began.",
                hint="Start the baseline again when no such large transaction runs.",
            )
        self._part.write(data, offset)
