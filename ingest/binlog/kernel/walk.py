"""The one pass over a binlog: headers, checksums, transactions, statements and rows.

`run` walks the events of a window of bytes. It keeps all of its state in the context block. So it can return at any
event, or between two rows of an event, and continue later: with the next window, with fresh output buffers, or after
Python has read a new table map.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc,untyped-decorator"

from numba import njit

from ingest.binlog.kernel.crc import crc_update
from ingest.binlog.kernel.layout import (
    ACT_ANNOTATE,
    ACT_ANONYMOUS_GTID,
    ACT_CLOSE,
    ACT_CONTEXT,
    ACT_ENCRYPTION,
    ACT_FORMAT,
    ACT_FRAGMENT,
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
    ACTIVE_MAP,
    ACTIVE_TABLE_ID,
    ACTIVE_WORDS,
    ATTENTION,
    BAD_CHECKSUM,
    BAD_SIZE,
    CHANGED_INPUT,
    DATA_LIMIT,
    DEFECT,
    ENCRYPTED,
    END,
    EVENT_FLAGS,
    EVENT_NEXT,
    EVENT_SERVER,
    EVENT_SIZE,
    EVENT_TIME,
    EVENT_TYPE,
    FLAG_IGNORABLE,
    FULL,
    INCIDENT,
    INDEX_FLAGS,
    INDEX_GOOD,
    INDEX_NEXT,
    INDEX_POS,
    INDEX_SERVER,
    INDEX_SIZE,
    INDEX_TIME,
    INDEX_TYPE,
    INDEX_WORDS,
    KEEP_GOING,
    KIND_ANNOTATE,
    KIND_ROWS_QUERY,
    MALFORMED_EVENT,
    NEED_BYTES,
    NESTED_TYPE,
    NEW_TABLE_MAP,
    NULL,
    OUTCOME_COMMIT,
    OUTCOME_NONE,
    SEGMENT,
    SKIP_BAD,
    SLOT_BODY,
    SLOT_BODY_SIZE,
    SLOT_COUNT,
    SLOT_MAP,
    SLOT_TABLE_ID,
    SLOT_WORDS,
    STATE_ANNOUNCED,
    STATE_BEGUN,
    STATE_IMPLICIT,
    STATE_NONE,
    TXN_START,
    TXN_XID,
    UNKNOWN_TYPE,
    UPDATE,
    VALUE_TOO_LARGE,
    WANT_DDL,
    WANT_INDEX,
    WANT_ROWS,
    WANT_STATEMENTS,
    WORDS,
)
from ingest.binlog.kernel.memory import (
    load_64,
    load_u8,
    load_u16,
    load_u32,
    store_64,
)
from ingest.binlog.kernel.payloads import enter_payload, leave_payload
from ingest.binlog.kernel.rows import add_problem, decode_rows
from ingest.binlog.kernel.statements import add_statement, on_query, on_statement_event
from ingest.binlog.kernel.transactions import (
    close_transaction,
    count_event,
    on_gtid,
    on_mariadb_gtid,
    on_tagged_gtid,
    on_xa_prepare,
    open_if_none,
    open_transaction,
    transaction_record,
)

_HEADER_SIZE_WITH_FLAGS = 19
_TABLE_MAP = 19
_PARTIAL_UPDATE_ROWS = 39
_STATEMENT_END = 1
_ARTIFICIAL = 0x20
_SECOND = 1_000_000

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
_TXN_STATE, _TXN_COUNT, _TXN_CAPACITY = _W["TXN_STATE"], _W["TXN_COUNT"], _W["TXN_CAPACITY"]
_STMT_COUNT, _STMT_CAPACITY = _W["STMT_COUNT"], _W["STMT_CAPACITY"]
_PROBLEM_COUNT, _PROBLEM_CAPACITY = _W["PROBLEM_COUNT"], _W["PROBLEM_CAPACITY"]
_INDEX_RECORDS, _INDEX_COUNT, _INDEX_CAPACITY = _W["INDEX_RECORDS"], _W["INDEX_COUNT"], _W["INDEX_CAPACITY"]
_RESUME = _W["RESUME"]
_PAYLOAD_START, _PAYLOAD_END, _PAYLOAD_ORDINAL = _W["PAYLOAD_START"], _W["PAYLOAD_END"], _W["PAYLOAD_ORDINAL"]


# --- checksums ---


@njit
def _checksum_is_good(ctx, p, size):
    """Return whether the event's last four bytes are its CRC-32."""
    state = crc_update(0xFFFFFFFF, p, size - 4, load_64(ctx + _CRC_TABLES), load_64(ctx + _SCRATCH))
    return state ^ 0xFFFFFFFF == load_u32(p + size - 4)


