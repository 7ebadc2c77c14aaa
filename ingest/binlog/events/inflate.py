"""Decompression of events and column values that MariaDB compressed."""

import zlib
from typing import Final

from ingest.binlog.events.reader import MalformedEventError

_SIZE_BYTES: Final = 7


def inflate(data: bytes, *, is_raw: bool = False) -> bytes:
    """Return the original of compressed bytes.

    Compressed bytes are flags, the original's size, high byte first, and one zlib or raw deflate stream. The lowest
    three bits of the flags are the number of bytes in the size; the caller knows the other bits. Sources: MariaDB,
    sql/log_event.cc, `binlog_buf_uncompress`; sql/field_comp.cc, `uncompress_zlib`.

    Raises
    ------
    MalformedEventError
        When the data is not exactly one stream of the size in the head.
    """
    head = 1 + (data[0] & _SIZE_BYTES)
    size = int.from_bytes(data[1:head], "big")
    stream = zlib.decompressobj(-zlib.MAX_WBITS if is_raw else zlib.MAX_WBITS)
    try:
        original = stream.decompress(data[head:], size + 1)
    except zlib.error as error:
        raise MalformedEventError(str(error)) from None
    if len(original) != size or not stream.eof or stream.unused_data:
        raise MalformedEventError(f"its compressed data is no stream of {size} bytes")
    return original
