"""Bloom filters of Parquet files. A look-up here reads 32 bytes of a filter; an engine reads all of it.

The format is Parquet's split block bloom filter: https://parquet.apache.org/docs/file-format/bloomfilter/
"""

import struct
from typing import Final

_MASK: Final = (1 << 64) - 1
_PRIMES: Final = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
)
SALTS: Final = (
    *(0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D),
    *(0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31),
)
_BLOCK: Final = struct.Struct("<8I")
# Thrift: the size in bytes is field 1; the algorithm, the hash and the compression are the only ones that exist.
_SIZE_FIELD: Final = 0x15
_ALGORITHMS: Final = bytes.fromhex("1c1c00001c1c00001c1c000000")

HEADER_BYTES: Final = 32
"""At least as long as the header of a filter."""

HASHED_BYTES: Final = 64
"""Length of the values that `hash_of` takes."""


def hash_of(value: bytes) -> int:
    """Return the XXH64 of a value of `HASHED_BYTES`, with seed 0: of `pk_hash`, which is the SHA-256 in hex."""
    one, two, three, four = _PRIMES
    sums = [(one + two) & _MASK, two, 0, -one & _MASK]
    words = struct.unpack("<8Q", value)
    for start in (0, 4):
        for lane in range(4):
            sums[lane] = _rotated((sums[lane] + words[start + lane] * two) & _MASK, 31) * one & _MASK
    found = sum(_rotated(each, turns) for each, turns in zip(sums, (1, 7, 12, 18), strict=True)) & _MASK
    for each in sums:
        found = ((found ^ _rotated(each * two & _MASK, 31) * one & _MASK) * one + four) & _MASK
    found = (found + HASHED_BYTES) & _MASK
    found = (found ^ found >> 33) * two & _MASK
    found = (found ^ found >> 29) * three & _MASK
    return found ^ found >> 32


def place_of_block(header: bytes, hashed: int) -> int | None:
    """Return how far behind the start of its filter the block of a hash is; None if the header is not understood.

    Parameters
    ----------
    header
        The first `HEADER_BYTES` of the filter.
    """
    if not header or header[0] != _SIZE_FIELD:
        return None
    # The size is a number in 7 bits a byte, and in zigzag order.
    size, at = 0, 1
    while at < len(header):
        byte = header[at]
        size |= (byte & 0x7F) << (7 * (at - 1))
        at += 1
        if byte < 0x80:
            break
    size >>= 1
    if size == 0 or size % _BLOCK.size or not header[at:].startswith(_ALGORITHMS):
        return None
    return at + len(_ALGORITHMS) + ((hashed >> 32) * (size // _BLOCK.size) >> 32) * _BLOCK.size


def may_contain(block: bytes, hashed: int) -> bool:
    """Return whether the values behind a filter may contain that of a hash, by the block of the hash."""
    low = hashed & 0xFFFFFFFF
    return len(block) < _BLOCK.size or all(
        word >> ((low * salt & 0xFFFFFFFF) >> 27) & 1 for word, salt in zip(_BLOCK.unpack(block), SALTS, strict=True)
    )


BLOCK_BYTES: Final = _BLOCK.size
"""Length of a block."""


def _rotated(number: int, turns: int) -> int:
    return (number << turns | number >> (64 - turns)) & _MASK
