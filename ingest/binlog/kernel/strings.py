"""Converts character and binary strings to UTF-8 text.

Writers return the address behind the text, or `BAD`. The caller makes sure of the room: at most three bytes for each
byte of a character string; two bytes for each byte of a binary string, plus `STRING_ROOM`.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc,untyped-decorator"

from numba import njit

from ingest.binlog.kernel.layout import (
    CHARSET_BINARY,
    CHARSET_GB18030,
    CHARSET_NOT_ASCII,
    CHARSET_SINGLE_BYTE,
    CHARSET_UNKNOWN,
    CHARSET_UTF8,
    CHARSET_UTF16,
    CHARSET_UTF16LE,
    CHARSET_UTF32,
    GB18030_BMP,
    GB18030_SUPPLEMENT,
)
from ingest.binlog.kernel.memory import (
    copy,
    copy_32,
    load_64,
    load_64_be,
    load_u8,
    load_u16,
    load_u16_be,
    load_u32,
    load_u32_be,
    shr,
    store_8,
    store_16,
    store_32,
    store_64,
    urem,
)
from ingest.binlog.kernel.numbers import BAD

_HIGH_BITS = -0x7F7F7F7F7F7F7F80


@njit(forceinline=True)
def copy_bytes(out, address, size):
    """Copy `size` bytes; may read and write up to 32 bytes beyond, for which both sides have room."""
    if size <= 32:
        copy_32(out, address)
    else:
        copy(out, address, size)
    return out + size


@njit(forceinline=True)
def is_utf8(address, size):
    """Return whether the bytes are UTF-8 by RFC 3629: shortest forms only, no surrogates, up to U+10FFFF."""
    end = address + size
    while address < end:
        while address + 8 <= end and load_64(address) & _HIGH_BITS == 0:
            address += 8
        if end - address < 8 and load_64(address) & _HIGH_BITS & ((1 << ((end - address) << 3)) - 1) == 0:
            return True
        byte = load_u8(address)
        if byte < 0x80:
            address += 1
        elif byte < 0xC2:
            return False
        elif byte < 0xE0:
            if address + 2 > end or load_u8(address + 1) & 0xC0 != 0x80:
                return False
            address += 2
        elif byte < 0xF0:
            if address + 3 > end or load_u8(address + 2) & 0xC0 != 0x80:
                return False
            second = load_u8(address + 1)
            if second & 0xC0 != 0x80 or (byte == 0xE0 and second < 0xA0) or (byte == 0xED and second > 0x9F):
                return False
            address += 3
        elif byte < 0xF5:
            if address + 4 > end or load_u8(address + 2) & 0xC0 != 0x80 or load_u8(address + 3) & 0xC0 != 0x80:
                return False
            second = load_u8(address + 1)
            if second & 0xC0 != 0x80 or (byte == 0xF0 and second < 0x90) or (byte == 0xF4 and second > 0x8F):
                return False
            address += 4
        else:
            return False
    return True


@njit
def write_code_point(out, code):
    """Write one Unicode code point as UTF-8."""
    if code < 0x80:
        store_8(out, code)
        return out + 1
    if code < 0x800:
        store_16(out, (0xC0 | code >> 6) | (0x80 | code & 0x3F) << 8)
        return out + 2
    if code < 0x10000:
        if 0xD800 <= code < 0xE000:
            return BAD
        store_32(out, (0xE0 | code >> 12) | (0x80 | code >> 6 & 0x3F) << 8 | (0x80 | code & 0x3F) << 16)
        return out + 3
    if code > 0x10FFFF:
        return BAD
    store_32(
        out,
        (0xF0 | code >> 18)
        | (0x80 | code >> 12 & 0x3F) << 8
        | (0x80 | code >> 6 & 0x3F) << 16
        | (0x80 | code & 0x3F) << 24,
    )
    return out + 4


@njit
def _write_single_byte(out, address, size, table, keeps_ascii):
    """Write text of one byte a character. `table`: 256 words, UTF-8 bytes low, their count in the top byte."""
    end = address + size
    while address < end:
        if keeps_ascii and address + 8 <= end:
            word = load_64(address)
            if word & _HIGH_BITS == 0:
                store_64(out, word)
                address += 8
                out += 8
                continue
        entry = load_u32(table + (load_u8(address) << 2))
        if entry == 0:
            return BAD
        store_32(out, entry)
        out += entry >> 24
        address += 1
    return out


@njit
def _write_utf16(out, address, size, little):
    if size & 1:
        return BAD
    end = address + size
    while address < end:
        code = load_u16(address) if little else load_u16_be(address)
        address += 2
        if 0xD800 <= code < 0xDC00:
            if address >= end:
                return BAD
            low = load_u16(address) if little else load_u16_be(address)
            if not 0xDC00 <= low < 0xE000:
                return BAD
            address += 2
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
        out = write_code_point(out, code)
        if out < 0:
            return BAD
    return out


@njit
def _write_utf32(out, address, size):
    if size & 3:
        return BAD
    end = address + size
    while address < end:
        out = write_code_point(out, load_u32_be(address))
        if out < 0:
            return BAD
        address += 4
    return out


@njit
def _write_multi_byte(out, address, size, table):
    """Write a character set of one to three bytes a character.

    `table`: 65536 code points for two bytes (first byte high), then 256 for one byte, then 65536 for three bytes that
    begin with 0x8F. 0 means no such character, except for byte 0.
    """
    end = address + size
    while address < end:
        first = load_u8(address)
        size = 1
        code = load_u32(table + ((65536 + first) << 2))
        if code == 0 and first != 0:
            size = 2
            code = load_u32(table + (load_u16_be(address) << 2))
            if code == 0 and first == 0x8F:
                size = 3
                code = load_u32(table + ((65792 + load_u16_be(address + 1)) << 2))
            if code == 0 or address + size > end:
                return BAD
        address += size
        out = write_code_point(out, code)
        if out < 0:
            return BAD
    return out


@njit
def _write_gb18030(out, address, size, table):
    """Write gb18030: one, two or four bytes a character.

    Four bytes form a number of two digits of base 126 and 10, twice, in the bytes 81-FE and 30-39. Source: server,
    strings/ctype-gb18030.cc, `gb18030_4_chs_to_diff`.

    `table`: code points for two and one byte as in `_write_multi_byte`, then for four bytes of the basic plane. Other
    four-byte characters that are not in Unicode become `?`, as the server prints them.
    """
    end = address + size
    while address < end:
        first = load_u8(address)
        code = load_u32(table + ((65536 + first) << 2))
        if code == 0 and first != 0:
            code = load_u32(table + (load_u16_be(address) << 2))
            if code:
                address += 1
            else:
                if address + 4 > end or first == 0x80 or first == 0xFF:
                    return BAD
                second, third, fourth = load_u8(address + 1), load_u8(address + 2), load_u8(address + 3)
                if not (0x30 <= second <= 0x39 and 0x81 <= third <= 0xFE and 0x30 <= fourth <= 0x39):
                    return BAD
                number = (((first - 0x81) * 10 + second - 0x30) * 126 + third - 0x81) * 10 + fourth - 0x30
                code = 63
                if number < GB18030_BMP:
                    code = load_u32(table + ((65792 + number) << 2))
                elif GB18030_SUPPLEMENT <= number < GB18030_SUPPLEMENT + 0x100000:
                    code = number - GB18030_SUPPLEMENT + 0x10000
                address += 3
        address += 1
        if address > end:
            return BAD
        out = write_code_point(out, code)
        if out < 0:
            return BAD
    return out


@njit
def write_hex(out, address, size, padded):
    """Write `0x` and upper-case hex of the bytes, followed by zero bytes up to `padded` bytes."""
    store_16(out, 0x7830)
    out += 2
    i = 0
    while i + 4 <= size:
        store_64(out, _eight_nibbles(load_u32(address + i)))
        out += 8
        i += 4
    while i < size:
        store_16(out, _eight_nibbles(load_u8(address + i)))
        out += 2
        i += 1
    while i < padded:
        store_16(out, 0x3030)
        out += 2
        i += 1
    return out


@njit
def _eight_nibbles(word):
    """Return the hex digits of four bytes, high nibble of the lowest byte first."""
    x = ((word & 0xFFFF0000) << 16) | (word & 0xFFFF)
    x = ((x << 8) | x) & 0x00FF00FF00FF00FF
    x = ((x >> 4) | (x << 8)) & 0x0F0F0F0F0F0F0F0F
    letters = ((x + 0x0606060606060606) >> 4) & 0x0101010101010101
    return x + 0x3030303030303030 + letters * 7


@njit
def write_string(out, address, size, charset, table):
    """Write bytes of a character set (`CHARSET_…` with its table) as UTF-8; binary bytes as hex."""
    if charset == CHARSET_UTF8:
        if not is_utf8(address, size):
            return BAD
        return copy_bytes(out, address, size)
    if charset == CHARSET_SINGLE_BYTE:
        return _write_single_byte(out, address, size, table, True)
    if charset == CHARSET_BINARY:
        return write_hex(out, address, size, 0)
    if charset == CHARSET_UNKNOWN:
        if is_utf8(address, size):
            return copy_bytes(out, address, size)
        return write_hex(out, address, size, 0)
    if charset == CHARSET_NOT_ASCII:
        return _write_single_byte(out, address, size, table, False)
    if charset == CHARSET_UTF16:
        return _write_utf16(out, address, size, False)
    if charset == CHARSET_UTF16LE:
        return _write_utf16(out, address, size, True)
    if charset == CHARSET_UTF32:
        return _write_utf32(out, address, size)
    if charset == CHARSET_GB18030:
        return _write_gb18030(out, address, size, table)
    return _write_multi_byte(out, address, size, table)


@njit
def convert_string(out, address, size, charset, table):
    """Entry point of `write_string`, see `ingest.binlog.kernel`."""
    return write_string(out, address, size, charset, table)


_ZLIB = 8
_DEFLATE_RATIO = 1032


@njit
def inflated_size(address, size):
    """Return the bytes of a compressed column's inflated value, or `BAD`: see `ingest.binlog.rows.compressed_column`.

    `BAD` includes a size that deflate cannot reach from so few bytes.
    """
    head = load_u8(address)
    width = head & 7
    if head >> 4 != _ZLIB or width < 1 or width > 4 or size <= width + 1:
        return BAD
    inflated = shr(load_64_be(address + 1), 64 - 8 * width)
    if inflated > _DEFLATE_RATIO * (size - width):
        return BAD
    return inflated


_BASE64_LINE = 57
"""Input bytes of a line of 76 digits."""


@njit
def base64_room(size):
    """Return the most bytes of text that `write_base64` writes."""
    return (size + 2) // 3 * 4 + size // _BASE64_LINE * 2


@njit
def write_base64(out, address, size):
    r"""Write base 64 padded with `=`, in lines of 76 digits as the server breaks them: with an escaped newline, `\n`.

    Source: server, mysys/base64.cc, `base64_encode`.
    """
    i = 0
    while i < size:
        if i and urem(i, _BASE64_LINE) == 0:
            store_16(out, 0x6E5C)
            out += 2
        first = load_u8(address + i)
        second = load_u8(address + i + 1) if i + 1 < size else 0
        third = load_u8(address + i + 2) if i + 2 < size else 0
        store_8(out, _base64_digit(first >> 2))
        store_8(out + 1, _base64_digit((first & 3) << 4 | second >> 4))
        store_8(out + 2, _base64_digit((second & 15) << 2 | third >> 6) if i + 1 < size else 61)
        store_8(out + 3, _base64_digit(third & 63) if i + 2 < size else 61)
        out += 4
        i += 3
    return out


@njit
def _base64_digit(value):
    if value < 26:
        return 65 + value
    if value < 52:
        return 71 + value
    if value < 62:
        return value - 4
    return 43 if value == 62 else 47
