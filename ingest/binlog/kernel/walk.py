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
    ACT_ATTENTION,
    ACT_CLOSE,
    ACT_GTID,
    ACT_MARIADB_GTID,
    ACT_QUERY,
    ACT_ROWS,
    ACT_ROWS_QUERY,
    ACT_SILENT,
    ACT_TABLE_MAP,
    ACT_UNKNOWN,
    ACT_XA_PREPARE,
    ACT_XID,
    ACTIVE_CAPACITY,
    ATTENTION,
    BAD_CHECKSUM,
    BAD_SIZE,
    DEFECT,
    END,
    FULL,
    INDEX_WORDS,
    KEEP_GOING,
    KIND_ANNOTATE,
    KIND_QUERY,
    KIND_ROWS_QUERY,
    MALFORMED_EVENT,
    NEED_BYTES,
    NEW_TABLE_MAP,
    NULL,
    OUTCOME_COMMIT,
    OUTCOME_NONE,
    OUTCOME_ROLLBACK,
    OUTCOME_XA_PREPARE,
    SEGMENT,
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
    TXN_IS_DDL,
    TXN_ORIGINAL,
    TXN_OUTCOME,
    TXN_THREAD,
    TXN_WORDS,
    TXN_XID,
    UNKNOWN_TYPE,
    UNSUPPORTED_TYPE,
    WANT_INDEX,
    WANT_ROWS,
    WANT_STATEMENTS,
    WORDS,
)
from ingest.binlog.kernel.memory import load_64, load_u8, load_u16, load_u32, store_8, store_32, store_64
from ingest.binlog.kernel.numbers import write_unsigned
from ingest.binlog.kernel.rows import add_problem, decode_rows
from ingest.binlog.kernel.strings import copy_bytes

FORMAT_DESCRIPTION = 15
_IN_USE = 1
_STATEMENT_END = 1
_SECOND = 1_000_000

_W = {name: index * 8 for name, index in WORDS.items()}
_BUFFER, _BUFFER_SIZE, _POS, _BASE, _END_POS = _W["BUFFER"], _W["BUFFER_SIZE"], _W["POS"], _W["BASE"], _W["END_POS"]
_MODE, _CHECKSUM, _HEADER_SIZE, _ACTIONS = _W["MODE"], _W["CHECKSUM"], _W["HEADER_SIZE"], _W["ACTIONS"]
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
_GTID_OFFSETS, _GTID_DATA = _W["GTID_OFFSETS"], _W["GTID_DATA"]
_STMT_RECORDS, _STMT_COUNT, _STMT_CAPACITY = _W["STMT_RECORDS"], _W["STMT_COUNT"], _W["STMT_CAPACITY"]
_STMT_SCHEMA, _STMT_TEXT = _W["STMT_SCHEMA_OFFSETS"], _W["STMT_TEXT_OFFSETS"]
_PROBLEM_COUNT, _PROBLEM_CAPACITY = _W["PROBLEM_COUNT"], _W["PROBLEM_CAPACITY"]
_INDEX_RECORDS, _INDEX_COUNT, _INDEX_CAPACITY = _W["INDEX_RECORDS"], _W["INDEX_COUNT"], _W["INDEX_CAPACITY"]
_RESUME = _W["RESUME"]
_PAYLOAD_START, _PAYLOAD_END, _PAYLOAD_ORDINAL = _W["PAYLOAD_START"], _W["PAYLOAD_END"], _W["PAYLOAD_ORDINAL"]


# --- checksums ---


@njit
def _checksum_is_good(ctx, p, size, code):
    """Whether the event's last four bytes are its CRC-32; the IN_USE flag does not count."""
    tables, scratch = load_64(ctx + _CRC_TABLES), load_64(ctx + _SCRATCH)
    if code == FORMAT_DESCRIPTION:
        store_8(scratch + 16, load_u8(p + 17) & ~_IN_USE)
        state = crc_update(0xFFFFFFFF, p, 17, tables, scratch)
        state = crc_update(state, scratch + 16, 1, tables, scratch)
        state = crc_update(state, p + 18, size - 22, tables, scratch)
    else:
        state = crc_update(0xFFFFFFFF, p, size - 4, tables, scratch)
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
    offsets = load_64(ctx + _GTID_OFFSETS) + 4 * load_64(ctx + _TXN_COUNT)
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
def _write_uuid(out, address):
    """16 bytes as lower-case hex with dashes."""
    for i in range(16):
        if i == 4 or i == 6 or i == 8 or i == 10:
            store_8(out, 45)
            out += 1
        byte = load_u8(address + i)
        high, low = byte >> 4, byte & 15
        store_8(out, 48 + high if high < 10 else 87 + high)
        store_8(out + 1, 48 + low if low < 10 else 87 + low)
        out += 2
    return out


