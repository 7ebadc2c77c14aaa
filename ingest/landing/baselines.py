"""Land baselines: all rows of tables at one position of the binlog. Needs no Spark.

The rows are written first, and the rows of `baselines` last, in one file. So a baseline exists as a whole or not at
all. If a command was killed, the next one deletes the rows that it left, and reads all tables again: the remaining
tables could only be read at a later position.
"""

import hashlib
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ingest.landing.snapshots import land_snapshot
from ingest.masking.whole_tables import TableMasking
from ingest.sources.baselines.baseline_tables import BaselineTable
from ingest.sources.snapshots.snapshot import SchemaSnapshot
from ingest.warehouse.files import append_rows, data_files, read_rows, replacing, store_errors, writer_options
from ingest.warehouse.home import binloom_home, prepare_home, raw_table_dir
from ingest.warehouse.locks import SourceLock
from ingest.warehouse.masks import masks_of
from ingest.warehouse.names import require_source_name, source_stem
from ingest.warehouse.tables import BASELINE_ROWS, BASELINES

FILE_BYTES: Final = 256 << 20
"""After this number of bytes of values, the rows of a table continue in another file."""

Progress = Callable[[BaselineTable, int], None]
"""Called with a table and the number of its rows that are written."""


@dataclass(frozen=True)
class BaselineResult:
    """Result of landing a baseline.

    Attributes
    ----------
    is_new
        Whether it was not landed before.
    rows
        Number of rows of all tables.
    """

    baseline_id: str
    snapshot_id: str
    is_new: bool
    tables: int
    rows: int


def land_baseline(
    source_id: str,
    snapshot: SchemaSnapshot,
    tables: Sequence[BaselineTable],
    rows: Callable[[BaselineTable], Iterator[pa.ListArray | pa.Table]],
    *,
    content: str | None = None,
    position_proof: str | None = None,
    epoch: int | None = None,
    is_complete: Callable[[BaselineTable], bool] | None = None,
    finish: Callable[[], None] = lambda: None,
    progress: Progress = lambda table, rows: None,
    home: Path | None = None,
    masks: Path | None = None,
    recorded_masks: Callable[[BaselineTable], list[dict[str, Any]] | None] | None = None,
) -> BaselineResult:
    """Land the rows of tables at the position of a schema snapshot, and the snapshot.

    Parameters
    ----------
    source_id
        Name of the source.
    snapshot
        Definitions and position of the rows. Its origin is that of the baseline.
    tables, rows
        The tables, and a function that yields the rows of one of them as lists of texts, or as a table with the columns
        `row_values` and `known_columns`.
    content
        Hash of a file, or of a log, that the rows come from: they are landed once. None: rows of a live server.
    position_proof
        How the position of rows of a live server is known.
    epoch
        Epoch of the position, None when unknown.
    is_complete
        Tells, after the last row of a table, whether it was all of its rows. None: it always was.
    finish
        Called after the last row; an error that it raises keeps the baseline from being landed.
    progress
        Receives the number of rows.
    home
        Folder of all data of binloom; default `$BINLOOM_HOME`, else `.binloom`.
    masks
        File with the masks; default as for `ingest`.
    recorded_masks
        Tells, of rows that come from landed rows, which masks they have already, as `masked_columns` records them.

    Raises
    ------
    UsageError
        The masks have a mistake, or would make rows of a table equal.
    StoreError
        The warehouse cannot be written.
    IngestInProgressError
        Another command lands a baseline of this source.
    """
    require_source_name(source_id)
    home = (home or binloom_home()).absolute()
    prepare_home(home)
    identity = [source_id, snapshot.binlog_file, snapshot.binlog_pos, content or snapshot.taken_at.isoformat()]
    baseline_id = hashlib.sha256(repr(identity).encode()).hexdigest()[:32]
    with SourceLock(home, source_id, secrets.token_hex(8), work="baseline"):
        known = read_rows(BASELINES, home, source_id=source_id)
        own = [row for row in known if row["baseline_id"] == baseline_id]
        if own:
            counts = [row["row_count"] for row in own]
            return BaselineResult(baseline_id, own[0]["snapshot_id"], False, len(counts), sum(counts))
        delete_unfinished(source_id, {row["baseline_id"] for row in known}, home)
        source_masks = None if recorded_masks is not None else masks_of(source_id, home, masks)
        maskings = [TableMasking(table, source_masks) for table in tables]
        writer = _RowWriter(home, source_id, baseline_id)
        counts = [
            writer.write(table, map(masking.masked, rows(table)), progress)
            for table, masking in zip(tables, maskings, strict=True)
        ]
        finish()
        is_masked = recorded_masks is not None
        snapshot_id = land_snapshot(source_id, snapshot, home, epoch, masks, is_masked=is_masked).snapshot_id
        record = [
            {
                "baseline_id": baseline_id,
                "source_id": source_id,
                "schema_name": table.schema_name,
                "table_name": table.table_name,
                "column_names": masking.column_names,
                "primary_key_ordinals": masking.primary_key_ordinals,
                "row_count": count,
                "origin": "binlog" if snapshot.origin == "binlog" else "server" if content is None else "dump",
                "snapshot_id": snapshot_id,
                "binlog_file": snapshot.binlog_file,
                "binlog_pos": snapshot.binlog_pos,
                "gtid_executed": snapshot.gtid_executed,
                "taken_at": snapshot.taken_at,
                "recorded_at": datetime.now(UTC),
                "masked_columns": masking.record if recorded_masks is None else recorded_masks(table),
                "is_complete": None if is_complete is None else is_complete(table),
                "position_proof": position_proof,
            }
            for table, count, masking in zip(tables, counts, maskings, strict=True)
        ]
        append_rows(BASELINES, record, baseline_id, home)
    return BaselineResult(baseline_id, snapshot_id, True, len(tables), sum(counts))


