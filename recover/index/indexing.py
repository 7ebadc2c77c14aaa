"""Makes the index of a binlog file: one walk for its inventory, and each segment decoded once."""

import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingest.binlog.batches import TRANSACTIONS
from ingest.binlog.byte_files import LogPath, open_bytes
from ingest.binlog.decoder import open_binlog
from ingest.binlog.events.table_map import TableMap
from ingest.binlog.gtid_sets import GtidSet
from ingest.binlog.scan import Scan, SegmentRange, scan_binlog
from ingest.errors import EXIT_CHECK_FAILED, BinloomError
from ingest.sources.files.sidecars import stored
from ingest.warehouse.landed import landed_batches
from recover.index.blooms import PAGE_BYTES, XA_NAME, Hashes, filter_of, hashes_of, name_of_column
from recover.index.sidecar import Contents, Identity, IndexedMap, IndexedSegment, encoded
from recover.sources.engine import in_memory

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from ingest.binlog import Binlog

SEGMENT_BYTES: Final = 4 << 20
"""A segment ends with the first transaction that makes it this long."""

# A filter has at most a hundredth of the bytes of its segment.
_SHARE_OF_FILTER: Final = 100
_LEAST_FILTER: Final = 1024
_BITS: Final = {"TINY": 8, "SHORT": 16, "INT24": 24, "LONG": 32, "LONGLONG": 64}
_READ_BYTES: Final = 1 << 20


class NotIndexedError(BinloomError):
    """A file cannot have an index. It is always read whole."""

    exit_code = EXIT_CHECK_FAILED


def index_of(path: LogPath, segment_bytes: int = SEGMENT_BYTES) -> bytes:
    """Return the sidecar of a file.

    Raises
    ------
    BinlogError
        The file cannot be read.
    NotIndexedError
        The file is damaged or incomplete, or has a format in which no part can be read without those before it.
    """
    place = stored(path)
    if place is None:
        raise NotIndexedError(
            f"{path} is in a compressed archive or a pipe.", hint="Index the file itself.", path=str(path)
        )
    with open_bytes(place) as source:
        identity = Identity.of(source)
    scan = scan_binlog(path, segment_bytes=segment_bytes)
    if (reason := _why_not(scan)) is not None:
        raise NotIndexedError(f"{path}: {reason}.", hint="It is read whole.", path=str(path))
    with open_bytes(path) as source:
        head_size = 4 + int.from_bytes(source.read(4, 13), "little")
        head = source.read(head_size, 0)
    bodies: dict[bytes, int] = {}
    segments, pages, found = [], [], _Transactions()
    first_page = 0
    with closing(in_memory()) as connection:
        for part in scan.segments:
            filters, segment = _Segment(path, part, bodies, found, connection).indexed(first_page)
            segments.append(segment)
            pages.append(filters)
            first_page += len(filters) // PAGE_BYTES
    contents = Contents(identity, head, scan, tuple(bodies), tuple(segments), found.remarkable())
    return encoded(contents, b"".join(pages), found.packed())


def _why_not(scan: Scan) -> str | None:
    if scan.defect is not None:
        return f"{scan.defect.reason}, at position {scan.defect.position}"
    if scan.is_encrypted:
        return "its events are encrypted"
    if scan.format.is_relay_log or scan.format.format_version != 4 or len(scan.formats) > 1:
        return "a relay log or a log of an old format has no index"
    if scan.first_misplaced_pos is not None or scan.checksum_failures:
        return "it is not as its server wrote it"
    if scan.complete_end < scan.file_size and not scan.is_closed:
        return "its last transaction is not complete"
    return None


