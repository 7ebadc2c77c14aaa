"""Events that contain other events in compressed form: transaction payloads of MySQL, compressed events of MariaDB.

`unpack` returns the bytes of the inner events as the server would have written them, uncompressed and without
checksums.
"""

from typing import Final

import zstandard

from ingest.binlog.events.format import FormatDescription
from ingest.binlog.events.inflate import inflate
from ingest.binlog.events.reader import MalformedEventError, Reader
from ingest.binlog.events.rows_events import rows_head
from ingest.binlog.events.types import QUERY, QUERY_COMPRESSED, ROWS_COMPRESSED, TRANSACTION_PAYLOAD

_SIZE, _COMPRESSION, _UNCOMPRESSED_SIZE = 1, 2, 3
_ZSTD, _NONE = 0, 255
_STEP: Final = 64 << 20
_MOST_BYTES: Final = 1 << 32
"""Most bytes in a payload: no server has positions beyond 4 GiB (reference manual, `max_binlog_cache_size`)."""

_decompressor: Final = zstandard.ZstdDecompressor()


def unpack(code: int, event: bytes, format: FormatDescription) -> bytes:
    """Return the events inside a compressed event of type `code`; `event` includes header and checksum.

    Raises
    ------
    MalformedEventError
        When the event's fields contradict each other, or its data does not decompress to the stated size.
    """
    reader = Reader(event[: len(event) - (4 if format.has_checksums else 0)])
    reader.take(format.header_size)
    if code == TRANSACTION_PAYLOAD:
        return _transaction_payload(reader.rest())
    if code == QUERY_COMPRESSED:
        _take_query_head(reader, format.post_header_size(QUERY_COMPRESSED) or format.post_header_size(QUERY))
    else:
        rows_head(code, reader, format.post_header_size(code))
    head = bytearray(reader.data[: reader.at])
    data = reader.rest()
    # The high bits mark the data as compressed with zlib.
    if not data or data[0] & 0xE0 != 0x80 or not 1 <= data[0] & 7 <= 4:
        raise MalformedEventError("it has no compressed data where it must be")
    text = inflate(data)
    head[4] = QUERY if code == QUERY_COMPRESSED else ROWS_COMPRESSED[code]
    if len(head) + len(text) >= 1 << 32:
        raise MalformedEventError("it holds an event of more than 4 GiB")
    head[9:13] = (len(head) + len(text)).to_bytes(4, "little")
    return bytes(head) + text


def payload_fields(body: bytes) -> tuple[int, int, int]:
    """Return compression, uncompressed size in bytes and start of the data in a TRANSACTION_PAYLOAD event's body.

    The body begins with numbered fields, each with its size, up to number 0. Source: server,
    libs/mysql/binlog/event/codecs/binary.cpp, `Transaction_payload`.
    """
    reader = Reader(body)
    found = {_SIZE: -1, _COMPRESSION: _NONE, _UNCOMPRESSED_SIZE: -1}
    for field, value in reader.numbered():
        if field in found:
            found[field] = value.packed()
    if found[_SIZE] not in (-1, reader.left):
        raise MalformedEventError(f"its head announces {found[_SIZE]} bytes of data, but it has {reader.left}")
    return found[_COMPRESSION], found[_UNCOMPRESSED_SIZE], reader.at


def _transaction_payload(body: bytes) -> bytes:
    compression, size, at = payload_fields(body)
    if compression == _NONE:
        return body[at:]
    if compression != _ZSTD:
        raise MalformedEventError(f"compression {compression} is unknown")
    if size > _MOST_BYTES:
        raise MalformedEventError(f"its head announces {size} bytes, more than a server writes")
    try:
        # The library allocates the size that the frame states and ignores `max_output_size`.
        if 0 < size <= _STEP and zstandard.frame_content_size(body[at:]) in (-1, size):
            data = _decompressor.decompress(body[at:], max_output_size=size)
            if len(data) == size:
                return data
        # Larger than one step, or in several frames: memory grows with the actual data, not with the stated size.
        pieces = []
        with _decompressor.stream_reader(body[at:], read_across_frames=True) as reader:
            while piece := reader.read(_STEP):
                pieces.append(piece)
                if sum(map(len, pieces)) > size:
                    break
    except zstandard.ZstdError as error:
        raise MalformedEventError(str(error)) from None
    data = b"".join(pieces)
    if len(data) != size:
        raise MalformedEventError(f"its head announces {size} bytes, but it has {len(data)}")
    return data


def _take_query_head(reader: Reader, post_header_size: int) -> None:
    """Skip the bytes before the text of a query: the fixed part, status variables, the default schema."""
    head = Reader(reader.take(post_header_size))
    head.take(8)
    schema_size = head.byte()
    head.take(2)
    reader.take(head.number(2) + schema_size + 1)
