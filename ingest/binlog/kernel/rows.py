"""Row events: decodes row images to text, one row after the other.

A column plan (`ingest.binlog.rows.column_plan`) describes how to read each column's bytes. The images are written side
by side into two value buffers, one for before images and one for after images. Each image always has a value,
possibly NULL, for every column of the table.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc,untyped-decorator"

from numba import njit

from ingest.binlog.kernel.fixed_binary import write_inet4, write_inet6, write_uuid
from ingest.binlog.kernel.json import NO_ROOM, write_json, write_json_diffs
from ingest.binlog.kernel.layout import (
    ACTIVE_MAP,
    ACTIVE_TABLE_ID,
    ACTIVE_WORDS,
    BAD_VALUE,
    DELETE,
    IMAGE_DATA,
    IMAGE_LIMIT,
    IMAGE_OFFSETS,
    IMAGE_OUT,
    IMAGE_VALID,
    INSERT,
    LABEL_ADDRESS,
    LABEL_SIZE,
    LABEL_WORDS,
    LABELS_COUNT,
    LABELS_FIRST,
    MALFORMED_EVENT,
    MALFORMED_ROW,
    MAP_IS_SKIPPED,
    MAP_JSON_COLUMNS,
    MAP_LACKS_DIGITS,
    MAP_PLAN,
    MAP_WIDTH,
    MAP_WORDS,
    NO_TABLE_MAP,
    OPS,
    ORDINAL_IS_PARTIAL,
    ORDINAL_OFFSETS,
    ORDINAL_VALUES,
    PLAN_A,
    PLAN_B,
    PLAN_CHARSET,
    PLAN_OP,
    PLAN_SIGNED,
    PLAN_TABLE,
    PLAN_WORDS,
    PROBLEM_COLUMN,
    PROBLEM_END,
    PROBLEM_MAP,
    PROBLEM_REASON,
    PROBLEM_ROW,
    PROBLEM_START,
    PROBLEM_TYPE,
    PROBLEM_WORDS,
    STRING_EXPANSION,
    STRING_ROOM,
    TXN_DELETES,
    TXN_INSERTS,
    TXN_UPDATES,
    TXN_WORDS,
    UNKNOWN_DIGITS,
    UNSUPPORTED_COLUMN,
    UPDATE,
    WIDTH_MISMATCH,
    WORDS,
)
from ingest.binlog.kernel.memory import (
    fill,
    load_64,
    load_64_be,
    load_u8,
    load_u16,
    load_u32,
    shr,
    store_8,
    store_32,
    store_64,
)
from ingest.binlog.kernel.numbers import (
    NUMBER_ROOM,
    decimal_size,
    write_decimal,
    write_double,
    write_single,
    write_unsigned,
)
from ingest.binlog.kernel.precision import has_no_fractions
from ingest.binlog.kernel.strings import (
    copy_bytes,
    inflated_size,
    write_hex,
    write_string,
)
from ingest.binlog.kernel.temporal import (
    fraction_bytes,
    write_date,
    write_datetime2,
    write_hires_datetime,
    write_hires_time,
    write_hires_timestamp,
    write_old_datetime,
    write_old_time,
    write_old_timestamp,
    write_time2,
    write_timestamp2,
    write_year,
)

MALFORMED = -1
_DUMMY_TABLE_ID = 0xFFFFFF
_PARTIAL_UPDATE_ROWS = 39
_PARTIAL_JSON_UPDATES = 1

_INTEGER = OPS["INTEGER"]
_FLOAT, _DOUBLE, _DECIMAL, _YEAR, _DATE = OPS["FLOAT"], OPS["DOUBLE"], OPS["DECIMAL"], OPS["YEAR"], OPS["DATE"]
_TIME2, _DATETIME2, _TIMESTAMP2 = OPS["TIME2"], OPS["DATETIME2"], OPS["TIMESTAMP2"]
_OLD_TIME, _OLD_DATETIME, _OLD_TIMESTAMP = OPS["OLD_TIME"], OPS["OLD_DATETIME"], OPS["OLD_TIMESTAMP"]
_HIRES_TIME, _HIRES_DATETIME, _HIRES_TIMESTAMP = OPS["HIRES_TIME"], OPS["HIRES_DATETIME"], OPS["HIRES_TIMESTAMP"]
_UUID, _INET4, _INET6, _COMPRESSED = OPS["UUID"], OPS["INET4"], OPS["INET6"], OPS["COMPRESSED"]
_BIT, _ENUM, _SET, _STRING, _BINARY, _JSON = (
    OPS["BIT"],
    OPS["ENUM"],
    OPS["SET"],
    OPS["STRING"],
    OPS["BINARY"],
    OPS["JSON"],
)

_W = {name: index * 8 for name, index in WORDS.items()}
_POWERS, _SCRATCH, _MAPS, _POST_HEADERS = _W["POWERS"], _W["SCRATCH"], _W["MAPS"], _W["POST_HEADERS"]
_BAD_COLUMN, _BAD_REASON = _W["BAD_COLUMN"], _W["BAD_REASON"]
_BEFORE, _AFTER = _W["BEFORE_OFFSETS"], _W["AFTER_OFFSETS"]
_VALUE_COUNT, _VALUE_CAPACITY = _W["VALUE_COUNT"], _W["VALUE_CAPACITY"]
_ROW_COUNT, _ROW_CAPACITY = _W["ROW_COUNT"], _W["ROW_CAPACITY"]
_ROW_STARTS, _ROW_ENDS, _ROW_PAYLOAD = _W["ROW_STARTS"], _W["ROW_ENDS"], _W["ROW_PAYLOAD_ORDINALS"]
_ROW_ORDINALS, _ROW_TXN_POS, _ROW_KINDS, _ROW_TIMES = (
    _W["ROW_ORDINALS"],
    _W["ROW_TXN_POS"],
    _W["ROW_KINDS"],
    _W["ROW_TIMES"],
)
_ROW_SERVERS, _ROW_TXNS, _ROW_MAPS = _W["ROW_SERVERS"], _W["ROW_TXNS"], _W["ROW_MAPS"]
_ROW_WIDTHS, _ROW_VALUE_OFFSETS = _W["ROW_WIDTHS"], _W["ROW_VALUE_OFFSETS"]
_ORDINAL_CAPACITY, _PARTIAL_SEEN = _W["ORDINAL_CAPACITY"], _W["PARTIAL_SEEN"]
_BEFORE_ORDINALS, _AFTER_ORDINALS = _W["BEFORE_ORDINAL_OFFSETS"], _W["AFTER_ORDINAL_OFFSETS"]
_RESUME, _RESUME_ROW, _RESUME_ORDINAL, _RESUME_MAP = (
    _W["RESUME"],
    _W["RESUME_ROW"],
    _W["RESUME_ORDINAL"],
    _W["RESUME_MAP"],
)
_RESUME_KIND, _RESUME_END, _RESUME_BEFORE, _RESUME_AFTER = (
    _W["RESUME_KIND"],
    _W["RESUME_END"],
    _W["RESUME_BEFORE"],
    _W["RESUME_AFTER"],
)
_RESUME_PARTIAL, _PATCHES, _PATCH_COUNT = _W["RESUME_PARTIAL"], _W["PATCHES"], _W["PATCH_COUNT"]
_ACTIVE, _ACTIVE_COUNT = _W["ACTIVE"], _W["ACTIVE_COUNT"]
_TXN_RECORDS, _TXN_COUNT = _W["TXN_RECORDS"], _W["TXN_COUNT"]
_PROBLEM_RECORDS, _PROBLEM_COUNT = _W["PROBLEM_RECORDS"], _W["PROBLEM_COUNT"]
_PROBLEM_CAPACITY = _W["PROBLEM_CAPACITY"]
_PAYLOAD_ORDINAL = _W["PAYLOAD_ORDINAL"]


@njit
def _clear_bits(bitmap, first, count):
    """Mark `count` values from `first` on as NULL. May touch the eight bytes behind the last bit."""
    if count <= 56:
        at = bitmap + (first >> 3)
        store_64(at, load_64(at) & ~(((1 << count) - 1) << (first & 7)))
        return
    last = first + count
    while first < last and first & 7:
        at = bitmap + (first >> 3)
        store_8(at, load_u8(at) & ~(1 << (first & 7)))
        first += 1
    whole = (last - first) >> 3
    if whole > 0:
        fill(bitmap + (first >> 3), 0, whole)
        first += whole << 3
    while first < last:
        at = bitmap + (first >> 3)
        store_8(at, load_u8(at) & ~(1 << (first & 7)))
        first += 1


@njit
def _set_bits(bitmap, first, count):
    """Undo `_clear_bits`."""
    for i in range(first, first + count):
        at = bitmap + (i >> 3)
        store_8(at, load_u8(at) | 1 << (i & 7))


@njit
def _no_image(side, width, index):
    """Write an image that this kind of event does not have: all values are NULL."""
    offsets = load_64(side + 8 * IMAGE_OFFSETS) + 4 * (index + 1)
    position = load_64(side + 8 * IMAGE_OUT) - load_64(side + 8 * IMAGE_DATA)
    for i in range(width):
        store_32(offsets + 4 * i, position)
    _clear_bits(load_64(side + 8 * IMAGE_VALID), index, width)


@njit
def _write_label(out, labels, index):
    label = labels + 8 * (LABELS_FIRST + LABEL_WORDS * index)
    return copy_bytes(out, load_64(label + 8 * LABEL_ADDRESS), load_64(label + 8 * LABEL_SIZE))


@njit
def _write_enum(out, number, labels):
    """Write the label of a member, or its number if there are no labels.

    With labels, number 0 (an invalid value) is an empty string.

    `labels` is the address of their table, see `layout.LABELS_COUNT`.
    """
    if labels == 0:
        return write_unsigned(out, number)
    if number == 0:
        return out
    if number > load_64(labels + 8 * LABELS_COUNT):
        return MALFORMED
    return _write_label(out, labels, number - 1)


@njit
def _write_set(out, bits, labels):
    if labels == 0:
        return write_unsigned(out, bits)
    start = out
    for i in range(64):
        if shr(bits, i) & 1:
            if i >= load_64(labels + 8 * LABELS_COUNT):
                return MALFORMED
            if out != start:
                store_8(out, 44)
                out += 1
            out = _write_label(out, labels, i)
    return out


@njit
def _little_endian(address, size):
    """Return an unsigned little-endian number of 1 to 8 bytes."""
    if size == 8:
        return load_64(address)
    return load_64(address) & ((1 << (8 * size)) - 1)


@njit
def _add_patch(ctx, side, value):
    """Note a value whose bytes Python must turn into text: the value's number, and 1 for an after image."""
    count = load_64(ctx + _PATCH_COUNT)
    store_64(load_64(ctx + _PATCHES) + 8 * count, value << 1 | (side == ctx + _AFTER))
    store_64(ctx + _PATCH_COUNT, count + 1)


