"""A server's replication stream: from bytes of the socket to the events of its binlog file.

Events of the file come out in runs of whole, verified events, in the order of the stream. Events that end or begin a
file come one by one, and so do events that the server makes up for its replicas.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from ingest.binlog.buffers import CRC_TABLES
from ingest.binlog.events.format import HEADER_SIZE
from ingest.binlog.events.types import FORMAT_DESCRIPTION
from ingest.binlog.kernel import packet_layout as kernel
from ingest.binlog.kernel import unpack, verify
from ingest.binlog.kernel.guard import address_of
from ingest.binlog.kernel.layout import PADDING
from ingest.errors import BrokenStreamError

SOURCE_BYTES: Final = 1 << 20
EVENTS_BYTES: Final = 4 << 20
EVENT_LIMIT: Final = (1 << 30) + 4096
"""An event is no longer than the longest packet, which is 1 GiB: server, MAX_MAX_ALLOWED_PACKET."""

_ARTIFICIAL: Final = 0x20
_CHECKSUM_SIZE: Final = 4
_UNDESCRIBED: Final = -1
_REASONS: Final = {
    _UNDESCRIBED: "events came before the format description, which is needed to read them",
    kernel.MESSAGE: "a packet holds neither an event nor a message",
    kernel.BAD_SEQUENCE: "a packet came out of its turn",
    kernel.BAD_SIZE: "an event is shorter than its header",
    kernel.BAD_CHECKSUM: "the checksum of an event is wrong",
    kernel.BAD_POSITION: "an event is not at the position that its header gives",
}


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive whole events of the file.

    `data` is valid only until the next piece is requested. `sure` is how many of its bytes are confirmed to be at
    their position: the last event in these bytes records where it ends.
    """

    data: memoryview
    sure: int


@dataclass(frozen=True, slots=True)
class Special:
    """One event that ends or begins a file, or is not in the file at all; its checksum, if any, is right."""

    event: bytes

    @property
    def code(self) -> int:
        """Type code."""
        return self.event[4]

    @property
    def is_artificial(self) -> bool:
        """Whether the server made the event up: it is not in the file."""
        return bool(int.from_bytes(self.event[17:19], "little") & _ARTIFICIAL)

    @property
    def end_position(self) -> int:
        """End offset in the file that the event records, modulo 2^32; 0 when it records none."""
        return int.from_bytes(self.event[13:17], "little")

    @property
    def has_checksum(self) -> bool:
        """Whether the event's last four bytes are a checksum of the others."""
        return zlib.crc32(self.event[:-_CHECKSUM_SIZE]) == int.from_bytes(self.event[-_CHECKSUM_SIZE:], "little")

    @property
    def body(self) -> bytes:
        """The bytes between the header and the checksum."""
        return self.event[HEADER_SIZE : -_CHECKSUM_SIZE if self.has_checksum else None]


@dataclass(frozen=True, slots=True)
class Message:
    """A packet without an event: an error (number and text), or the end of the stream (number 0)."""

    number: int
    text: str


