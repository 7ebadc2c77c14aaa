"""Compaction: the many small segments that a followed file was landed in become one, and their files few.

At any instant a reader that goes by `segments` finds every row once. The rows are put together in the folder of a
segment that nobody has: it starts at byte 0, with the magic number, where no other does. One write to `segments`
says that it is completed and the small ones are replaced. Their files stay for a while, for whoever reads them at
that moment. Killed at any instant and begun again, it comes to the same.
"""

import hashlib
import shutil
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ingest.binlog.gtid_sets import gtid_union
from ingest.errors import StoreError
from ingest.landing.held import StreamLanding
from ingest.landing.plan import SEGMENT_BYTES
from ingest.landing.run import now
from ingest.landing.task import GROUP_ROWS, SegmentFile
from ingest.warehouse.files import (
    LAND_ANEW,
    append_table,
    data_files,
    read_errors,
    read_part,
    segment_folder,
    store_errors,
    sync_folder,
)
from ingest.warehouse.home import raw_table_dir
from ingest.warehouse.landed import LANDED_SCHEMAS, LandedKind
from ingest.warehouse.locks import source_stem
from ingest.warehouse.record import Row, SourceRecord
from ingest.warehouse.segments import COMPACTED_START, Segment, first_byte
from ingest.warehouse.spark import metastore_holder
from ingest.warehouse.tables import BINLOG_FILES, SEGMENT_TABLES, SEGMENTS, RawTable

# Up to this many files of a table that grows by a file with each write, nothing is gained by putting them together.
FEW_FILES = 32

# A segment that has this part of the bytes that make a Parquet file is large enough to stay as it is.
FEW_PARTS = 2

# What tells the rows of a table apart that is a log of states, where the same row twice says no more than once.
_LOGS: dict[str, tuple[RawTable, list[str]]] = {
    SEGMENTS.name: (SEGMENTS, ["epoch", "binlog_file", "segment_start", "status", "recorded_at"]),
    BINLOG_FILES.name: (BINLOG_FILES, ["epoch", "binlog_file", "scanned_at"]),
}


def compact_closed_files(landing: StreamLanding, part_bytes: int = SEGMENT_BYTES) -> list[Segment]:
    """Make one segment of those of every file that is closed, wholly landed, and in more pieces than it needs.

    Parameters
    ----------
    landing
        The right to land the source.
    part_bytes
        About how many bytes of the binlog a Parquet file holds the rows of.

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
        # A stale segment is to be landed again, which takes its file.
        if _is_worth_it(landing.record, epoch, name, part_bytes) and not landing.is_stale(epoch, name):
            file_size = landing.record.files[epoch, name]["file_size"]
            segment = Segment(landing.source_id, epoch, name, COMPACTED_START, file_size)
            _compact(landing, segment, landing.record.states[epoch, name], part_bytes)
            compacted.append(segment)
    return compacted


def _is_worth_it(record: SourceRecord, epoch: int, name: str, part_bytes: int) -> bool:
    row, states = record.files[epoch, name], record.states.get((epoch, name), [])
    return (
        sum(state["segment_end"] - state["segment_start"] < part_bytes // FEW_PARTS for state in states) > 1
        and all(state["status"] == "completed" for state in states)
        # The folder of a compacted segment is written once: a second time would begin with deleting its rows.
        and all(state["segment_start"] != COMPACTED_START for state in states)
        and len({state["table_filter"] for state in states}) == 1
        and record.is_landed(epoch, name, row["file_size"])
        and (not row["is_in_use"] or _has_later(record, epoch, row))
    )


def _has_later(record: SourceRecord, epoch: int, row: Row) -> bool:
    """Whether the server went on to another file: one that it did not close says for ever that it is in use."""
    return any(
        other["epoch"] == epoch and (other["file_sequence"] or 0) > (row["file_sequence"] or 0)
        for other in record.files.values()
    )


def _compact(landing: StreamLanding, whole: Segment, states: Sequence[Row], part_bytes: int) -> None:
    landing.record_states([whole.state("in_progress", landing.run_id, now(), table_filter=states[0]["table_filter"])])
    # An earlier attempt may have left parts of others' size.
    _remove_files(whole, landing.home)
    for number, part in enumerate(_parts(states, part_bytes)):
        for kind in SEGMENT_TABLES:
            found = 0
            with SegmentFile(kind, whole, landing.home, landing.run_id, f"part-{number}.parquet") as file:
                for batch in _rows(kind, [_segment(landing, state) for state in part], landing.home):
                    file.write(batch)
                    found += batch.num_rows
                _require_all(kind, found, part, whole)
                file.finish()
    pa.default_memory_pool().release_unused()
    merged = whole.state(
        "completed",
        landing.run_id,
        moment := now(),
        row_events=sum(state["row_events"] or 0 for state in states),
        transactions=sum(state["transactions"] or 0 for state in states),
        min_event_at=min((state["min_event_at"] for state in states if state["min_event_at"]), default=None),
        max_event_at=max((state["max_event_at"] for state in states if state["max_event_at"]), default=None),
        table_filter=states[0]["table_filter"],
        gtids=str(gtid_union(state["gtids"] for state in states)) or None,
        hints_used=landing.hints_used(whole, states),
    )
    replaced = [{**state, "status": "replaced", "run_id": landing.run_id, "recorded_at": moment} for state in states]
    landing.record_states([merged, *replaced])


def _require_all(kind: LandedKind, found: int, states: Sequence[Row], whole: Segment) -> None:
    """Refuse to replace segments by fewer rows than were landed of them: these are the only copy."""
    landed = sum(state[kind] or 0 for state in states) if kind in ("row_events", "transactions") else found
    if found != landed:
        raise StoreError(
            f"Table {kind} has {found} rows of {whole.binlog_file} (epoch {whole.epoch}) from position "
            f"{first_byte(states[0])} to {states[-1]['segment_end']}, but {landed} were landed: a file is missing "
            "in the warehouse. Nothing of it is compacted.",
            hint=LAND_ANEW,
        )


def _parts(states: Sequence[Row], part_bytes: int) -> Iterator[list[Row]]:
    """Put segments together, in their order, up to so many bytes of the binlog."""
    part: list[Row] = []
    size = 0
    for state in states:
        part.append(state)
        size += state["segment_end"] - first_byte(state)
        if size >= part_bytes:
            yield part
            part, size = [], 0
    if part:
        yield part


def _rows(kind: LandedKind, segments: Sequence[Segment], home: Path) -> Iterator[pa.RecordBatch]:
    """Yield the rows of segments, in their order, as the decoder gave them."""
    schema = LANDED_SCHEMAS[kind]
    dictionaries = [field.name for field in schema if pa.types.is_dictionary(field.type)]
    for segment in segments:
        for path in data_files(segment_folder(SEGMENT_TABLES[kind], segment, home)):
            with read_errors(path), pq.ParquetFile(path, read_dictionary=dictionaries) as file:
                for batch in file.iter_batches(GROUP_ROWS):
                    yield from _as_now(pa.Table.from_batches([batch]), schema).to_batches()


def _as_now(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows with the columns that their table has now: those that it got since they were landed are NULL."""
    for field in schema:
        if field.name not in rows.column_names:
            rows = rows.append_column(field, pa.nulls(len(rows), field.type))
    return rows.select(schema.names).cast(schema)


