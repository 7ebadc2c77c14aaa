"""A part of a server's log, read from the server as a replica does, into files of this machine.

The bytes get the offsets that they have on the server. In front of them is the format description, and a hole.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from ingest.binlog.events import FORMAT_DESCRIPTION, ROTATE, STOP
from ingest.binlog.format import MAGIC
from ingest.binlog.packets import Run, Special
from ingest.errors import BrokenStreamError, SourceError
from ingest.sources.information_schema import Position
from ingest.sources.replication import (
    FIRST_POSITION,
    POSITION_LIMIT,
    Replica,
    ReplicationStream,
    rotate_event_target,
    stream_format,
)
from ingest.sources.server import Server, ServerIdentity

MOST_BYTES: Final = 1 << 30
ARRIVAL_SECONDS: Final = 60.0
"""A server that sends no event for this long does not have the part that it named."""


@dataclass(frozen=True)
class LogPart:
    """A range of a file of the server's log: its copy has the file's name and offsets; `end` is None at the file's."""

    path: Path
    start: int
    end: int | None


@contextmanager
def log_between(server: Server, identity: ServerIdentity, begin: Position, end: Position) -> Iterator[list[LogPart]]:
    """Read the log of a server between two of its positions; the files exist while the block runs.

    Raises
    ------
    AccessRefusedError
        The user lacks the privilege to read the log.
    SourceError
        The connection broke, or the part is too large.
    """
    with TemporaryDirectory(prefix="binloom-") as folder:
        receiving = _Receiving(server, Path(folder), begin, end)
        # The command that asks for a stream has no positions beyond 4 GiB.
        asked = begin[1] if begin[1] <= POSITION_LIMIT else FIRST_POSITION
        try:
            with ReplicationStream(server.address, identity.flavor, Replica.drawn(), begin[0], asked) as stream:
                receiving.receive(stream)
        finally:
            receiving.close()
        yield receiving.parts


class _Receiving:
    def __init__(self, server: Server, folder: Path, begin: Position, end: Position) -> None:
        self.parts: list[LogPart] = []
        self._address = server.address
        self._folder = folder
        self._begin, self._end = begin, end
        self._name = begin[0]
        self._descriptor = -1
        self._bytes = 0

    def close(self) -> None:
        """Close the file that is being written."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

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
        return self._descriptor >= 0 and self._name == self._end[0] and stream.packets.position >= self._end[1]

    def _take(self, piece: Run | Special, stream: ReplicationStream) -> None:
        if isinstance(piece, Run):
            self._write(piece.data, stream.packets.position - len(piece.data))
        elif piece.code == ROTATE and (piece.is_artificial or not piece.end_position):
            name = rotate_event_target(piece, self._address)
            if name != self._name:
                self.close()
                self._name = name
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
        if self._descriptor >= 0:
            return
        path = self._folder / self._name
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._write(MAGIC + event.event, 0)
        is_first, is_last = self._name == self._begin[0], self._name == self._end[0]
        start = self._begin[1] if is_first else FIRST_POSITION
        self.parts.append(LogPart(path, start, self._end[1] if is_last else None))

    def _write(self, data: bytes | memoryview, offset: int) -> None:
        if self._descriptor < 0:
            raise BrokenStreamError(f"The server at {self._address} sent events before it named their file.")
        self._bytes += len(data)
        if self._bytes > MOST_BYTES:
            raise SourceError(
                f"The server at {self._address} wrote more than {MOST_BYTES >> 30} GiB of log while a snapshot began.",
                hint="Start the baseline again when no such large transaction runs.",
            )
        while data:
            count = os.pwrite(self._descriptor, data, offset)
            data, offset = data[count:], offset + count
