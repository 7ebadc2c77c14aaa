"""Converts numbers to decimal text: integers, DECIMAL, and shortest round-trip FLOAT and DOUBLE.

Writers take the address to write at and return the address behind the text, or `BAD` when no server writes such bytes.
The caller makes sure of `NUMBER_ROOM` bytes.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc,untyped-decorator"

from numba import njit

from ingest.binlog.kernel.memory import (
    load_64,
    load_64_be,
    load_u8,
    multiply_high,
    shr,
    store_8,
    store_16,
    store_32,
    store_64,
    udiv,
    ult,
    urem,
)
from ingest.binlog.kernel.tables import PLAIN_POWERS, POWERS_FIRST

BAD = -1
NUMBER_ROOM = 80
"""Bytes of the longest number: 65 digits, sign, point, and eight bytes that a wide store may overrun."""

_ASCII_ZEROS = 0x3030303030303030
_TEN_8 = 100_000_000
_TEN_16 = 10_000_000_000_000_000


@njit(forceinline=True)
def eight_digits(value):
    """Return the 8 decimal digits of `value` < 10**8, one digit a byte, the first in the lowest byte."""
    high = udiv(value, 10000)
    x = high | ((value - high * 10000) << 32)
    t = ((x * 10486) >> 20) & 0x0000007F0000007F
    x = t | ((x - 100 * t) << 16)
    t = ((x * 103) >> 10) & 0x000F000F000F000F
    return t | ((x - 10 * t) << 8)


@njit(forceinline=True)
def _write_short(out, value):
    """Write `value` < 10**8 without leading zeros.

    It compares instead of counting the zeros of the digits, so that the next value can start before this value's
    digits are known. A sum of comparisons needs no branch, which lengths that change from row to row would mislead.
    """
    if value < 100:
        return _write_1_or_2(out, value)
    if value < 10_000:
        high = udiv(value, 100)
        x = high | ((value - high * 100) << 16)
        tens = ((x * 103) >> 10) & 0x000F000F
        digits = tens | ((x - 10 * tens) << 8) | 0x30303030
        width = 3 + (value >= 1000)
        store_32(out, shr(digits, (4 - width) << 3))
        return out + width
    width = 5 + (value >= 100_000) + (value >= 1_000_000) + (value >= 10_000_000)
    store_64(out, shr(eight_digits(value) | _ASCII_ZEROS, (8 - width) << 3))
    return out + width


@njit(forceinline=True)
def _write_1_or_2(out, value):
    """Write `value` < 100 with one or two digits."""
    tens = (value * 103) >> 10
    width = 1 + (value >= 10)
    store_16(out, shr(tens | ((value - tens * 10) << 8) | 0x3030, (2 - width) << 3))
    return out + width


@njit(forceinline=True)
def write_2(out, value):
    """Write `value` < 100 with two digits."""
    tens = (value * 103) >> 10
    store_16(out, tens | ((value - tens * 10) << 8) | 0x3030)
    return out + 2


@njit(forceinline=True)
def _write_long(out, value):
    """Write 64 bits as an unsigned number of any length."""
    if ult(value, _TEN_8):
        return _write_short(out, value)
    if ult(value, _TEN_16):
        high = udiv(value, _TEN_8)
        out = _write_short(out, high)
        store_64(out, eight_digits(value - high * _TEN_8) | _ASCII_ZEROS)
        return out + 8
    high = udiv(value, _TEN_16)
    rest = value - high * _TEN_16
    out = _write_short(out, high)
    high = udiv(rest, _TEN_8)
    store_64(out, eight_digits(high) | _ASCII_ZEROS)
    store_64(out + 8, eight_digits(rest - high * _TEN_8) | _ASCII_ZEROS)
    return out + 16


@njit(forceinline=True)
def write_unsigned(out, value):
    """Write the 64 bits of `value` as an unsigned number. Short numbers, the most common, are inlined at the call."""
    if ult(value, 100):
        return _write_1_or_2(out, value)
    return _write_long(out, value)


@njit
def write_signed(out, value):
    """Write a signed number; the lowest int64 is right too, because its negation has the same bits."""
    if value < 0:
        store_8(out, 45)
        return write_unsigned(out + 1, -value)
    return write_unsigned(out, value)


@njit
def write_padded(out, value, width):
    """Write `value` < 10**width with `width` (at most 8) digits."""
    store_64(out, shr(eight_digits(value) | _ASCII_ZEROS, (8 - width) << 3))
    return out + width


@njit(forceinline=True)
def power_of_ten(exponent):
    """Return 10**exponent for 0 <= exponent <= 9."""
    if exponent < 5:
        if exponent < 2:
            return 10 if exponent else 1
        return 100 if exponent == 2 else 1000 if exponent == 3 else 10_000
    if exponent < 7:
        return 100_000 if exponent == 5 else 1_000_000
    return 10_000_000 if exponent == 7 else _TEN_8 if exponent == 8 else 1_000_000_000


@njit
def decimal_bytes(digits):
    """Return the bytes of a DECIMAL group of `digits` (0 to 9) digits: 0 1 1 2 2 3 3 4 4 4."""
    return (digits + 1) >> 1 if digits < 9 else 4


@njit(forceinline=True)
def decimal_size(precision, scale):
    """Return the bytes of a DECIMAL(precision, scale) on the wire (server: decimal_bin_size)."""
    whole = precision - scale
    return udiv(whole, 9) * 4 + decimal_bytes(urem(whole, 9)) + udiv(scale, 9) * 4 + decimal_bytes(urem(scale, 9))


@njit(forceinline=True)
def write_decimal(out, address, precision, scale):
    """Write a DECIMAL: big-endian groups of 9 digits, top bit flipped, negative numbers complemented.

    Source: server, strings/decimal.c, decimal2bin. The integer part loses leading zeros, the fraction keeps all of
    its digits.
    """
    whole = precision - scale
    negative = load_64_be(address) >= 0
    flip = -1 if negative else 0
    if negative:
        store_8(out, 45)
        out += 1
    started = False
    first = True
    left = whole
    size = urem(whole, 9)
    if size == 0 and left > 0:
        size = 9
    while left > 0:
        width = decimal_bytes(size) << 3
        group = shr(load_64_be(address), 64 - width)
        if first:
            group ^= 1 << (width - 1)
            first = False
        group = (group ^ flip) & ((1 << width) - 1)
        if group >= power_of_ten(size):
            return BAD
        if started:
            high = udiv(group, _TEN_8)
            store_8(out, 48 + high)
            out = write_padded(out + 1, group - high * _TEN_8, 8)
        elif group != 0:
            out = write_unsigned(out, group)
            started = True
        address += width >> 3
        left -= size
        size = 9
    if not started:
        store_8(out, 48)
        out += 1
    if scale > 0:
        store_8(out, 46)
        out += 1
    left = scale
    while left > 0:
        size = min(left, 9)
        width = decimal_bytes(size) << 3
        group = shr(load_64_be(address), 64 - width)
        if first:
            group ^= 1 << (width - 1)
            first = False
        group = (group ^ flip) & ((1 << width) - 1)
        if group >= power_of_ten(size):
            return BAD
        if size == 9:
            high = udiv(group, _TEN_8)
            store_8(out, 48 + high)
            out = write_padded(out + 1, group - high * _TEN_8, 8)
        else:
            out = write_padded(out, group, size)
        address += width >> 3
        left -= size
    return out


@njit
def _round_to_odd(high, low, value):
    """Return the top 64 bits of the product of a 128-bit power and `value`; the lowest bit keeps any lost bits."""
    x_high = multiply_high(low, value)
    y_low = high * value
    y_high = multiply_high(high, value)
    middle = y_low + x_high
    if ult(middle, y_low):
        y_high += 1
    return y_high | (1 if ult(1, middle) else 0)


@njit
def shortest(significand, exponent, closer_below, powers):
    """Return the fewest digits that read back as significand * 2**exponent, and their power of ten.

    Schubfach (R. Giulietti, "The Schubfach way to render doubles", 2020). `closer_below` is 1 when the next lower value
    is half as far away as the next higher value (at a power of two).
    """
    inside = 0 if significand & 1 else 1
    k = (exponent * 1262611 - (524031 if closer_below else 0)) >> 22
    h = exponent + ((-k * 1741647) >> 19) + 1
    entry = powers + ((-k - POWERS_FIRST) << 4)
    high, low = load_64(entry), load_64(entry + 8)
    lower = _round_to_odd(high, low, (4 * significand - 2 + closer_below) << h) + (1 - inside)
    value = _round_to_odd(high, low, (4 * significand) << h)
    upper = _round_to_odd(high, low, (4 * significand + 2) << h) - (1 - inside)
    s = shr(value, 2)
    if s >= 10:
        tens = udiv(s, 10)
        up = lower <= 40 * tens
        down = 40 * tens + 40 <= upper
        if up != down:
            return tens + (1 if down else 0), k + 1
    up = lower <= 4 * s
    down = 4 * s + 4 <= upper
    if up != down:
        return s + (1 if down else 0), k
    middle = 4 * s + 2
    if value > middle or (value == middle and s & 1):
        return s + 1, k
    return s, k


_MOST_DIGITS = 17
"""Digits of a DOUBLE that `shortest` returns at most."""
_ZERO_POINT_ZEROS = int.from_bytes(b"0.000000", "little")


@njit
def _digit_count(value):
    """Return the number of decimal digits of 0 < `value` < 10**18; test 16 and 17 first, which doubles usually have."""
    if value >= _TEN_16:
        return 17 if value < 100_000_000_000_000_000 else 18
    count, limit = 16, 1_000_000_000_000_000
    while value < limit:
        limit = udiv(limit, 10)
        count -= 1
    return count


@njit(forceinline=True)
def _write_16(out, value):
    """Write `value` < 10**16 with 16 digits."""
    high = udiv(value, _TEN_8)
    store_64(out, eight_digits(high) | _ASCII_ZEROS)
    store_64(out + 8, eight_digits(value - high * _TEN_8) | _ASCII_ZEROS)


@njit
def _write_float(out, negative, digits, exponent, powers):
    """Write digits * 10**exponent the way the server does (strings/dtoa.cc, my_gcvt).

    Plain notation from 1e-15 to 1e15, and for larger numbers with digits behind the point. Otherwise
    `d.ddde[-]x` without a plus sign or padding.
    """
    if negative:
        store_8(out, 45)
        out += 1
    if digits == 0:
        store_8(out, 48)
        return out + 1
    while True:
        tenth = udiv(digits, 10)
        if tenth * 10 != digits:
            break
        digits = tenth
        exponent += 1
    length = _digit_count(digits)
    point = length + exponent
    if (point > 15 and length <= point) or point < -14:
        end = write_unsigned(out + 1, digits)
        store_8(out, load_u8(out + 1))
        if length > 1:
            store_8(out + 1, 46)
        else:
            end = out + 1
        store_8(end, 101)
        return write_signed(end + 1, point - 1)
    plain = powers + PLAIN_POWERS
    if point <= 0:
        store_64(out, _ZERO_POINT_ZEROS)
        store_64(out + 8, _ASCII_ZEROS)
        out += 2 - point
        digits *= load_64(plain + ((_MOST_DIGITS - length) << 3))
        first = udiv(digits, _TEN_16)
        store_8(out, 48 + first)
        _write_16(out + 1, digits - first * _TEN_16)
        return out + length
    if length <= point:
        end = write_unsigned(out, digits)
        store_64(end, _ASCII_ZEROS)
        store_64(end + 8, _ASCII_ZEROS)
        return out + point
    # With as many digits as there may be behind the point, no branch depends on their number.
    places = length - point
    unit = load_64(plain + (places << 3))
    whole = udiv(digits, unit)
    out = write_unsigned(out, whole)
    store_8(out, 46)
    _write_16(out + 1, (digits - whole * unit) * load_64(plain + ((16 - places) << 3)))
    return out + 1 + places


@njit
def _write_ieee(out, negative, biased, fraction, fraction_bits, powers):
    """Write an IEEE 754 number from its parts; `fraction_bits` is 52 or 23."""
    bias = 1075 if fraction_bits == 52 else 150
    if biased == 0:
        if fraction == 0:
            return _write_float(out, negative, 0, 0, powers)
        digits, exponent = shortest(fraction, 1 - bias, 0, powers)
        return _write_float(out, negative, digits, exponent, powers)
    significand = fraction | (1 << fraction_bits)
    exponent = biased - bias
    if -fraction_bits <= exponent <= 0 and significand & ((1 << -exponent) - 1) == 0:
        return _write_float(out, negative, significand >> -exponent, 0, powers)
    closer_below = 1 if fraction == 0 and biased > 1 else 0
    digits, exponent = shortest(significand, exponent, closer_below, powers)
    return _write_float(out, negative, digits, exponent, powers)


@njit
def write_double(out, bits, powers):
    """Write the float64 with these bits; `powers` is the address of `powers_of_ten`. Return BAD when not finite."""
    biased = (bits >> 52) & 0x7FF
    if biased == 0x7FF:
        return BAD
    return _write_ieee(out, bits < 0, biased, bits & 0xFFFFFFFFFFFFF, 52, powers)


@njit
def write_single(out, bits, powers):
    """Write the float32 with these bits, in the fewest digits that read back as the same float32."""
    biased = (bits >> 23) & 0xFF
    if biased == 0xFF:
        return BAD
    return _write_ieee(out, (bits >> 31) & 1 == 1, biased, bits & 0x7FFFFF, 23, powers)
