"""The parts of indexed files that a question reads, and what it needs to know of the parts that it does not."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ingest.binlog.batches import TRANSACTIONS
from ingest.binlog.byte_files import size_of
from ingest.errors import BinloomError
from ingest.sources.files.sidecars import stored
from recover.index.indexing import crc32_of
from recover.index.opened import Sidecars
from recover.index.sidecar import IndexedSegment, Sidecar, UnfitSidecarError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from ingest.binlog import SchemaHints
    from ingest.sources.files.directory import BinlogPath
    from recover.index.needed import Needed

AddTransactions = Callable[["BinlogPath", pa.RecordBatch], None]


class SidecarFailedError(Exception):
    """A sidecar seemed to fit, but its file cannot be read with it."""

    def __init__(self, file: "BinlogPath", reason: BinloomError) -> None:
        super().__init__(file, reason)
        self.file = file
        self.reason = reason


class IndexedFiles:
    """Indexed files, while one question is answered.

    Parameters
    ----------
    sidecars
        Their sidecars.
    """

    def __init__(self, sidecars: Sidecars) -> None:
        self._sidecars = sidecars
        self._read: dict[BinlogPath, list[IndexedSegment]] = {}

    def __contains__(self, file: "BinlogPath") -> bool:
        return file in self._sidecars.by_file

    def sidecar(self, file: "BinlogPath") -> Sidecar:
        """Return the sidecar of a file."""
        return self._sidecars.by_file[file]

    @contextmanager
    def using(self, file: "BinlogPath") -> Iterator[None]:
        """Tell every error as one of the file's sidecar: without it, the file is read again, and tells its own."""
        try:
            yield
        except BinloomError as error:
            raise SidecarFailedError(file, error) from error

    def ranges(self, file: "BinlogPath", needed: "Needed") -> list[tuple[int, int]]:
        """Return the ranges of a file that a question has to read, and that were not returned before."""
        read = self._read.setdefault(file, [])
        segments = [one for one in needed.segments(file, self.sidecar(file)) if one not in read]
        self.sidecar(file).close()
        read += segments
        _assert_unchanged(file, self.sidecar(file), segments)
        return list(_joined(segments))

    def read_ranges(self, file: "BinlogPath") -> list[tuple[int, int]]:
        """Return the ranges of a file that were read."""
        return list(_joined(sorted(self._read.get(file, ()), key=lambda one: one.start)))

    def add_ends(
        self, connection: "DuckDBPyConnection", needed: "Needed", hints: "SchemaHints | None", add: AddTransactions
    ) -> None:
        """Add the transactions that end prepared ones (XA), from ranges that were not read."""
        from ingest.binlog import TableFilter, open_binlog

        query = "select distinct xa_xid from decoded_transactions where outcome = 'xa_prepare' and xa_xid is not null"
        xids = sorted(row[0] for row in connection.execute(query).fetchall())
        if not xids:
            return
        wanted, nothing = pa.array(xids, pa.string()), TableFilter(exclude_tables=("*",))
        for file in list(self._read):
            with self.using(file):
                sidecar = self.sidecar(file)
                segments = [one for one in needed.prepared(sidecar, xids) if one not in self._read[file]]
                sidecar.close()
                _assert_unchanged(file, sidecar, segments)
                for start, end in _joined(segments):
                    log = open_binlog(file.path, hints=hints, tables=nothing, start=start, end=end)
                    for kind, batch in log.batches():
                        if kind == "transactions":
                            add(file, batch.filter(pc.is_in(batch["xa_xid"], value_set=wanted)))
                self._read[file] += segments

    def known(self) -> pa.Table | None:
        """Return the transactions that sidecars have of ranges that were not read: they tell when the log is from.

        With the columns `binlog_file` and `file_sequence`; None without any.
        """
        if not self._read:
            return None
        rows = [
            {**row, "binlog_file": file.name, "file_sequence": file.sequence or 0}
            for file, segments in self._read.items()
            for row in self.sidecar(file).contents.transactions
            if not any(one.start <= row["start_pos"] < one.end for one in segments)
        ]
        place = [pa.field("binlog_file", pa.string()), pa.field("file_sequence", pa.int64())]
        return pa.Table.from_pylist(rows, schema=pa.schema([*TRANSACTIONS, *place]))

    def notes(self, files: "Iterable[BinlogPath]") -> tuple[str, ...]:
        """Return what is to tell: sidecars that were not used, and how much was read of how much."""
        if not self._read:
            return tuple(self._sidecars.notes)
        whole = read = of_sidecars = 0
        for file in files:
            if (size := self._stored_size(file)) is None:
                continue
            whole += size
            if file not in self._read:
                read += size
                continue
            of_sidecars += self.sidecar(file).bytes_read
            is_plain = stored(file.path) is file.path
            of_ranges = sum(one.end - one.start for one in self._read[file])
            read += of_ranges if is_plain else size if of_ranges else 0
        sentence = f"read {_shown(read)} of {_shown(whole)}, and {_shown(of_sidecars)} of the index."
        return (*self._sidecars.notes, sentence)

    def _stored_size(self, file: "BinlogPath") -> int | None:
        if file in self._sidecars.by_file:
            return self.sidecar(file).contents.identity.size
        place: Any = stored(file.path)
        return size_of(place) if place is not None else None


def _joined(segments: Sequence[IndexedSegment]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of segments; those that follow each other are one."""
    start = end = None
    for one in segments:
        if start is not None and end is not None and end != one.start:
            yield start, end
            start = None
        start, end = one.start if start is None else start, one.end
    if start is not None and end is not None:
        yield start, end


def _assert_unchanged(file: "BinlogPath", sidecar: Sidecar, segments: Iterable[IndexedSegment]) -> None:
    """Refuse ranges with other bytes than the index is of; where events have checksums, the decoder checks these."""
    if sidecar.contents.scan.format.has_checksums:
        return
    if any(crc32_of(file.path, one.start, one.end) != one.crc32 for one in segments):
        raise UnfitSidecarError("the file changed")


def _shown(size: int) -> str:
    for unit, factor in (("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1000)):
        if size >= factor:
            return f"{size / factor:,.1f} {unit}"
    return f"{size} bytes"