@njit
def _has_room(ctx):
    """Return whether every control output has room for another event."""
    return (
        load_64(ctx + _TXN_COUNT) + 3 < load_64(ctx + _TXN_CAPACITY)
        and load_64(ctx + _STMT_COUNT) + 1 < load_64(ctx + _STMT_CAPACITY)
        and load_64(ctx + _PROBLEM_COUNT) + 2 < load_64(ctx + _PROBLEM_CAPACITY)
    )


# --- table maps ---


@njit
def _on_table_map(ctx, p, end):
    """Make a table map current for its table id: return 1 if known, 0 if Python must read it, -1 if malformed."""
    if end - p < 10:
        return -1
    if load_u8(load_64(ctx + _POST_HEADERS) + _TABLE_MAP) == 6:
        table_id = load_u32(p)
        body = p + 4
    else:
        table_id = load_u32(p) | load_u16(p + 4) << 32
        body = p + 6
    slot = load_64(ctx + _SLOTS) + (table_id & (SLOT_COUNT - 1)) * (SLOT_WORDS * 8)
    if load_64(slot + 8 * SLOT_TABLE_ID) != table_id or load_64(slot + 8 * SLOT_BODY_SIZE) != end - body:
        return 0
    known = load_64(slot + 8 * SLOT_BODY)
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
    pair = load_64(ctx + _ACTIVE) + count * (ACTIVE_WORDS * 8)
    store_64(pair + 8 * ACTIVE_TABLE_ID, table_id)
    store_64(pair + 8 * ACTIVE_MAP, load_64(slot + 8 * SLOT_MAP))
    store_64(ctx + _ACTIVE_COUNT, count + 1)
    return 1


# --- the walk ---


@njit
def _is_text(action):
    """Return whether the text of an event becomes a statement unchanged."""
    return (
        action == ACT_QUERY
        or action == ACT_LOAD_QUERY
        or action == ACT_ROWS_QUERY
        or action == ACT_ANNOTATE
        or action == ACT_CONTEXT
        or action == ACT_LOAD
    )


@njit
def _is_artificial(p, header):
    """Return whether the source made an event for its replica.

    A replica that connects again writes an artificial ROTATE and FORMAT_DESCRIPTION, also inside a transaction.
    """
    return header >= _HEADER_SIZE_WITH_FLAGS and load_u16(p + EVENT_FLAGS) & _ARTIFICIAL != 0


@njit
def _is_ignorable(p, header):
    """Return whether its server says of an event that a reader who does not know its type may ignore it."""
    return header >= _HEADER_SIZE_WITH_FLAGS and load_u16(p + EVENT_FLAGS) & FLAG_IGNORABLE != 0


@njit
def _rows_kind(code):
    """Return INSERT, UPDATE or DELETE for a rows event's type code: 23 to 25, 30 to 32, 39."""
    if code == _PARTIAL_UPDATE_ROWS:
        return UPDATE
    if code >= 30:
        return code - 30
    return code - 23


@njit
def _end_rows(ctx, body, end, code, finish, timestamp):
    """Finish a rows event: the last one ends the statement, and also the transaction if that has no other end."""
    flags = body + (4 if load_u8(load_64(ctx + _POST_HEADERS) + code) == 6 else 6)
    last = flags + 2 <= end and load_u16(flags) & _STATEMENT_END
    if last:
        store_64(ctx + _ACTIVE_COUNT, 0)
    count_event(ctx)
    if last and load_64(ctx + _TXN_STATE) == STATE_IMPLICIT:
        close_transaction(ctx, finish, OUTCOME_NONE, timestamp)


