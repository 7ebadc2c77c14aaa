"""Reads the files of the raw tables without Spark."""

from collections.abc import Iterable
from pathlib import Path

import pyarrow.parquet as pq

from ingest.warehouse.files import segment_folder
from ingest.warehouse.home import raw_table_dir
from ingest.warehouse.record import SourceRecord
from ingest.warehouse.tables import RAW_TABLES
from tests.support.landing.spark import RUN_COLUMNS


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