@njit
def _end_gtid(ctx, out):
    """Makes the text that ends at `out` the GTID of the open transaction."""
    offsets = load_64(ctx + _GTID_OFFSETS) + 4 * (load_64(ctx + _TXN_COUNT) + 1)
    store_32(offsets, out - load_64(ctx + _GTID_DATA))
    store_64(_record(ctx) + 8 * TXN_HAS_GTID, 1)


@njit
def _gtid_start(ctx):
    return load_64(ctx + _GTID_DATA) + load_u32(load_64(ctx + _GTID_OFFSETS) + 4 * load_64(ctx + _TXN_COUNT))


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
        out = _write_uuid(_gtid_start(ctx), p + 1)
        store_8(out, 58)
        _end_gtid(ctx, write_unsigned(out + 1, load_64(p + 17)))
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
def _on_mariadb_gtid(ctx, p, end, start, timestamp, server):
    """MariaDB GTID_EVENT: sequence 8 bytes, domain 4, flags 1; flag 1 is standalone, else it stands for BEGIN."""
    if end - p < 13:
        return False
    flags = load_u8(p + 12)
    _open_transaction(ctx, STATE_ANNOUNCED if flags & 1 else STATE_BEGUN, start, timestamp, server)
    out = write_unsigned(_gtid_start(ctx), load_u32(p + 8))
    store_8(out, 45)
    out = write_unsigned(out + 1, server)
    store_8(out, 45)
    _end_gtid(ctx, write_unsigned(out + 1, load_64(p)))
    if flags & 0x20:
        store_64(_record(ctx) + 8 * TXN_IS_DDL, 1)
    return True


# --- statements ---


@njit
def _add_statement(ctx, kind, start, finish, schema, schema_size, text, text_size, thread, error, timestamp, charset):
    """Notes a statement; False when its texts do not fit."""
    count = load_64(ctx + _STMT_COUNT)
    schema_offsets, schema_data = load_64(ctx + _STMT_SCHEMA), load_64(ctx + _STMT_SCHEMA + 8)
    text_offsets, text_data = load_64(ctx + _STMT_TEXT), load_64(ctx + _STMT_TEXT + 8)
    schema_at, text_at = load_u32(schema_offsets + 4 * count), load_u32(text_offsets + 4 * count)
    if schema_at + schema_size > load_64(ctx + _STMT_SCHEMA + 16) or text_at + text_size > load_64(
        ctx + _STMT_TEXT + 16
    ):
        return False
    copy_bytes(schema_data + schema_at, schema, schema_size)
    copy_bytes(text_data + text_at, text, text_size)
    store_32(schema_offsets + 4 * (count + 1), schema_at + schema_size)
    store_32(text_offsets + 4 * (count + 1), text_at + text_size)
    record = load_64(ctx + _STMT_RECORDS) + count * (STMT_WORDS * 8)
    store_64(record, start)
    store_64(record + 8, finish)
    store_64(record + 16, load_64(ctx + _PAYLOAD_ORDINAL))
    store_64(record + 24, load_64(_record(ctx)) if load_64(ctx + _TXN_STATE) else NULL)
    store_64(record + 32, kind)
    store_64(record + 40, thread)
    store_64(record + 48, error)
    store_64(record + 56, timestamp)
    store_64(record + 64, charset)
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
_CREATE, _RENAME, _TRUNCATE = (int.from_bytes(word, "little") for word in (b"create", b"rename", b"trunca"))
_ALTER, _DROP = int.from_bytes(b"alter", "little"), int.from_bytes(b"drop", "little")
_SIX, _FIVE, _FOUR = (1 << 48) - 1, (1 << 40) - 1, (1 << 32) - 1


@njit
def _is_ddl(word):
    six = word & _SIX
    return six == _CREATE or six == _RENAME or six == _TRUNCATE or word & _FIVE == _ALTER or word & _FOUR == _DROP


