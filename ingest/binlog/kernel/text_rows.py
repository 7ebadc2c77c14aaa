"""Splits the rows of a query, as they come from the socket, into texts.

Every packet has a head of four bytes: the length of its payload and a sequence number. A row is one packet; each value
is its length and its text, or the byte 0xFB for NULL. Source: MySQL's internals manual, "Text Resultset".
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc,untyped-decorator"

from numba import njit

from ingest.binlog.kernel.memory import copy, load_64, load_u8, load_u16, load_u32, store_8, store_32, store_64
from ingest.binlog.kernel.numbers import write_single
from ingest.binlog.kernel.strings import write_hex
from ingest.binlog.kernel.text_row_layout import (
    BAD_ROW,
    BAD_SEQUENCE,
    END,
    ERROR,
    FULL,
    LONG,
    LONGEST,
    MORE,
    WORDS,
)

_SOURCE = WORDS["SOURCE"]
_SOURCE_POS = WORDS["SOURCE_POS"]
_SOURCE_END = WORDS["SOURCE_END"]
_SEQUENCE = WORDS["SEQUENCE"]
_COLUMNS = WORDS["COLUMNS"]
_IS_BINARY = WORDS["IS_BINARY"]
_VALUES = WORDS["VALUES"]
_VALUES_SIZE = WORDS["VALUES_SIZE"]
_PRESENT = WORDS["PRESENT"]
_OFFSETS = WORDS["OFFSETS"]
_TEXT = WORDS["TEXT"]
_TEXT_END = WORDS["TEXT_END"]
_TEXT_SIZE = WORDS["TEXT_SIZE"]

_HEAD = 4
_NULL = 0xFB
_LONGEST_END = 8
# `write_hex` writes `0x` and whole words.
_HEX_EXCESS = 16


@njit
def split(ctx):
    """Split rows until one of the statuses; the rest of the source begins at SOURCE_POS."""
    source, end = load_64(ctx + _SOURCE), load_64(ctx + _SOURCE_END)
    at = load_64(ctx + _SOURCE_POS)
    columns = load_64(ctx + _COLUMNS)
    status = MORE
    while True:
        if end - at < _HEAD:
            break
        length = load_u32(source + at) & 0xFFFFFF
        if length == LONGEST:
            status = LONG
            break
        if end - at < _HEAD + length:
            break
        if load_u8(source + at + 3) != load_64(ctx + _SEQUENCE):
            status = BAD_SEQUENCE
            break
        first = load_u8(source + at + _HEAD) if length else 0
        if first == 0xFF:
            status = ERROR
            break
        if first == 0xFE and length <= _LONGEST_END:
            status = END
            break
        room = load_64(ctx + _TEXT_SIZE) - load_64(ctx + _TEXT_END)
        if room < 2 * length + columns * _HEX_EXCESS or load_64(ctx + _VALUES_SIZE) < load_64(ctx + _VALUES) + columns:
            status = FULL
            break
        if not _split_row(ctx, source + at + _HEAD, length, columns):
            status = BAD_ROW
            break
        store_64(ctx + _SEQUENCE, (load_64(ctx + _SEQUENCE) + 1) & 0xFF)
        at += _HEAD + length
    store_64(ctx + _SOURCE_POS, at)
    return status


@njit
def _split_row(ctx, at, length, columns):
    """Append the values of one row; return whether they fill its packet exactly."""
    end = at + length
    is_binary, present = load_64(ctx + _IS_BINARY), load_64(ctx + _PRESENT)
    offsets, text = load_64(ctx + _OFFSETS), load_64(ctx + _TEXT)
    value, filled = load_64(ctx + _VALUES), load_64(ctx + _TEXT_END)
    for column in range(columns):
        if at >= end:
            return False
        size = load_u8(at)
        at += 1
        store_8(present + value, 0 if size == _NULL else 1)
        if size == _NULL:
            size = 0
        else:
            if size > _NULL:
                wide = 2 if size == 0xFC else 3 if size == 0xFD else 8
                if size == 0xFF or end - at < wide:
                    return False
                if wide == 2:
                    size = load_u16(at)
                elif wide == 3:
                    size = load_u16(at) | load_u8(at + 2) << 16
                else:
                    size = load_64(at)
                at += wide
            if size < 0 or size > end - at:
                return False
            if load_u8(is_binary + column):
                filled = write_hex(text + filled, at, size, size) - text
            else:
                copy(text + filled, at, size)
                filled += size
            at += size
        value += 1
        store_32(offsets + (value << 2), filled)
    store_64(ctx + _VALUES, value)
    store_64(ctx + _TEXT_END, filled)
    return at == end


@njit
def write_singles(bits, count, text, offsets, powers):
    """Write numbers of 32 bits as texts, one after the other, and the end of each; return the bytes of text, or -1."""
    filled = 0
    for number in range(count):
        end = write_single(text + filled, load_u32(bits + (number << 2)), powers)
        if end < text:
            return -1
        filled = end - text
        store_32(offsets + ((number + 1) << 2), filled)
    return filled
