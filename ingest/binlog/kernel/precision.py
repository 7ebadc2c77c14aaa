"""Tests whether temporal columns of a MariaDB table have no fraction, when only their bytes can tell.

MariaDB from 5.3 on logs TIME, DATETIME and TIMESTAMP in its own formats without the number of fraction digits,
although the size of a value depends on it. Before 10.1 there are only these formats; later, columns made under
mysql56_temporal_format=OFF have them. A snapshot contains the number of digits. Without a snapshot, a rows event is
read as having no fractions only when no other reading is possible. In a possible reading, rows end where the event
ends, the unused bits of a null bitmap are set (server, sql/rpl_record.cc, `pack_row`), and values are in range.

Numbers of digits that take the same bytes are one `form`: form 0 is no fraction, forms 1 to 3 are the next sizes. A
DATETIME value that is a date as a number of 14 digits, and not a date in microseconds, fixes its column to form 0:
other dates look like this less than once in a million times.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc,untyped-decorator"

from numba import njit

from ingest.binlog.kernel.layout import (
    INSERT,
    OPS,
    PLAN_A,
    PLAN_B,
    PLAN_OP,
    PLAN_WORDS,
    UPDATE,
)
from ingest.binlog.kernel.memory import load_64, load_64_be, load_u8, load_u16, load_u32_be, shr, store_64, udiv, urem
from ingest.binlog.kernel.numbers import decimal_size, power_of_ten
from ingest.binlog.kernel.temporal import HIRES_ZERO_SECONDS, fraction_bytes

_FORMS = 4
_MOST_COLUMNS = 32
_MOST_FREE = 6
"""Columns whose forms are tried: at most 4096 readings of an event."""
_MOST_VALUES = 1 << 20
"""Most values to look at for one event, in all its readings."""
_COLUMN_WORDS = 3
_FORM, _IS_SEEN, _IS_HELD = 0, 8, 16
_VALUES_READ = _MOST_COLUMNS * _COLUMN_WORDS * 8
_FAILS = -1

_TIME, _DATETIME, _TIMESTAMP = OPS["OLD_TIME"], OPS["OLD_DATETIME"], OPS["OLD_TIMESTAMP"]
_TIME2, _DATETIME2, _TIMESTAMP2 = OPS["TIME2"], OPS["DATETIME2"], OPS["TIMESTAMP2"]
_INTEGER, _FLOAT, _DOUBLE, _DECIMAL = OPS["INTEGER"], OPS["FLOAT"], OPS["DOUBLE"], OPS["DECIMAL"]
_YEAR, _DATE, _BIT, _ENUM, _SET = OPS["YEAR"], OPS["DATE"], OPS["BIT"], OPS["ENUM"], OPS["SET"]
_STRING, _BINARY, _COMPRESSED = OPS["STRING"], OPS["BINARY"], OPS["COMPRESSED"]

_DIGITS = (0, 2, 5, 6)
"""Most digits of each form of TIME and DATETIME. A TIMESTAMP has two digits a byte."""
_TIME_SIZES = (3, 4, 5, 6)
_DATETIME_SIZES = (8, 6, 7, 8)
_MOST_SECONDS = 10000 * 13 * 32 * 86400


@njit
def has_no_fractions(words, p, end, plan, width, kind, before, after):
    """Return whether the rows between `p` and `end` provably contain no fractions.

    `words` is scratch space. `before` and `after` are the bitmaps of columns in the images, 0 for all columns.
    """
    columns = 0
    for column in range(width):
        if _is_old_temporal(load_64(plan + column * (PLAN_WORDS * 8) + 8 * PLAN_OP)):
            columns += 1
    if columns > _MOST_COLUMNS:
        return False
    for word in range(columns * _COLUMN_WORDS):
        store_64(words + 8 * word, 0)
    store_64(words + _VALUES_READ, 0)
    if _read(words, p, end, plan, width, kind, before, after, True) == _FAILS:
        return False
    free = 0
    for column in range(columns):
        free += 1 - load_64(words + column * (_COLUMN_WORDS * 8) + _IS_HELD)
    if free > _MOST_FREE:
        return False
    while _next_forms(words, columns):
        if _differs(words, columns) and _read(words, p, end, plan, width, kind, before, after, False) != _FAILS:
            return False
    return True


@njit
def _is_old_temporal(op):
    return op == _TIME or op == _DATETIME or op == _TIMESTAMP


@njit
def _next_forms(words, columns):
    """Switch to the next forms of the columns that are not fixed; return False after the last combination."""
    for column in range(columns):
        at = words + column * (_COLUMN_WORDS * 8)
        if load_64(at + _IS_HELD):
            continue
        form = load_64(at + _FORM) + 1
        if form < _FORMS:
            store_64(at + _FORM, form)
            return True
        store_64(at + _FORM, 0)
    return False


@njit
def _differs(words, columns):
    """Return whether a column with values has a form other than 0; if not, the reading equals the first one."""
    for column in range(columns):
        at = words + column * (_COLUMN_WORDS * 8)
        if load_64(at + _FORM) and load_64(at + _IS_SEEN):
            return True
    return False


@njit
def _read(words, p, end, plan, width, kind, before, after, is_first):
    """Read all rows; return `_FAILS` when they cannot be read with these forms.

    When there are too many values to look at, the first reading fails, and any other reading counts as possible.
    """
    while p < end:
        values = load_64(words + _VALUES_READ) + width
        if values > _MOST_VALUES:
            return _FAILS if is_first else 0
        store_64(words + _VALUES_READ, values)
        start = p
        p = _read_image(words, p, end, plan, width, after if kind == INSERT else before, is_first)
        if p >= 0 and kind == UPDATE:
            p = _read_image(words, p, end, plan, width, after, is_first)
        if p <= start:
            return _FAILS
    return 0


@njit
def _is_set(bitmap, bit):
    return load_u8(bitmap + (bit >> 3)) >> (bit & 7) & 1


@njit
def _read_image(words, p, end, plan, width, present, is_first):
    """Return the address behind an image, or `_FAILS`. The first reading marks columns with values and fixes some."""
    count = width
    if present:
        count = 0
        for column in range(width):
            count += _is_set(present, column)
    nulls = p
    p += (count + 7) >> 3
    if p > end:
        return _FAILS
    rest = 0xFF << (count & 7) & 0xFF
    if count & 7 and load_u8(p - 1) & rest != rest:
        return _FAILS
    bit = 0
    of_column = words
    for column in range(width):
        step = plan + column * (PLAN_WORDS * 8)
        op = load_64(step + 8 * PLAN_OP)
        is_there = present == 0 or _is_set(present, column)
        if is_there:
            is_there = _is_set(nulls, bit) == 0
            bit += 1
        if _is_old_temporal(op):
            if is_there:
                form = load_64(of_column + _FORM)
                if not _is_in_range(op, form, p):
                    return _FAILS
                if is_first:
                    store_64(of_column + _IS_SEEN, 1)
                    if op == _DATETIME and load_64(p) and not _is_in_range(op, _FORMS - 1, p):
                        store_64(of_column + _IS_HELD, 1)
                p += _size_of(op, form)
            of_column += _COLUMN_WORDS * 8
        elif is_there:
            p = _behind(step, op, p)
        if p < 0 or p > end:
            return _FAILS
    return p


@njit
def _size_of(op, form):
    if op == _TIME:
        return _TIME_SIZES[form]
    if op == _DATETIME:
        return _DATETIME_SIZES[form]
    return 4 + form


@njit
def _is_in_range(op, form, p):
    """Return whether the bytes may be a value of a column of this form, with the form's most digits."""
    if op == _TIMESTAMP:
        return form == 0 or shr(load_u32_be(p + 4), 32 - 8 * form) < power_of_ten(2 * form)
    if form == 0:
        return _is_clock(_signed_24(p), 838) if op == _TIME else _is_moment(load_64(p))
    unit = power_of_ten(_DIGITS[form])
    size = _size_of(op, form)
    value = shr(load_64_be(p), 64 - 8 * size) if size < 8 else load_64_be(p)
    if op == _TIME:
        return 0 < value < 2 * HIRES_ZERO_SECONDS * unit
    return 0 <= value < _MOST_SECONDS * unit


