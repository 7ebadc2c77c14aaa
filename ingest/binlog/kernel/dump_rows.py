"""Splits the rows of INSERT statements, as programs write them into dumps, into texts.

A row is `(value,value)`. A value is NULL, a number, 0x and hex, b'0101', or a string in single or double quotes with
the escapes of mysql_real_escape_string, which `_binary` may precede. mydumper also writes texts as 0x and hex, and JSON
documents as `CONVERT("..." USING UTF8MB4)`. Source: MySQL's manual, "String Literals".
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc,untyped-decorator"

from numba import njit

from ingest.binlog.kernel.dump_row_layout import BAD, BINARY, BITS, END, MORE, NUMBER, TEXT, WORDS
from ingest.binlog.kernel.memory import load_64, load_u8, load_u32, store_8, store_32, store_64

_SOURCE = WORDS["SOURCE"]
_SOURCE_POS = WORDS["SOURCE_POS"]
_SOURCE_END = WORDS["SOURCE_END"]
_HEAD = WORDS["HEAD"]
_HEAD_SIZE = WORDS["HEAD_SIZE"]
_COLUMNS = WORDS["COLUMNS"]
_KINDS = WORDS["KINDS"]
_VALUES = WORDS["VALUES"]
_PRESENT = WORDS["PRESENT"]
_OFFSETS = WORDS["OFFSETS"]
_TEXT = WORDS["TEXT"]
_TEXT_END = WORDS["TEXT_END"]

# Returned instead of an address.
_NEEDS_MORE = -1
_IS_BAD = -2


@njit
def split(ctx):
    """Split rows until one of the statuses; the rest of the source begins at SOURCE_POS."""
    source = load_64(ctx + _SOURCE)
    at, end = source + load_64(ctx + _SOURCE_POS), source + load_64(ctx + _SOURCE_END)
    status = MORE
    while True:
        values, filled = load_64(ctx + _VALUES), load_64(ctx + _TEXT_END)
        following = _split_row(ctx, at, end)
        if following >= 0:
            following = _skip_blanks(following, end)
            if following >= end:
                following = _NEEDS_MORE
        if following < 0:
            store_64(ctx + _VALUES, values)
            store_64(ctx + _TEXT_END, filled)
            status = MORE if following == _NEEDS_MORE else BAD
            break
        sign = load_u8(following)
        if sign != 0x2C and sign != 0x3B:
            store_64(ctx + _VALUES, values)
            store_64(ctx + _TEXT_END, filled)
            status = BAD
            break
        at = following + 1
        if sign == 0x3B:
            following = _skip_head(ctx, _skip_blanks(at, end), end)
            if following < 0:
                status = END
                break
            at = following
    store_64(ctx + _SOURCE_POS, at - source)
    return status


@njit
def _skip_blanks(at, end):
    while at < end:
        sign = load_u8(at)
        if sign != 0x20 and sign != 0x0A and sign != 0x0D and sign != 0x09:
            break
        at += 1
    return at


@njit
def _skip_head(ctx, at, end):
    """Return the address behind the head of the next statement; a negative number if it has another head."""
    size = load_64(ctx + _HEAD_SIZE)
    if size == 0 or end - at < size:
        return _NEEDS_MORE
    head = load_64(ctx + _HEAD)
    for place in range(size):
        if load_u8(at + place) != load_u8(head + place):
            return _IS_BAD
    return at + size


@njit
def _split_row(ctx, at, end):
    """Append the values of a row; return the address behind its parenthesis, or a negative number."""
    at = _skip_blanks(at, end)
    if at >= end:
        return _NEEDS_MORE
    if load_u8(at) != 0x28:
        return _IS_BAD
    at += 1
    columns, kinds = load_64(ctx + _COLUMNS), load_64(ctx + _KINDS)
    for column in range(columns):
        at = _split_value(ctx, _skip_blanks(at, end), end, load_u8(kinds + column))
        if at < 0:
            return at
        at = _skip_blanks(at, end)
        if at >= end:
            return _NEEDS_MORE
        if load_u8(at) != (0x29 if column == columns - 1 else 0x2C):
            return _IS_BAD
        at += 1
    return at


@njit
def _split_value(ctx, at, end, kind):
    """Append a value; return the address behind it, or a negative number."""
    if at >= end:
        return _NEEDS_MORE
    sign = load_u8(at)
    if sign == 0x4E or sign == 0x6E:
        return _null(ctx, at, end)
    if sign == 0x27 or sign == 0x22:
        return _string(ctx, at + 1, end, sign, kind)
    if kind == NUMBER:
        return _number(ctx, at, end)
    if sign == 0x5F:
        return _introduced(ctx, at, end, kind)
    if sign == 0x30:
        return _hex_text(ctx, at, end) if kind == TEXT else _hex(ctx, at, end)
    if kind == TEXT:
        return _converted(ctx, at, end, kind) if sign == 0x43 else _IS_BAD
    if kind == BITS and (sign == 0x62 or sign == 0x42):
        return _bits(ctx, at, end)
    return _IS_BAD


@njit
def _append(ctx, present, filled):
    """Note that a value ends where the text is filled up to."""
    value = load_64(ctx + _VALUES)
    store_8(load_64(ctx + _PRESENT) + value, present)
    store_32(load_64(ctx + _OFFSETS) + ((value + 1) << 2), filled)
    store_64(ctx + _VALUES, value + 1)
    store_64(ctx + _TEXT_END, filled)


@njit
def _null(ctx, at, end):
    if end - at < 5:
        return _NEEDS_MORE
    is_null = load_u8(at + 1) | 0x20 == 0x75 and load_u8(at + 2) | 0x20 == 0x6C and load_u8(at + 3) | 0x20 == 0x6C
    if not is_null:
        return _IS_BAD
    _append(ctx, 0, load_64(ctx + _TEXT_END))
    return at + 4


@njit
def _is_of_number(sign):
    return 0x30 <= sign <= 0x39 or sign == 0x2D or sign == 0x2B or sign == 0x2E or sign == 0x65 or sign == 0x45


@njit
def _number(ctx, at, end):
    text, filled = load_64(ctx + _TEXT), load_64(ctx + _TEXT_END)
    begin = at
    while at < end:
        sign = load_u8(at)
        if not _is_of_number(sign):
            break
        store_8(text + filled, sign)
        filled += 1
        at += 1
    if at >= end:
        return _NEEDS_MORE
    if at == begin:
        return _IS_BAD
    _append(ctx, 1, filled)
    return at


@njit
def _hex_digit(value):
    return value + (0x30 if value < 10 else 0x37)


@njit
def _string(ctx, at, end, quote, kind):
    text, filled = load_64(ctx + _TEXT), load_64(ctx + _TEXT_END)
    is_hex = kind == BINARY or kind == BITS
    if is_hex:
        store_8(text + filled, 0x30)
        store_8(text + filled + 1, 0x78)
        filled += 2
    begin = filled
    while True:
        if at >= end:
            return _NEEDS_MORE
        sign = load_u8(at)
        at += 1
        if sign == quote:
            if at >= end:
                return _NEEDS_MORE
            if load_u8(at) != quote:
                break
            at += 1
        elif sign == 0x5C:
            if at >= end:
                return _NEEDS_MORE
            sign = _unescaped(load_u8(at))
            if sign < 0:
                return _IS_BAD
            at += 1
        if is_hex:
            store_8(text + filled, _hex_digit(sign >> 4))
            store_8(text + filled + 1, _hex_digit(sign & 15))
            filled += 2
        elif kind == NUMBER and not _is_of_number(sign):
            return _IS_BAD
        else:
            store_8(text + filled, sign)
            filled += 1
    if kind == NUMBER and filled == begin:
        return _IS_BAD
    _append(ctx, 1, filled)
    return at


@njit
def _unescaped(sign):
    """Return the byte that a byte behind a backslash means; -1 for % and _, which keep their backslash."""
    if sign == 0x30:
        return 0
    if sign == 0x62:
        return 8
    if sign == 0x6E:
        return 10
    if sign == 0x72:
        return 13
    if sign == 0x74:
        return 9
    if sign == 0x5A:
        return 26
    if sign == 0x25 or sign == 0x5F:
        return -1
    return sign


@njit
def _introduced(ctx, at, end, kind):
    """Split a string behind `_binary`."""
    if end - at < 8:
        return _NEEDS_MORE
    # `_binary` as two numbers: its first four bytes and its last four.
    if load_u32(at) != 0x6E69625F or load_u32(at + 3) != 0x7972616E:
        return _IS_BAD
    at = _skip_blanks(at + 7, end)
    if at >= end:
        return _NEEDS_MORE
    quote = load_u8(at)
    if quote != 0x27 and quote != 0x22:
        return _IS_BAD
    return _string(ctx, at + 1, end, quote, kind)


@njit
def _converted(ctx, at, end, kind):
    """Split a string in `CONVERT("..." USING UTF8MB4)`."""
    if end - at < 9:
        return _NEEDS_MORE
    # `CONVERT(` as two numbers.
    if load_u32(at) != 0x564E4F43 or load_u32(at + 4) != 0x28545245:
        return _IS_BAD
    quote = load_u8(at + 8)
    if quote != 0x27 and quote != 0x22:
        return _IS_BAD
    values, filled = load_64(ctx + _VALUES), load_64(ctx + _TEXT_END)
    at = _string(ctx, at + 9, end, quote, kind)
    if at < 0:
        return at
    following = _IS_BAD
    if end - at < 15:
        following = _NEEDS_MORE
    elif (
        load_u32(at) == 0x49535520
        and load_u32(at + 4) == 0x5520474E
        and load_u32(at + 8) == 0x4D384654
        and load_u8(at + 12) == 0x42
        and load_u8(at + 13) == 0x34
        and load_u8(at + 14) == 0x29
    ):
        following = at + 15
    if following < 0:
        store_64(ctx + _VALUES, values)
        store_64(ctx + _TEXT_END, filled)
    return following


@njit
def _hex(ctx, at, end):
    """Split 0x and hex digits, of which there may be an odd number."""
    if end - at < 3:
        return _NEEDS_MORE
    if load_u8(at + 1) | 0x20 != 0x78:
        return _IS_BAD
    at += 2
    text, filled = load_64(ctx + _TEXT), load_64(ctx + _TEXT_END)
    store_8(text + filled, 0x30)
    store_8(text + filled + 1, 0x78)
    filled += 2
    begin = at
    while at < end:
        sign = load_u8(at)
        if 0x61 <= sign <= 0x66:
            sign -= 0x20
        if not (0x30 <= sign <= 0x39 or 0x41 <= sign <= 0x46):
            break
        store_8(text + filled, sign)
        filled += 1
        at += 1
    if at >= end:
        return _NEEDS_MORE
    if (at - begin) & 1:
        return _IS_BAD
    _append(ctx, 1, filled)
    return at


@njit
def _nibble(sign):
    """Return the number of a hex digit; -1 if it is none."""
    if 0x30 <= sign <= 0x39:
        return sign - 0x30
    sign |= 0x20
    return sign - 0x57 if 0x61 <= sign <= 0x66 else -1


@njit
def _hex_text(ctx, at, end):
    """Split 0x and hex digits that are the bytes of a text."""
    if end - at < 3:
        return _NEEDS_MORE
    if load_u8(at + 1) | 0x20 != 0x78:
        return _IS_BAD
    at += 2
    text, filled = load_64(ctx + _TEXT), load_64(ctx + _TEXT_END)
    while at + 1 < end:
        high, low = _nibble(load_u8(at)), _nibble(load_u8(at + 1))
        if high < 0:
            break
        if low < 0:
            return _IS_BAD
        store_8(text + filled, high << 4 | low)
        filled += 1
        at += 2
    if at + 1 >= end:
        return _NEEDS_MORE
    _append(ctx, 1, filled)
    return at


@njit
def _bits(ctx, at, end):
    """Split b'0101', which stays as it is, without its quotes."""
    if end - at < 3:
        return _NEEDS_MORE
    if load_u8(at + 1) != 0x27:
        return _IS_BAD
    at += 2
    text, filled = load_64(ctx + _TEXT), load_64(ctx + _TEXT_END)
    store_8(text + filled, 0x62)
    filled += 1
    while at < end:
        sign = load_u8(at)
        if sign != 0x30 and sign != 0x31:
            break
        store_8(text + filled, sign)
        filled += 1
        at += 1
    if at >= end:
        return _NEEDS_MORE
    if load_u8(at) != 0x27:
        return _IS_BAD
    _append(ctx, 1, filled)
    return at + 1
