"""The rows of a table at a moment as CSV and Parquet."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from binloom.answers.table_state import UNCERTAIN, UNKNOWN, marks
from ingest.escapes import csv_cell
from recover.timeline.state import Row

_ROWS_AT_ONCE: Final = 10_000


def csv_lines(columns: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    """Yield the lines of a CSV file with a header, with their ends."""
    yield ",".join(csv_cell(name) for name in (*columns, UNKNOWN, UNCERTAIN)) + "\n"
    for row in rows:
        cells = [_csv_value(row.values.get(name)) for name in columns]
        own_marks = [_csv_value("; ".join(reasons) or None) for reasons in marks(row)]
        yield ",".join((*cells, *own_marks)) + "\n"


def write_parquet(columns: Sequence[str], rows: Iterator[Row], output: Path) -> None:
    """Write the rows to a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    lists = {name: pa.list_(pa.string()) for name in (UNKNOWN, UNCERTAIN)}
    schema = pa.schema({**dict.fromkeys(columns, pa.string()), **lists})
    # A file of Python tells in its errors what is wrong, and no more.
    with output.open("wb") as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
        while part := list(itertools.islice(rows, _ROWS_AT_ONCE)):
            values = {name: [row.values.get(name) for row in part] for name in columns}
            known = [marks_of(row) for row in part]
            own_marks = {name: [one.get(name) for one in known] for name in lists}
            writer.write_table(pa.table({**values, **own_marks}, schema=schema))


def marks_of(row: Row) -> dict[str, list[str]]:
    """Return what is not known about a row; nothing if it is certain."""
    found = zip((UNKNOWN, UNCERTAIN), marks(row), strict=True)
    return {name: reasons for name, reasons in found if reasons}


def _csv_value(value: str | None) -> str:
    return "" if value is None else csv_cell(value)
