"""The work of a Spark task: decode one segment and write its rows as Parquet.

This module does not use Spark. The files get their own names when the whole segment is written. Readers of the tables
see them only after the driver has registered the folders and recorded the segment as completed.
"""

import contextlib
import os
import socket
import traceback
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ingest.binlog.byte_files import LogPath
from ingest.binlog.gtid_sets import GtidSet
from ingest.errors import BinloomError, CorruptBinlogError, StoreError
from ingest.landing.row_counts import Counts, RowCounts
from ingest.masking.rows import KEY_LOST, NO_NAMES
from ingest.warehouse.files import make_folder, publish, segment_folder, store_errors, writer_options
from ingest.warehouse.fingerprint import code_fingerprint
from ingest.warehouse.landed import LANDED_SCHEMAS, LandedKind, landed_batches
from ingest.warehouse.locks import TaskLock
from ingest.warehouse.segments import Segment
from ingest.warehouse.tables import SEGMENT_TABLES

if TYPE_CHECKING:
    from ingest.binlog import SchemaHints, TableFilter
    from ingest.masking.rules import Masks

DATA_FILE = "part-0.parquet"

# A row group ends at the first limit that is reached: rows of a hundred bytes reach GROUP_ROWS, rows of kilobytes
# reach GROUP_BYTES.
GROUP_ROWS = 1 << 17
GROUP_BYTES = 48 << 20


@dataclass(frozen=True)
class SegmentWork:
    """A segment to land, with everything that a task needs. Is pickled for the worker.

    Attributes
    ----------
    segment
        Segment to land.
    path
        Where the binlog file is.
    home
        Folder that binloom keeps everything under.
    run_id, run_path
        The run, and the file that contains the identifier of the current run.
    tables
        Filter of the tables that are decoded.
    skip_bad_checksum
        Whether events with a wrong checksum are skipped.
    masks
        Masks of the source, None without any.
    code
        Fingerprint of the code that planned the segment; only the same code lands it.
    """

    segment: Segment
    path: LogPath
    home: Path
    run_id: str
    run_path: Path
    tables: "TableFilter | None" = None
    skip_bad_checksum: bool = False
    masks: "Masks | None" = None
    code: str = field(default_factory=code_fingerprint)


@dataclass
class SegmentResult:
    """Result of landing a segment. Is pickled for the driver.

    Attributes
    ----------
    segment
        The landed segment; it ends earlier than planned when an event in it is broken.
    row_events, transactions
        Number of rows and transactions that the decoder returned.
    row_counts
        The rows by hour and table map, as column `row_event_counts` of `segments` has them.
    min_event_at, max_event_at
        Earliest and latest timestamp of a row or transaction, None without rows and transactions.
    kinds
        Tables that contain rows of the segment.
    table_maps
        Table maps of the segment, as Arrow batches of `ingest.binlog.batches.TABLE_MAPS`.
    bad
        The rest of the segment that could not be decoded, None when there is none.
    error
        Reason why `bad` could not be decoded.
    gtids
        GTIDs of the transactions.
    unmaskable
        Tables whose rows are left out because they cannot be masked: the reason, schema and table.
    """

    segment: Segment
    row_events: int = 0
    row_counts: Counts = field(default_factory=list)
    transactions: int = 0
    min_event_at: datetime | None = None
    max_event_at: datetime | None = None
    kinds: list[LandedKind] = field(default_factory=list)
    table_maps: list[pa.RecordBatch] = field(default_factory=list)
    bad: Segment | None = None
    error: BinloomError | None = None
    gtids: GtidSet = field(default_factory=GtidSet)
    unmaskable: set[tuple[str, str, str]] = field(default_factory=set)

    def add_unmaskable(self, batch: pa.RecordBatch) -> None:
        """Note the tables of events in a batch of `unsupported_events` whose rows cannot be masked."""
        cannot = batch.filter(pc.is_in(batch["reason"], pa.array([NO_NAMES, KEY_LOST])))
        columns = (cannot[name].to_pylist() for name in ("reason", "schema_name", "table_name"))
        self.unmaskable.update(zip(*columns, strict=True))


@dataclass(frozen=True)
class TaskFailure:
    """A task that failed for a reason that is not in the binlog."""

    segment: Segment
    error: BinloomError | None
    trace: str


def run_task(work: SegmentWork, hints: "SchemaHints | None" = None) -> SegmentResult | TaskFailure:
    """Land a segment; return an error instead of raising it, so that no detail is lost between processes."""
    try:
        _require_same_code(work)
        with TaskLock(work.run_path, work.run_id):
            return land_segment(work, hints)
    except BinloomError as error:
        return TaskFailure(work.segment, error, traceback.format_exc())
    except Exception:
        return TaskFailure(work.segment, None, traceback.format_exc())


def _require_same_code(work: SegmentWork) -> None:
    if work.code != code_fingerprint():
        raise StoreError(
            f"The executor on {socket.gethostname()} has another version of binloom (code {code_fingerprint()}) than"
            f" this command ({work.code}), and could decode values otherwise.",
            hint="Install the same version on each machine, restart the workers, and run the same command again.",
        )


