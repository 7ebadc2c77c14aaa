"""The one pass over a binlog: headers, checksums, transactions, statements and rows.

`run` walks the events of a window of bytes. It keeps all of its state in the context block, so it can come
back at any event, or between two rows of one, and go on later: with the next window, with fresh output
buffers, or after Python took a new table map in.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc,untyped-decorator"

from numba import njit, types

from ingest.binlog.kernel.crc import crc_update
from ingest.binlog.kernel.layout import (
    ACT_ANNOTATE,
    ACT_ANONYMOUS_GTID,
    ACT_CLOSE,
    ACT_CONTEXT,
    ACT_ENCRYPTION,
    ACT_FORMAT,
    ACT_GTID,
    ACT_GTID_TAGGED,
    ACT_INCIDENT,
    ACT_LOAD,
    ACT_LOAD_BLOCK,
    ACT_LOAD_END,
    ACT_LOAD_QUERY,
    ACT_MARIADB_GTID,
    ACT_PAYLOAD,
    ACT_QUERY,
    ACT_QUERY_COMPRESSED,
    ACT_ROWS,
    ACT_ROWS_COMPRESSED,
    ACT_ROWS_QUERY,
    ACT_ROWS_V0,
    ACT_TABLE_MAP,
    ACT_UNKNOWN,
    ACT_XA_PREPARE,
    ACT_XID,
    ACTIVE_CAPACITY,
    ATTENTION,
    BAD_CHECKSUM,
    BAD_PAYLOAD,
    BAD_SIZE,
    CHANGED_INPUT,
    DEFECT,
    ENCRYPTED,
    END,
    FULL,
    INCIDENT,
    INDEX_WORDS,
    INPUT_WORDS,
    KEEP_GOING,
    KIND_ANNOTATE,
    KIND_EVENT,
    KIND_QUERY,
    KIND_ROWS_QUERY,
    MALFORMED_EVENT,
    NEED_BYTES,
    NESTED_TYPE,
    NEW_TABLE_MAP,
    NULL,
    OUTCOME_COMMIT,
    OUTCOME_NONE,
    OUTCOME_ROLLBACK,
    OUTCOME_XA_PREPARE,
    SEGMENT,
    SKIP_BAD,
    SLOT_COUNT,
    SLOT_WORDS,
    STATE_ANNOUNCED,
    STATE_BEGUN,
    STATE_IMPLICIT,
    STATE_NONE,
    STMT_WORDS,
    TXN_COMMITTED,
    TXN_END,
    TXN_EVENTS,
    TXN_HAS_GTID,
    TXN_HAS_XA,
    TXN_IS_DDL,
    TXN_ORIGINAL,
    TXN_OUTCOME,
    TXN_THREAD,
    TXN_WORDS,
    TXN_XID,
    UNKNOWN_TYPE,
    UPDATE,
    WANT_INDEX,
    WANT_ROWS,
    WANT_STATEMENTS,
    WORDS,
)
from ingest.binlog.kernel.memory import (
    call_5,
    copy,
    load_64,
    load_i32,
    load_u8,
    load_u16,
    load_u32,
    shr,
    store_8,
    store_16,
    store_32,
    store_64,
)
from ingest.binlog.kernel.numbers import write_signed, write_unsigned
from ingest.binlog.kernel.rows import add_problem, decode_rows, packed_integer
from ingest.binlog.kernel.strings import copy_bytes, is_utf8

TRANSACTION_PAYLOAD = 40
ZSTD, NOT_COMPRESSED = 0, 255
_HEADER_SIZE_WITH_FLAGS = 19
_PARTIAL_UPDATE_ROWS = 39
_STATEMENT_END = 1
_SECOND = 1_000_000
_XA_PART_BYTES = 64
_XA_TEXT_BYTES = 300

_W = {name: index * 8 for name, index in WORDS.items()}
_BUFFER, _BUFFER_SIZE, _POS, _BASE, _END_POS = _W["BUFFER"], _W["BUFFER_SIZE"], _W["POS"], _W["BASE"], _W["END_POS"]
_MODE, _CHECKSUM, _HEADER_SIZE, _ACTIONS = _W["MODE"], _W["CHECKSUM"], _W["HEADER_SIZE"], _W["ACTIONS"]
_TYPE_CODES, _ATTENDED, _ATTENDED_GOOD, _IS_ENCRYPTED = (
    _W["TYPE_CODES"],
    _W["ATTENDED"],
    _W["ATTENDED_GOOD"],
    _W["IS_ENCRYPTED"],
)
_POST_HEADERS, _CRC_TABLES, _SCRATCH, _REASON = _W["POST_HEADERS"], _W["CRC_TABLES"], _W["SCRATCH"], _W["REASON"]
_COUNTS, _EVENTS, _FIRST_AT, _LAST_AT = _W["COUNTS"], _W["EVENTS"], _W["FIRST_AT"], _W["LAST_AT"]
_FIRST_BAD, _BAD_CHECKSUMS, _COMPLETE_END = _W["FIRST_BAD"], _W["BAD_CHECKSUMS"], _W["COMPLETE_END"]
_SEGMENT_START, _SEGMENT_BYTES, _CLOSED = _W["SEGMENT_START"], _W["SEGMENT_BYTES"], _W["CLOSED"]
_SLOTS, _ACTIVE, _ACTIVE_COUNT = _W["SLOTS"], _W["ACTIVE"], _W["ACTIVE_COUNT"]
_TXN_STATE, _TXN_RECORDS, _TXN_COUNT, _TXN_CAPACITY = (
    _W["TXN_STATE"],
    _W["TXN_RECORDS"],
    _W["TXN_COUNT"],
    _W["TXN_CAPACITY"],
)
_GTID, _XA = _W["GTID_OFFSETS"], _W["XA_OFFSETS"]
_STMT_RECORDS, _STMT_COUNT, _STMT_CAPACITY = _W["STMT_RECORDS"], _W["STMT_COUNT"], _W["STMT_CAPACITY"]
_STMT_SCHEMA, _STMT_TEXT, _STMT_STATUS = (
    _W["STMT_SCHEMA_OFFSETS"],
    _W["STMT_TEXT_OFFSETS"],
    _W["STMT_STATUS_OFFSETS"],
)
_PROBLEM_COUNT, _PROBLEM_CAPACITY = _W["PROBLEM_COUNT"], _W["PROBLEM_CAPACITY"]
_INDEX_RECORDS, _INDEX_COUNT, _INDEX_CAPACITY = _W["INDEX_RECORDS"], _W["INDEX_COUNT"], _W["INDEX_CAPACITY"]
_RESUME = _W["RESUME"]
_PAYLOAD_START, _PAYLOAD_END, _PAYLOAD_ORDINAL = _W["PAYLOAD_START"], _W["PAYLOAD_END"], _W["PAYLOAD_ORDINAL"]
_INPUT, _OUTER, _INPUT_BYTES = _W["BUFFER"], _W["OUTER_0"], 8 * (INPUT_WORDS.stop - INPUT_WORDS.start)
_INSIDE, _INSIDE_CAPACITY, _INNER_COUNTS = _W["INSIDE"], _W["INSIDE_CAPACITY"], _W["INNER_COUNTS"]
_ZSTD_DECOMPRESS, _ZSTD_CONTEXT = _W["ZSTD_DECOMPRESS"], _W["ZSTD_CONTEXT"]


# --- checksums ---


@njit
def _checksum_is_good(ctx, p, size):
    """Whether the event's last four bytes are its CRC-32."""
    state = crc_update(0xFFFFFFFF, p, size - 4, load_64(ctx + _CRC_TABLES), load_64(ctx + _SCRATCH))
    return state ^ 0xFFFFFFFF == load_u32(p + size - 4)