class Packets:
    """Splits a replication stream into events.

    Bytes go in through `room` and `received`, events come out of `pieces`. `position` is the offset of the next
    event in the binlog file. `has_checksums` is whether that file's events have checksums. The reader of the pieces
    sets both when a file begins, and `has_checksums` also before the very first event.
    """

    def __init__(self, position: int) -> None:
        self._words = np.zeros(len(kernel.WORDS), dtype=np.int64)
        self._source = np.zeros(SOURCE_BYTES + PADDING, dtype=np.uint8)
        self._events = np.zeros(EVENTS_BYTES + PADDING, dtype=np.uint8)
        self._scratch = np.zeros(16, dtype=np.uint8)
        self._address = address_of(self._words)
        for name, array in (("CRC_TABLES", CRC_TABLES), ("SCRATCH", self._scratch), ("SOURCE", self._source)):
            self._set(name, address_of(array))
        self._point_to_events()
        self._is_described = False
        # The command that started the stream had sequence number 0.
        self._set("SEQUENCE", 1)
        self.position = position

    @property
    def position(self) -> int:
        """Offset in the binlog file of the next event, in bytes."""
        return self._get("POSITION")

    @position.setter
    def position(self, value: int) -> None:
        self._set("POSITION", value)

    @property
    def has_checksums(self) -> bool:
        """Whether events of the file end with a checksum."""
        return bool(self._get("HAS_CHECKSUMS"))

    @has_checksums.setter
    def has_checksums(self, value: bool) -> None:
        self._set("HAS_CHECKSUMS", int(value))
        self._is_described = True

    def room(self) -> memoryview:
        """Return the memory for the next bytes of the socket."""
        at, end = self._get("SOURCE_POS"), self._get("SOURCE_END")
        if at:
            self._source[: end - at] = self._source[at:end].copy()
            self._set("SOURCE_POS", 0)
            self._set("SOURCE_END", end - at)
        return self._source.data[end - at : SOURCE_BYTES]

    def received(self, count: int) -> None:
        """Record how many bytes were written into `room`."""
        self._set("SOURCE_END", self._get("SOURCE_END") + count)

    def pieces(self) -> Iterator[Run | Special | Message]:
        """Yield the pieces that have arrived completely since the last call.

        Raises
        ------
        BrokenStreamError
            When the bytes cannot be what the server sent; none of these bytes was yielded.
        """
        while True:
            unpacked = unpack(self._address)
            yield from self._verified()
            self._make_room()
            if unpacked == kernel.MORE:
                return
            if unpacked == kernel.MESSAGE:
                message = self._message()
                if message is not None:
                    yield message
                return
            if unpacked != kernel.FULL:
                raise self._broken(unpacked)

    def _verified(self) -> Iterator[Run | Special]:
        while True:
            first = self._get("CHECKED")
            self._set("SURE", first)
            status = verify(self._address)
            last = self._get("CHECKED")
            if last > first and not self._is_described:
                raise self._broken(_UNDESCRIBED)
            if last > first:
                yield Run(self._events.data[first:last], self._get("SURE") - first)
            if status == kernel.SPECIAL:
                size = int.from_bytes(self._events[last + 9 : last + 13].tobytes(), "little")
                special = Special(self._events[last : last + size].tobytes())
                # A format description without a checksum may begin a file without checksums.
                if self.has_checksums and not special.has_checksum and special.code != FORMAT_DESCRIPTION:
                    raise self._broken(kernel.BAD_CHECKSUM)
                self._set("CHECKED", last + size)
                yield special
            elif status == kernel.MORE:
                return
            else:
                raise self._broken(status)

    def _make_room(self) -> None:
        """Move incomplete events to the front, and allocate a larger buffer for an event that needs it."""
        first, last = self._get("CHECKED"), self._get("EVENTS_END")
        head = self._events[first + 9 : first + 13].tobytes() if last - first >= HEADER_SIZE else b""
        needed = int.from_bytes(head, "little")
        if needed > EVENT_LIMIT:
            raise self._broken(kernel.BAD_SIZE)
        wanted = max(EVENTS_BYTES, needed) + PADDING
        is_right = wanted <= len(self._events) <= 2 * wanted
        if is_right and not first:
            return
        rest = self._events[first:last].copy()
        if not is_right:
            self._events = np.zeros(wanted, dtype=np.uint8)
            self._point_to_events()
        self._events[: len(rest)] = rest
        self._set("CHECKED", 0)
        self._set("EVENTS_END", len(rest))

    def _message(self) -> Message | None:
        """Return the current packet once it is complete, else None. Source: MySQL's internals manual, "ERR_Packet"."""
        at, end = self._get("SOURCE_POS"), self._get("SOURCE_END")
        packet = self._source[at:end].tobytes()
        size = int.from_bytes(packet[:3], "little")
        if len(packet) < 4 + size:
            return None
        payload = packet[4 : 4 + size]
        if payload[:1] == b"\xff" and size >= 3:
            return Message(int.from_bytes(payload[1:3], "little"), payload[3:].decode("utf-8", "replace"))
        if payload[:1] == b"\xfe" and size < 9:
            return Message(0, "the server ended the stream")
        raise BrokenStreamError(
            f"The replication stream is broken at position {self.position}: a packet holds no event."
        )

    def _broken(self, status: int) -> BrokenStreamError:
        return BrokenStreamError(
            f"The replication stream is broken at position {self.position}: {_REASONS[status]}.",
            position=self.position,
        )

    def _point_to_events(self) -> None:
        self._set("EVENTS", address_of(self._events))
        self._set("EVENTS_SIZE", len(self._events) - PADDING)

    def _get(self, name: str) -> int:
        return int(self._words[kernel.WORDS[name] >> 3])

    def _set(self, name: str, value: int) -> None:
        self._words[kernel.WORDS[name] >> 3] = value