@njit
def _index_event(ctx, p, start, size, code, header, good):
    count = load_64(ctx + _INDEX_COUNT)
    record = load_64(ctx + _INDEX_RECORDS) + count * (INDEX_WORDS * 8)
    store_64(record + 8 * INDEX_POS, start)
    store_64(record + 8 * INDEX_SIZE, size)
    store_64(record + 8 * INDEX_TYPE, code)
    store_64(record + 8 * INDEX_TIME, load_u32(p + EVENT_TIME))
    store_64(record + 8 * INDEX_SERVER, load_u32(p + EVENT_SERVER))
    has_flags = header >= _HEADER_SIZE_WITH_FLAGS
    store_64(record + 8 * INDEX_FLAGS, load_u16(p + EVENT_FLAGS) if has_flags else 0)
    store_64(record + 8 * INDEX_NEXT, load_u32(p + EVENT_NEXT) if has_flags else 0)
    store_64(record + 8 * INDEX_GOOD, 1 if good else 0)
    store_64(ctx + _INDEX_COUNT, count + 1)


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
            return leave_payload(ctx, at) if nested else _leave(ctx, at, END)
        if buffered - at < header:
            return leave_payload(ctx, at) if nested else _leave(ctx, at, NEED_BYTES)
        p = buffer + at
        size = load_u32(p + EVENT_SIZE)
        if size < header + tail:
            if nested:
                return leave_payload(ctx, at)
            store_64(ctx + _REASON, BAD_SIZE)
            return _leave(ctx, at, DEFECT)
        if buffered - at < size:
            return leave_payload(ctx, at) if nested else _leave(ctx, at, NEED_BYTES)
        code = load_u8(codes + load_u8(p + EVENT_TYPE))
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
        # Inside a payload, positions are the payload event's own.
        start, finish = base + at, base + at + size
        if nested:
            start, finish = load_64(ctx + _PAYLOAD_START), nested
        body, end = p + header, p + size - tail
        timestamp, server = load_u32(p + EVENT_TIME) * _SECOND, load_u32(p + EVENT_SERVER)
        closes = action == ACT_CLOSE and not _is_artificial(p, header)
        before_defects = load_64(ctx + _FIRST_BAD) < 0 or mode & SKIP_BAD
        if before_defects and not resumed and not _has_room(ctx):
            return _leave(ctx, at, FULL)
        if good and before_defects:
            state = load_64(ctx + _TXN_STATE)
            bad = False
            if action == ACT_ROWS or action == ACT_TABLE_MAP or action == ACT_ROWS_QUERY or action == ACT_ANNOTATE:
                open_if_none(ctx, start, timestamp, server)
            if end - body > DATA_LIMIT and _is_text(action):
                add_problem(ctx, start, finish, code, -1, -1, -1, VALUE_TOO_LARGE)
            elif action == ACT_ROWS:
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
                    load_64(transaction_record(ctx) + 8 * TXN_START),
                ):
                    return _leave(ctx, at, FULL)
                _end_rows(ctx, body, end, code, finish, timestamp)
            elif action == ACT_TABLE_MAP:
                if want_rows:
                    known = _on_table_map(ctx, body, end)
                    if known == 0:
                        return _leave(ctx, at, NEW_TABLE_MAP)
                    bad = known < 0
                count_event(ctx)
            elif action == ACT_QUERY or action == ACT_LOAD_QUERY:
                done = on_query(ctx, body, end, start, finish, code, timestamp, server)
                if done == 0:
                    return _leave(ctx, at, FULL)
                bad = done < 0
            elif action == ACT_XID:
                if end - body < 8:
                    bad = True
                else:
                    if state == STATE_NONE:
                        open_transaction(ctx, STATE_BEGUN, start, timestamp, server)
                    store_64(transaction_record(ctx) + 8 * TXN_XID, load_64(body))
                    count_event(ctx)
                    close_transaction(ctx, finish, OUTCOME_COMMIT, timestamp)
            elif (
                action == ACT_GTID
                or action == ACT_ANONYMOUS_GTID
                or action == ACT_GTID_TAGGED
                or action == ACT_MARIADB_GTID
            ):
                if state != STATE_NONE:
                    # The previous transaction never ended: its server crashed inside it, or events are missing.
                    close_transaction(ctx, start, OUTCOME_NONE, timestamp)
                if action == ACT_MARIADB_GTID:
                    bad = not on_mariadb_gtid(ctx, body, end, start, timestamp, server)
                elif action == ACT_GTID_TAGGED:
                    bad = not on_tagged_gtid(ctx, body, end, start, timestamp, server)
                else:
                    bad = not on_gtid(ctx, body, end, start, timestamp, server, action == ACT_ANONYMOUS_GTID)
                if not bad:
                    count_event(ctx)
            elif action == ACT_ROWS_QUERY or action == ACT_ANNOTATE:
                text = body + 1 if action == ACT_ROWS_QUERY else body
                if text > end:
                    bad = True
                elif mode & WANT_STATEMENTS and not add_statement(
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
                count_event(ctx)
            elif nested and (
                action == ACT_FORMAT
                or action == ACT_PAYLOAD
                or action == ACT_ROWS_COMPRESSED
                or action == ACT_QUERY_COMPRESSED
                or action == ACT_ROWS_V0
                or action == ACT_FRAGMENT
            ):
                add_problem(ctx, start, finish, code, -1, -1, -1, NESTED_TYPE)
            elif action == ACT_PAYLOAD or action == ACT_ROWS_COMPRESSED or action == ACT_QUERY_COMPRESSED:
                if (want_rows or (mode & WANT_DDL and action != ACT_ROWS_COMPRESSED)) and not attended:
                    store_64(ctx + _POS, at)
                    entered = action == ACT_PAYLOAD and enter_payload(ctx, body, end, start, finish)
                    return CHANGED_INPUT if entered else ATTENTION
                if not want_rows:
                    if action == ACT_ROWS_COMPRESSED:
                        open_if_none(ctx, start, timestamp, server)
                        _end_rows(ctx, body, end, code, finish, timestamp)
                    elif state == STATE_ANNOUNCED or (state != STATE_NONE and action == ACT_PAYLOAD):
                        # A payload holds a whole transaction and its end. BEGIN, COMMIT: too short to compress.
                        close_transaction(ctx, finish, OUTCOME_NONE, timestamp)
            elif action == ACT_XA_PREPARE:
                open_if_none(ctx, start, timestamp, server)
                bad = not on_xa_prepare(ctx, body, end, finish, timestamp)
            elif action == ACT_CONTEXT or action == ACT_LOAD:
                if not on_statement_event(ctx, code, start, finish, body, end, timestamp, server):
                    return _leave(ctx, at, FULL)
                if action == ACT_LOAD and load_64(ctx + _TXN_STATE) == STATE_ANNOUNCED:
                    close_transaction(ctx, finish, OUTCOME_COMMIT, timestamp)
            elif action == ACT_LOAD_BLOCK:
                if state == STATE_NONE:
                    open_transaction(ctx, STATE_ANNOUNCED, start, timestamp, server)
                count_event(ctx)
            elif action == ACT_LOAD_END:
                if state == STATE_ANNOUNCED:
                    count_event(ctx)
                    close_transaction(ctx, finish, OUTCOME_COMMIT, timestamp)
            elif action == ACT_CLOSE:
                if state != STATE_NONE and closes:
                    close_transaction(ctx, start, OUTCOME_NONE, timestamp)
            elif action == ACT_ROWS_V0:
                if want_rows and not attended:
                    return _leave(ctx, at, ATTENTION)
                if not want_rows or load_64(ctx + _ATTENDED_GOOD) == 0:
                    open_if_none(ctx, start, timestamp, server)
                    _end_rows(ctx, body, end, code, finish, timestamp)
            elif action == ACT_FRAGMENT:
                if want_rows and not attended:
                    return _leave(ctx, at, ATTENTION)
                # The rows event inside the last fragment counts for it.
                if not want_rows or load_64(ctx + _ATTENDED_GOOD) == 0:
                    open_if_none(ctx, start, timestamp, server)
                    count_event(ctx)
            elif action == ACT_INCIDENT or (action == ACT_UNKNOWN and not _is_ignorable(p, header)):
                add_problem(ctx, start, finish, code, -1, -1, -1, INCIDENT if action == ACT_INCIDENT else UNKNOWN_TYPE)
                if state != STATE_NONE:
                    count_event(ctx)
            elif action == ACT_ENCRYPTION:
                store_64(ctx + _IS_ENCRYPTED, 1)
            elif state != STATE_NONE and action != ACT_FORMAT:
                count_event(ctx)
            if bad:
                add_problem(ctx, start, finish, code, -1, -1, -1, MALFORMED_EVENT)
        if not good:
            if mode & SKIP_BAD:
                add_problem(ctx, start, finish, code, -1, -1, -1, BAD_CHECKSUM)
            store_64(ctx + _BAD_CHECKSUMS, load_64(ctx + _BAD_CHECKSUMS) + 1)
            if load_64(ctx + _FIRST_BAD) < 0:
                store_64(ctx + _FIRST_BAD, base + at)
        if mode & WANT_INDEX and not nested:
            _index_event(ctx, p, base + at, size, code, header, good)
        store_64(counts + 8 * code, load_64(counts + 8 * code) + 1)
        at += size
        if nested:
            # A compressed event of MariaDB contains a single event: its number is 0 and stays 0.
            if load_64(ctx + _PAYLOAD_ORDINAL):
                store_64(ctx + _PAYLOAD_ORDINAL, load_64(ctx + _PAYLOAD_ORDINAL) + 1)
            continue
        store_64(ctx + _EVENTS, load_64(ctx + _EVENTS) + 1)
        if timestamp > 0 and good:
            if load_64(ctx + _FIRST_AT) == 0:
                store_64(ctx + _FIRST_AT, timestamp)
            if timestamp > load_64(ctx + _LAST_AT):
                store_64(ctx + _LAST_AT, timestamp)
        store_64(ctx + _CLOSED, 1 if closes else 0)
        if load_64(ctx + _IS_ENCRYPTED):
            store_64(ctx + _REASON, ENCRYPTED)
            return _leave(ctx, at, DEFECT)
        if (load_64(ctx + _FIRST_BAD) < 0 or mode & SKIP_BAD) and load_64(ctx + _TXN_STATE) == STATE_NONE:
            store_64(ctx + _COMPLETE_END, base + at)
            if base + at - load_64(ctx + _SEGMENT_START) >= load_64(ctx + _SEGMENT_BYTES):
                return _leave(ctx, at, SEGMENT)


@njit
def run(ctx):
    """Walk events from POS on until one of the statuses of `layout`; `ctx` is the context's address."""
    status = CHANGED_INPUT
    while status == CHANGED_INPUT:
        status = _walk(ctx)
    return status
