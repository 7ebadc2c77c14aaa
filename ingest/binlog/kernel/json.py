"""Converts MySQL's binary JSON to the text that the server prints.

Layout: server, sql-common/json_binary.h. A document is a type byte and a value. Objects and arrays contain counts,
sizes and offsets from their own start; literals and small numbers are inlined. The text is the server's
(sql-common/json_dom.cc): `", "` and `": "`, keys in stored order, doubles with `.0` when they look like integers,
opaque decimals and temporals by their value.

Offsets are hostile input. Each offset is checked against its container, and containers nest at most `JSON_DEPTH`
deep. A text has at most `EXPANSION` times as many bytes as its input, so that entries that share bytes cannot grow
without bounds.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc,untyped-decorator"

from numba import njit

from ingest.binlog.kernel.layout import FRAME_WORDS, JSON_DEPTH, JSON_IS_TYPED, STRING_ROOM
from ingest.binlog.kernel.memory import (
    load_64,
    load_i16,
    load_i32,
    load_u8,
    load_u16,
    load_u32,
    store_8,
    store_16,
    store_32,
    store_64,
    udiv,
)
from ingest.binlog.kernel.numbers import (
    BAD,
    NUMBER_ROOM,
    decimal_size,
    write_decimal,
    write_double,
    write_signed,
    write_unsigned,
)
from ingest.binlog.kernel.strings import base64_room, is_utf8, write_base64
from ingest.binlog.kernel.temporal import write_packed_datetime, write_packed_time

NO_ROOM = -2
EXPANSION = 12
_FRAME_BASE, _FRAME_KIND, _FRAME_COUNT, _FRAME_INDEX, _FRAME_END = range(0, FRAME_WORDS * 8, 8)
"""An open container: its address, type, number of entries, number of the next entry, and the address of its end."""

_SMALL_OBJECT, _LARGE_OBJECT, _SMALL_ARRAY, _LARGE_ARRAY = 0, 1, 2, 3
_LITERAL, _INT16, _UINT16, _INT32, _UINT32, _INT64, _UINT64, _DOUBLE, _STRING = 4, 5, 6, 7, 8, 9, 10, 11, 12
_OPAQUE = 15

_REMOVE = 2

_TYPE_TIMESTAMP, _TYPE_DATE, _TYPE_TIME, _TYPE_DATETIME, _TYPE_DECIMAL, _TYPE_VAR_STRING = 7, 10, 11, 12, 246, 253

_DECIMAL_GROUPS = 9
"""Groups of nine digits in the server's own decimals: results of expressions may exceed the 65 digits of a column."""
_DECIMAL_ROOM = 96
"""81 digits, sign, zero, point, and eight bytes that a wide store may overrun."""


