"""Reads the fields of an event's body, never beyond its end."""

from collections.abc import Iterator
from typing import Final

_PACKED_SIZES: Final = {252: 2, 253: 3, 254: 8}


class MalformedEventError(ValueError):
    """The bytes of an event contradict themselves."""


class Reader:
    """Reads fields from bytes one after the other; raises `MalformedEventError` when a field ends beyond the bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    @property
    def left(self) -> int:
        """Number of bytes that have not been read."""
        return len(self.data) - self.at

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes."""
        if not 0 <= size <= self.left:
            raise MalformedEventError(f"a field of {size} bytes at {self.at} ends behind the event")
        self.at += size
        return self.data[self.at - size : self.at]

    def rest(self) -> bytes:
        """Return all remaining bytes."""
        return self.take(self.left)

    def byte(self) -> int:
        """Return one byte as a number."""
        return self.take(1)[0]

    def number(self, size: int) -> int:
        """Return an unsigned number of `size` bytes, lowest byte first."""
        return int.from_bytes(self.take(size), "little")

    def packed(self) -> int:
        """Return a length-encoded integer: one byte up to 250, else 2, 3 or 8 bytes after 252, 253 or 254."""
        first = self.byte()
        if first < 251:
            return first
        if first not in _PACKED_SIZES:
            raise MalformedEventError(f"{first:#x} is not a length")
        return self.number(_PACKED_SIZES[first])

    def numbered(self) -> "Iterator[tuple[int, Reader]]":
        """Yield fields that have a number and a size each, up to number 0, which is read too."""
        while number := self.packed():
            yield number, Reader(self.take(self.packed()))

    def until_zero(self) -> bytes:
        """Return the bytes up to a zero byte, which is read too."""
        end = self.data.find(0, self.at)
        if end < 0:
            raise MalformedEventError(f"a text at {self.at} has no end")
        return self.take(end + 1 - self.at)[:-1]
