"""Unpacks a replication stream as it comes from the socket, and verifies its events.

Every packet has a head of four bytes: the length of its payload and a sequence number. An event's payload begins with
a byte 0. A payload of 2^24 - 1 bytes continues in the next packet, without that byte. Source: MySQL's internals manual,
"MySQL Packets"; server, sql/rpl_binlog_sender.cc, `Binlog_sender::send_packet`.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc,untyped-decorator"

from numba import njit

from ingest.binlog.kernel.crc import crc_update
from ingest.binlog.kernel.layout import EVENT_FLAGS, EVENT_NEXT, EVENT_SIZE, EVENT_TYPE
from ingest.binlog.kernel.memory import copy, load_64, load_u8, load_u16, load_u32, store_64
from ingest.binlog.kernel.packet_layout import (
    BAD_CHECKSUM,
    BAD_POSITION,
    BAD_SEQUENCE,
    BAD_SIZE,
    FULL,
    MESSAGE,
    MORE,
    SPECIAL,
    WORDS,
)

_SOURCE = WORDS["SOURCE"]
_SOURCE_POS = WORDS["SOURCE_POS"]
_SOURCE_END = WORDS["SOURCE_END"]
_EVENTS = WORDS["EVENTS"]
_EVENTS_END = WORDS["EVENTS_END"]
_EVENTS_SIZE = WORDS["EVENTS_SIZE"]
_LEFT = WORDS["LEFT"]
_GOES_ON = WORDS["GOES_ON"]
_SEQUENCE = WORDS["SEQUENCE"]
_CHECKED = WORDS["CHECKED"]
_SURE = WORDS["SURE"]
_POSITION = WORDS["POSITION"]
_HAS_CHECKSUMS = WORDS["HAS_CHECKSUMS"]
_CRC_TABLES = WORDS["CRC_TABLES"]
_SCRATCH = WORDS["SCRATCH"]

_HEAD = 4
_LONGEST = (1 << 24) - 1
_EVENT_HEAD = 19
_ARTIFICIAL = 0x20
_STOP, _ROTATE, _FORMAT_DESCRIPTION, _HEARTBEAT, _HEARTBEAT_V2 = 3, 4, 15, 27, 41


@njit
def unpack(ctx):
    """Unpack packets until one of the statuses; the rest of the source begins at SOURCE_POS."""
    source, end = load_64(ctx + _SOURCE), load_64(ctx + _SOURCE_END)
    at = load_64(ctx + _SOURCE_POS)
    target, filled = load_64(ctx + _EVENTS), load_64(ctx + _EVENTS_END)
    size = load_64(ctx + _EVENTS_SIZE)
    left = load_64(ctx + _LEFT)
    status = MORE
    while True:
        if left:
            part = min(left, end - at, size - filled)
            copy(target + filled, source + at, part)
            at += part
            filled += part
            left -= part
            if left:
                status = FULL if filled == size else MORE
                break
        if end - at < _HEAD + 1:
            break
        length = load_u32(source + at) & 0xFFFFFF
        if load_u8(source + at + 3) != load_64(ctx + _SEQUENCE):
            status = BAD_SEQUENCE
            break
        skipped = 0
        if not load_64(ctx + _GOES_ON):
            if length == 0 or load_u8(source + at + _HEAD):
                status = MESSAGE
                break
            skipped = 1
        store_64(ctx + _SEQUENCE, (load_64(ctx + _SEQUENCE) + 1) & 0xFF)
        store_64(ctx + _GOES_ON, 1 if length == _LONGEST else 0)
        left = length - skipped
        at += _HEAD + skipped
    store_64(ctx + _SOURCE_POS, at)
    store_64(ctx + _EVENTS_END, filled)
    store_64(ctx + _LEFT, left)
    return status


@njit
def verify(ctx):
    """Verify size, checksum and position of events until one of the statuses.

    MariaDB 11.4 and later omit the position from most events (binlog_legacy_event_pos=OFF).
    """
    events, end = load_64(ctx + _EVENTS), load_64(ctx + _EVENTS_END)
    at, position = load_64(ctx + _CHECKED), load_64(ctx + _POSITION)
    status = MORE
    while end - at >= _EVENT_HEAD:
        event = events + at
        size = load_u32(event + EVENT_SIZE)
        if size < _EVENT_HEAD:
            status = BAD_SIZE
            break
        if end - at < size:
            break
        code = load_u8(event + EVENT_TYPE)
        if (
            load_u16(event + EVENT_FLAGS) & _ARTIFICIAL
            or code == _STOP
            or code == _ROTATE
            or code == _FORMAT_DESCRIPTION
            or code == _HEARTBEAT
            or code == _HEARTBEAT_V2
        ):
            status = SPECIAL
            break
        if load_64(ctx + _HAS_CHECKSUMS):
            state = crc_update(0xFFFFFFFF, event, size - 4, load_64(ctx + _CRC_TABLES), load_64(ctx + _SCRATCH))
            if (state ^ 0xFFFFFFFF) != load_u32(event + size - 4):
                status = BAD_CHECKSUM
                break
        recorded_end = load_u32(event + EVENT_NEXT)
        if recorded_end and recorded_end != (position + size) & 0xFFFFFFFF:
            status = BAD_POSITION
            break
        at += size
        position += size
        if recorded_end:
            store_64(ctx + _SURE, at)
    store_64(ctx + _CHECKED, at)
    store_64(ctx + _POSITION, position)
    return status
