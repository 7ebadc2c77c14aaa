"""Makes damaged binlog files, event by event, from a real server's files."""

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Self

from tests.support.landing.binlogs import IN_USE, MAGIC

FORMAT_DESCRIPTION, XID, QUERY, INCIDENT, WRITE_ROWS = 15, 16, 2, 26, (23, 30)
GTIDS = (33, 42, 162)

Files = dict[str, bytes]


@dataclass(frozen=True)
class Event:
    """A whole event of a file with checksums."""

    data: bytes

    @property
    def code(self) -> int:
        return self.data[4]

    def moved(self, end: int, seconds: int = 0) -> Self:
        """Return the event as its server would write it elsewhere: another end and time, a correct checksum."""
        head = bytearray(self.data)
        (at,) = struct.unpack_from("<I", head, 0)
        (flags,) = struct.unpack_from("<H", head, 17)
        struct.pack_into("<I", head, 0, at + seconds if at else 0)
        struct.pack_into("<I", head, 13, end)
        # The checksum of a format description is computed without the in-use flag.
        in_use = flags & IN_USE if self.code == FORMAT_DESCRIPTION else 0
        struct.pack_into("<H", head, 17, flags ^ in_use)
        struct.pack_into("<I", head, len(head) - 4, zlib.crc32(bytes(head[:-4])))
        struct.pack_into("<H", head, 17, flags)
        return replace(self, data=bytes(head))


def events(data: bytes) -> list[Event]:
    """Yield the events of a file."""
    return list(_events(data))


def _events(data: bytes) -> Iterator[Event]:
    at = MAGIC
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at + 9)
        yield Event(data[at : at + size])
        at += size


def as_is(parts: Iterable[Event]) -> bytes:
    """Return a file of events that keep their old positions."""
    return b"\xfebin" + b"".join(event.data for event in parts)


def written(parts: Iterable[Event], seconds: int = 0) -> bytes:
    """Return a file of events as a server would have written it, with correct positions and checksums."""
    data = b"\xfebin"
    for event in parts:
        data += event.moved(len(data) + len(event.data), seconds).data
    return data


def transactions(parts: list[Event]) -> list[tuple[int, int]]:
    """Return the first event and the end (exclusive) of each transaction with rows."""
    starts = [place for place, event in enumerate(parts) if event.code in GTIDS]
    ends = [place + 1 for place, event in enumerate(parts) if event.code == XID]
    return [(max(start for start in starts if start < end), end) for end in ends]


def without(parts: list[Event], first: int, last: int) -> list[Event]:
    """Return the events without those from one index up to another."""
    return parts[:first] + parts[last:]


def incident(message: str) -> Event:
    """Return LOST_EVENTS: a server writes it to report lost events after it failed to write its log."""
    body = struct.pack("<HB", 1, len(message)) + message.encode()
    return Event(struct.pack("<IBIIIH", 1_793_534_400, INCIDENT, 1, 19 + len(body) + 4, 0, 0) + body + bytes(4))


def each(files: Files, change: Callable[[bytes], bytes], names: Iterable[str] | None = None) -> Files:
    """Return the files, with some or all of them changed."""
    chosen = set(files if names is None else names)
    return {name: change(data) if name in chosen else data for name, data in files.items()}