# --- transactions ---


@njit
def _record(ctx):
    return load_64(ctx + _TXN_RECORDS) + load_64(ctx + _TXN_COUNT) * (TXN_WORDS * 8)


@njit
def _open_transaction(ctx, state, start, timestamp, server):
    """Begins the record of a transaction at physical offset `start`."""
    record = _record(ctx)
    store_64(record, start)
    for word in range(1, TXN_WORDS):
        store_64(record + 8 * word, 0)
    store_64(record + 8 * TXN_XID, NULL)
    store_64(record + 8 * TXN_THREAD, NULL)
    store_64(record + 32, server)
    store_64(record + 40, timestamp)
    store_64(record + 8 * TXN_COMMITTED, NULL)
    store_64(record + 8 * TXN_ORIGINAL, NULL)
    for texts in (_GTID, _XA):
        offsets = load_64(ctx + texts) + 4 * load_64(ctx + _TXN_COUNT)
        store_32(offsets + 4, load_u32(offsets))
    store_64(ctx + _TXN_STATE, state)
    store_64(ctx + _ACTIVE_COUNT, 0)


@njit
def _open_if_none(ctx, start, timestamp, server):
    """Row events outside of any transaction are one of their own."""
    if load_64(ctx + _TXN_STATE) == STATE_NONE:
        _open_transaction(ctx, STATE_IMPLICIT, start, timestamp, server)


@njit
def _close_transaction(ctx, end, outcome, timestamp):
    """Ends the open transaction at physical offset `end`."""
    record = _record(ctx)
    store_64(record + 8 * TXN_END, end)
    store_64(record + 8 * TXN_OUTCOME, outcome)
    if load_64(record + 8 * TXN_COMMITTED) == NULL and outcome != OUTCOME_NONE:
        store_64(record + 8 * TXN_COMMITTED, timestamp)
    if load_64(ctx + _MODE) & WANT_ROWS:
        store_64(ctx + _TXN_COUNT, load_64(ctx + _TXN_COUNT) + 1)
    store_64(ctx + _TXN_STATE, STATE_NONE)
    store_64(ctx + _ACTIVE_COUNT, 0)


@njit
def _has_room(ctx):
    """Whether every control output takes one event more."""
    return (
        load_64(ctx + _TXN_COUNT) + 3 < load_64(ctx + _TXN_CAPACITY)
        and load_64(ctx + _STMT_COUNT) + 1 < load_64(ctx + _STMT_CAPACITY)
        and load_64(ctx + _PROBLEM_COUNT) + 2 < load_64(ctx + _PROBLEM_CAPACITY)
    )


@njit
def _write_hex_byte(out, byte):
    high, low = byte >> 4, byte & 15
    store_8(out, 48 + high if high < 10 else 87 + high)
    store_8(out + 1, 48 + low if low < 10 else 87 + low)
    return out + 2


