"""Dates and times to text. Zero and invalid dates are kept as the server wrote them.

Layouts: server, mysys/my_time.cc (`my_datetime_packed_from_binary` and its kin) and sql/field.cc for the
types from before MySQL 5.6. Every writer is given the address of its value, which is readable for
`PADDING` bytes, and returns the address behind the text, or `BAD`.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc,untyped-decorator"

from numba import njit

from ingest.binlog.kernel.memory import load_64, load_64_be, load_u8, load_u16, load_u32, load_u32_be, shr, store_8
from ingest.binlog.kernel.numbers import BAD, write_2, write_padded, write_unsigned


@njit
def _write_date(out, year, month, day):
    out = write_padded(out, year, 4)
    store_8(out, 45)
    out = write_2(out + 1, month)
    store_8(out, 45)
    return write_2(out + 1, day)


@njit
def _write_clock(out, minute, second):
    store_8(out, 58)
    out = write_2(out + 1, minute)
    store_8(out, 58)
    return write_2(out + 1, second)


@njit
def _write_fraction(out, micros, digits):
    if digits == 0:
        return out
    store_8(out, 46)
    return write_padded(out + 1, micros // _divisor(digits), digits)


@njit
def _divisor(digits):
    divisor = 1
    for _ in range(6 - digits):
        divisor *= 10
    return divisor


@njit
def fraction_bytes(digits):
    """Bytes that a fraction of `digits` digits takes."""
    return (digits + 1) >> 1


@njit
def _micros(raw, size):
    """Microseconds of a stored fraction: hundredths, ten-thousandths or microseconds in 1, 2 or 3 bytes."""
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


@njit
def write_date(out, address):
    """DATE: three little-endian bytes, day 5 bits, month 4, year 15."""
    bits = load_u32(address) & 0xFFFFFF
    year = bits >> 9
    if year > 9999:
        return BAD
    return _write_date(out, year, (bits >> 5) & 15, bits & 31)


@njit
def write_packed_datetime(out, packed, micros, digits):
    """A datetime of 40 bits: year * 13 + month 17, day 5, hour 5, minute 6, second 6."""
    month = packed >> 22
    year = month // 13
    if packed < 0 or year > 9999 or micros > 999_999:
        return BAD
    out = _write_date(out, year, month - year * 13, (packed >> 17) & 31)
    store_8(out, 32)
    out = write_2(out + 1, (packed >> 12) & 31)
    out = _write_clock(out, (packed >> 6) & 63, packed & 63)
    return _write_fraction(out, micros, digits)


@njit
def write_datetime2(out, address, digits):
    """DATETIME from MySQL 5.6: five big-endian bytes, offset by 2**39, then the fraction."""
    packed = shr(load_64_be(address), 24) - 0x8000000000
    size = fraction_bytes(digits)
    raw = shr(load_64_be(address + 5), 64 - 8 * size) if size else 0
    return write_packed_datetime(out, packed, _micros(raw, size), digits)


@njit
def write_packed_time(out, packed, micros, digits, negative):
    """A time of 22 bits: hour 10, minute 6, second 6."""
    if micros > 999_999:
        return BAD
    if negative:
        store_8(out, 45)
        out += 1
    hour = (packed >> 12) & 1023
    out = write_2(out, hour) if hour < 100 else write_unsigned(out, hour)
    out = _write_clock(out, (packed >> 6) & 63, packed & 63)
    return _write_fraction(out, micros, digits)


@njit
def write_time2(out, address, digits):
    """TIME from MySQL 5.6: three big-endian bytes and the fraction, one number offset by its top bit.

    A negative time is the two's complement of the whole, fraction included.
    """
    size = 3 + fraction_bytes(digits)
    value = shr(load_64_be(address), 64 - 8 * size) - (1 << (8 * size - 1))
    negative = value < 0
    if negative:
        value = -value
    shift = 8 * (size - 3)
    return write_packed_time(out, value >> shift, _micros(value & ((1 << shift) - 1), size - 3), digits, negative)


@njit
def write_epoch(out, seconds, micros, digits):
    """A moment in UTC as `yyyy-mm-dd hh:mm:ss`; moment 0 is the zero date.

    Days to civil date after H. Hinnant, "chrono-compatible low-level date algorithms".
    """
    if micros > 999_999:
        return BAD
    if seconds == 0 and micros == 0:
        out = _write_date(out, 0, 0, 0)
        store_8(out, 32)
        out = _write_clock(write_2(out + 1, 0), 0, 0)
        return _write_fraction(out, 0, digits)
    days = seconds // 86400
    rest = seconds - days * 86400
    shifted = days + 719468
    era = shifted // 146097
    of_era = shifted - era * 146097
    year_of_era = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * of_year + 2) // 153
    day = of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    year = year_of_era + era * 400 + (1 if month <= 2 else 0)
    out = _write_date(out, year, month, day)
    store_8(out, 32)
    hour = rest // 3600
    rest -= hour * 3600
    minute = rest // 60
    out = _write_clock(write_2(out + 1, hour), minute, rest - minute * 60)
    return _write_fraction(out, micros, digits)


@njit
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
    date = value // 1_000_000
    clock = value - date * 1_000_000
    year = date // 10000
    rest = date - year * 10000
    out = _write_date(out, year, rest // 100, rest % 100)
    store_8(out, 32)
    hour = clock // 10000
    rest = clock - hour * 10000
    return _write_clock(write_2(out + 1, hour), rest // 100, rest % 100)


@njit
def write_old_time(out, address):
    """TIME before MySQL 5.6: three little-endian bytes of the signed number hhmmss."""
    value = load_u16(address) | (load_u8(address + 2) << 16)
    if value & 0x800000:
        value = 0x1000000 - value
        store_8(out, 45)
        out += 1
    hour = value // 10000
    rest = value - hour * 10000
    out = write_2(out, hour) if hour < 100 else write_unsigned(out, hour)
    return _write_clock(out, rest // 100, rest % 100)