@njit
def write_json(out, limit, address, size, scratch, powers):
    """Write the document of `size` bytes; return BAD when malformed, NO_ROOM when it would pass `limit`.

    `scratch` is the address of JSON_SCRATCH_BYTES writable bytes, `powers` is the address of `powers_of_ten`. A member
    of a type that its text does not tell sets the word at JSON_IS_TYPED.
    """
    if out + NUMBER_ROOM > limit:
        return NO_ROOM
    if size == 0:
        # A column that got type JSON without a default contains an empty value; the server prints null.
        store_32(out, 0x6C6C756E)
        return out + 4
    budget = out + EXPANSION * size + 64
    end = address + size
    kind = load_u8(address)
    if kind > _LARGE_ARRAY:
        if _hides_type(kind):
            store_64(scratch + JSON_IS_TYPED, 1)
        return _write_scalar(out, limit, kind, address + 1, end, powers)
    depth = _push(scratch, 0, kind, address + 1, end)
    if depth < 0:
        return BAD
    store_8(out, 123 if kind <= _LARGE_OBJECT else 91)
    out += 1
    while depth > 0:
        frame = scratch + (depth - 1) * (FRAME_WORDS * 8)
        base, container = load_64(frame + _FRAME_BASE), load_64(frame + _FRAME_KIND)
        count, index = load_64(frame + _FRAME_COUNT), load_64(frame + _FRAME_INDEX)
        end = load_64(frame + _FRAME_END)
        if out + NUMBER_ROOM > limit:
            return NO_ROOM
        if out > budget:
            return BAD
        if index == count:
            store_8(out, 125 if container <= _LARGE_OBJECT else 93)
            out += 1
            depth -= 1
            continue
        store_64(frame + _FRAME_INDEX, index + 1)
        if index:
            store_16(out, 0x202C)
            out += 2
        large = container & 1
        width = 4 if large else 2
        entries = base + 2 * width
        if container <= _LARGE_OBJECT:
            entry = entries + index * (width + 2)
            offset = load_u32(entry) if large else load_u16(entry)
            length = load_u16(entry + width)
            if base + offset + length > end:
                return BAD
            out = _write_quoted(out, limit, base + offset, length)
            if out < 0:
                return out
            store_16(out, 0x203A)
            out += 2
            if out + NUMBER_ROOM > limit:
                return NO_ROOM
            entries += count * (width + 2)
        entry = entries + index * (width + 1)
        kind = load_u8(entry)
        if _hides_type(kind):
            store_64(scratch + JSON_IS_TYPED, 1)
        if kind == _LITERAL or kind == _INT16 or kind == _UINT16 or (large and (kind == _INT32 or kind == _UINT32)):
            out = _write_scalar(out, limit, kind, entry + 1, end, powers)
        else:
            offset = load_u32(entry + 1) if large else load_u16(entry + 1)
            if base + offset >= end or offset < 2 * width:
                return BAD
            if kind <= _LARGE_ARRAY:
                depth = _push(scratch, depth, kind, base + offset, end)
                if depth < 0:
                    return BAD
                store_8(out, 123 if kind <= _LARGE_OBJECT else 91)
                out += 1
            else:
                out = _write_scalar(out, limit, kind, base + offset, end, powers)
        if out < 0:
            return out
    return out


@njit
def _hides_type(kind):
    """Return whether a server would read the text of a value as a value of another type: as a string, or signed."""
    return kind == _OPAQUE or kind == _UINT16 or kind == _UINT32 or kind == _UINT64


@njit
def write_json_diffs(out, limit, address, size, scratch, powers):
    """Write changes of a document as a JSON array of arrays: operation (0 replace, 1 insert, 2 remove), path, value.

    Source: server, sql-common/json_diff.h, Json_diff_vector: operation 1 byte, size of the path, path. All operations
    but a removal also have the size of the value and the value in binary form.
    """
    end = address + size
    store_8(out, 91)
    out += 1
    first = True
    while address < end:
        if out + NUMBER_ROOM > limit:
            return NO_ROOM
        operation = load_u8(address)
        if operation > _REMOVE:
            return BAD
        if not first:
            store_8(out, 44)
            out += 1
        first = False
        store_16(out, 0x305B + (operation << 8))
        store_8(out + 2, 44)
        path, head = _packed_length(address + 1, end)
        address += 1 + head
        if head < 0 or path > end - address:
            return BAD
        out = _write_quoted(out + 3, limit, address, path)
        if out < 0:
            return out
        address += path
        if operation != _REMOVE:
            length, head = _packed_length(address, end)
            address += head
            if head < 0 or length > end - address:
                return BAD
            store_8(out, 44)
            out = write_json(out + 1, limit, address, length, scratch, powers)
            if out < 0:
                return out
            address += length
        if out + NUMBER_ROOM > limit:
            return NO_ROOM
        store_8(out, 93)
        out += 1
    store_8(out, 93)
    return out + 1