def delete_unfinished(source_id: str, complete: set[str], home: Path) -> None:
    """Delete the rows of baselines of a source that were not completed."""
    folder, stem = raw_table_dir(BASELINE_ROWS.name, home), source_stem(source_id)
    hidden = folder.glob(f".{stem}.*.tmp") if folder.is_dir() else ()
    for path in [*data_files(folder), *hidden]:
        parts = path.name.lstrip(".").split(".")
        if parts[0] == stem and parts[1] not in complete:
            with store_errors(path):
                path.unlink(missing_ok=True)


class _RowWriter:
    """Writes the rows of a baseline, each file with rows of one table."""

    def __init__(self, home: Path, source_id: str, baseline_id: str) -> None:
        self._folder = raw_table_dir(BASELINE_ROWS.name, home)
        self._stem = f"{source_stem(source_id)}.{baseline_id}"
        self._source_id = source_id
        self._baseline_id = baseline_id
        self._files = 0

    def write(self, table: BaselineTable, batches: Iterator[pa.ListArray | pa.Table], progress: Progress) -> int:
        """Write the rows of a table and return their number."""
        count, batch = 0, next(batches, None)
        while batch is not None:
            self._files += 1
            with (
                replacing(self._folder / f"{self._stem}.{self._files:06}.parquet") as path,
                pq.ParquetWriter(path, BASELINE_ROWS.columns, **writer_options(BASELINE_ROWS.columns)) as file,
            ):
                size = 0
                while batch is not None and size < FILE_BYTES:
                    file.write_table(self._columns(table, batch, count))
                    count += len(batch)
                    size += batch.nbytes
                    progress(table, count)
                    batch = next(batches, None)
        return count

    def _columns(self, table: BaselineTable, batch: pa.ListArray | pa.Table, first: int) -> pa.Table:
        names = (self._baseline_id, self._source_id, table.schema_name, table.table_name)
        numbers = pc.add(pa.array(range(len(batch)), pa.int64()), first)
        known = pa.nulls(len(batch), BASELINE_ROWS.columns.field("known_columns").type)
        values = (
            [batch, known] if isinstance(batch, pa.Array) else batch.select(["row_values", "known_columns"]).columns
        )
        columns = [*(pa.repeat(name, len(batch)) for name in names), numbers, *values]
        return pa.Table.from_arrays(columns, schema=BASELINE_ROWS.columns)