@njit
def _write_uuid(out, address):
    """16 bytes as lower-case hex with dashes."""
    for i in range(16):
        if i == 4 or i == 6 or i == 8 or i == 10:
            store_8(out, 45)
            out += 1
        out = _write_hex_byte(out, load_u8(address + i))
    return out


@njit
def _text_start(ctx, texts):
    """Where a text of the open transaction begins; `texts` is _GTID or _XA: offsets, and data in the next word."""
    return load_64(ctx + texts + 8) + load_u32(load_64(ctx + texts) + 4 * load_64(ctx + _TXN_COUNT))


@njit
def _end_text(ctx, texts, out):
    """Makes what ends at `out` that text of the open transaction."""
    offsets = load_64(ctx + texts) + 4 * (load_64(ctx + _TXN_COUNT) + 1)
    store_32(offsets, out - load_64(ctx + texts + 8))
    store_64(_record(ctx) + 8 * (TXN_HAS_GTID if texts == _GTID else TXN_HAS_XA), 1)


@njit
def _on_gtid(ctx, p, end, start, timestamp, server, anonymous):
    """GTID_LOG_EVENT: flags, source UUID, number; from 5.7 logical clock; from 8.0 commit times in microseconds.

    Source: server, libs/mysql/binlog/event/control_events.cpp, Gtid_event.
    """
    if end - p < 25:
        return False
    _open_transaction(ctx, STATE_ANNOUNCED, start, timestamp, server)
    record = _record(ctx)
    if not anonymous:
        out = _write_uuid(_text_start(ctx, _GTID), p + 1)
        store_8(out, 58)
        _end_text(ctx, _GTID, write_unsigned(out + 1, load_64(p + 17)))
    if end - p >= 49 and load_u8(p + 25) == 2:
        commit = load_64(p + 42) & 0xFFFFFFFFFFFFFF
        original = commit & 0x7FFFFFFFFFFFFF
        if commit >> 55 and end - p >= 56:
            store_64(record + 8 * TXN_ORIGINAL, load_64(p + 49) & 0xFFFFFFFFFFFFFF)
        else:
            store_64(record + 8 * TXN_ORIGINAL, original)
        store_64(record + 8 * TXN_COMMITTED, original)
    return True


@njit
def _varlen(p, end):
    """A number of mysql::serialization and the address behind it, 0 there when it passes `end`.

    The first byte's trailing ones count the bytes that follow; the bits above them are the number, low first.
    Source: server, libs/mysql/serialization/variable_length_integers.h.
    """
    if p >= end:
        return 0, 0
    first = load_u8(p)
    size = 1
    while size < 9 and first >> (size - 1) & 1:
        size += 1
    if p + size > end:
        return 0, 0
    if size == 9:
        return load_64(p + 1), p + 9
    value = load_64(p)
    if size < 8:
        value &= (1 << 8 * size) - 1
    return shr(value, size), p + size


@njit
def _on_tagged_gtid(ctx, p, end, start, timestamp, server):
    """GTID_TAGGED_LOG_EVENT: version, size and last required field, then numbered fields in ascending order.

    Source: server, libs/mysql/binlog/event/control_events.h, Gtid_event::define_fields.
    """
    _open_transaction(ctx, STATE_ANNOUNCED, start, timestamp, server)
    record = _record(ctx)
    out = _text_start(ctx, _GTID)
    number = 0
    for _ in range(3):
        _, p = _varlen(p, end)
        if p == 0:
            return False
    while p < end:
        field, p = _varlen(p, end)
        if p == 0 or field > 11:
            # Fields of later versions stand behind the known ones.
            return p != 0
        if field == 1:
            for i in range(16):
                if i == 4 or i == 6 or i == 8 or i == 10:
                    store_8(out, 45)
                    out += 1
                byte, p = _varlen(p, end)
                if p == 0:
                    return False
                out = _write_hex_byte(out, byte & 0xFF)
        elif field == 3:
            size, p = _varlen(p, end)
            if p == 0 or not 0 <= size <= 32 or p + size > end or not is_utf8(p, size):
                return False
            if size > 0:
                store_8(out, 58)
                out = copy_bytes(out + 1, p, size)
            p += size
            store_8(out, 58)
            _end_text(ctx, _GTID, write_unsigned(out + 1, number))
        else:
            value, p = _varlen(p, end)
            if p == 0:
                return False
            if field == 2:
                # Signed numbers keep their sign in the lowest bit; a GTID's is never set.
                number = shr(value, 1)
            elif field == 6:
                store_64(record + 8 * TXN_COMMITTED, value)
                store_64(record + 8 * TXN_ORIGINAL, value)
            elif field == 7:
                store_64(record + 8 * TXN_ORIGINAL, value)
    return True


@njit
def _on_mariadb_gtid(ctx, p, end, start, timestamp, server):
    """MariaDB GTID_EVENT: sequence 8 bytes, domain 4, flags 1; flag 1 is standalone, else it stands for BEGIN."""
    if end - p < 13:
        return False
    flags = load_u8(p + 12)
    _open_transaction(ctx, STATE_ANNOUNCED if flags & 1 else STATE_BEGUN, start, timestamp, server)
    out = write_unsigned(_text_start(ctx, _GTID), load_u32(p + 8))
    store_8(out, 45)
    out = write_unsigned(out + 1, server)
    store_8(out, 45)
    _end_text(ctx, _GTID, write_unsigned(out + 1, load_64(p)))
    if flags & 0x20:
        store_64(_record(ctx) + 8 * TXN_IS_DDL, 1)
    return True


