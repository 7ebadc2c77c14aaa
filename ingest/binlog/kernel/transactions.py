"""Records of transactions, and the events that begin and end them.

A record is `layout.TXN_…` words in the context's array; the open transaction's record is at TXN_COUNT.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc,untyped-decorator"

from numba import njit

from ingest.binlog.kernel.layout import (
    LATEST_MOMENT,
    NULL,
    OUTCOME_COMMIT,
    OUTCOME_NONE,
    OUTCOME_XA_PREPARE,
    STATE_ANNOUNCED,
    STATE_BEGUN,
    STATE_IMPLICIT,
    STATE_NONE,
    TEXT_DATA,
    TEXT_OFFSETS,
    TXN_COMMITTED,
    TXN_END,
    TXN_EVENTS,
    TXN_HAS_GTID,
    TXN_HAS_XA,
    TXN_IS_DDL,
    TXN_ORIGINAL,
    TXN_OUTCOME,
    TXN_SERVER,
    TXN_START,
    TXN_STARTED,
    TXN_THREAD,
    TXN_WORDS,
    TXN_XID,
    WANT_ROWS,
    WORDS,
)
from ingest.binlog.kernel.memory import load_64, load_i32, load_u8, load_u32, shr, store_8, store_16, store_32, store_64
from ingest.binlog.kernel.numbers import write_signed, write_unsigned
from ingest.binlog.kernel.strings import copy_bytes, is_utf8

_XA_PART_BYTES = 64
_TAG_BYTES = 32
_UUID_FIELD, _TAG_FIELD, _LAST_FIELD = 1, 3, 11

_W = {name: index * 8 for name, index in WORDS.items()}
_MODE, _TXN_STATE, _TXN_RECORDS, _TXN_COUNT = _W["MODE"], _W["TXN_STATE"], _W["TXN_RECORDS"], _W["TXN_COUNT"]
_ACTIVE_COUNT = _W["ACTIVE_COUNT"]
GTID_WORDS, XA_WORDS = _W["GTID_OFFSETS"], _W["XA_OFFSETS"]
"""Texts of transactions: each name is the context word of the offsets; the word of the bytes comes next."""


@njit
def transaction_record(ctx):
    """Return the address of the open transaction's record."""
    return load_64(ctx + _TXN_RECORDS) + load_64(ctx + _TXN_COUNT) * (TXN_WORDS * 8)


@njit
def open_transaction(ctx, state, start, timestamp, server):
    """Begin the record of a transaction at physical offset `start`."""
    record = transaction_record(ctx)
    for word in range(TXN_WORDS):
        store_64(record + 8 * word, 0)
    store_64(record + 8 * TXN_START, start)
    store_64(record + 8 * TXN_XID, NULL)
    store_64(record + 8 * TXN_THREAD, NULL)
    store_64(record + 8 * TXN_SERVER, server)
    store_64(record + 8 * TXN_STARTED, timestamp)
    store_64(record + 8 * TXN_COMMITTED, NULL)
    store_64(record + 8 * TXN_ORIGINAL, NULL)
    for texts in (GTID_WORDS, XA_WORDS):
        offsets = load_64(ctx + texts + 8 * TEXT_OFFSETS) + 4 * load_64(ctx + _TXN_COUNT)
        store_32(offsets + 4, load_u32(offsets))
    store_64(ctx + _TXN_STATE, state)
    store_64(ctx + _ACTIVE_COUNT, 0)


@njit
def open_if_none(ctx, start, timestamp, server):
    """Open a transaction for row events that are outside of any transaction."""
    if load_64(ctx + _TXN_STATE) == STATE_NONE:
        open_transaction(ctx, STATE_IMPLICIT, start, timestamp, server)


@njit
def close_transaction(ctx, end, outcome, timestamp):
    """End the open transaction at physical offset `end`."""
    record = transaction_record(ctx)
    store_64(record + 8 * TXN_END, end)
    store_64(record + 8 * TXN_OUTCOME, outcome)
    if load_64(record + 8 * TXN_COMMITTED) == NULL and outcome != OUTCOME_NONE:
        store_64(record + 8 * TXN_COMMITTED, timestamp)
    if load_64(ctx + _MODE) & WANT_ROWS:
        store_64(ctx + _TXN_COUNT, load_64(ctx + _TXN_COUNT) + 1)
    store_64(ctx + _TXN_STATE, STATE_NONE)
    store_64(ctx + _ACTIVE_COUNT, 0)