@njit
def _packed_length(address, end):
    """Return a length-encoded integer below 2**32 and the bytes it takes; the latter is BAD when it is not one."""
    if address >= end:
        return 0, BAD
    first = load_u8(address)
    if first < 251:
        return first, 1
    if first == 252 and address + 3 <= end:
        return load_u16(address + 1), 3
    if first == 253 and address + 4 <= end:
        return load_u32(address + 1) & 0xFFFFFF, 4
    if first == 254 and address + 9 <= end and load_u32(address + 5) == 0:
        return load_u32(address + 1), 9
    return 0, BAD


@njit
def _push(scratch, depth, kind, base, end):
    """Open a container: return its new depth, or BAD when its head does not fit into its bytes."""
    large = kind & 1
    width = 4 if large else 2
    if depth >= JSON_DEPTH or base + 2 * width > end:
        return BAD
    count = load_u32(base) if large else load_u16(base)
    size = load_u32(base + 4) if large else load_u16(base + 2)
    entry = width + 1 if kind >= _SMALL_ARRAY else 2 * width + 3
    if base + size > end or 2 * width + count * entry > size:
        return BAD
    frame = scratch + depth * (FRAME_WORDS * 8)
    store_64(frame + _FRAME_BASE, base)
    store_64(frame + _FRAME_KIND, kind)
    store_64(frame + _FRAME_COUNT, count)
    store_64(frame + _FRAME_INDEX, 0)
    store_64(frame + _FRAME_END, base + size)
    return depth + 1


@njit
def _write_scalar(out, limit, kind, address, end, powers):
    left = end - address
    if kind == _STRING:
        size, head = _length(address, end)
        if head < 0 or size > left - head:
            return BAD
        return _write_quoted(out, limit, address + head, size)
    if kind == _OPAQUE:
        return _write_opaque(out, limit, address, end)
    if kind == _LITERAL:
        if left < 1:
            return BAD
        literal = load_u8(address)
        if literal == 0:
            store_32(out, 0x6C6C756E)
            return out + 4
        if literal == 1:
            store_32(out, 0x65757274)
            return out + 4
        if literal == 2:
            store_64(out, 0x65736C6166)
            return out + 5
        return BAD
    if kind == _INT16 or kind == _UINT16:
        if left < 2:
            return BAD
        return write_signed(out, load_i16(address) if kind == _INT16 else load_u16(address))
    if kind == _INT32 or kind == _UINT32:
        if left < 4:
            return BAD
        return write_signed(out, load_i32(address) if kind == _INT32 else load_u32(address))
    if left < 8:
        return BAD
    if kind == _INT64:
        return write_signed(out, load_64(address))
    if kind == _UINT64:
        return write_unsigned(out, load_64(address))
    if kind == _DOUBLE:
        start = out
        out = write_double(out, load_64(address), powers)
        if out < 0:
            return BAD
        for at in range(start, out):
            byte = load_u8(at)
            if byte == 46 or byte == 101:
                return out
        store_16(out, 0x302E)
        return out + 2
    return BAD


@njit
def _length(address, end):
    """Return a length of 7 bits a byte, low bits first, and the bytes it takes, which are BAD if it is not one."""
    size = 0
    for i in range(5):
        if address + i >= end:
            return 0, BAD
        byte = load_u8(address + i)
        size |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return size, i + 1
    return 0, BAD


@njit
def _write_quoted(out, limit, address, size):
    """Write a JSON string: keep UTF-8, escape quote, backslash and control characters as the server does."""
    if out + 6 * size + STRING_ROOM > limit:
        return NO_ROOM
    store_8(out, 34)
    out += 1
    end = address + size
    checked = False
    while address < end:
        left = end - address
        word = load_64(address)
        if left < 8:
            # Bytes behind the string must not affect the result: treat them as spaces.
            mask = (1 << (left << 3)) - 1
            word = (word & mask) | (_SPACES & ~mask)
        if _is_plain(word):
            store_64(out, word)
            step = min(left, 8)
            address += step
            out += step
            continue
        if not checked:
            if not is_utf8(address, left):
                return BAD
            checked = True
        stop = address + min(left, 8)
        while address < stop:
            out = _write_character(out, load_u8(address))
            address += 1
    store_8(out, 34)
    return out + 1