def _segment(landing: StreamLanding, state: Row) -> Segment:
    return Segment(
        landing.source_id, state["epoch"], state["binlog_file"], state["segment_start"], state["segment_end"]
    )


def _remove_files(segment: Segment, home: Path) -> None:
    for table in SEGMENT_TABLES.values():
        folder = segment_folder(table, segment, home)
        if folder.exists():
            with store_errors(folder):
                shutil.rmtree(folder)


def remove_replaced(landing: StreamLanding, older_than_seconds: float = 0.0) -> int:
    """Delete the files of segments that were replaced so long ago; return how many segments.

    None while a process holds the embedded metastore: it may be reading them, by a `segments` of before.

    Raises
    ------
    StoreError
        A folder cannot be deleted.
    """
    until = now() - timedelta(seconds=older_than_seconds)
    old = [row for row in landing.record.replaced.values() if row["recorded_at"] <= until]
    if not old or metastore_holder(landing.home) is not None:
        return 0
    for row in old:
        _remove_files(_segment(landing, row), landing.home)
    moment = now()
    landing.record_states(
        [{**row, "status": "removed", "run_id": landing.run_id, "recorded_at": moment} for row in old]
    )
    return len(old)


def merge_logs(landing: StreamLanding) -> int:
    """Put the small files of `segments` and `binlog_files` together, of this source; return how many files went.

    For a moment, and after a kill until the next time, rows are there twice: both tables are logs of states, of
    which the latest row counts. None while a process holds the embedded metastore, which may be reading the files.
    """
    merged = 0
    for table, key in _LOGS.values():
        folder = raw_table_dir(table.name, landing.home)
        stem = source_stem(landing.source_id)
        paths = [path for path in data_files(folder) if path.name.startswith(f"{stem}-")]
        if len(paths) <= FEW_FILES or metastore_holder(landing.home) is not None:
            continue
        rows = _distinct(pa.concat_tables(read_part(table, path, table.columns.names) for path in paths), key)
        digest = hashlib.sha256("\n".join(path.name for path in paths).encode()).hexdigest()[:16]
        append_table(table, rows, f"{stem}-merged-{digest}", landing.home)
        with store_errors(folder):
            for path in paths:
                path.unlink()
            sync_folder(folder)
        merged += len(paths)
    return merged


def _distinct(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    numbered = rows.append_column("row", pa.array(range(rows.num_rows), pa.int64()))
    first = numbered.group_by(list(key)).aggregate([("row", "min")])["row_min"]
    return rows.take(first.combine_chunks().sort())
