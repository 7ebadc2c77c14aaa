"""Statements: QUERY events, and events that hold a statement in fields."""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc,untyped-decorator"

from numba import njit

from ingest.binlog.kernel.layout import (
    KIND_EVENT,
    KIND_QUERY,
    NULL,
    OUTCOME_COMMIT,
    OUTCOME_NONE,
    OUTCOME_ROLLBACK,
    STATE_ANNOUNCED,
    STATE_BEGUN,
    STATE_IMPLICIT,
    STATE_NONE,
    STMT_CHARSET,
    STMT_END,
    STMT_ERROR,
    STMT_KIND,
    STMT_PAYLOAD_ORDINAL,
    STMT_START,
    STMT_THREAD,
    STMT_TIME,
    STMT_TXN,
    STMT_TYPE,
    STMT_WORDS,
    TEXT_CAPACITY,
    TEXT_DATA,
    TEXT_OFFSETS,
    TXN_IS_DDL,
    TXN_START,
    TXN_THREAD,
    WANT_DDL,
    WANT_STATEMENTS,
    WORDS,
)
from ingest.binlog.kernel.memory import load_64, load_u8, load_u16, load_u32, store_32, store_64
from ingest.binlog.kernel.strings import copy_bytes, is_utf8
from ingest.binlog.kernel.transactions import (
    XA_WORDS,
    close_transaction,
    count_event,
    end_text,
    open_transaction,
    text_start,
    transaction_record,
)

_XA_TEXT_BYTES = 300

_W = {name: index * 8 for name, index in WORDS.items()}
_MODE, _POST_HEADERS, _TXN_STATE = _W["MODE"], _W["POST_HEADERS"], _W["TXN_STATE"]
_STMT_RECORDS, _STMT_COUNT, _PAYLOAD_ORDINAL = _W["STMT_RECORDS"], _W["STMT_COUNT"], _W["PAYLOAD_ORDINAL"]
_STMT_SCHEMA, _STMT_TEXT, _STMT_STATUS = (
    _W["STMT_SCHEMA_OFFSETS"],
    _W["STMT_TEXT_OFFSETS"],
    _W["STMT_STATUS_OFFSETS"],
)


@njit
def _add_text(texts, count, address, size):
    """Store bytes as element `count` of texts; return False when they do not fit.

    `texts` is the address of the context words from `layout.TEXT_OFFSETS` on.
    """
    offsets, data = load_64(texts + 8 * TEXT_OFFSETS), load_64(texts + 8 * TEXT_DATA)
    at = load_u32(offsets + 4 * count)
    if at + size > load_64(texts + 8 * TEXT_CAPACITY):
        return False
    copy_bytes(data + at, address, size)
    store_32(offsets + 4 * (count + 1), at + size)
    return True