@njit
def count_event(ctx):
    """Count another event in the open transaction."""
    record = transaction_record(ctx) + 8 * TXN_EVENTS
    store_64(record, load_64(record) + 1)


@njit
def _write_hex_byte(out, byte):
    high, low = byte >> 4, byte & 15
    store_8(out, 48 + high if high < 10 else 87 + high)
    store_8(out + 1, 48 + low if low < 10 else 87 + low)
    return out + 2


@njit
def _write_uuid(out, address):
    """Write 16 bytes as lower-case hex with dashes."""
    for i in range(16):
        if i == 4 or i == 6 or i == 8 or i == 10:
            store_8(out, 45)
            out += 1
        out = _write_hex_byte(out, load_u8(address + i))
    return out


@njit
def text_start(ctx, texts):
    """Return where a text of the open transaction begins; `texts` is GTID_WORDS or XA_WORDS."""
    offsets = load_64(ctx + texts + 8 * TEXT_OFFSETS)
    return load_64(ctx + texts + 8 * TEXT_DATA) + load_u32(offsets + 4 * load_64(ctx + _TXN_COUNT))


@njit
def end_text(ctx, texts, out):
    """End a text of the open transaction at `out`."""
    offsets = load_64(ctx + texts + 8 * TEXT_OFFSETS) + 4 * (load_64(ctx + _TXN_COUNT) + 1)
    store_32(offsets, out - load_64(ctx + texts + 8 * TEXT_DATA))
    store_64(transaction_record(ctx) + 8 * (TXN_HAS_GTID if texts == GTID_WORDS else TXN_HAS_XA), 1)


@njit
def _moment(micros):
    """Return a commit timestamp; NULL for 0, which means none, and for a number that is no date."""
    return micros if 0 < micros <= LATEST_MOMENT else NULL


@njit
def on_gtid(ctx, p, end, start, timestamp, server, anonymous):
    """GTID_LOG_EVENT: flags, source UUID, number; from 5.7 logical clock; from 8.0 commit times in microseconds.

    Source: server, libs/mysql/binlog/event/control_events.cpp, Gtid_event.
    """
    if end - p < 25:
        return False
    open_transaction(ctx, STATE_ANNOUNCED, start, timestamp, server)
    record = transaction_record(ctx)
    if not anonymous:
        out = _write_uuid(text_start(ctx, GTID_WORDS), p + 1)
        store_8(out, 58)
        end_text(ctx, GTID_WORDS, write_unsigned(out + 1, load_64(p + 17)))
    if end - p >= 49 and load_u8(p + 25) == 2:
        commit = load_64(p + 42) & 0xFFFFFFFFFFFFFF
        committed = original = commit & 0x7FFFFFFFFFFFFF
        if commit >> 55 and end - p >= 56:
            original = load_64(p + 49) & 0xFFFFFFFFFFFFFF
        store_64(record + 8 * TXN_ORIGINAL, _moment(original))
        store_64(record + 8 * TXN_COMMITTED, _moment(committed))
    return True