@njit
def _write_xa_part(out, address, size):
    store_16(out, 0x2758)
    out += 2
    for i in range(size):
        out = _write_hex_byte(out, load_u8(address + i))
    store_16(out, 0x2C27)
    return out + 2


@njit
def _on_xa_prepare(ctx, p, end, finish, timestamp):
    """XA_PREPARE_LOG_EVENT: one phase 1 byte, format id 4, sizes 4 and 4, global and branch part of the xid.

    Source: server, libs/mysql/binlog/event/control_events.h, XA_prepare_event.
    """
    if end - p < 13:
        return False
    one_phase, format_id = load_u8(p), load_i32(p + 1)
    first, second = load_u32(p + 5), load_u32(p + 9)
    if first > _XA_PART_BYTES or second > _XA_PART_BYTES or end - p < 13 + first + second:
        return False
    out = _write_xa_part(_text_start(ctx, _XA), p + 13, first)
    out = _write_xa_part(out, p + 13 + first, second)
    _end_text(ctx, _XA, write_signed(out, format_id))
    _close_transaction(ctx, finish, OUTCOME_COMMIT if one_phase else OUTCOME_XA_PREPARE, timestamp)
    return True


# --- statements ---


@njit
def _add_text(texts, count, address, size):
    """Makes bytes element `count` of texts (words: offsets, data, capacity); False when they do not fit."""
    offsets, data = load_64(texts), load_64(texts + 8)
    at = load_u32(offsets + 4 * count)
    if at + size > load_64(texts + 16):
        return False
    copy_bytes(data + at, address, size)
    store_32(offsets + 4 * (count + 1), at + size)
    return True


@njit
def _add_statement(
    ctx,
    kind,
    code,
    start,
    finish,
    status,
    status_size,
    schema,
    schema_size,
    text,
    text_size,
    thread,
    error,
    timestamp,
):
    """Notes a statement; False when its texts do not fit."""
    count = load_64(ctx + _STMT_COUNT)
    if (
        not _add_text(ctx + _STMT_SCHEMA, count, schema, schema_size)
        or not _add_text(ctx + _STMT_STATUS, count, status, status_size)
        or not _add_text(ctx + _STMT_TEXT, count, text, text_size)
    ):
        return False
    record = load_64(ctx + _STMT_RECORDS) + count * (STMT_WORDS * 8)
    store_64(record, start)
    store_64(record + 8, finish)
    store_64(record + 16, load_64(ctx + _PAYLOAD_ORDINAL))
    store_64(record + 24, load_64(_record(ctx)) if load_64(ctx + _TXN_STATE) else NULL)
    store_64(record + 32, kind)
    store_64(record + 40, thread)
    store_64(record + 48, error)
    store_64(record + 56, timestamp)
    store_64(record + 64, _client_charset(status, status + status_size))
    store_64(record + 72, code)
    store_64(ctx + _STMT_COUNT, count + 1)
    return True


@njit
def _client_charset(p, end):
    """The collation id of the client's character set among a QUERY's status variables, 0 when not there.

    Keys and sizes: server, libs/mysql/binlog/event/statement_events.h, Query_event.
    """
    while p < end:
        key = load_u8(p)
        p += 1
        if key == 4:
            return load_u16(p) if p + 6 <= end else 0
        if key == 0 or key == 3:
            p += 4
        elif key == 1:
            p += 8
        elif key == 2:
            p += load_u8(p) + 2
        elif key == 6:
            p += load_u8(p) + 1
        else:
            return 0
    return 0


@njit
def _word(p, size):
    """The first eight bytes of a statement in lower case, zeros behind its end."""
    word = 0
    for i in range(min(size, 8)):
        byte = load_u8(p + i)
        if 65 <= byte <= 90:
            byte |= 32
        word |= byte << (8 * i)
    return word


@njit
def _skip_comments(p, end):
    """Behind white space and comments that do not hold code (`/*! … */` does)."""
    while p < end:
        byte = load_u8(p)
        if byte == 32 or 9 <= byte <= 13:
            p += 1
        elif byte == 47 and p + 2 < end and load_u8(p + 1) == 42 and load_u8(p + 2) != 33:
            p += 2
            while p + 1 < end and not (load_u8(p) == 42 and load_u8(p + 1) == 47):
                p += 1
            p += 2
        else:
            break
    return min(p, end)


_BEGIN = int.from_bytes(b"begin", "little")
_COMMIT = int.from_bytes(b"commit", "little")
_ROLLBACK = int.from_bytes(b"rollback", "little")
_XA_START = int.from_bytes(b"xa start", "little")
_XA_BEGIN = int.from_bytes(b"xa begin", "little")
_XA_COMMIT = int.from_bytes(b"xa commi", "little")
_XA_ROLLBACK = int.from_bytes(b"xa rollb", "little")
_CREATE, _RENAME, _TRUNCATE = (int.from_bytes(word, "little") for word in (b"create", b"rename", b"trunca"))
_ALTER, _DROP = int.from_bytes(b"alter", "little"), int.from_bytes(b"drop", "little")
_SIX, _FIVE, _FOUR = (1 << 48) - 1, (1 << 40) - 1, (1 << 32) - 1


