"""Converts dates and times to text. Zero and invalid dates stay as the server wrote them.

Layouts: server, mysys/my_time.cc (`my_datetime_packed_from_binary` and similar functions), and sql/field.cc for the
types from before MySQL 5.6. Every writer takes the address of its value, which is readable for `PADDING` bytes, and
returns the address behind the text, or `BAD`.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc,untyped-decorator"

from numba import njit

from ingest.binlog.kernel.memory import (
    load_64,
    load_64_be,
    load_u8,
    load_u16,
    load_u32,
    load_u32_be,
    shr,
    store_8,
    store_16,
    store_32,
    store_64,
    udiv,
    urem,
)
from ingest.binlog.kernel.numbers import BAD, eight_digits, power_of_ten, write_padded

_ASCII_ZEROS = 0x3030303030303030
_DASH, _SPACE, _COLON, _POINT = 45, 32, 58, 46


@njit(forceinline=True)
def _write_date(out, year, month, day):
    """Write `yyyy-mm-dd`, ten bytes; the number yyyymmdd has at most 8 digits."""
    digits = eight_digits(year * 10000 + month * 100 + day) | _ASCII_ZEROS
    store_32(out, digits)
    store_8(out + 4, _DASH)
    store_16(out + 5, digits >> 32)
    store_8(out + 7, _DASH)
    store_16(out + 8, shr(digits, 48))
    return out + 10


@njit(forceinline=True)
def _write_clock(out, hour, minute, second):
    """Write `hh:mm:ss`, eight bytes; each number < 100."""
    digits = eight_digits(hour * 10000 + minute * 100 + second) | _ASCII_ZEROS
    store_16(out, digits >> 16)
    store_8(out + 2, _COLON)
    store_16(out + 3, digits >> 32)
    store_8(out + 5, _COLON)
    store_16(out + 6, shr(digits, 48))
    return out + 8


@njit(forceinline=True)
def _write_fraction(out, micros, digits):
    """Write a point and the first `digits` digits of microseconds; write nothing for 0 digits."""
    if digits == 0:
        return out
    store_8(out, _POINT)
    store_64(out + 1, eight_digits(micros * 100) | _ASCII_ZEROS)
    return out + 1 + digits


@njit(forceinline=True)
def fraction_bytes(digits):
    """Return the bytes of a fraction of `digits` digits."""
    return (digits + 1) >> 1


@njit(forceinline=True)
def _micros(raw, size):
    """Return the microseconds of a stored fraction: hundredths, ten-thousandths or microseconds in 1, 2 or 3 bytes."""
    if size == 1:
        return raw * 10000
    if size == 2:
        return raw * 100
    return raw


@njit
def write_year(out, address):
    """YEAR: one byte, years since 1900, 0 is 0000."""
    year = load_u8(address)
    return write_padded(out, year + 1900 if year else 0, 4)


@njit(forceinline=True)
def write_date(out, address):
    """DATE: three little-endian bytes, day 5 bits, month 4, year 15."""
    bits = load_u32(address) & 0xFFFFFF
    year = bits >> 9
    if year > 9999:
        return BAD
    return _write_date(out, year, (bits >> 5) & 15, bits & 31)


@njit(forceinline=True)
def write_packed_datetime(out, packed, micros, digits):
    """Write a datetime of 40 bits: year * 13 + month 17, day 5, hour 5, minute 6, second 6."""
    month = packed >> 22
    year = udiv(month, 13)
    if packed < 0 or year > 9999 or micros > 999_999:
        return BAD
    out = _write_date(out, year, month - year * 13, (packed >> 17) & 31)
    store_8(out, _SPACE)
    out = _write_clock(out + 1, (packed >> 12) & 31, (packed >> 6) & 63, packed & 63)
    return _write_fraction(out, micros, digits)


@njit(forceinline=True)
def write_datetime2(out, address, digits):
    """DATETIME from MySQL 5.6: five big-endian bytes, offset by 2**39, then the fraction."""
    packed = shr(load_64_be(address), 24) - 0x8000000000
    size = fraction_bytes(digits)
    raw = shr(load_64_be(address + 5), 64 - 8 * size) if size else 0
    return write_packed_datetime(out, packed, _micros(raw, size), digits)


@njit
def _write_long_clock(out, hour, minute, second):
    """Write `hh:mm:ss` with as many digits as the hours have, hour < 1000."""
    if hour >= 100:
        store_8(out, 48 + udiv(hour, 100))
        return _write_clock(out + 1, urem(hour, 100), minute, second)
    return _write_clock(out, hour, minute, second)


@njit
def write_packed_time(out, packed, micros, digits, negative):
    """Write a time of 22 bits: hour 10, minute 6, second 6."""
    if micros > 999_999:
        return BAD
    if negative:
        store_8(out, 45)
        out += 1
    out = _write_long_clock(out, (packed >> 12) & 1023, (packed >> 6) & 63, packed & 63)
    return _write_fraction(out, micros, digits)


@njit
def write_time2(out, address, digits):
    """TIME from MySQL 5.6: three big-endian bytes and the fraction, together one number offset by its top bit.

    A negative time is the two's complement of the whole number, including the fraction.
    """
    size = 3 + fraction_bytes(digits)
    value = shr(load_64_be(address), 64 - 8 * size) - (1 << (8 * size - 1))
    negative = value < 0
    if negative:
        value = -value
    shift = 8 * (size - 3)
    return write_packed_time(out, value >> shift, _micros(value & ((1 << shift) - 1), size - 3), digits, negative)


@njit(forceinline=True)
def write_epoch(out, seconds, micros, digits):
    """Write a moment in UTC as `yyyy-mm-dd hh:mm:ss`; moment 0 is the zero date.

    Days to civil date after H. Hinnant, "chrono-compatible low-level date algorithms".
    """
    if micros > 999_999:
        return BAD
    if seconds == 0 and micros == 0:
        out = _write_date(out, 0, 0, 0)
        store_8(out, _SPACE)
        return _write_fraction(_write_clock(out + 1, 0, 0, 0), 0, digits)
    days = udiv(seconds, 86400)
    rest = seconds - days * 86400
    shifted = days + 719468
    era = udiv(shifted, 146097)
    of_era = shifted - era * 146097
    year_of_era = udiv(of_era - udiv(of_era, 1460) + udiv(of_era, 36524) - udiv(of_era, 146096), 365)
    of_year = of_era - (365 * year_of_era + (year_of_era >> 2) - udiv(year_of_era, 100))
    shifted_month = udiv(5 * of_year + 2, 153)
    day = of_year - udiv(153 * shifted_month + 2, 5) + 1
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    out = _write_date(out, year_of_era + era * 400 + (1 if month <= 2 else 0), month, day)
    store_8(out, _SPACE)
    hour = udiv(rest, 3600)
    rest -= hour * 3600
    minute = udiv(rest, 60)
    return _write_fraction(_write_clock(out + 1, hour, minute, rest - minute * 60), micros, digits)


@njit(forceinline=True)
def write_timestamp2(out, address, digits):
    """TIMESTAMP from MySQL 5.6: four big-endian bytes of Unix time (unsigned), then the fraction."""
    size = fraction_bytes(digits)
    raw = shr(load_64_be(address + 4), 64 - 8 * size) if size else 0
    return write_epoch(out, load_u32_be(address), _micros(raw, size), digits)


@njit
def write_old_timestamp(out, address):
    """TIMESTAMP before MySQL 5.6: four little-endian bytes of Unix time."""
    return write_epoch(out, load_u32(address), 0, 0)


@njit
def write_old_datetime(out, address):
    """DATETIME before MySQL 5.6: eight little-endian bytes of the number YYYYMMDDhhmmss."""
    value = load_64(address)
    if value < 0 or value > 99_999_999_999_999:
        return BAD
    date = udiv(value, 1_000_000)
    clock = value - date * 1_000_000
    out = _write_date(out, 0, 0, date)
    store_8(out, _SPACE)
    hour = udiv(clock, 10000)
    rest = clock - hour * 10000
    minute = udiv(rest, 100)
    return _write_clock(out + 1, hour, minute, rest - minute * 100)


@njit
def write_old_time(out, address):
    """TIME before MySQL 5.6: three little-endian bytes of the signed number hhmmss."""
    value = load_u16(address) | (load_u8(address + 2) << 16)
    if value & 0x800000:
        value = 0x1000000 - value
        store_8(out, 45)
        out += 1
    hour = udiv(value, 10000)
    rest = value - hour * 10000
    minute = udiv(rest, 100)
    return _write_long_clock(out, hour, minute, rest - minute * 100)


# --- MariaDB's own types with a fraction, from before it adopted MySQL 5.6's (mysql56_temporal_format=OFF) ---
#
# A value is one big-endian number of the smallest units, in as few bytes as possible. Only the table's definition
# contains the number of fraction digits, and so the size of a value. Source: server, sql/field.cc, `Field_time_hires`,
# `Field_datetime_hires`, `Field_timestamp_hires`; sql-common/my_time.c, `pack_time`.

HIRES_ZERO_SECONDS = 3020400
"""Seconds that mean TIME 0: one second more than the longest TIME."""


@njit
def write_hires_time(out, address, size, digits):
    """TIME(1) to TIME(6) of MariaDB 5.3: units since -839:00:00."""
    unit = power_of_ten(digits)
    value = shr(load_64_be(address), 64 - 8 * size) - HIRES_ZERO_SECONDS * unit
    negative = value < 0
    if negative:
        value = -value
    seconds = udiv(value, unit)
    if seconds >= HIRES_ZERO_SECONDS:
        return BAD
    if negative:
        store_8(out, 45)
        out += 1
    minutes = udiv(seconds, 60)
    hour = udiv(minutes, 60)
    out = _write_long_clock(out, hour, minutes - hour * 60, seconds - minutes * 60)
    return _write_fraction(out, (value - seconds * unit) * power_of_ten(6 - digits), digits)


@njit
def write_hires_datetime(out, address, size, digits):
    """DATETIME(1) to DATETIME(6) of MariaDB 5.3: units in a calendar of 13 months of 32 days each."""
    unit = power_of_ten(digits)
    value = shr(load_64_be(address), 64 - 8 * size) if size < 8 else load_64_be(address)
    seconds = udiv(value, unit)
    minutes = udiv(seconds, 60)
    hours = udiv(minutes, 60)
    days = udiv(hours, 24)
    month = days >> 5
    year = udiv(month, 13)
    if value < 0 or year > 9999:
        return BAD
    out = _write_date(out, year, month - year * 13, days & 31)
    store_8(out, _SPACE)
    out = _write_clock(out + 1, hours - days * 24, minutes - hours * 60, seconds - minutes * 60)
    return _write_fraction(out, (value - seconds * unit) * power_of_ten(6 - digits), digits)


@njit
def write_hires_timestamp(out, address, size, digits):
    """TIMESTAMP(1) to TIMESTAMP(6) of MariaDB 5.3: four bytes of Unix time and the units of the fraction."""
    units = shr(load_64_be(address + 4), 64 - 8 * (size - 4))
    if units >= power_of_ten(digits):
        return BAD
    return write_epoch(out, load_u32_be(address), units * power_of_ten(6 - digits), digits)