@njit
def _decode_image(ctx, side, p, end, plan, width, present, index, diffs):
    """Write one image at value `index`; return the address behind its bytes, MALFORMED or NO_ROOM.

    `present` is the address of the bitmap of columns in the image, 0 when all columns are. `diffs` is the address of
    the bitmap of JSON columns that contain only the changes of their document, 0 when no column does. A value that
    cannot be decoded but whose size is known stays empty, and BAD_COLUMN and BAD_REASON name it; the caller then
    discards the row.
    """
    offsets = load_64(side + 8 * IMAGE_OFFSETS) + 4 * (index + 1)
    valid = load_64(side + 8 * IMAGE_VALID)
    data = load_64(side + 8 * IMAGE_DATA)
    out = load_64(side + 8 * IMAGE_OUT)
    room = load_64(side + 8 * IMAGE_LIMIT) - width * NUMBER_ROOM
    if out > room:
        return NO_ROOM
    powers = load_64(ctx + _POWERS)
    count = width
    if present:
        count = 0
        for column in range(width):
            count += (load_u8(present + (column >> 3)) >> (column & 7)) & 1
    nulls = p
    p += (count + 7) >> 3
    if p > end:
        return MALFORMED
    k = 0
    bits = 0
    for column in range(width):
        if present and (load_u8(present + (column >> 3)) >> (column & 7)) & 1 == 0:
            at = valid + ((index + column) >> 3)
            store_8(at, load_u8(at) & ~(1 << ((index + column) & 7)))
            store_32(offsets, out - data)
            offsets += 4
            continue
        if k & 31 == 0:
            bits = load_u32(nulls + (k >> 3))
        k += 1
        is_null = bits & 1
        bits >>= 1
        if is_null:
            at = valid + ((index + column) >> 3)
            store_8(at, load_u8(at) & ~(1 << ((index + column) & 7)))
        else:
            step = plan + column * (PLAN_WORDS * 8)
            op = load_64(step + 8 * PLAN_OP)
            before = out
            if op == _INTEGER:
                shift = load_64(step + 8 * PLAN_B)
                value = load_64(p) << shift
                p += load_64(step + 8 * PLAN_A)
                if load_64(step + 8 * PLAN_SIGNED):
                    value >>= shift
                    if value < 0:
                        store_8(out, 45)
                        out += 1
                        value = -value
                else:
                    value = shr(value, shift)
                out = write_unsigned(out, value)
            elif op == _FLOAT:
                out = write_single(out, load_u32(p), powers)
                p += 4
            elif op == _DOUBLE:
                out = write_double(out, load_64(p), powers)
                p += 8
            elif op == _DECIMAL:
                precision, scale = load_64(step + 8 * PLAN_A), load_64(step + 8 * PLAN_B)
                out = write_decimal(out, p, precision, scale)
                p += decimal_size(precision, scale)
            elif op == _YEAR:
                out = write_year(out, p)
                p += 1
            elif op == _DATE:
                out = write_date(out, p)
                p += 3
            elif op == _TIME2:
                digits = load_64(step + 8 * PLAN_A)
                out = write_time2(out, p, digits)
                p += 3 + fraction_bytes(digits)
            elif op == _DATETIME2:
                digits = load_64(step + 8 * PLAN_A)
                out = write_datetime2(out, p, digits)
                p += 5 + fraction_bytes(digits)
            elif op == _TIMESTAMP2:
                digits = load_64(step + 8 * PLAN_A)
                out = write_timestamp2(out, p, digits)
                p += 4 + fraction_bytes(digits)
            elif op == _OLD_TIME:
                out = write_old_time(out, p)
                p += 3
            elif op == _OLD_DATETIME:
                out = write_old_datetime(out, p)
                p += 8
            elif op == _OLD_TIMESTAMP:
                out = write_old_timestamp(out, p)
                p += 4
            elif op == _BIT:
                size = load_64(step + 8 * PLAN_A)
                out = write_unsigned(out, shr(load_64_be(p), 64 - 8 * size))
                p += size
            elif op == _ENUM:
                size = load_64(step + 8 * PLAN_A)
                labels = load_64(step + 8 * PLAN_TABLE)
                if labels and out + load_64(step + 8 * PLAN_B) > room:
                    return NO_ROOM
                out = _write_enum(out, _little_endian(p, size), labels)
                p += size
            elif op == _SET:
                size = load_64(step + 8 * PLAN_A)
                labels = load_64(step + 8 * PLAN_TABLE)
                if labels and out + load_64(step + 8 * PLAN_B) > room:
                    return NO_ROOM
                out = _write_set(out, _little_endian(p, size), labels)
                p += size
            elif op == _STRING or op == _BINARY or op == _JSON:
                head = load_64(step + 8 * PLAN_A)
                size = _little_endian(p, head)
                p += head
                if p + size > end:
                    return MALFORMED
                if op == _STRING:
                    charset = load_64(step + 8 * PLAN_CHARSET)
                    if out + STRING_EXPANSION * size + STRING_ROOM > room:
                        return NO_ROOM
                    out = write_string(out, p, size, charset, load_64(step + 8 * PLAN_TABLE))
                elif op == _BINARY:
                    padded = load_64(step + 8 * PLAN_B)
                    if out + 2 * max(size, padded) + STRING_ROOM > room:
                        return NO_ROOM
                    out = write_hex(out, p, size, padded)
                else:
                    number = load_64(step + 8 * PLAN_B)
                    if diffs and load_u8(diffs + (number >> 3)) >> (number & 7) & 1:
                        out = write_json_diffs(out, room, p, size, load_64(ctx + _SCRATCH), powers)
                        _add_patch(ctx, side, index + column)
                    else:
                        out = write_json(out, room, p, size, load_64(ctx + _SCRATCH), powers)
                    if out == NO_ROOM:
                        return NO_ROOM
                p += size
            elif op == _UUID or op == _INET4 or op == _INET6:
                size = load_u8(p)
                p += 1
                if op == _UUID:
                    out = write_uuid(out, p, size)
                elif op == _INET4:
                    out = write_inet4(out, p, size)
                else:
                    out = write_inet6(out, p, size)
                p += size
            elif op == _HIRES_TIME or op == _HIRES_DATETIME or op == _HIRES_TIMESTAMP:
                size, digits = load_64(step + 8 * PLAN_A), load_64(step + 8 * PLAN_B)
                if op == _HIRES_TIME:
                    out = write_hires_time(out, p, size, digits)
                elif op == _HIRES_DATETIME:
                    out = write_hires_datetime(out, p, size, digits)
                else:
                    out = write_hires_timestamp(out, p, size, digits)
                p += size
            elif op == _COMPRESSED:
                head = load_64(step + 8 * PLAN_A)
                size = _little_endian(p, head)
                p += head
                if p + size > end:
                    return MALFORMED
                if size == 0 or load_u8(p) >> 4 == 0:
                    # Too short to compress: a zero byte and the string, or nothing.
                    stored = max(size - 1, 0)
                    if out + STRING_EXPANSION * stored + STRING_ROOM > room:
                        return NO_ROOM
                    charset = load_64(step + 8 * PLAN_CHARSET)
                    out = write_string(out, p + size - stored, stored, charset, load_64(step + 8 * PLAN_TABLE))
                else:
                    inflated = inflated_size(p, size)
                    if inflated < 0:
                        out = inflated
                    else:
                        # Reserve room for the text that Python will make, so that the size of a batch is limited.
                        taken = max(size + 8, STRING_EXPANSION * inflated) + STRING_ROOM
                        if out + taken > room:
                            return NO_ROOM
                        store_64(out, size)
                        copy_bytes(out + 8, p, size)
                        _add_patch(ctx, side, index + column)
                        out += taken
                p += size
            else:
                store_64(ctx + _BAD_COLUMN, column)
                store_64(ctx + _BAD_REASON, UNSUPPORTED_COLUMN)
                return MALFORMED
            if p > end:
                store_64(ctx + _BAD_COLUMN, column)
                return MALFORMED
            if out < 0:
                if load_64(ctx + _BAD_REASON) == 0:
                    store_64(ctx + _BAD_COLUMN, column)
                    store_64(ctx + _BAD_REASON, BAD_VALUE)
                out = before
        store_32(offsets, out - data)
        offsets += 4
    store_64(side + 8 * IMAGE_OUT, out)
    return p