@njit
def _is_ddl(word):
    six = word & _SIX
    return six == _CREATE or six == _RENAME or six == _TRUNCATE or word & _FIVE == _ALTER or word & _FOUR == _DROP


@njit
def _on_query(ctx, p, end, start, finish, code, timestamp, server):
    """QUERY_EVENT: thread 4 bytes, duration 4, schema size 1, error 2, status size 2, status, schema, 0, text.

    Servers before 5.0 have no status; EXECUTE_LOAD_QUERY has a longer fixed part. 1 when done, 0 when an output
    is full, -1 when malformed.
    """
    fixed = load_u8(load_64(ctx + _POST_HEADERS) + code)
    if fixed < 11 or end - p < fixed:
        return -1
    thread, schema_size, error = load_u32(p), load_u8(p + 8), load_u16(p + 9)
    status = p + fixed
    schema = status + (load_u16(p + 11) if fixed >= 13 else 0)
    text = schema + schema_size + 1
    if text > end:
        return -1
    size = end - text
    word = _word(text, size)
    state = load_64(ctx + _TXN_STATE)
    begins = (size == 5 and word == _BEGIN) or word == _XA_START or word == _XA_BEGIN
    if state == STATE_IMPLICIT or (begins and state == STATE_BEGUN):
        # One that began before and never ended: its end is missing.
        _close_transaction(ctx, start, OUTCOME_NONE, timestamp)
        state = STATE_NONE
    if state == STATE_NONE:
        _open_transaction(ctx, STATE_ANNOUNCED, start, timestamp, server)
    if load_64(ctx + _MODE) & WANT_STATEMENTS and not _add_statement(
        ctx,
        KIND_QUERY,
        code,
        start,
        finish,
        status,
        schema - status,
        schema,
        schema_size,
        text,
        size,
        thread,
        error,
        timestamp,
    ):
        if state == STATE_NONE:
            store_64(ctx + _TXN_STATE, STATE_NONE)
        return 0
    _count_event(ctx)
    record = _record(ctx)
    store_64(record + 8 * TXN_THREAD, thread)
    first = _skip_comments(text, end)
    if _is_ddl(_word(first, end - first)):
        store_64(record + 8 * TXN_IS_DDL, 1)
    if begins:
        store_64(ctx + _TXN_STATE, STATE_BEGUN)
    elif size == 6 and word == _COMMIT:
        _close_transaction(ctx, finish, OUTCOME_COMMIT, timestamp)
    elif size == 8 and word == _ROLLBACK:
        _close_transaction(ctx, finish, OUTCOME_ROLLBACK, timestamp)
    elif word == _XA_COMMIT or word == _XA_ROLLBACK:
        skipped = 10 if word == _XA_COMMIT else 12
        if 0 < size - skipped <= _XA_TEXT_BYTES and is_utf8(text + skipped, size - skipped):
            _end_text(ctx, _XA, copy_bytes(_text_start(ctx, _XA), text + skipped, size - skipped))
        _close_transaction(ctx, finish, OUTCOME_COMMIT if word == _XA_COMMIT else OUTCOME_ROLLBACK, timestamp)
    elif load_64(ctx + _TXN_STATE) == STATE_ANNOUNCED:
        _close_transaction(ctx, finish, OUTCOME_COMMIT, timestamp)
    return 1


@njit
def _on_statement_event(ctx, code, start, finish, body, end, timestamp, server):
    """An event that is part of a statement, with its body as text: False when that does not fit."""
    state = load_64(ctx + _TXN_STATE)
    if state == STATE_NONE:
        _open_transaction(ctx, STATE_ANNOUNCED, start, timestamp, server)
    if load_64(ctx + _MODE) & WANT_STATEMENTS and not _add_statement(
        ctx, KIND_EVENT, code, start, finish, body, 0, body, 0, body, end - body, NULL, NULL, timestamp
    ):
        store_64(ctx + _TXN_STATE, state)
        return False
    _count_event(ctx)
    return True


# --- table maps ---


@njit
def _on_table_map(ctx, p, end):
    """Puts the map in force for its table id: 1 when known, 0 when Python has to take it in, -1 when malformed."""
    if end - p < 10:
        return -1
    if load_u8(load_64(ctx + _POST_HEADERS) + 19) == 6:
        table_id = load_u32(p)
        body = p + 4
    else:
        table_id = load_u32(p) | load_u16(p + 4) << 32
        body = p + 6
    slot = load_64(ctx + _SLOTS) + (table_id & (SLOT_COUNT - 1)) * (SLOT_WORDS * 8)
    if load_64(slot) != table_id or load_64(slot + 24) != end - body:
        return 0
    known = load_64(slot + 16)
    size = end - body
    i = 0
    while i + 8 <= size:
        if load_64(body + i) != load_64(known + i):
            return 0
        i += 8
    while i < size:
        if load_u8(body + i) != load_u8(known + i):
            return 0
        i += 1
    count = load_64(ctx + _ACTIVE_COUNT)
    if count >= ACTIVE_CAPACITY:
        return -1
    pair = load_64(ctx + _ACTIVE) + 16 * count
    store_64(pair, table_id)
    store_64(pair + 8, load_64(slot + 8))
    store_64(ctx + _ACTIVE_COUNT, count + 1)
    return 1


