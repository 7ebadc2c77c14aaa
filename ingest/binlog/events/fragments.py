"""Rows events that MariaDB (12.3 and later) wrote in fragments, as PARTIAL_ROW_DATA events.

A fragment has the number of fragments and its own number, from 1 on (4 bytes each), flags (1), in the first fragment
the size of the whole (8), and a part of the rows event, whose header is in the first fragment. The fragments of an
event follow each other without another event between them. Source: MariaDB, MDEV-32570, `Partial_rows_log_event`.
"""

import zlib
from dataclasses import dataclass, field
from typing import Any, Final

from ingest.binlog.events.format import HEADER_SIZE, FormatDescription
from ingest.binlog.events.reader import MalformedEventError, Reader
from ingest.binlog.events.types import PARTIAL_ROW_DATA, ROWS_COMPRESSED

_HAS_SIZE: Final = 1
_MOST_BYTES: Final = (1 << 32) - 1
_ROWS: Final = frozenset({23, 24, 25, 30, 31, 32, *ROWS_COMPRESSED})


@dataclass(frozen=True, slots=True)
class Fragment:
    """A fragment: its number, the number of fragments, the size of the whole event if it is the first, its part."""

    number: int
    count: int
    size: int | None
    part: bytes

    @classmethod
    def of(cls, body: bytes) -> "Fragment":
        """Read a fragment from the body of its event; raise `MalformedEventError` if it is none."""
        reader = Reader(body)
        # Descriptions differ in which of the two comes first. The number of a fragment is never above their count.
        number, count = sorted((reader.number(4), reader.number(4)))
        size = reader.number(8) if reader.byte() & _HAS_SIZE else None
        if number < 1 or (size is not None and size > _MOST_BYTES):
            raise MalformedEventError(f"fragment {number} of {count}, of an event of {size} bytes")
        return cls(number, count, size, reader.rest())


def describe_fragment(body: bytes) -> dict[str, Any]:
    """Describe a PARTIAL_ROW_DATA event for a listing."""
    found = Fragment.of(body)
    sizes = {} if found.size is None else {"rows_event_bytes": found.size}
    return {"fragment": found.number, "fragments": found.count, **sizes, "bytes": len(found.part)}


@dataclass(slots=True)
class Fragments:
    """The fragments so far of a rows event. `start` is the offset of the first; None between two rows events.

    Memory grows with the bytes that are there, never with a size that a fragment announces.
    """

    start: int | None = None
    _first: Fragment | None = None
    _parts: list[bytes] = field(default_factory=list)
    _end: int = -1

    def add(self, event: bytes, position: int, next_code: int | None, format: FormatDescription) -> bytes | None:
        """Take in the fragment at an offset. Return the rows event, without checksum, if this is its last one.

        Parameters
        ----------
        event
            The whole event of the fragment.
        position
            Its physical offset.
        next_code
            The type of the event behind it; None when there is none.
        format
            The format in force.

        Raises
        ------
        MalformedEventError
            The fragment does not follow on the one before it, none follows on it, or they do not add up to a rows
            event.
        """
        tail = 4 if format.has_checksums else 0
        fragment = Fragment.of(event[format.header_size : len(event) - tail])
        first = self._first
        if fragment.number == 1 and first is None:
            first = self._first = fragment
            self.start = position
        follows = first is not None and (not self._parts or self._end == position)
        is_due = fragment.number == len(self._parts) + 1
        if first is None or not follows or not is_due or fragment.count != first.count:
            raise MalformedEventError(f"fragment {fragment.number} is not the next one")
        self._parts.append(fragment.part)
        self._end = position + len(event)
        if fragment.number < first.count:
            if next_code != PARTIAL_ROW_DATA:
                raise MalformedEventError(f"fragment {fragment.number + 1} is missing")
            return None
        return _rows_event(b"".join(self._parts), first.size, format)

    def end(self) -> None:
        """Forget the fragments: they became a rows event, or cannot become one."""
        self.start, self._first, self._end = None, None, -1
        self._parts = []


def _rows_event(data: bytes, size: int | None, format: FormatDescription) -> bytes:
    if size not in (None, len(data)) or not format.header_size <= len(data) <= _MOST_BYTES:
        raise MalformedEventError(f"the fragments have {len(data)} bytes, and the rows event has {size}")
    if format.type_codes[data[4]] not in _ROWS or format.header_size < HEADER_SIZE:
        raise MalformedEventError(f"the fragments hold an event of type {data[4]}, which has no rows")
    if format.has_checksums and zlib.crc32(data[:-4]) == int.from_bytes(data[-4:], "little"):
        data = data[:-4]
    return data[:9] + len(data).to_bytes(4, "little") + data[13:]
