"""MariaDB's fixed-size binary types: UUID, INET4, INET6.

On the wire they are BINARY: a length, and the bytes in the order of the text, without trailing zero bytes. The byte
order in which a server stores UUIDs does not affect this. Source: server, sql/sql_type_fixedbin_storage.h,
`FixedBinTypeStorage::pack`, and plugin/type_uuid/sql_type_uuid.h, `UUID::pack`.

Writers take the address and size of the existing bytes and return the address behind the text, which takes at most
45 bytes; or `BAD` when there are too many bytes.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc,untyped-decorator"

from numba import njit

from ingest.binlog.kernel.memory import load_u8, store_8
from ingest.binlog.kernel.numbers import BAD, write_unsigned

UUID_SIZE = 16
INET4_SIZE = 4
INET6_SIZE = 16

_DASH, _POINT, _COLON = 45, 46, 58


@njit
def _byte(address, size, index):
    return load_u8(address + index) if index < size else 0


@njit
def _hex_digit(value):
    return 48 + value if value < 10 else 87 + value


@njit
def write_uuid(out, address, size):
    """Write a UUID with lower-case digits and four dashes."""
    if size > UUID_SIZE:
        return BAD
    for index in range(UUID_SIZE):
        if index == 4 or index == 6 or index == 8 or index == 10:
            store_8(out, _DASH)
            out += 1
        byte = _byte(address, size, index)
        store_8(out, _hex_digit(byte >> 4))
        store_8(out + 1, _hex_digit(byte & 15))
        out += 2
    return out


@njit
def write_inet4(out, address, size):
    """Write four decimal numbers with points between them."""
    return _write_inet4(out, address, size, 0) if size <= INET4_SIZE else BAD


@njit
def _write_inet4(out, address, size, first):
    for index in range(first, first + INET4_SIZE):
        if index > first:
            store_8(out, _POINT)
            out += 1
        out = write_unsigned(out, _byte(address, size, index))
    return out


@njit
def _write_group(out, value):
    """Write 16 bits in hex without leading zeros."""
    for shift in (12, 8, 4):
        if value >> shift:
            store_8(out, _hex_digit(value >> shift & 15))
            out += 1
    store_8(out, _hex_digit(value & 15))
    return out + 1


@njit
def write_inet6(out, address, size):
    """Write eight groups; the first of the longest runs of zero groups becomes `::`, however short it is.

    An address that contains an IPv4 address ends with it. Source: server, plugin/type_inet/sql_type_inet.cc,
    `Inet6::to_string`.
    """
    if size > INET6_SIZE:
        return BAD
    gap, length = _longest_gap(address, size)
    group = 0
    while group < 8:
        if group == gap:
            if group == 0:
                store_8(out, _COLON)
                out += 1
            store_8(out, _COLON)
            out += 1
            group += length
            continue
        if group == 6 and gap == 0 and (length == 6 or (length == 5 and _group(address, size, 5) == 0xFFFF)):
            return _write_inet4(out, address, size, 12)
        out = _write_group(out, _group(address, size, group))
        if group < 7:
            store_8(out, _COLON)
            out += 1
        group += 1
    return out


@njit
def _group(address, size, index):
    return _byte(address, size, 2 * index) << 8 | _byte(address, size, 2 * index + 1)


@njit
def _longest_gap(address, size):
    """Return the first group and the length of the longest run of zero groups; -1 and 0 when there is none."""
    gap, longest, run = -1, 0, 0
    for group in range(8):
        run = 0 if _group(address, size, group) else run + 1
        if run > longest:
            gap, longest = group - run + 1, run
    return gap, longest