# --- the walk ---


@njit
def _rows_kind(code):
    """INSERT, UPDATE or DELETE of a rows event's type code: 23 to 25, 30 to 32, 39."""
    if code == _PARTIAL_UPDATE_ROWS:
        return UPDATE
    if code >= 30:
        return code - 30
    return code - 23


@njit
def _end_rows(ctx, body, code, finish, timestamp):
    """Behind a rows event: its last one ends the statement, and the transaction when that has no other end."""
    last = load_u16(body + (4 if load_u8(load_64(ctx + _POST_HEADERS) + code) == 6 else 6)) & _STATEMENT_END
    if last:
        store_64(ctx + _ACTIVE_COUNT, 0)
    _count_event(ctx)
    if last and load_64(ctx + _TXN_STATE) == STATE_IMPLICIT:
        _close_transaction(ctx, finish, OUTCOME_NONE, timestamp)


@njit
def _index_event(ctx, p, start, size, code, header, good):
    count = load_64(ctx + _INDEX_COUNT)
    record = load_64(ctx + _INDEX_RECORDS) + count * (INDEX_WORDS * 8)
    store_64(record, start)
    store_64(record + 8, size)
    store_64(record + 16, code)
    store_64(record + 24, load_u32(p))
    store_64(record + 32, load_u32(p + 5))
    has_flags = header >= _HEADER_SIZE_WITH_FLAGS
    store_64(record + 40, load_u16(p + 17) if has_flags else 0)
    store_64(record + 48, load_u32(p + 13) if has_flags else 0)
    store_64(record + 56, 1 if good else 0)
    store_64(ctx + _INDEX_COUNT, count + 1)


@njit
def _count_event(ctx):
    record = _record(ctx) + 8 * TXN_EVENTS
    store_64(record, load_64(record) + 1)


# --- events inside events ---


@njit
def _payload_head(p, end):
    """Compression and uncompressed size of a TRANSACTION_PAYLOAD, and where its data begin, 0 when malformed.

    Numbered fields, each with its size, up to number 0. Source: server,
    libs/mysql/binlog/event/codecs/binary.cpp, Transaction_payload.
    """
    compression, size = NOT_COMPRESSED, -1
    while p < end:
        field = load_u8(p)
        if field == 0:
            return compression, size, p + 1
        behind = p + 2 + load_u8(p + 1)
        value, _ = packed_integer(p + 2, min(behind, end))
        if field == 2:
            compression = value
        elif field == 3:
            size = value
        p = behind
    return compression, size, 0


@njit
def _enter_payload(ctx, body, end, start, finish):
    """Decompresses a payload and turns to its events; False when Python has to, or has to say why not."""
    compression, size, data = _payload_head(body, end)
    inside, decompress = load_64(ctx + _INSIDE), load_64(ctx + _ZSTD_DECOMPRESS)
    if data == 0 or compression != ZSTD or decompress == 0 or not 0 < size <= load_64(ctx + _INSIDE_CAPACITY):
        return False
    if call_5(decompress, load_64(ctx + _ZSTD_CONTEXT), inside, size, data, end - data) != size:
        return False
    copy(ctx + _OUTER, ctx + _INPUT, _INPUT_BYTES)
    store_64(ctx + _BUFFER, inside)
    store_64(ctx + _BUFFER_SIZE, size)
    store_64(ctx + _POS, 0)
    store_64(ctx + _BASE, 0)
    store_64(ctx + _END_POS, size)
    store_64(ctx + _CHECKSUM, 0)
    store_64(ctx + _COUNTS, load_64(ctx + _INNER_COUNTS))
    store_64(ctx + _PAYLOAD_START, start)
    store_64(ctx + _PAYLOAD_END, finish)
    store_64(ctx + _PAYLOAD_ORDINAL, 1)
    return True


@njit
def _leave_payload(ctx, at):
    """Turns back to the event whose inside was walked up to `at`; names it when that is not its end."""
    start = load_64(ctx + _PAYLOAD_START)
    if at != load_64(ctx + _END_POS):
        add_problem(ctx, start, load_64(ctx + _PAYLOAD_END), TRANSACTION_PAYLOAD, -1, -1, -1, BAD_PAYLOAD)
    copy(ctx + _INPUT, ctx + _OUTER, _INPUT_BYTES)
    store_64(ctx + _ATTENDED, start)
    return CHANGED_INPUT


@njit
def _leave(ctx, at, status):
    store_64(ctx + _POS, at)
    return status


