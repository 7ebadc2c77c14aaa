"""What a sidecar says about its binlog file, and its form: a compressed head with a checksum, and filters in pages."""

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ingest.binlog.batches import STATEMENTS, TRANSACTIONS
from ingest.binlog.byte_files import Bytes, BytesInMemory, LogPath, open_bytes
from ingest.binlog.events.format import parse_format
from ingest.binlog.scan import Scan, SegmentRange
from ingest.errors import BinloomError
from ingest.sources.files.objects import ObjectFile
from recover.index.blooms import PAGE_BYTES, is_in, is_whole, page_of

MAGIC: Final = b"binloom index 1\n"
_NUMBER: Final = 4
_EDGE: Final = 512
# The head of most sidecars is shorter.
_HEAD: Final = 16 << 10
_MOST_HEAD: Final = 256 << 20
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MOMENT: Final = timedelta(microseconds=1)
_OF_SCAN: Final = (
    *("file_size", "events", "event_counts", "bytes_covered", "checksum_failures", "first_misplaced_pos"),
    *("previous_gtids", "next_binlog_file", "is_closed", "complete_end"),
)
_TIMES_OF_SCAN: Final = ("first_event_at", "last_event_at", "rotated_at")


class UnfitSidecarError(BinloomError):
    """A sidecar is not of its file, or is damaged. The file is then read as without one."""


# Tuples, because a question may read some ten thousand of them.
class IndexedMap(NamedTuple):
    """A table map in a segment.

    Attributes
    ----------
    body
        Number of the table map among those of the file.
    ordinals
        Ordinals of the columns whose values are all in the filter.
    rows
        Number of rows.
    """

    body: int
    ordinals: tuple[int, ...]
    rows: int


class IndexedSegment(NamedTuple):
    """A range of a file, from the start of a transaction to the end of one.

    Attributes
    ----------
    start, end
        Physical offsets.
    crc32
        Of the bytes.
    first_at, last_at
        Times of the first and last row event by the clock, in microseconds since 1970; None without rows.
    gtids
        Set of the GTIDs.
    maps
        Table maps.
    is_open
        Whether it has events that could not be decoded, or that belong to a table that is not known.
    acts
        Whether it has statements that change tables or their rows.
    prepares
        Whether it has parts of prepared transactions (XA); their identifiers are in the filter.
    page, blocks
        Number of the filter's first page, and of its blocks; without blocks there is no filter.
    """

    start: int
    end: int
    crc32: int
    first_at: int | None
    last_at: int | None
    gtids: str
    maps: tuple[IndexedMap, ...]
    is_open: bool
    acts: bool
    prepares: bool
    page: int
    blocks: int


@dataclass(frozen=True, slots=True)
class Identity:
    """The facts by which a file is recognised: its size, and a hash of its first and last bytes."""

    size: int
    edges: str

    @classmethod
    def of(cls, source: Bytes) -> "Identity":
        """Return the identity of a file as it is stored."""
        size = source.size()
        edges = source.read(_EDGE, 0) + source.read(_EDGE, max(size - _EDGE, 0))
        return cls(size, hashlib.sha256(edges).hexdigest())


@dataclass(frozen=True, slots=True)
class Contents:
    """What a sidecar says.

    Attributes
    ----------
    identity
        Of the file.
    head
        The first bytes of the binlog, up to the end of its format description.
    scan
        The inventory of the file, as `scan_binlog` gives it, with the segments of the index.
    bodies
        The bytes of all table maps.
    segments
        The segments, one after the other.
    transactions
        Some transactions, among them the first and the last by the clock: the rows of a batch of `TRANSACTIONS`.
    """

    identity: Identity
    head: bytes
    scan: Scan
    bodies: tuple[bytes, ...]
    segments: tuple[IndexedSegment, ...]
    transactions: tuple[Mapping[str, Any], ...]