@njit
def add_statement(
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
    """Record a statement; return False when its texts do not fit."""
    count = load_64(ctx + _STMT_COUNT)
    if (
        not _add_text(ctx + _STMT_SCHEMA, count, schema, schema_size)
        or not _add_text(ctx + _STMT_STATUS, count, status, status_size)
        or not _add_text(ctx + _STMT_TEXT, count, text, text_size)
    ):
        return False
    record = load_64(ctx + _STMT_RECORDS) + count * (STMT_WORDS * 8)
    store_64(record + 8 * STMT_START, start)
    store_64(record + 8 * STMT_END, finish)
    store_64(record + 8 * STMT_PAYLOAD_ORDINAL, load_64(ctx + _PAYLOAD_ORDINAL))
    is_inside = load_64(ctx + _TXN_STATE) != STATE_NONE
    store_64(record + 8 * STMT_TXN, load_64(transaction_record(ctx) + 8 * TXN_START) if is_inside else NULL)
    store_64(record + 8 * STMT_KIND, kind)
    store_64(record + 8 * STMT_THREAD, thread)
    store_64(record + 8 * STMT_ERROR, error)
    store_64(record + 8 * STMT_TIME, timestamp)
    store_64(record + 8 * STMT_CHARSET, _client_charset(status, status + status_size))
    store_64(record + 8 * STMT_TYPE, code)
    store_64(ctx + _STMT_COUNT, count + 1)
    return True


@njit
def _client_charset(p, end):
    """Return the collation id of the client's character set from a QUERY's status variables, 0 when missing.

    Keys and sizes: server, libs/mysql/binlog/event/statement_events.h, Query_event; MariaDB, sql/log_event_server.cc,
    Query_log_event::write, which puts the collations of character sets before it since 11.2.
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
        elif key == 131:
            p += 4 * load_u8(p) + 1
        else:
            return 0
    return 0


@njit
def _word(p, size):
    """Return the first eight bytes of a statement in lower case, with zeros behind its end."""
    word = 0
    for i in range(min(size, 8)):
        byte = load_u8(p + i)
        if 65 <= byte <= 90:
            byte |= 32
        word |= byte << (8 * i)
    return word


@njit
def _skip_comments(p, end):
    """Return the address behind blanks and comments, except comments that hold code (`/*! … */` or `/*M! … */`).

    160 is a blank in the character sets in which it is U+00A0, and begins no character of UTF-8.
    """
    while p < end:
        byte = load_u8(p)
        if byte == 32 or 9 <= byte <= 13 or byte == 160:
            p += 1
        elif byte == 47 and p + 2 < end and load_u8(p + 1) == 42 and not _is_executed(p + 2, end):
            p += 2
            while p + 1 < end and not (load_u8(p) == 42 and load_u8(p + 1) == 47):
                p += 1
            p += 2
        else:
            break
    return min(p, end)


@njit
def _is_executed(p, end):
    """Return whether a comment with this content holds code, for the server of either flavor."""
    return load_u8(p) == 33 or (load_u8(p) == 77 and p + 1 < end and load_u8(p + 1) == 33)


_BEGIN = int.from_bytes(b"begin", "little")
_COMMIT = int.from_bytes(b"commit", "little")
_ROLLBACK = int.from_bytes(b"rollback", "little")
_XA_START = int.from_bytes(b"xa start", "little")
_XA_BEGIN = int.from_bytes(b"xa begin", "little")
_XA_COMMIT = int.from_bytes(b"xa commi", "little")
_XA_ROLLBACK = int.from_bytes(b"xa rollb", "little")
_CREATE, _RENAME, _TRUNCATE = (int.from_bytes(word, "little") for word in (b"create", b"rename", b"trunca"))
_ALTER, _DROP = int.from_bytes(b"alter", "little"), int.from_bytes(b"drop", "little")
_SET = int.from_bytes(b"set", "little")
_SIX, _FIVE, _FOUR, _THREE = (1 << 48) - 1, (1 << 40) - 1, (1 << 32) - 1, (1 << 24) - 1


@njit
def _is_ddl(word):
    six = word & _SIX
    return six == _CREATE or six == _RENAME or six == _TRUNCATE or word & _FIVE == _ALTER or word & _FOUR == _DROP


@njit
def _may_be_ddl(word):
    """Return whether a statement with this first word may be DDL. Comments and SET count: DDL may follow them."""
    first = word & 0xFF
    return _is_ddl(word) or word & _THREE == _SET or first == 45 or first == 47 or first == 35


@njit
def on_query(ctx, p, end, start, finish, code, timestamp, server):
    """QUERY_EVENT: thread 4 bytes, duration 4, schema size 1, error 2, status size 2, status, schema, 0, text.

    Servers before 5.0 have no status; EXECUTE_LOAD_QUERY has a longer fixed part. Return 1 when done, 0 when an output
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
        # An earlier transaction never ended: its end is missing.
        close_transaction(ctx, start, OUTCOME_NONE, timestamp)
        state = STATE_NONE
    if state == STATE_NONE:
        open_transaction(ctx, STATE_ANNOUNCED, start, timestamp, server)
    first = _skip_comments(text, end)
    first_word = _word(first, end - first)
    mode = load_64(ctx + _MODE)
    is_wanted = mode & WANT_STATEMENTS or (mode & WANT_DDL and _may_be_ddl(first_word))
    if is_wanted and not add_statement(
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
    count_event(ctx)
    record = transaction_record(ctx)
    store_64(record + 8 * TXN_THREAD, thread)
    if _is_ddl(first_word):
        store_64(record + 8 * TXN_IS_DDL, 1)
    if begins:
        store_64(ctx + _TXN_STATE, STATE_BEGUN)
    elif size == 6 and word == _COMMIT:
        close_transaction(ctx, finish, OUTCOME_COMMIT, timestamp)
    elif size == 8 and word == _ROLLBACK:
        close_transaction(ctx, finish, OUTCOME_ROLLBACK, timestamp)
    elif word == _XA_COMMIT or word == _XA_ROLLBACK:
        skipped = 10 if word == _XA_COMMIT else 12
        if 0 < size - skipped <= _XA_TEXT_BYTES and is_utf8(text + skipped, size - skipped):
            end_text(ctx, XA_WORDS, copy_bytes(text_start(ctx, XA_WORDS), text + skipped, size - skipped))
        close_transaction(ctx, finish, OUTCOME_COMMIT if word == _XA_COMMIT else OUTCOME_ROLLBACK, timestamp)
    elif load_64(ctx + _TXN_STATE) == STATE_ANNOUNCED:
        close_transaction(ctx, finish, OUTCOME_COMMIT, timestamp)
    return 1


@njit
def on_statement_event(ctx, code, start, finish, body, end, timestamp, server):
    """Record an event that is part of a statement, with its body as text; return False when the text does not fit."""
    state = load_64(ctx + _TXN_STATE)
    if state == STATE_NONE:
        open_transaction(ctx, STATE_ANNOUNCED, start, timestamp, server)
    if load_64(ctx + _MODE) & WANT_STATEMENTS and not add_statement(
        ctx, KIND_EVENT, code, start, finish, body, 0, body, 0, body, end - body, NULL, NULL, timestamp
    ):
        store_64(ctx + _TXN_STATE, state)
        return False
    count_event(ctx)
    return True