@njit
def _walk(ctx):
    buffer, buffered = load_64(ctx + _BUFFER), load_64(ctx + _BUFFER_SIZE)
    base, end_pos, mode = load_64(ctx + _BASE), load_64(ctx + _END_POS), load_64(ctx + _MODE)
    header, actions, counts = load_64(ctx + _HEADER_SIZE), load_64(ctx + _ACTIONS), load_64(ctx + _COUNTS)
    codes = load_64(ctx + _TYPE_CODES)
    tail = 4 if load_64(ctx + _CHECKSUM) else 0
    want_rows = mode & WANT_ROWS
    nested = load_64(ctx + _PAYLOAD_END)
    at = load_64(ctx + _POS)
    while True:
        if base + at >= end_pos:
            return _leave_payload(ctx, at) if nested else _leave(ctx, at, END)
        if buffered - at < header:
            return _leave_payload(ctx, at) if nested else _leave(ctx, at, NEED_BYTES)
        p = buffer + at
        size = load_u32(p + 9)
        if size < header + tail:
            if nested:
                return _leave_payload(ctx, at)
            store_64(ctx + _REASON, BAD_SIZE)
            return _leave(ctx, at, DEFECT)
        if buffered - at < size:
            return _leave_payload(ctx, at) if nested else _leave(ctx, at, NEED_BYTES)
        code = load_u8(codes + load_u8(p + 4))
        action = load_u8(actions + code)
        resumed = load_64(ctx + _RESUME)
        attended = not nested and load_64(ctx + _ATTENDED) == base + at
        good = True
        if action == ACT_FORMAT and not nested:
            if not attended:
                return _leave(ctx, at, ATTENTION)
            good = load_64(ctx + _ATTENDED_GOOD) != 0
        elif tail and not resumed:
            good = _checksum_is_good(ctx, p, size)
        if not good and not mode & (KEEP_GOING | SKIP_BAD):
            store_64(ctx + _REASON, BAD_CHECKSUM)
            return _leave(ctx, at, DEFECT)
        if mode & WANT_INDEX and load_64(ctx + _INDEX_COUNT) >= load_64(ctx + _INDEX_CAPACITY):
            return _leave(ctx, at, FULL)
        # Inside a payload the positions are those of the payload event.
        start, finish = base + at, base + at + size
        if nested:
            start, finish = load_64(ctx + _PAYLOAD_START), nested
        body, end = p + header, p + size - tail
        timestamp, server = load_u32(p) * _SECOND, load_u32(p + 5)
        before_defects = load_64(ctx + _FIRST_BAD) < 0 or mode & SKIP_BAD
        if before_defects and not resumed and not _has_room(ctx):
            return _leave(ctx, at, FULL)
        if good and before_defects:
            state = load_64(ctx + _TXN_STATE)
            bad = False
            if action == ACT_ROWS or action == ACT_TABLE_MAP or action == ACT_ROWS_QUERY or action == ACT_ANNOTATE:
                _open_if_none(ctx, start, timestamp, server)
            if action == ACT_ROWS:
                if want_rows and not decode_rows(
                    ctx,
                    body,
                    end,
                    start,
                    finish,
                    code,
                    _rows_kind(code),
                    2 if code >= 30 else 1,
                    timestamp,
                    server,
                    load_64(_record(ctx)),
                ):
                    return _leave(ctx, at, FULL)
                _end_rows(ctx, body, code, finish, timestamp)
            elif action == ACT_TABLE_MAP:
                if want_rows:
                    known = _on_table_map(ctx, body, end)
                    if known == 0:
                        return _leave(ctx, at, NEW_TABLE_MAP)
                    bad = known < 0
                _count_event(ctx)
            elif action == ACT_QUERY or action == ACT_LOAD_QUERY:
                done = _on_query(ctx, body, end, start, finish, code, timestamp, server)
                if done == 0:
                    return _leave(ctx, at, FULL)
                bad = done < 0
            elif action == ACT_XID:
                if end - body < 8:
                    bad = True
                else:
                    if state == STATE_NONE:
                        _open_transaction(ctx, STATE_BEGUN, start, timestamp, server)
                    store_64(_record(ctx) + 8 * TXN_XID, load_64(body))
                    _count_event(ctx)
                    _close_transaction(ctx, finish, OUTCOME_COMMIT, timestamp)
            elif (
                action == ACT_GTID
                or action == ACT_ANONYMOUS_GTID
                or action == ACT_GTID_TAGGED
                or action == ACT_MARIADB_GTID
            ):
                if state != STATE_NONE:
                    # The one before never ended: its server crashed inside it, or events are missing.
                    _close_transaction(ctx, start, OUTCOME_NONE, timestamp)
                if action == ACT_MARIADB_GTID:
                    bad = not _on_mariadb_gtid(ctx, body, end, start, timestamp, server)
                elif action == ACT_GTID_TAGGED:
                    bad = not _on_tagged_gtid(ctx, body, end, start, timestamp, server)
                else:
                    bad = not _on_gtid(ctx, body, end, start, timestamp, server, action == ACT_ANONYMOUS_GTID)
                if not bad:
                    _count_event(ctx)
            elif action == ACT_ROWS_QUERY or action == ACT_ANNOTATE:
                text = body + 1 if action == ACT_ROWS_QUERY else body
                if text > end:
                    bad = True
                elif mode & WANT_STATEMENTS and not _add_statement(
                    ctx,
                    KIND_ROWS_QUERY if action == ACT_ROWS_QUERY else KIND_ANNOTATE,
                    code,
                    start,
                    finish,
                    text,
                    0,
                    text,
                    0,
                    text,
                    end - text,
                    NULL,
                    NULL,
                    timestamp,
                ):
                    if state == STATE_NONE:
                        store_64(ctx + _TXN_STATE, STATE_NONE)
                    return _leave(ctx, at, FULL)
                _count_event(ctx)
            elif nested and (
                action == ACT_FORMAT
                or action == ACT_PAYLOAD
                or action == ACT_ROWS_COMPRESSED
                or action == ACT_QUERY_COMPRESSED
                or action == ACT_ROWS_V0
            ):
                add_problem(ctx, start, finish, code, -1, -1, -1, NESTED_TYPE)
            elif action == ACT_PAYLOAD or action == ACT_ROWS_COMPRESSED or action == ACT_QUERY_COMPRESSED:
                if want_rows:
                    if not attended:
                        store_64(ctx + _POS, at)
                        entered = action == ACT_PAYLOAD and _enter_payload(ctx, body, end, start, finish)
                        return CHANGED_INPUT if entered else ATTENTION
                elif action == ACT_ROWS_COMPRESSED:
                    _open_if_none(ctx, start, timestamp, server)
                    _end_rows(ctx, body, code, finish, timestamp)
                elif action == ACT_PAYLOAD or state == STATE_ANNOUNCED:
                    # A payload holds a whole transaction, end included. Too short to be compressed: BEGIN, COMMIT.
                    _open_if_none(ctx, start, timestamp, server)
                    _close_transaction(ctx, finish, OUTCOME_NONE, timestamp)
            elif action == ACT_XA_PREPARE:
                _open_if_none(ctx, start, timestamp, server)
                bad = not _on_xa_prepare(ctx, body, end, finish, timestamp)
            elif action == ACT_CONTEXT or action == ACT_LOAD:
                if not _on_statement_event(ctx, code, start, finish, body, end, timestamp, server):
                    return _leave(ctx, at, FULL)
                if action == ACT_LOAD and load_64(ctx + _TXN_STATE) == STATE_ANNOUNCED:
                    _close_transaction(ctx, finish, OUTCOME_COMMIT, timestamp)
            elif action == ACT_LOAD_BLOCK:
                if state == STATE_NONE:
                    _open_transaction(ctx, STATE_ANNOUNCED, start, timestamp, server)
                _count_event(ctx)
            elif action == ACT_LOAD_END:
                if state == STATE_ANNOUNCED:
                    _count_event(ctx)
                    _close_transaction(ctx, finish, OUTCOME_COMMIT, timestamp)
            elif action == ACT_CLOSE:
                if state != STATE_NONE:
                    _close_transaction(ctx, start, OUTCOME_NONE, timestamp)
            elif action == ACT_ROWS_V0:
                if want_rows and not attended:
                    return _leave(ctx, at, ATTENTION)
                if not want_rows or load_64(ctx + _ATTENDED_GOOD) == 0:
                    _open_if_none(ctx, start, timestamp, server)
                    _end_rows(ctx, body, code, finish, timestamp)
            elif action == ACT_INCIDENT or action == ACT_UNKNOWN:
                add_problem(ctx, start, finish, code, -1, -1, -1, INCIDENT if action == ACT_INCIDENT else UNKNOWN_TYPE)
                if state != STATE_NONE:
                    _count_event(ctx)
            elif action == ACT_ENCRYPTION:
                store_64(ctx + _IS_ENCRYPTED, 1)
            elif state != STATE_NONE:
                _count_event(ctx)
            if bad:
                add_problem(ctx, start, finish, code, -1, -1, -1, MALFORMED_EVENT)
        if not good:
            if mode & SKIP_BAD:
                add_problem(ctx, start, finish, code, -1, -1, -1, BAD_CHECKSUM)
            store_64(ctx + _BAD_CHECKSUMS, load_64(ctx + _BAD_CHECKSUMS) + 1)
            if load_64(ctx + _FIRST_BAD) < 0:
                store_64(ctx + _FIRST_BAD, base + at)
        if mode & WANT_INDEX:
            _index_event(ctx, p, base + at, size, code, header, good)
        store_64(counts + 8 * code, load_64(counts + 8 * code) + 1)
        at += size
        if nested:
            # Compressed events of MariaDB are one event each: number 0, and they keep it.
            if load_64(ctx + _PAYLOAD_ORDINAL):
                store_64(ctx + _PAYLOAD_ORDINAL, load_64(ctx + _PAYLOAD_ORDINAL) + 1)
            continue
        store_64(ctx + _EVENTS, load_64(ctx + _EVENTS) + 1)
        if timestamp > 0 and good:
            if load_64(ctx + _FIRST_AT) == 0:
                store_64(ctx + _FIRST_AT, timestamp)
            if timestamp > load_64(ctx + _LAST_AT):
                store_64(ctx + _LAST_AT, timestamp)
        store_64(ctx + _CLOSED, 1 if action == ACT_CLOSE else 0)
        if load_64(ctx + _IS_ENCRYPTED):
            store_64(ctx + _REASON, ENCRYPTED)
            return _leave(ctx, at, DEFECT)
        if (load_64(ctx + _FIRST_BAD) < 0 or mode & SKIP_BAD) and load_64(ctx + _TXN_STATE) == STATE_NONE:
            store_64(ctx + _COMPLETE_END, base + at)
            if base + at - load_64(ctx + _SEGMENT_START) >= load_64(ctx + _SEGMENT_BYTES):
                return _leave(ctx, at, SEGMENT)


@njit(types.int64(types.int64), cache=True, nogil=True)
def run(ctx):
    """Walks events from POS on until one of the statuses of `layout`; `ctx` is the context's address."""
    status = CHANGED_INPUT
    while status == CHANGED_INPUT:
        status = _walk(ctx)
    return status
