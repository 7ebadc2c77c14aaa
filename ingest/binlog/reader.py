"""Reading the fields of an event's body, never behind its end."""

from collections.abc import Iterator
from typing import Final

_PACKED_SIZES: Final = {252: 2, 253: 3, 254: 8}


class MalformedEventError(ValueError):
    """The bytes of an event contradict themselves."""


class Reader:
    """Takes fields from bytes one after the other; `MalformedEventError` where one ends behind them."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    @property
    def left(self) -> int:
        """Bytes that have not been taken."""
        return len(self.data) - self.at

    def take(self, size: int) -> bytes:
        """The next `size` bytes."""
        if not 0 <= size <= self.left:
            raise MalformedEventError(f"a field of {size} bytes at {self.at} ends behind the event")
        self.at += size
        return self.data[self.at - size : self.at]

    def rest(self) -> bytes:
        """All that is left."""
        return self.take(self.left)

    def byte(self) -> int:
        """One byte as a number."""
        return self.take(1)[0]

    def number(self, size: int) -> int:
        """An unsigned number of `size` bytes, lowest first."""
        return int.from_bytes(self.take(size), "little")

    def packed(self) -> int:
        """A length-encoded integer: one byte up to 250, else 2, 3 or 8 bytes behind 252, 253 or 254."""
        first = self.byte()
        if first < 251:
            return first
        if first not in _PACKED_SIZES:
            raise MalformedEventError(f"{first:#x} is not a length")
        return self.number(_PACKED_SIZES[first])

    def numbered(self) -> "Iterator[tuple[int, Reader]]":
        """Fields with a number and a size each, up to number 0, which is taken too."""
        while number := self.packed():
            yield number, Reader(self.take(self.packed()))

    def until_zero(self) -> bytes:
        """Bytes up to a zero byte, which is taken too."""
        end = self.data.find(0, self.at)
        if end < 0:
            raise MalformedEventError(f"a text at {self.at} has no end")
        return self.take(end + 1 - self.at)[:-1]