@njit
def _write_ordinals(ctx, lists, row, present, width):
    """Write the ordinals of a partial image as element `row` of an Arrow list; a full image gets an empty, NULL list.

    `lists` is the address of the context words from `layout.ORDINAL_OFFSETS` on.
    """
    offsets, values = load_64(lists + 8 * ORDINAL_OFFSETS), load_64(lists + 8 * ORDINAL_VALUES)
    partial = load_64(lists + 8 * ORDINAL_IS_PARTIAL)
    at = load_u32(offsets + 4 * row)
    store_8(partial + row, 1 if present else 0)
    if present:
        store_64(ctx + _PARTIAL_SEEN, 1)
        for column in range(width):
            if (load_u8(present + (column >> 3)) >> (column & 7)) & 1:
                store_32(values + 4 * at, column)
                at += 1
    store_32(offsets + 4 * row + 4, at)


@njit
def add_problem(ctx, start, end, kind, map_number, row, column, reason):
    """Record a value or event that cannot be decoded. The caller keeps one record free before each event and row."""
    count = load_64(ctx + _PROBLEM_COUNT)
    record = load_64(ctx + _PROBLEM_RECORDS) + count * (PROBLEM_WORDS * 8)
    store_64(record + 8 * PROBLEM_START, start)
    store_64(record + 8 * PROBLEM_END, end)
    store_64(record + 8 * PROBLEM_TYPE, kind)
    store_64(record + 8 * PROBLEM_MAP, map_number)
    store_64(record + 8 * PROBLEM_ROW, row)
    store_64(record + 8 * PROBLEM_COLUMN, column)
    store_64(record + 8 * PROBLEM_REASON, reason)
    store_64(ctx + _PROBLEM_COUNT, count + 1)