@njit
def _signed_24(p):
    """Return the magnitude of a signed number of three bytes."""
    value = load_u16(p) | load_u8(p + 2) << 16
    return 0x1000000 - value if value & 0x800000 else value


@njit
def _is_clock(number, hours):
    """Return whether a number is hhmmss with at most `hours` hours."""
    minutes = udiv(number, 100)
    return urem(number, 100) < 60 and urem(minutes, 100) < 60 and udiv(minutes, 100) <= hours


@njit
def _is_moment(number):
    """Return whether a number is YYYYMMDDhhmmss; months and days may be 0."""
    if number < 0 or number > 99_991_231_235_959:
        return False
    date = udiv(number, 1_000_000)
    return _is_clock(number - date * 1_000_000, 23) and urem(date, 100) <= 31 and urem(udiv(date, 100), 100) <= 12


@njit
def _behind(step, op, p):
    """Return the address behind a value of any other type, `_FAILS` for a type that is not decoded."""
    if op == _STRING or op == _BINARY or op == _COMPRESSED:
        head = load_64(step + 8 * PLAN_A)
        return p + head + (load_64(p) & ((1 << (8 * head)) - 1))
    if op == _INTEGER or op == _BIT or op == _ENUM or op == _SET:
        return p + load_64(step + 8 * PLAN_A)
    if op == _DECIMAL:
        return p + decimal_size(load_64(step + 8 * PLAN_A), load_64(step + 8 * PLAN_B))
    if op == _DATE:
        return p + 3
    if op == _FLOAT:
        return p + 4
    if op == _DOUBLE:
        return p + 8
    if op == _YEAR:
        return p + 1
    if op == _TIME2:
        return p + 3 + fraction_bytes(load_64(step + 8 * PLAN_A))
    if op == _DATETIME2:
        return p + 5 + fraction_bytes(load_64(step + 8 * PLAN_A))
    if op == _TIMESTAMP2:
        return p + 4 + fraction_bytes(load_64(step + 8 * PLAN_A))
    return _FAILS