_SPACES = 0x2020202020202020
_ONES = 0x0101010101010101
_HIGH_BITS = -0x7F7F7F7F7F7F7F80
_QUOTES = 0x2222222222222222
_BACKSLASHES = 0x5C5C5C5C5C5C5C5C


@njit
def _is_plain(word):
    """Return whether eight bytes are printable ASCII without quote and backslash: nothing to escape or check."""
    quotes, backslashes = word ^ _QUOTES, word ^ _BACKSLASHES
    found = word | (word - _SPACES & ~word) | (quotes - _ONES & ~quotes) | (backslashes - _ONES & ~backslashes)
    return found & _HIGH_BITS == 0


@njit
def _write_character(out, byte):
    """Write a byte of a JSON string, escaped where the server escapes it."""
    if byte >= 32 and byte != 34 and byte != 92:
        store_8(out, byte)
        return out + 1
    store_8(out, 92)
    if byte == 34 or byte == 92:
        store_8(out + 1, byte)
    elif byte == 8:
        store_8(out + 1, 98)
    elif byte == 9:
        store_8(out + 1, 116)
    elif byte == 10:
        store_8(out + 1, 110)
    elif byte == 12:
        store_8(out + 1, 102)
    elif byte == 13:
        store_8(out + 1, 114)
    else:
        store_32(out + 1, 0x30303075)
        low = byte & 15
        store_16(out + 4, (48 + (byte >> 4)) | (48 + low if low < 10 else 87 + low) << 8)
        return out + 6
    return out + 2


@njit
def _write_opaque(out, limit, address, end):
    """Write a value of a column type that JSON does not have: decimals bare, temporals quoted, others in base 64."""
    if address >= end:
        return BAD
    kind = load_u8(address)
    size, head = _length(address + 1, end)
    address += 1 + head
    if head < 0 or address + size > end:
        return BAD
    if kind == _TYPE_DECIMAL:
        if size < 2:
            return BAD
        precision, scale = load_u8(address), load_u8(address + 1)
        if scale > precision or size < 2 + decimal_size(precision, scale):
            return BAD
        if udiv(precision - scale + 8, 9) + udiv(scale + 8, 9) > _DECIMAL_GROUPS:
            return BAD
        if out + _DECIMAL_ROOM > limit:
            return NO_ROOM
        return write_decimal(out, address + 2, precision, scale)
    if kind == _TYPE_DATE or kind == _TYPE_DATETIME or kind == _TYPE_TIMESTAMP or kind == _TYPE_TIME:
        if size < 8:
            return BAD
        packed = load_64(address)
        store_8(out, 34)
        if kind == _TYPE_TIME:
            negative = packed < 0
            if negative:
                packed = -packed
            out = write_packed_time(out + 1, packed >> 24, packed & 0xFFFFFF, 6, negative)
        else:
            text = write_packed_datetime(out + 1, packed >> 24, packed & 0xFFFFFF, 6)
            out = out + 11 if kind == _TYPE_DATE and text > 0 else text
        if out < 0:
            return BAD
        store_8(out, 34)
        return out + 1
    if kind == _TYPE_VAR_STRING and is_utf8(address, size):
        # Strings of a character set that JSON functions do not convert. Source: sql-common/json_dom.cc,
        # wrapper_to_string. The server prints them unchanged; bytes that are not UTF-8 are then not text.
        return _write_quoted(out, limit, address, size)
    if out + base64_room(size) + STRING_ROOM > limit:
        return NO_ROOM
    store_64(out, 0x3A34366573616222)
    store_32(out + 8, 0x65707974)
    out = write_unsigned(out + 12, kind)
    store_8(out, 58)
    out = write_base64(out + 1, address, size)
    store_8(out, 34)
    return out + 1
