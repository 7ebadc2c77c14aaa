"""Compaction: merge the many small segments of a followed binlog file into one segment with few files.

At any time, a reader that follows `segments` finds every row exactly once. The merged rows are written to the folder of
a new segment that starts at byte 0, with the magic number; no landed segment starts there. One write to `segments`
records that the new segment is completed and the small segments are replaced. The old files stay for a while, for
readers that are reading them. A compaction that is killed at any time and started again gives the same result.
"""

import hashlib
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ingest.binlog.gtid_sets import gtid_union
from ingest.errors import StoreError
from ingest.landing.held import StreamLanding
from ingest.landing.plan import SEGMENT_BYTES
from ingest.landing.recorder import new_run_id, now
from ingest.landing.row_counts import counts_of
from ingest.landing.row_counts import merged as merged_counts
from ingest.landing.task import GROUP_ROWS, SegmentFile
from ingest.warehouse.files import (
    LAND_ANEW,
    append_rows,
    append_table,
    data_files,
    read_errors,
    read_part,
    read_rows,
    segment_folder,
    store_errors,
    sync_folder,
)
from ingest.warehouse.home import raw_table_dir
from ingest.warehouse.landed import LANDED_SCHEMAS, LandedKind
from ingest.warehouse.locks import folders_locked
from ingest.warehouse.names import source_stem
from ingest.warehouse.record import Row, SourceRecord, read_states
from ingest.warehouse.segments import COMPACTED_START, Segment, SegmentState, Status
from ingest.warehouse.spark import metastore_holder
from ingest.warehouse.tables import BINLOG_FILES, SEGMENT_TABLES, SEGMENTS, SOURCES, RawTable

# Keep replaced segments this long, for readers that opened them before the compaction.
KEEP_REPLACED_SECONDS: Final = 60.0

# Each write adds a file to these tables. Merging this many files or fewer gains nothing.
FEW_FILES = 32

# Segments that have at least this fraction (1/FEW_PARTS) of the bytes of one Parquet file on average stay as they are:
# the models derive all rows of a compacted file again, which a busy server has many of.
FEW_PARTS = 8

# Key columns of the tables that are logs of states. A duplicate of a row adds no information.
_LOGS: dict[str, tuple[RawTable, list[str]]] = {
    SEGMENTS.name: (SEGMENTS, ["epoch", "binlog_file", "segment_start", "status", "recorded_at"]),
    BINLOG_FILES.name: (BINLOG_FILES, ["epoch", "binlog_file", "scanned_at"]),
}


def compact_closed_files(landing: StreamLanding, part_bytes: int = SEGMENT_BYTES) -> list[Segment]:
    """Merge the segments of every file that is closed, fully landed, and in segments that are small on average.

    Parameters
    ----------
    landing
        Landing of the source, which holds its lock.
    part_bytes
        Approximate number of binlog bytes whose rows go into one Parquet file.

    Returns
    -------
    list of Segment
        The compacted segments.

    Raises
    ------
    StoreError
        The warehouse cannot be written.
    """
    compacted = []
    for epoch, name in list(landing.record.files):
        # A stale segment must be landed again, and that needs its file.
        if _is_worth_it(landing.record, epoch, name, part_bytes) and not landing.is_stale(epoch, name):
            file_size = landing.record.files[epoch, name]["file_size"]
            segment = Segment(landing.source_id, epoch, name, COMPACTED_START, file_size)
            _compact(landing, segment, landing.record.states[epoch, name], part_bytes)
            compacted.append(segment)
    return compacted


def _is_worth_it(record: SourceRecord, epoch: int, name: str, part_bytes: int) -> bool:
    row, states = record.files[epoch, name], record.states.get((epoch, name), [])
    return (
        len(states) > 1
        and sum(state.segment.size for state in states) < len(states) * part_bytes // FEW_PARTS
        and all(state.status == "completed" for state in states)
        # The folder of a compacted segment is written only once: a second compaction would first delete its rows.
        and not any(state.is_compacted for state in states)
        and len({state.table_filter for state in states}) == 1
        and record.is_landed(epoch, name, row["file_size"])
        and (not row["is_in_use"] or _has_later(record, epoch, row))
    )


def _has_later(record: SourceRecord, epoch: int, row: Row) -> bool:
    """Return whether the server went on to a later file: a file that was never closed stays marked as in use."""
    return any(
        other["epoch"] == epoch and (other["file_sequence"] or 0) > (row["file_sequence"] or 0)
        for other in record.files.values()
    )


