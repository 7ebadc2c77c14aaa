"""What the files of the raw tables hold, read without Spark."""

from pathlib import Path

import pyarrow.parquet as pq

from ingest.landing.session import raw_table_dir
from ingest.landing.tables import RAW_TABLES
from tests.python.landing.spark import RUN_COLUMNS


def stored(home: Path) -> dict[str, list[str]]:
    """The content of the files of all tables, by table: rows without what differs from run to run."""
    content: dict[str, list[str]] = {}
    for name, table in RAW_TABLES.items():
        rows: list[str] = []
        for path in sorted(raw_table_dir(name, home).glob("**/[!.]*.parquet")):
            data = pq.ParquetFile(path).read().drop_columns([*RUN_COLUMNS.intersection(table.file_schema.names)])
            # Of a segment's file the name counts, of another's only what is in it.
            folder = str(path.relative_to(raw_table_dir(name, home))) if table.partition else ""
            rows += [f"{folder} {row}" for row in data.to_pylist() if row.get("status") != "in_progress"]
        content[name] = sorted(rows)
    return content


def segment_rows(home: Path, table: str) -> list[str]:
    """The rows of a table that lies in segments, whatever the segments are, in the order of the positions."""
    rows = [
        row
        for path in raw_table_dir(table, home).glob("**/[!.]*.parquet")
        for row in pq.ParquetFile(path).read().to_pylist()
    ]
    return [str(row) for row in sorted(rows, key=lambda row: [row[name] or 0 for name in _KEY if name in row])]


_KEY = ("start_pos", "payload_ordinal", "row_ordinal")