@njit
def packed_integer(p, end):
    """Return a length-encoded integer below 2^63 and the address behind it, or MALFORMED."""
    if p >= end:
        return 0, MALFORMED
    first = load_u8(p)
    if first < 251:
        return first, p + 1
    size = 2 if first == 252 else 3 if first == 253 else 8
    if first == 251 or first == 255 or p + 1 + size > end:
        return 0, MALFORMED
    value = _little_endian(p + 1, size)
    return (value, p + 1 + size) if value >= 0 else (0, MALFORMED)


@njit
def _find_map(ctx, table_id):
    """Return the number of the current table map of a table id in this statement, or MALFORMED."""
    active = load_64(ctx + _ACTIVE)
    for i in range(load_64(ctx + _ACTIVE_COUNT) - 1, -1, -1):
        pair = active + i * (ACTIVE_WORDS * 8)
        if load_64(pair + 8 * ACTIVE_TABLE_ID) == table_id:
            return load_64(pair + 8 * ACTIVE_MAP)
    return MALFORMED


@njit
def _begin_rows(ctx, p, end, start, finish, code, kind, version):
    """Read the head of a rows event and store its rows as RESUME words. Return False when no rows are to be decoded."""
    if load_u8(load_64(ctx + _POST_HEADERS) + code) == 6:
        table_id = load_u32(p)
        p += 4
    else:
        table_id = load_u32(p) | load_u16(p + 4) << 32
        p += 6
    p += 2
    if version == 2:
        extra = load_u16(p)
        if extra < 2:
            add_problem(ctx, start, finish, code, -1, -1, -1, MALFORMED_EVENT)
            return False
        p += extra
    if p > end:
        add_problem(ctx, start, finish, code, -1, -1, -1, MALFORMED_EVENT)
        return False
    width, p = packed_integer(p, end)
    if p < 0:
        add_problem(ctx, start, finish, code, -1, -1, -1, MALFORMED_EVENT)
        return False
    number = _find_map(ctx, table_id)
    if number < 0:
        # A statement may end with an event for no table: the server's dummy id, no columns, no rows.
        if table_id != _DUMMY_TABLE_ID or width > 0 or p < end:
            add_problem(ctx, start, finish, code, -1, -1, -1, NO_TABLE_MAP)
        return False
    entry = load_64(ctx + _MAPS) + number * (MAP_WORDS * 8)
    if load_64(entry + 8 * MAP_IS_SKIPPED):
        return False
    if width != load_64(entry + 8 * MAP_WIDTH):
        add_problem(ctx, start, finish, code, number, -1, -1, WIDTH_MISMATCH)
        return False
    size = (width + 7) >> 3
    bitmaps = 2 if kind == UPDATE else 1
    if p + bitmaps * size > end:
        add_problem(ctx, start, finish, code, number, -1, -1, MALFORMED_EVENT)
        return False
    first = 0 if _all_present(p, width) else p
    p += size
    second = first
    if kind == UPDATE:
        second = 0 if _all_present(p, width) else p
        p += size
    if load_64(entry + 8 * MAP_LACKS_DIGITS) and not has_no_fractions(
        load_64(ctx + _SCRATCH), p, end, load_64(entry + 8 * MAP_PLAN), width, kind, first, second
    ):
        add_problem(ctx, start, finish, code, number, -1, -1, UNKNOWN_DIGITS)
        return False
    store_64(ctx + _RESUME_ROW, p)
    store_64(ctx + _RESUME_ORDINAL, 0)
    store_64(ctx + _RESUME_MAP, number)
    store_64(ctx + _RESUME_KIND, kind)
    store_64(ctx + _RESUME_END, end)
    store_64(ctx + _RESUME_BEFORE, first)
    store_64(ctx + _RESUME_AFTER, second)
    store_64(ctx + _RESUME_PARTIAL, code == _PARTIAL_UPDATE_ROWS)
    return True


