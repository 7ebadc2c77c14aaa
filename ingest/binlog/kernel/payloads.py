"""Enters events that contain other events, and leaves them again: all input words are swapped together."""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc,untyped-decorator"

from numba import njit

from ingest.binlog.kernel.layout import BAD_PAYLOAD, CHANGED_INPUT, INPUT_WORDS, WORDS
from ingest.binlog.kernel.memory import call_zstd, copy, load_64, load_u8, store_64
from ingest.binlog.kernel.rows import add_problem, packed_integer

TRANSACTION_PAYLOAD = 40
_ZSTD, _NOT_COMPRESSED = 0, 255

_W = {name: index * 8 for name, index in WORDS.items()}
_BUFFER, _BUFFER_SIZE, _POS, _BASE, _END_POS = _W["BUFFER"], _W["BUFFER_SIZE"], _W["POS"], _W["BASE"], _W["END_POS"]
_CHECKSUM, _COUNTS, _INNER_COUNTS, _ATTENDED = _W["CHECKSUM"], _W["COUNTS"], _W["INNER_COUNTS"], _W["ATTENDED"]
_PAYLOAD_START, _PAYLOAD_END, _PAYLOAD_ORDINAL = _W["PAYLOAD_START"], _W["PAYLOAD_END"], _W["PAYLOAD_ORDINAL"]
_INPUT, _OUTER, _INPUT_BYTES = _W["BUFFER"], _W["OUTER_0"], 8 * (INPUT_WORDS.stop - INPUT_WORDS.start)
_INSIDE, _INSIDE_CAPACITY = _W["INSIDE"], _W["INSIDE_CAPACITY"]
_ZSTD_DECOMPRESS, _ZSTD_CONTEXT = _W["ZSTD_DECOMPRESS"], _W["ZSTD_CONTEXT"]


@njit
def _payload_head(p, end):
    """Return compression, uncompressed size and data address of a TRANSACTION_PAYLOAD; address 0 when malformed.

    The head has numbered fields, each with its size, up to number 0. Source: server,
    libs/mysql/binlog/event/codecs/binary.cpp, Transaction_payload.
    """
    compression, size = _NOT_COMPRESSED, -1
    while p < end:
        field = load_u8(p)
        if field == 0:
            return compression, size, p + 1
        behind = p + 2 + load_u8(p + 1)
        value, read = packed_integer(p + 2, min(behind, end))
        if read < 0:
            return compression, size, 0
        if field == 2:
            compression = value
        elif field == 3:
            size = value
        p = behind
    return compression, size, 0


@njit
def enter_payload(ctx, body, end, start, finish):
    """Decompress a payload and switch to its events; return False when Python must do it or report the reason."""
    compression, size, data = _payload_head(body, end)
    inside, decompress = load_64(ctx + _INSIDE), load_64(ctx + _ZSTD_DECOMPRESS)
    if data == 0 or compression != _ZSTD or decompress == 0 or not 0 < size <= load_64(ctx + _INSIDE_CAPACITY):
        return False
    if call_zstd(decompress, load_64(ctx + _ZSTD_CONTEXT), inside, size, data, end - data) != size:
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
def leave_payload(ctx, at):
    """Switch back to the outer event. Record a problem if the walk, which got to `at`, has not reached its end."""
    if at != load_64(ctx + _END_POS):
        start, end = load_64(ctx + _PAYLOAD_START), load_64(ctx + _PAYLOAD_END)
        add_problem(ctx, start, end, TRANSACTION_PAYLOAD, -1, -1, -1, BAD_PAYLOAD)
    copy(ctx + _INPUT, ctx + _OUTER, _INPUT_BYTES)
    store_64(ctx + _ATTENDED, load_64(ctx + _BASE) + load_64(ctx + _POS))
    return CHANGED_INPUT