@njit
def _varlen(p, end):
    """Return a number of mysql::serialization and the address behind it; address 0 when it passes `end`.

    The trailing ones of the first byte count the bytes that follow; the bits above them are the number, low bits first.
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
def on_tagged_gtid(ctx, p, end, start, timestamp, server):
    """GTID_TAGGED_LOG_EVENT: version, size and last required field, then numbered fields in ascending order.

    Each field occurs at most once, so the text needs the room of one GTID at most. Source: server,
    libs/mysql/binlog/event/control_events.h, Gtid_event::define_fields.
    """
    open_transaction(ctx, STATE_ANNOUNCED, start, timestamp, server)
    out, text_end = text_start(ctx, GTID_WORDS), 0
    number, committed, original = 0, NULL, NULL
    seen = 0
    for _ in range(3):
        _, p = _varlen(p, end)
        if p == 0:
            return False
    while p < end:
        field, p = _varlen(p, end)
        if p == 0:
            return False
        if not 0 <= field <= _LAST_FIELD:
            # Fields of later versions come after the known fields.
            break
        if seen >> field:
            return False
        seen |= 1 << field
        if field == _UUID_FIELD:
            for i in range(16):
                if i == 4 or i == 6 or i == 8 or i == 10:
                    store_8(out, 45)
                    out += 1
                byte, p = _varlen(p, end)
                if p == 0 or not 0 <= byte <= 0xFF:
                    return False
                out = _write_hex_byte(out, byte)
        elif field == _TAG_FIELD:
            size, p = _varlen(p, end)
            if p == 0 or not 0 <= size <= _TAG_BYTES or p + size > end or not is_utf8(p, size):
                return False
            if not seen >> _UUID_FIELD & 1:
                return False
            if size > 0:
                store_8(out, 58)
                out = copy_bytes(out + 1, p, size)
            p += size
            store_8(out, 58)
            text_end = write_unsigned(out + 1, number)
        else:
            value, p = _varlen(p, end)
            if p == 0:
                return False
            if field == 2:
                # Signed numbers keep their sign in the lowest bit; for a GTID it is never set.
                number = shr(value, 1)
            elif field == 6:
                committed = original = value
            elif field == 7:
                original = value
    if text_end:
        end_text(ctx, GTID_WORDS, text_end)
    record = transaction_record(ctx)
    store_64(record + 8 * TXN_COMMITTED, _moment(committed))
    store_64(record + 8 * TXN_ORIGINAL, _moment(original))
    return True


@njit
def on_mariadb_gtid(ctx, p, end, start, timestamp, server):
    """MariaDB GTID_EVENT: sequence 8 bytes, domain 4, flags 1; flag 1 is standalone, else it stands for BEGIN."""
    if end - p < 13:
        return False
    flags = load_u8(p + 12)
    open_transaction(ctx, STATE_ANNOUNCED if flags & 1 else STATE_BEGUN, start, timestamp, server)
    out = write_unsigned(text_start(ctx, GTID_WORDS), load_u32(p + 8))
    store_8(out, 45)
    out = write_unsigned(out + 1, server)
    store_8(out, 45)
    end_text(ctx, GTID_WORDS, write_unsigned(out + 1, load_64(p)))
    record = transaction_record(ctx)
    if flags & 0x20:
        store_64(record + 8 * TXN_IS_DDL, 1)
    store_64(record + 8 * TXN_THREAD, _thread_of_mariadb_gtid(p + 13, end, flags))
    return True


@njit
def _thread_of_mariadb_gtid(p, end, flags):
    """Return the connection id behind the flags of a MariaDB GTID_EVENT, NULL if the event has none.

    Flags announce fields, which follow in this order: 2 the commit id, 8 bytes; 0x40 and 0x80 an xid. Then one byte of
    further flags: 1 the number of further engines, 1 byte; 4 and 8 the number of START ALTER, 8 bytes; 16 the
    connection id, 4 bytes. Source: MariaDB server, sql/log_event.cc, Gtid_log_event.
    """
    if flags & 2:
        p += 8
    if flags & 0xC0:
        if end - p < 6:
            return NULL
        p += 6 + load_u8(p + 4) + load_u8(p + 5)
    if end - p < 5:
        return NULL
    extra = load_u8(p)
    p += 1 + (extra & 1) + (8 if extra & 12 else 0)
    if not extra & 16 or end - p < 4:
        return NULL
    return load_u32(p)


@njit
def _write_xa_part(out, address, size):
    store_16(out, 0x2758)
    out += 2
    for i in range(size):
        out = _write_hex_byte(out, load_u8(address + i))
    store_16(out, 0x2C27)
    return out + 2


@njit
def on_xa_prepare(ctx, p, end, finish, timestamp):
    """XA_PREPARE_LOG_EVENT: one phase 1 byte, format id 4, sizes 4 and 4, global and branch part of the xid.

    Source: server, libs/mysql/binlog/event/control_events.h, XA_prepare_event.
    """
    if end - p < 13:
        return False
    one_phase, format_id = load_u8(p), load_i32(p + 1)
    first, second = load_u32(p + 5), load_u32(p + 9)
    if first > _XA_PART_BYTES or second > _XA_PART_BYTES or end - p < 13 + first + second:
        return False
    out = _write_xa_part(text_start(ctx, XA_WORDS), p + 13, first)
    out = _write_xa_part(out, p + 13 + first, second)
    end_text(ctx, XA_WORDS, write_signed(out, format_id))
    close_transaction(ctx, finish, OUTCOME_COMMIT if one_phase else OUTCOME_XA_PREPARE, timestamp)
    return True