@dataclass(slots=True)
class _Transactions:
    """The transactions that say when the log of a file begins and ends, and what it records of them."""

    _found: dict[str, tuple[Any, dict[str, Any]]] = field(default_factory=dict)
    _batches: list[pa.RecordBatch] = field(default_factory=list)

    def add(self, batch: pa.RecordBatch) -> None:
        """Add transactions."""
        self._batches.append(batch)
        started, committed = batch["started_at"], pc.coalesce(batch["committed_at"], batch["started_at"])
        ends = pc.if_else(pc.greater(committed, started), committed, started)
        with_rows = pc.greater(batch["row_events"], 0)
        for prefix, rows in (("all", None), ("rows", with_rows)):
            some = batch if rows is None else batch.filter(rows)
            if not some.num_rows:
                continue
            times = ends if rows is None else ends.filter(rows)
            self._keep(f"{prefix} first", some, pc.index(some["started_at"], pc.min(some["started_at"])), -1)
            self._keep(f"{prefix} last", some, pc.index(times, pc.max(times)), 1)
            threads = some.filter(pc.is_valid(some["thread_id"]))
            if threads.num_rows and f"{prefix} thread" not in self._found:
                self._found[f"{prefix} thread"] = None, threads.slice(0, 1).to_pylist()[0]

    def _keep(self, name: str, batch: pa.RecordBatch, place: pa.Scalar, sign: int) -> None:
        row = batch.slice(place.as_py(), 1).to_pylist()[0]
        time = row["started_at"] if sign < 0 else max(filter(None, (row["started_at"], row["committed_at"])))
        known = self._found.get(name)
        if known is None or (time < known[0] if sign < 0 else time > known[0]):
            self._found[name] = time, row

    def remarkable(self) -> tuple[dict[str, Any], ...]:
        """Return them, each once, in their order."""
        rows = {row["start_pos"]: row for _, row in self._found.values()}
        return tuple(rows[start] for start in sorted(rows))

    def packed(self) -> bytes:
        """Return all of them as a Parquet file, in a tenth of their size."""
        import pyarrow.parquet as pq

        sink = pa.BufferOutputStream()
        numbers = ("start_pos", "end_pos", "xid", "thread_id", "started_at", "committed_at", "original_committed_at")
        pq.write_table(
            pa.Table.from_batches(self._batches, TRANSACTIONS),
            sink,
            compression="zstd",
            compression_level=9,
            use_dictionary=["xa_xid", "outcome", "server_id"],
            column_encoding={**dict.fromkeys(numbers, "DELTA_BINARY_PACKED"), "gtid": "DELTA_BYTE_ARRAY"},
        )
        found: bytes = sink.getvalue().to_pybytes()
        return found