def land_segment(work: SegmentWork, hints: "SchemaHints | None" = None) -> SegmentResult:
    """Decode a segment and put its Parquet files in place.

    When an event is broken, the segment is landed up to the end of the last complete transaction before it. The rest is
    `bad` in the result.

    Parameters
    ----------
    work
        The segment, and everything needed to land it.
    hints
        Schema hints for the decoder.

    Raises
    ------
    StoreError
        A file cannot be written.
    """
    whole = work.segment
    try:
        return _write(work, whole, hints)
    except _Broken as broken:
        good = Segment(whole.source_id, whole.epoch, whole.binlog_file, whole.start, broken.complete_end)
        # The written rows go beyond the last complete transaction: decode again, only up to its end.
        result = _write(work, good, hints) if good.size else SegmentResult(good)
        if not good.size:
            _discard(work)
        result.bad = Segment(whole.source_id, whole.epoch, whole.binlog_file, good.end, whole.end)
        result.error = broken.error
        return result


class _Broken(Exception):
    def __init__(self, error: CorruptBinlogError, complete_end: int) -> None:
        super().__init__(str(error))
        self.error = error
        self.complete_end = complete_end


def _write(work: SegmentWork, segment: Segment, hints: "SchemaHints | None") -> SegmentResult:
    from ingest.binlog import open_binlog

    result = SegmentResult(segment)
    seen_maps: set[str] = set()
    counts = RowCounts()
    complete_end = segment.start
    log = open_binlog(
        work.path,
        hints=hints,
        tables=work.tables,
        start=segment.start,
        end=segment.end,
        skip_bad_checksum=work.skip_bad_checksum,
    )
    with contextlib.ExitStack() as stack:
        files = {
            kind: stack.enter_context(SegmentFile(kind, work.segment, work.home, work.run_id))
            for kind in SEGMENT_TABLES
        }
        try:
            for kind, batch in landed_batches(log, work.masks, hints):
                if kind == "table_maps":
                    if not seen_maps.issuperset(ids := batch["table_map_id"].to_pylist()):
                        seen_maps.update(ids)
                        result.table_maps.append(batch)
                    continue
                files[kind].write(batch)
                if kind == "row_events":
                    result.row_events += batch.num_rows
                    counts.add(batch)
                    _widen(result, batch["event_timestamp"])
                elif kind == "unsupported_events":
                    result.add_unmaskable(batch)
                elif kind == "transactions":
                    result.transactions += batch.num_rows
                    result.gtids.add_all(batch["gtid"])
                    _widen(result, batch["started_at"])
                    complete_end = max(complete_end, pc.max(batch["end_pos"]).as_py() or 0)
        except CorruptBinlogError as error:
            # The checksums did not reveal the broken event, or the file changed after it was scanned.
            raise _Broken(error, min(complete_end, segment.end)) from error
        for kind, file in files.items():
            if file.finish():
                result.kinds.append(kind)
    result.row_counts = counts.rows
    return result


def _widen(result: SegmentResult, times: pa.Array) -> None:
    bounds = pc.min_max(times).as_py()
    for low, high in ((bounds["min"], bounds["max"]),):
        if low is not None:
            result.min_event_at = low if result.min_event_at is None else min(low, result.min_event_at)
            result.max_event_at = high if result.max_event_at is None else max(high, result.max_event_at)


def _discard(work: SegmentWork) -> None:
    for kind in SEGMENT_TABLES:
        with _file_of(work, kind) as file:
            file.finish()


def _file_of(work: SegmentWork, kind: LandedKind) -> "SegmentFile":
    return SegmentFile(kind, work.segment, work.home, work.run_id)


class SegmentFile:
    """A Parquet file of one table for one segment: written under a hidden name, renamed when finished.

    Parameters
    ----------
    kind
        Table whose rows the file contains.
    segment
        The segment.
    home
        Folder that binloom keeps everything under.
    run_id
        Identifier of the run, for the hidden name.
    name
        Name of the file.
    """

    def __init__(self, kind: LandedKind, segment: Segment, home: Path, run_id: str, name: str = DATA_FILE) -> None:
        table = SEGMENT_TABLES[kind]
        self._schema = table.file_schema
        self._batch_schema = LANDED_SCHEMAS[kind]
        self._folder = segment_folder(table, segment, home)
        self._name = name
        self._final = self._folder / name
        self._temporary = self._folder / f".{name}.{run_id}.{os.getpid()}.tmp"
        self._writer: pq.ParquetWriter | None = None
        self._pending: list[pa.RecordBatch] = []
        self._rows = 0
        self._bytes = 0

    def __enter__(self) -> "SegmentFile":
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            with contextlib.suppress(Exception):
                self._writer.close()
            self._writer = None
        with contextlib.suppress(OSError):
            self._temporary.unlink()

    def write(self, batch: pa.RecordBatch) -> None:
        """Add a batch; it is written when a row group is full."""
        self._pending.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= GROUP_ROWS or self._bytes >= GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        if not self._rows:
            return
        with store_errors(self._final):
            if self._writer is None:
                make_folder(self._folder)
                self._writer = pq.ParquetWriter(self._temporary, self._schema, **writer_options(self._schema))
            # One dictionary for the group: with a dictionary for each batch, Parquet would fall back to plain encoding.
            group = pa.Table.from_batches(self._pending, self._batch_schema).unify_dictionaries()
            self._writer.write_table(group, row_group_size=group.num_rows)
        self._pending = []
        self._rows = self._bytes = 0

    def finish(self) -> bool:
        """Rename the file to its own name, delete leftovers of an earlier attempt, and return whether a file exists."""
        self._flush()
        with store_errors(self._final):
            if self._writer is not None:
                self._writer.close()
                self._writer = None
                publish(self._temporary, self._final)
                written = True
            else:
                self._final.unlink(missing_ok=True)
                written = False
            if self._folder.is_dir():
                for leftover in self._folder.glob(f".{self._name}.*"):
                    leftover.unlink(missing_ok=True)
        return written