@njit
def _value_options(ctx, p, end, json_columns):
    """Read the part before the after image of a PARTIAL_UPDATE_ROWS event.

    Return the bitmap of JSON columns that contain changes, 0 when no column does, and the address behind this part, or
    MALFORMED when the part does not fit.

    Source: server, sql/log_event.cc, Rows_log_event::print_verbose_one_row.
    """
    options, p = packed_integer(p, end)
    if p < 0 or options == 0:
        return 0, p
    size = (json_columns + 7) >> 3
    if options != _PARTIAL_JSON_UPDATES or p + size > end:
        return 0, MALFORMED
    return p, p + size


@njit
def _all_present(bitmap, width):
    for i in range(width >> 3):
        if load_u8(bitmap + i) != 0xFF:
            return False
    rest = (1 << (width & 7)) - 1
    return load_u8(bitmap + (width >> 3)) & rest == rest if rest else True


@njit
def decode_rows(ctx, p, end, start, finish, code, kind, version, timestamp, server, txn_pos):
    """Decode a rows event, or continue with one: return True when it is done, False when buffers are full.

    `p` and `end` are the addresses of its body, `start` and `finish` its physical offsets.
    """
    if load_64(ctx + _RESUME) == 0:
        if not _begin_rows(ctx, p, end, start, finish, code, kind, version):
            return True
        store_64(ctx + _RESUME, 1)
    p = load_64(ctx + _RESUME_ROW)
    end = load_64(ctx + _RESUME_END)
    ordinal = load_64(ctx + _RESUME_ORDINAL)
    number = load_64(ctx + _RESUME_MAP)
    kind = load_64(ctx + _RESUME_KIND)
    present_before, present_after = load_64(ctx + _RESUME_BEFORE), load_64(ctx + _RESUME_AFTER)
    entry = load_64(ctx + _MAPS) + number * (MAP_WORDS * 8)
    plan, width = load_64(entry + 8 * MAP_PLAN), load_64(entry + 8 * MAP_WIDTH)
    before, after = ctx + _BEFORE, ctx + _AFTER
    is_partial, json_columns = load_64(ctx + _RESUME_PARTIAL), load_64(entry + 8 * MAP_JSON_COLUMNS)
    txn = load_64(ctx + _TXN_COUNT)
    record = load_64(ctx + _TXN_RECORDS) + txn * (TXN_WORDS * 8)
    payload_ordinal = load_64(ctx + _PAYLOAD_ORDINAL)
    row = load_64(ctx + _ROW_COUNT)
    rows_end = load_64(ctx + _ROW_CAPACITY)
    index = load_64(ctx + _VALUE_COUNT)
    values_end = min(load_64(ctx + _VALUE_CAPACITY), load_64(ctx + _ORDINAL_CAPACITY))
    while p < end or ordinal == 0:
        if (
            row >= rows_end
            or index + width > values_end
            or load_64(ctx + _PROBLEM_COUNT) + 1 >= load_64(ctx + _PROBLEM_CAPACITY)
        ):
            break
        out_before, out_after = load_64(before + 8 * IMAGE_OUT), load_64(after + 8 * IMAGE_OUT)
        patches = load_64(ctx + _PATCH_COUNT)
        diffs = 0
        store_64(ctx + _BAD_REASON, 0)
        store_64(ctx + _BAD_COLUMN, -1)
        at = p
        if kind == INSERT:
            _no_image(before, width, index)
        else:
            at = _decode_image(ctx, before, at, end, plan, width, present_before, index, 0)
        if kind == DELETE:
            if at >= 0:
                _no_image(after, width, index)
        elif at >= 0:
            if is_partial:
                diffs, at = _value_options(ctx, at, end, json_columns)
            if at >= 0:
                at = _decode_image(ctx, after, at, end, plan, width, present_after, index, diffs)
        if at == NO_ROOM:
            _take_back(ctx, out_before, out_after, patches, index, width)
            break
        reason = load_64(ctx + _BAD_REASON)
        if at == MALFORMED or (at == p and p < end):
            _take_back(ctx, out_before, out_after, patches, index, width)
            add_problem(
                ctx,
                start,
                finish,
                code,
                number,
                ordinal,
                load_64(ctx + _BAD_COLUMN),
                reason if reason else MALFORMED_ROW,
            )
            store_64(ctx + _RESUME, 0)
            p = end
            ordinal += 1
            break
        p = at
        if reason:
            _take_back(ctx, out_before, out_after, patches, index, width)
            add_problem(ctx, start, finish, code, number, ordinal, load_64(ctx + _BAD_COLUMN), reason)
            ordinal += 1
            continue
        store_64(load_64(ctx + _ROW_STARTS) + 8 * row, start)
        store_64(load_64(ctx + _ROW_ENDS) + 8 * row, finish)
        store_32(load_64(ctx + _ROW_PAYLOAD) + 4 * row, payload_ordinal)
        store_32(load_64(ctx + _ROW_ORDINALS) + 4 * row, ordinal)
        store_64(load_64(ctx + _ROW_TXN_POS) + 8 * row, txn_pos)
        store_32(load_64(ctx + _ROW_KINDS) + 4 * row, kind)
        store_64(load_64(ctx + _ROW_TIMES) + 8 * row, timestamp)
        store_64(load_64(ctx + _ROW_SERVERS) + 8 * row, server)
        store_32(load_64(ctx + _ROW_TXNS) + 4 * row, txn)
        store_32(load_64(ctx + _ROW_MAPS) + 4 * row, number)
        store_32(load_64(ctx + _ROW_WIDTHS) + 4 * row, width)
        _write_ordinals(ctx, ctx + _BEFORE_ORDINALS, row, 0 if kind == INSERT else present_before, width)
        _write_ordinals(ctx, ctx + _AFTER_ORDINALS, row, 0 if kind == DELETE else present_after, width)
        index += width
        row += 1
        store_32(load_64(ctx + _ROW_VALUE_OFFSETS) + 4 * row, index)
        count = record + 8 * (TXN_INSERTS if kind == INSERT else TXN_UPDATES if kind == UPDATE else TXN_DELETES)
        store_64(count, load_64(count) + 1)
        ordinal += 1
    store_64(ctx + _ROW_COUNT, row)
    store_64(ctx + _VALUE_COUNT, index)
    store_64(ctx + _RESUME_ROW, p)
    store_64(ctx + _RESUME_ORDINAL, ordinal)
    if p < end or ordinal == 0:
        return False
    store_64(ctx + _RESUME, 0)
    return True


@njit
def _take_back(ctx, out_before, out_after, patches, index, width):
    """Undo an unfinished row: the next row overwrites it."""
    before, after = ctx + _BEFORE, ctx + _AFTER
    store_64(before + 8 * IMAGE_OUT, out_before)
    store_64(after + 8 * IMAGE_OUT, out_after)
    store_64(ctx + _PATCH_COUNT, patches)
    _set_bits(load_64(before + 8 * IMAGE_VALID), index, width)
    _set_bits(load_64(after + 8 * IMAGE_VALID), index, width)