class _Segment:
    """A segment that is decoded for its index."""

    def __init__(
        self,
        path: LogPath,
        part: SegmentRange,
        bodies: dict[bytes, int],
        found: _Transactions,
        connection: "DuckDBPyConnection",
    ) -> None:
        self._path = path
        self._part = part
        self._bodies = bodies
        self._found = found
        self._connection = connection
        self._rows: dict[int, int] = defaultdict(int)
        self._texts: dict[tuple[int, int], list[pa.Array]] = defaultdict(list)
        self._columns: dict[int, dict[int, int | None]] = {}
        self._times: list[int] = []
        self._gtids = GtidSet()
        self._prepared: list[pa.Array] = []
        self._is_open = False
        self._acts = False

    def indexed(self, first_page: int) -> tuple[bytes, IndexedSegment]:
        """Return the pages of the segment's filter, and what else the index has of it."""
        log = open_binlog(self._path, start=self._part.start, end=self._part.end)
        for kind, batch in landed_batches(log):
            match kind:
                case "row_events":
                    self._add_rows(batch, log)
                case "transactions":
                    self._add_transactions(batch)
                case "statements":
                    targets = pc.list_value_length(batch["dml_targets"])
                    self._acts |= bool(pc.any(pc.greater(targets, 0)).as_py())
                case "ddl_actions":
                    self._acts |= batch.num_rows > 0
                case "unsupported_events":
                    self._is_open = True
        numbers = {number: self._bodies.setdefault(body, len(self._bodies)) for body, number in log.bodies.items()}
        size = self._part.end - self._part.start
        most = max(size // _SHARE_OF_FILTER, _LEAST_FILTER)
        blocks, pages = filter_of(self._hashes(log.table_maps), most)
        maps = [
            IndexedMap(numbers[number], tuple(self._columns.get(number, ())), self._rows[number])
            for number in range(len(log.bodies))
        ]
        return pages, IndexedSegment(
            start=self._part.start,
            end=self._part.end,
            crc32=crc32_of(self._path, self._part.start, self._part.end),
            first_at=min(self._times, default=None),
            last_at=max(self._times, default=None),
            gtids=str(self._gtids),
            maps=tuple(sorted(maps, key=lambda one: one.body)),
            is_open=self._is_open,
            acts=self._acts,
            prepares=bool(self._prepared),
            page=first_page,
            blocks=blocks,
        )

    def _add_rows(self, batch: pa.RecordBatch, log: "Binlog") -> None:
        times = pc.min_max(batch["event_timestamp"].cast(pa.int64()))
        self._times += [times["min"].as_py(), times["max"].as_py()]
        places = np.asarray(batch["table_map_id"].indices)
        for number in np.unique(places).tolist():
            rows = np.flatnonzero(places == number)
            self._rows[number] += len(rows)
            columns = self._columns.setdefault(number, dict(_keyed(log.table_maps[number])))
            for ordinal in columns:
                for image in ("before_values", "after_values"):
                    values = batch[image]
                    # Every list has as many elements as the table has columns, also those of absent images.
                    of_column = np.asarray(values.offsets)[rows] + ordinal
                    found = values.values.take(pa.array(of_column)).drop_null().unique()
                    self._texts[number, ordinal].append(found)

    def _add_transactions(self, batch: pa.RecordBatch) -> None:
        self._found.add(batch)
        self._gtids.add_all(batch["gtid"])
        prepared = batch["xa_xid"].drop_null()
        if len(prepared):
            self._prepared.append(prepared)

    def _hashes(self, maps: Sequence[TableMap]) -> Iterator[Hashes]:
        for (number, ordinal), arrays in self._texts.items():
            texts = pa.chunked_array(arrays, pa.string())
            bits = self._columns[number][ordinal]
            if bits is not None:
                texts = pa.chunked_array([*texts.chunks, _as_unsigned(texts, bits)])
            yield hashes_of(
                self._connection, name_of_column(maps[number].schema_name, maps[number].table_name, ordinal), texts
            )
        if self._prepared:
            yield hashes_of(self._connection, XA_NAME, pa.chunked_array(self._prepared))


def _keyed(table_map: TableMap) -> Iterator[tuple[int, int | None]]:
    """Yield the columns whose values go into the filter: the key, or the first column where the log names no key.

    Only columns whose text does not depend on a fact that somebody may know when he asks; but a number without a
    known sign has only two texts. It comes with its bits.
    """
    if table_map.lacks_digits or not table_map.has_metadata or not table_map.columns:
        return
    key = [column for column in table_map.columns if column.is_primary_key]
    is_told = any(column.is_primary_key is not None for column in table_map.columns)
    for column in key or ([] if is_told else table_map.columns[:1]):
        if column.unknown_hint is None:
            yield column.ordinal, None
        elif column.unknown_hint == "sign" and column.type in _BITS:
            yield column.ordinal, _BITS[column.type]


def _as_unsigned(texts: pa.ChunkedArray, bits: int) -> pa.Array:
    negative = texts.filter(pc.starts_with(texts, "-")).unique().to_pylist()
    return pa.array([str(int(text) + (1 << bits)) for text in negative], pa.string())


def crc32_of(path: LogPath, start: int, end: int) -> int:
    """Return the CRC32 of a range of a file."""
    found = 0
    with open_bytes(path) as source:
        for at in range(start, end, _READ_BYTES):
            found = zlib.crc32(source.read(min(_READ_BYTES, end - at), at), found)
    return found
