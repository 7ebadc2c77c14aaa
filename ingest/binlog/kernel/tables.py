"""Look-up tables of the kernel."""

import numpy as np

_POLYNOMIAL = 0xEDB88320
"""CRC-32 of zlib, lowest bit first."""


def slicing_tables() -> np.ndarray:
    """Return the eight look-up tables of slicing-by-8: uint32, shape (8, 256)."""
    tables = np.zeros((8, 256), dtype=np.uint32)
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        tables[0, byte] = value
    for k in range(1, 8):
        previous = tables[k - 1]
        tables[k] = (previous >> 8) ^ tables[0][previous & 0xFF]
    return tables


POWERS_FIRST = -330
_POWERS_LAST = 330
PLAIN_POWERS = (_POWERS_LAST - POWERS_FIRST + 1) * 16


def powers_of_ten() -> np.ndarray:
    """Return 128-bit powers of ten for `shortest`, then 10**0 to 10**17: int64 bits, shape (670, 2).

    Entry k - POWERS_FIRST is 10**k scaled to 128 bits with the top bit set, rounded up; its high word is first. The
    plain numbers begin at the byte PLAIN_POWERS.
    """
    table = np.zeros((_POWERS_LAST - POWERS_FIRST + 1, 2), dtype=np.uint64)
    for k in range(POWERS_FIRST, _POWERS_LAST + 1):
        numerator, denominator = (10**k, 1) if k >= 0 else (1, 10**-k)
        shift = 127 - _floor_log2_pow10(k)
        scaled = numerator << shift if shift >= 0 else numerator
        below = denominator if shift >= 0 else denominator << -shift
        value = -(-scaled // below)
        table[k - POWERS_FIRST] = (value >> 64, value & 0xFFFFFFFFFFFFFFFF)
    plain = np.array([10**k for k in range(18)], dtype=np.uint64).reshape(9, 2)
    return np.concatenate([table, plain]).view(np.int64)


def _floor_log2_pow10(exponent: int) -> int:
    return (exponent * 1741647) >> 19