def _compact(landing: StreamLanding, whole: Segment, states: Sequence[SegmentState], part_bytes: int) -> None:
    landing.record_states([whole.state("in_progress", landing.run_id, now(), table_filter=states[0].table_filter)])
    # An earlier attempt may have left files, with other rows in each of them.
    _remove_files(whole, landing.home)
    for number, part in enumerate(_parts(states, part_bytes)):
        for kind in SEGMENT_TABLES:
            found = 0
            with SegmentFile(kind, whole, landing.home, landing.run_id, f"part-{number}.parquet") as file:
                for batch in _rows(kind, [state.segment for state in part], landing.home):
                    file.write(batch)
                    found += batch.num_rows
                _require_all(kind, found, part, whole)
                file.finish()
    pa.default_memory_pool().release_unused()
    merged = whole.state(
        "completed",
        landing.run_id,
        moment := now(),
        row_events=sum(state.row_events or 0 for state in states),
        transactions=sum(state.transactions or 0 for state in states),
        min_event_at=min((state.min_event_at for state in states if state.min_event_at), default=None),
        max_event_at=max((state.max_event_at for state in states if state.max_event_at), default=None),
        table_filter=states[0].table_filter,
        gtids=str(gtid_union(state.gtids for state in states)) or None,
        hints_used=landing.hints_used(whole, states),
    )
    counts = {merged.key: merged_counts(counts_of(states, landing.home).values())}
    landing.record_states([merged, *_with_status("replaced", states, landing.run_id, moment)], counts)


def _require_all(kind: LandedKind, found: int, states: Sequence[SegmentState], whole: Segment) -> None:
    """Check that no landed row is missing before segments are replaced: their files are the only copy."""
    if kind == "row_events":
        landed = sum(state.row_events or 0 for state in states)
    elif kind == "transactions":
        landed = sum(state.transactions or 0 for state in states)
    else:
        return
    if found != landed:
        raise StoreError(
            f"Table {kind} has {found} rows of {whole.binlog_file} (epoch {whole.epoch}) from position "
            f"{states[0].first_byte} to {states[-1].segment_end}, but {landed} were landed: a file is missing "
            "in the warehouse. Nothing of it is compacted.",
            hint=LAND_ANEW,
        )


def _parts(states: Sequence[SegmentState], part_bytes: int) -> Iterator[list[SegmentState]]:
    """Yield groups of consecutive segments, each of about `part_bytes` bytes of the binlog."""
    part: list[SegmentState] = []
    size = 0
    for state in states:
        part.append(state)
        size += state.segment_end - state.first_byte
        if size >= part_bytes:
            yield part
            part, size = [], 0
    if part:
        yield part


def _rows(kind: LandedKind, segments: Sequence[Segment], home: Path) -> Iterator[pa.RecordBatch]:
    """Yield the rows of segments in their order, as the decoder returned them."""
    schema = LANDED_SCHEMAS[kind]
    dictionaries = [field.name for field in schema if pa.types.is_dictionary(field.type)]
    for segment in segments:
        for path in data_files(segment_folder(SEGMENT_TABLES[kind], segment, home)):
            with read_errors(path), pq.ParquetFile(path, read_dictionary=dictionaries) as file:
                for batch in file.iter_batches(GROUP_ROWS):
                    yield from _as_now(pa.Table.from_batches([batch]), schema).to_batches()