@njit
def _on_query(ctx, p, end, start, finish, timestamp, server):
    """QUERY_EVENT: thread 4 bytes, duration 4, schema size 1, error 2, status size 2, status, schema, 0, text.

    1 when done, 0 when an output is full, -1 when malformed.
    """
    if end - p < 13:
        return -1
    thread, schema_size, error = load_u32(p), load_u8(p + 8), load_u16(p + 9)
    status = p + load_u8(load_64(ctx + _POST_HEADERS) + 2)
    schema = status + (load_u16(p + 11) if status - p >= 13 else 0)
    text = schema + schema_size + 1
    if text > end:
        return -1
    size = end - text
    word = _word(text, size)
    state = load_64(ctx + _TXN_STATE)
    begins = (size == 5 and word == _BEGIN) or word == _XA_START or word == _XA_BEGIN
    opened = False
    if state == STATE_IMPLICIT:
        _close_transaction(ctx, start, OUTCOME_NONE, timestamp)
        state = STATE_NONE
    if state == STATE_NONE:
        _open_transaction(ctx, STATE_ANNOUNCED, start, timestamp, server)
        opened = True
    if load_64(ctx + _MODE) & WANT_STATEMENTS and not _add_statement(
        ctx,
        KIND_QUERY,
        start,
        finish,
        schema,
        schema_size,
        text,
        size,
        thread,
        error,
        timestamp,
        _client_charset(status, schema),
    ):
        if opened:
            store_64(ctx + _TXN_STATE, STATE_NONE)
        return 0
    record = _record(ctx)
    store_64(record + 8 * TXN_EVENTS, load_64(record + 8 * TXN_EVENTS) + 1)
    store_64(record + 8 * TXN_THREAD, thread)
    code = _skip_comments(text, end)
    ddl = _is_ddl(_word(code, end - code))
    if ddl:
        store_64(record + 8 * TXN_IS_DDL, 1)
    if begins:
        store_64(ctx + _TXN_STATE, STATE_BEGUN)
    elif size == 6 and word == _COMMIT:
        _close_transaction(ctx, finish, OUTCOME_COMMIT, timestamp)
    elif size == 8 and word == _ROLLBACK:
        _close_transaction(ctx, finish, OUTCOME_ROLLBACK, timestamp)
    elif load_64(ctx + _TXN_STATE) == STATE_ANNOUNCED:
        _close_transaction(ctx, finish, OUTCOME_COMMIT, timestamp)
    return 1


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
    """INSERT, UPDATE or DELETE of a rows event's type code: 20 to 22, 23 to 25, 30 to 32."""
    if code >= 30:
        return code - 30
    if code >= 23:
        return code - 23
    return code - 20


@njit
def _index_event(ctx, p, start, size, good):
    count = load_64(ctx + _INDEX_COUNT)
    record = load_64(ctx + _INDEX_RECORDS) + count * (INDEX_WORDS * 8)
    store_64(record, start)
    store_64(record + 8, size)
    store_64(record + 16, load_u8(p + 4))
    store_64(record + 24, load_u32(p))
    store_64(record + 32, load_u32(p + 5))
    store_64(record + 40, load_u16(p + 17))
    store_64(record + 48, load_u32(p + 13))
    store_64(record + 56, 1 if good else 0)
    store_64(ctx + _INDEX_COUNT, count + 1)


@njit
def _count_event(ctx):
    record = _record(ctx) + 8 * TXN_EVENTS
    store_64(record, load_64(record) + 1)


@njit
def _leave(ctx, at, status):
    store_64(ctx + _POS, at)
    return status


