"""Reads the files of the raw tables without Spark."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as dataset
import pyarrow.parquet as pq

from ingest.warehouse.files import segment_folder
from ingest.warehouse.home import raw_table_dir
from ingest.warehouse.record import SourceRecord
from ingest.warehouse.tables import RAW_TABLES, SEGMENT_TABLES

# These values differ from run to run.
RUN_COLUMNS = {"run_id", "recorded_at", "scanned_at", "observed_at", "published_at", "evidence_hash"}


def stored(home: Path) -> dict[str, list[str]]:
    """Return the content of all tables' files by table: rows without values that differ from run to run."""
    content: dict[str, list[str]] = {}
    for name, table in RAW_TABLES.items():
        rows: list[str] = []
        for path in sorted(raw_table_dir(name, home).glob("**/[!.]*.parquet")):
            data = pq.ParquetFile(path).read().drop_columns([*RUN_COLUMNS.intersection(table.file_schema.names)])
            # The folder counts only for tables with partitions.
            folder = str(path.relative_to(raw_table_dir(name, home))) if table.partition else ""
            rows += [f"{folder} {row}" for row in data.to_pylist() if row.get("status") != "in_progress"]
        content[name] = sorted(rows)
    return content


def landed(home: Path, table: str, source_id: str | None = None) -> list[dict[str, Any]]:
    """Return the rows of a raw table, or those of one source, by column and in the order of files and positions."""
    raw, folder = RAW_TABLES[table], raw_table_dir(table, home)
    if not folder.exists():
        return []
    partitions = dataset.partitioning(pa.schema([raw.columns.field(name) for name in raw.partition]), flavor="hive")
    of_source = None if source_id is None else dataset.field("source_id") == source_id
    rows: list[dict[str, Any]] = (
        dataset.dataset(folder, raw.columns, "parquet", partitioning=partitions).to_table(filter=of_source).to_pylist()
    )
    return sorted(rows, key=lambda row: (row.get("binlog_file") or "", *(row.get(name) or 0 for name in _KEY)))


def landed_by_table(home: Path, source_id: str) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of all tables that an ingest fills, without values that differ from run to run."""
    names = ("sources", "binlog_files", "segments", *SEGMENT_TABLES, "table_maps")
    return {
        name: [
            {column: value for column, value in row.items() if column not in RUN_COLUMNS}
            for row in landed(home, name, source_id)
            if row.get("status") != "in_progress"
        ]
        for name in names
    }


def segment_rows(home: Path, table: str) -> list[str]:
    """Return the rows of a segment table in the order of positions, regardless of segments."""
    return _ordered(raw_table_dir(table, home).glob("**/[!.]*.parquet"))


def _ordered(paths: Iterable[Path]) -> list[str]:
    rows = [(path.parent.parent.name, row) for path in paths for row in pq.ParquetFile(path).read().to_pylist()]
    rows.sort(key=lambda item: (item[0], *(item[1][name] or 0 for name in _KEY if name in item[1])))
    return [f"{folder} {row}" for folder, row in rows]


_KEY = ("start_pos", "payload_ordinal", "row_ordinal")


def current_rows(home: Path, table: str, source_id: str) -> list[str]:
    """Return the rows for a reader that uses `segments`: rows of segments whose latest state is completed."""
    record = SourceRecord.load(source_id, home)
    folders = {
        segment_folder(RAW_TABLES[table], state.segment, home)
        for states in record.states.values()
        for state in states
        if state.status == "completed"
    }
    return _ordered(path for folder in folders for path in folder.glob("[!.]*.parquet"))
