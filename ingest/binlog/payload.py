"""Events that hold others in compressed form: transaction payloads of MySQL, compressed events of MariaDB.

Each function gives the bytes of the events inside, as the server would have written them uncompressed and
without checksums.
"""

import zlib
from typing import Final

import zstandard

from ingest.binlog.events import QUERY, QUERY_COMPRESSED, ROWS_COMPRESSED, TRANSACTION_PAYLOAD
from ingest.binlog.format import FormatDescription

_END, _SIZE, _COMPRESSION, _UNCOMPRESSED_SIZE = range(4)
_ZSTD, _NONE = 0, 255
_STEP: Final = 64 << 20
_UPDATES: Final = (167, 170)

_decompressor: Final = zstandard.ZstdDecompressor()


class MalformedPayloadError(ValueError):
    """The bytes of a compressed event do not give the events that it says it holds."""


def unpack(code: int, event: bytes, format: FormatDescription) -> bytes:
    """The events inside a compressed event of type `code`, header and checksum included in `event`.

    Raises
    ------
    MalformedPayloadError
        When its fields contradict each other, or it does not decompress to the size that it says.
    """
    end = len(event) - (4 if format.has_checksums else 0)
    if code == TRANSACTION_PAYLOAD:
        return _transaction_payload(event[format.header_size : end])
    at = format.header_size
    if code == QUERY_COMPRESSED:
        code, at = QUERY, _query_text(event, at, end, format)
    else:
        code, at = ROWS_COMPRESSED[code], _rows(event, at, end, code, format)
    text = _mariadb_block(event[at:end])
    head = bytearray(event[:at])
    head[4] = code
    head[9:13] = (len(head) + len(text)).to_bytes(4, "little")
    return bytes(head) + text


def payload_fields(body: bytes) -> tuple[int, int, int]:
    """Compression, uncompressed size in bytes and start of the data in a TRANSACTION_PAYLOAD event's body.

    Numbered fields, each with its size, up to number 0. Source: server,
    libs/mysql/binlog/event/codecs/binary.cpp, `Transaction_payload`.
    """
    at, found = 0, {_COMPRESSION: _NONE, _UNCOMPRESSED_SIZE: -1}
    try:
        while (field := body[at]) != _END:
            behind = at + 2 + body[at + 1]
            found[field] = body[at + 2] if body[at + 2] < 251 else int.from_bytes(body[at + 3 : behind], "little")
            at = behind
    except IndexError:
        raise MalformedPayloadError("it ends inside its fields") from None
    at += 1
    if found.get(_SIZE, len(body) - at) != len(body) - at:
        raise MalformedPayloadError(f"it says it has {found[_SIZE]} bytes of data, {len(body) - at} are there")
    return found[_COMPRESSION], found[_UNCOMPRESSED_SIZE], at


def _transaction_payload(body: bytes) -> bytes:
    compression, size, at = payload_fields(body)
    if compression == _NONE:
        return body[at:]
    if compression != _ZSTD:
        raise MalformedPayloadError(f"compression {compression} is none that a server has")
    try:
        if 0 < size <= _STEP:
            data = _decompressor.decompress(body[at:], max_output_size=size)
            if len(data) == size:
                return data
        # Larger than one step, or in several frames: what it says of its size is believed only as it comes true.
        pieces = []
        with _decompressor.stream_reader(body[at:], read_across_frames=True) as reader:
            while piece := reader.read(_STEP):
                pieces.append(piece)
                if sum(map(len, pieces)) > size:
                    break
    except zstandard.ZstdError as error:
        raise MalformedPayloadError(str(error)) from None
    data = b"".join(pieces)
    if len(data) != size:
        raise MalformedPayloadError(f"it says it holds {size} bytes, it has {len(data)}")
    return data


def _packed(data: bytes, at: int) -> tuple[int, int]:
    """A length-encoded integer and the offset behind it."""
    if at >= len(data):
        raise MalformedPayloadError("it ends inside its fields")
    first = data[at]
    if first < 251:
        return first, at + 1
    size = {252: 2, 253: 3, 254: 8}.get(first)
    if size is None or at + 1 + size > len(data):
        raise MalformedPayloadError("it ends inside its fields")
    return int.from_bytes(data[at + 1 : at + 1 + size], "little"), at + 1 + size


def _mariadb_block(data: bytes) -> bytes:
    """What MariaDB compressed: flags and size of the length, the length (big-endian), zlib.

    Source: MariaDB, sql/log_event.cc, `binlog_buf_uncompress`.
    """
    if not data or data[0] & 0xE0 != 0x80 or not 1 <= data[0] & 7 <= 4:
        raise MalformedPayloadError("it has no compressed data where it must be")
    at = 1 + (data[0] & 7)
    size = int.from_bytes(data[1:at], "big")
    reader = zlib.decompressobj()
    try:
        text = reader.decompress(data[at:], size + 1)
    except zlib.error as error:
        raise MalformedPayloadError(str(error)) from None
    if len(text) != size:
        raise MalformedPayloadError(
            f"it says it holds {size} bytes, it has {'more' if len(text) > size else len(text)}"
        )
    return text


def _query_text(event: bytes, at: int, end: int, format: FormatDescription) -> int:
    """Where the text of a QUERY_COMPRESSED event begins."""
    fixed = format.post_header_size(QUERY_COMPRESSED) or format.post_header_size(QUERY)
    if at + fixed > end or fixed < 13:
        raise MalformedPayloadError("it ends inside its fields")
    status_size = int.from_bytes(event[at + 11 : at + 13], "little")
    return at + fixed + status_size + event[at + 8] + 1


def _rows(event: bytes, at: int, end: int, code: int, format: FormatDescription) -> int:
    """Where the rows of a compressed rows event begin: behind extra row info, column count and bitmaps."""
    at += format.post_header_size(code)
    if format.post_header_size(code) == 10:
        at += int.from_bytes(event[at - 2 : at], "little") - 2
    width, at = _packed(event[:end], at)
    return at + (width + 7) // 8 * (2 if code in _UPDATES else 1)