def _as_now(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows with the current columns of their table; columns added after the landing are NULL."""
    for field in schema:
        if field.name not in rows.column_names:
            rows = rows.append_column(field, pa.nulls(len(rows), field.type))
    return rows.select(schema.names).cast(schema)


def _with_status(
    status: Status, states: Iterable[SegmentState], run_id: str, recorded_at: datetime
) -> list[SegmentState]:
    return [replace(state, status=status, run_id=run_id, recorded_at=recorded_at) for state in states]


def _remove_files(segment: Segment, home: Path) -> None:
    for table in SEGMENT_TABLES.values():
        folder = segment_folder(table, segment, home)
        if folder.exists():
            with store_errors(folder):
                shutil.rmtree(folder)


def remove_replaced(landing: StreamLanding, older_than_seconds: float = 0.0) -> int:
    """Delete the files of segments that were replaced at least this long ago; return the number of segments.

    Files of a compaction that was killed are deleted too, because the segments that it copied may expire, or be erased.
    Deletes nothing while a process holds the embedded metastore: it may still read these files, because it has read an
    older state of `segments`.

    Raises
    ------
    StoreError
        A folder cannot be deleted.
    """
    old = [*_replaced_before(landing.record, older_than_seconds), *landing.record.unfinished.values()]
    if not old or metastore_holder(landing.home) is not None:
        return 0
    landing.record_states(_removed(old, landing.run_id, landing.home))
    return len(old)


def _replaced_before(record: SourceRecord, older_than_seconds: float) -> list[SegmentState]:
    until = now() - timedelta(seconds=older_than_seconds)
    return [state for state in record.replaced.values() if state.recorded_at <= until]


def _removed(states: Sequence[SegmentState], run_id: str, home: Path) -> list[SegmentState]:
    """Delete the files of segments; return the states that record this."""
    for state in states:
        _remove_files(state.segment, home)
    # The clock may have been set back since these states were recorded.
    moment = max([now(), *(state.recorded_at for state in states)])
    return _with_status("removed", states, run_id, moment)


def merge_logs(landing: StreamLanding) -> int:
    """Merge the source's small files of `segments` and `binlog_files`; return the number of merged files.

    Merges nothing while a process holds the embedded metastore, because it may be reading the files.

    Raises
    ------
    StoreError
        The warehouse cannot be read or written.
    """
    return 0 if metastore_holder(landing.home) is not None else _merge_logs(landing.source_id, landing.home)


def clean_up_held(home: Path, older_than_seconds: float = 0.0) -> int:
    """Do what `remove_replaced` and `merge_logs` do, for all sources; return the number of removed segments.

    Only the process that holds the embedded metastore calls this, while it reads nothing. Followers continue to land:
    they only add files, and may record a segment as removed once more.

    Raises
    ------
    StoreError
        The warehouse cannot be read or written.
    """
    removed = 0
    for source_id in sorted({row["source_id"] for row in read_rows(SOURCES, home, ["source_id"])}):
        try:
            removed += _remove_replaced_held(source_id, home, older_than_seconds)
            _merge_logs(source_id, home)
        except StoreError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
            # A landing that begins at this moment has deleted the draft of a file. The next call writes it again.
    return removed


def _remove_replaced_held(source_id: str, home: Path, older_than_seconds: float) -> int:
    with folders_locked(home, source_id):
        record = SourceRecord.of(source_id, [], [], read_states(home, source_id))
        old = _replaced_before(record, older_than_seconds)
        if old:
            run_id = new_run_id()
            rows = [state.row for state in _removed(old, run_id, home)]
            append_rows(SEGMENTS, rows, f"{source_stem(source_id)}-{run_id}-removed", home)
    return len(old)


def _merge_logs(source_id: str, home: Path) -> int:
    # Rows are duplicated for a moment, or until the next call if this call is killed. That is harmless: both tables are
    # logs of states, in which the latest row counts. Two processes may even merge the same files at the same time: each
    # deletes only files whose rows are in a file that it has published.
    return sum(_merge_log(table, key, source_id, home) for table, key in _LOGS.values())


def _merge_log(table: RawTable, key: Sequence[str], source_id: str, home: Path) -> int:
    folder = raw_table_dir(table.name, home)
    stem = source_stem(source_id)
    paths = [path for path in data_files(folder) if path.name.startswith(f"{stem}-")]
    if len(paths) <= FEW_FILES:
        return 0
    try:
        rows = _distinct(pa.concat_tables(read_part(table, path, table.columns.names) for path in paths), key)
    except FileNotFoundError:
        # Another process is merging them.
        return 0
    digest = hashlib.sha256("\n".join(path.name for path in paths).encode()).hexdigest()[:16]
    append_table(table, rows, f"{stem}-merged-{digest}", home)
    with store_errors(folder):
        for path in paths:
            path.unlink(missing_ok=True)
        sync_folder(folder)
    return len(paths)


def _distinct(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    if "row_event_counts" in rows.column_names:
        # A state of an older binloom is there once more with its counts, which must remain.
        has_counts = pc.is_valid(rows["row_event_counts"])
        rows = pa.concat_tables([rows.filter(has_counts), rows.filter(pc.invert(has_counts))])
    numbered = rows.append_column("row", pa.array(range(rows.num_rows), pa.int64()))
    first = numbered.group_by(list(key)).aggregate([("row", "min")])["row_min"]
    return rows.take(first.combine_chunks().sort())