def encoded(contents: Contents, filters: bytes, transactions: bytes) -> bytes:
    """Return the bytes of a sidecar; the same contents give the same bytes.

    Parameters
    ----------
    contents
        What it says.
    filters
        The pages of the filters.
    transactions
        All transactions, as a Parquet file.
    """
    from zstandard import ZstdCompressor

    scan = contents.scan
    head = {
        "identity": asdict(contents.identity),
        "head": base64.b64encode(contents.head).decode(),
        "scan": {name: getattr(scan, name) for name in _OF_SCAN},
        "times": {name: _micros(getattr(scan, name)) for name in _TIMES_OF_SCAN},
        "statements": [_plain(row) for batch in scan.ddl_statements for row in batch.to_pylist()],
        "transactions": [_plain(row) for row in contents.transactions],
        "bodies": [base64.b64encode(body).decode() for body in contents.bodies],
        "segments": [_fields(one) for one in contents.segments],
        "log": [len(filters), len(transactions), zlib.crc32(transactions)],
    }
    text = json.dumps(head, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()
    packed = ZstdCompressor(level=9).compress(text)
    numbers = len(packed).to_bytes(_NUMBER, "little") + zlib.crc32(packed).to_bytes(_NUMBER, "little")
    return b"".join((MAGIC, numbers, packed, filters, transactions))


@dataclass(slots=True)
class Sidecar:
    """An open sidecar.

    Attributes
    ----------
    contents
        What it says.
    bytes_read
        How many bytes of it were read.
    """

    contents: Contents
    bytes_read: int
    _place: LogPath
    _begin: bytes
    _first_page: int
    _log: tuple[int, int, int]
    _source: Bytes | None = field(default=None, repr=False)

    @classmethod
    def read(cls, place: LogPath, path: LogPath) -> "Sidecar":
        """Read a sidecar.

        Parameters
        ----------
        place
            Where it is.
        path
            The binlog file.

        Raises
        ------
        BinlogNotFoundError, BinlogNotReadableError
            There is none, or reading it is not permitted.
        UnfitSidecarError
            It is damaged, or of another version.
        """
        from zstandard import ZstdDecompressor, ZstdError, frame_content_size

        start = len(MAGIC) + 2 * _NUMBER
        with open_bytes(place) as source:
            head = source.read(_HEAD, 0)
            size = int.from_bytes(head[len(MAGIC) : len(MAGIC) + _NUMBER], "little")
            if head[: len(MAGIC)] != MAGIC:
                raise UnfitSidecarError("it is damaged, or another version of binloom wrote it")
            packed = head[start : start + size]
            if len(packed) < size:
                packed += source.read(size - len(packed), start + len(packed))
        if len(packed) < size or zlib.crc32(packed) != int.from_bytes(head[start - _NUMBER : start], "little"):
            raise UnfitSidecarError("it is damaged")
        try:
            if frame_content_size(packed) > _MOST_HEAD:
                raise UnfitSidecarError("its head is too large")
            fields = json.loads(ZstdDecompressor().decompress(packed))
            contents, log = _contents(fields, path), tuple(fields["log"])
        except (ZstdError, ValueError, KeyError, TypeError) as error:
            raise UnfitSidecarError(f"it is damaged ({type(error).__name__})") from None
        return cls(contents, max(len(head), start + size), place, head[:start], start + size, log)

    def may_have(self, segment: IndexedSegment, hashed: int) -> bool:
        """Return whether a segment may have a value, by its hash.

        Raises
        ------
        UnfitSidecarError
            The page of the hash is damaged.
        """
        if not segment.blocks:
            return False
        number = segment.page + page_of(hashed, segment.blocks)
        page = self._read(PAGE_BYTES, self._first_page + number * PAGE_BYTES)
        if not is_whole(page):
            raise UnfitSidecarError("it is damaged")
        return is_in(page, hashed, segment.blocks)

    def transactions(self) -> list[pa.RecordBatch]:
        """Return all transactions of the file.

        Raises
        ------
        UnfitSidecarError
            They are damaged.
        """
        import pyarrow.parquet as pq

        behind, size, crc32 = self._log
        data = self._read(size, self._first_page + behind)
        if zlib.crc32(data) != crc32:
            raise UnfitSidecarError("it is damaged")
        found: list[pa.RecordBatch] = pq.read_table(pa.BufferReader(data)).cast(TRANSACTIONS).to_batches()
        return found

    def close(self) -> None:
        """Close it, until it is read again: there may be more files than a process can have open."""
        if self._source is not None:
            self._source.close()
            self._source = None

    def _read(self, size: int, offset: int) -> bytes:
        if self._source is None:
            self._source = open_bytes(self._place)
            if isinstance(self._place, ObjectFile):
                # Look-ups read many small parts, and a store answers each request late.
                with self._source as source:
                    self._source = BytesInMemory(source.read(source.size(), 0))
                self.bytes_read += self._source.size()
            if self._source.read(len(self._begin), 0) != self._begin:
                raise UnfitSidecarError("it changed")
        data = self._source.read(size, offset)
        if not isinstance(self._place, ObjectFile):
            self.bytes_read += len(data)
        return data


def _contents(head: Mapping[str, Any], path: LogPath) -> Contents:
    first = base64.b64decode(head["head"])
    segments = tuple(_segment(one) for one in head["segments"])
    scan = Scan(path, parse_format(first, len(first), path), **head["scan"])
    for name in _TIMES_OF_SCAN:
        micros = head["times"][name]
        setattr(scan, name, None if micros is None else _EPOCH + micros * _MOMENT)
    scan.formats = [scan.format]
    scan.segments = [SegmentRange(one.start, one.end) for one in segments]
    if head["statements"]:
        scan.ddl_statements = [pa.RecordBatch.from_pylist(head["statements"], schema=STATEMENTS)]
    bodies = tuple(base64.b64decode(body) for body in head["bodies"])
    # A range that no segment has would never be read.
    if [*(one.start for one in segments), scan.complete_end] != [4, *(one.end for one in segments)]:
        raise ValueError(segments)
    if any(not 0 <= map.body < len(bodies) for one in segments for map in one.maps):
        raise ValueError(bodies)
    return Contents(Identity(**head["identity"]), first, scan, bodies, segments, tuple(head["transactions"]))


def _fields(one: IndexedSegment) -> list[Any]:
    maps = [[map.body, list(map.ordinals), map.rows] for map in one.maps]
    return [
        *(one.start, one.end, one.crc32, one.first_at, one.last_at, one.gtids, maps),
        *(int(one.is_open), int(one.acts), int(one.prepares), one.page, one.blocks),
    ]


def _segment(fields: list[Any]) -> IndexedSegment:
    start, end, crc32, first_at, last_at, gtids, maps, is_open, acts, prepares, page, blocks = fields
    of_maps = tuple(IndexedMap(body, tuple(ordinals), rows) for body, ordinals, rows in maps)
    flags = bool(is_open), bool(acts), bool(prepares)
    return IndexedSegment(start, end, crc32, first_at, last_at, gtids, of_maps, *flags, page, blocks)


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _micros(value) if isinstance(value, datetime) else value for name, value in row.items()}


def _micros(moment: datetime | None) -> int | None:
    return None if moment is None else (moment - _EPOCH) // _MOMENT