@njit(types.int64(types.int64), cache=True, nogil=True)
def run(ctx):
    """Walks events from POS on until one of the statuses of `layout`; `ctx` is the context's address."""
    buffer, buffered = load_64(ctx + _BUFFER), load_64(ctx + _BUFFER_SIZE)
    base, end_pos, mode = load_64(ctx + _BASE), load_64(ctx + _END_POS), load_64(ctx + _MODE)
    header, actions, counts = load_64(ctx + _HEADER_SIZE), load_64(ctx + _ACTIONS), load_64(ctx + _COUNTS)
    tail = 4 if load_64(ctx + _CHECKSUM) else 0
    want_rows = mode & WANT_ROWS
    at = load_64(ctx + _POS)
    while True:
        if base + at >= end_pos:
            return _leave(ctx, at, END)
        if buffered - at < header:
            return _leave(ctx, at, NEED_BYTES)
        p = buffer + at
        size = load_u32(p + 9)
        if size < header + tail:
            store_64(ctx + _REASON, BAD_SIZE)
            return _leave(ctx, at, DEFECT)
        if buffered - at < size:
            return _leave(ctx, at, NEED_BYTES)
        code = load_u8(p + 4)
        resumed = load_64(ctx + _RESUME)
        good = True
        if tail and not resumed:
            good = _checksum_is_good(ctx, p, size, code)
            if not good and not mode & KEEP_GOING:
                store_64(ctx + _REASON, BAD_CHECKSUM)
                return _leave(ctx, at, DEFECT)
        if mode & WANT_INDEX and load_64(ctx + _INDEX_COUNT) >= load_64(ctx + _INDEX_CAPACITY):
            return _leave(ctx, at, FULL)
        # Inside a payload the positions are those of the payload event.
        start, finish = base + at, base + at + size
        if load_64(ctx + _PAYLOAD_END):
            start, finish = load_64(ctx + _PAYLOAD_START), load_64(ctx + _PAYLOAD_END)
        body, end = p + header, p + size - tail
        timestamp, server = load_u32(p) * _SECOND, load_u32(p + 5)
        action = load_u8(actions + code)
        if action == ACT_ATTENTION:
            return _leave(ctx, at, ATTENTION)
        if good and load_64(ctx + _FIRST_BAD) < 0:
            if not resumed and not _has_room(ctx):
                return _leave(ctx, at, FULL)
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
                last = load_u16(body + (4 if load_u8(load_64(ctx + _POST_HEADERS) + code) == 6 else 6)) & _STATEMENT_END
                if last:
                    store_64(ctx + _ACTIVE_COUNT, 0)
                _count_event(ctx)
                if last and load_64(ctx + _TXN_STATE) == STATE_IMPLICIT:
                    _close_transaction(ctx, finish, OUTCOME_NONE, timestamp)
            elif action == ACT_TABLE_MAP:
                if want_rows:
                    known = _on_table_map(ctx, body, end)
                    if known == 0:
                        return _leave(ctx, at, NEW_TABLE_MAP)
                    bad = known < 0
                _count_event(ctx)
            elif action == ACT_QUERY:
                done = _on_query(ctx, body, end, start, finish, timestamp, server)
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
            elif action == ACT_GTID or action == ACT_ANONYMOUS_GTID or action == ACT_MARIADB_GTID:
                if state != STATE_NONE:
                    # The one before never ended: its server crashed inside it, or events are missing.
                    _close_transaction(ctx, start, OUTCOME_NONE, timestamp)
                if action == ACT_MARIADB_GTID:
                    bad = not _on_mariadb_gtid(ctx, body, end, start, timestamp, server)
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
                    start,
                    finish,
                    text,
                    0,
                    text,
                    end - text,
                    NULL,
                    NULL,
                    timestamp,
                    0,
                ):
                    if state == STATE_NONE:
                        store_64(ctx + _TXN_STATE, STATE_NONE)
                    return _leave(ctx, at, FULL)
                _count_event(ctx)
            elif action == ACT_XA_PREPARE:
                if state != STATE_NONE:
                    _count_event(ctx)
                    one_phase = end > body and load_u8(body) == 1
                    _close_transaction(ctx, finish, OUTCOME_COMMIT if one_phase else OUTCOME_XA_PREPARE, timestamp)
            elif action == ACT_CLOSE:
                if state != STATE_NONE:
                    _close_transaction(ctx, start, OUTCOME_NONE, timestamp)
            elif action != ACT_SILENT:
                add_problem(
                    ctx, start, finish, code, -1, -1, -1, UNKNOWN_TYPE if action == ACT_UNKNOWN else UNSUPPORTED_TYPE
                )
                if state != STATE_NONE:
                    _count_event(ctx)
            if bad:
                add_problem(ctx, start, finish, code, -1, -1, -1, MALFORMED_EVENT)
        if not good:
            store_64(ctx + _BAD_CHECKSUMS, load_64(ctx + _BAD_CHECKSUMS) + 1)
            if load_64(ctx + _FIRST_BAD) < 0:
                store_64(ctx + _FIRST_BAD, base + at)
        if mode & WANT_INDEX:
            _index_event(ctx, p, base + at, size, good)
        store_64(counts + 8 * code, load_64(counts + 8 * code) + 1)
        store_64(ctx + _EVENTS, load_64(ctx + _EVENTS) + 1)
        if timestamp > 0 and good:
            if load_64(ctx + _FIRST_AT) == 0:
                store_64(ctx + _FIRST_AT, timestamp)
            if timestamp > load_64(ctx + _LAST_AT):
                store_64(ctx + _LAST_AT, timestamp)
        store_64(ctx + _CLOSED, 1 if action == ACT_CLOSE else 0)
        at += size
        if load_64(ctx + _FIRST_BAD) < 0 and load_64(ctx + _TXN_STATE) == STATE_NONE:
            store_64(ctx + _COMPLETE_END, base + at)
            if base + at - load_64(ctx + _SEGMENT_START) >= load_64(ctx + _SEGMENT_BYTES):
                return _leave(ctx, at, SEGMENT)
