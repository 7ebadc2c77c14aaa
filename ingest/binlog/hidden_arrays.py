"""The hidden columns of multi-valued indexes, which MySQL 8.0.17 and 8.0.18 log behind all other columns.

No statement and no snapshot shows these columns, and their values follow from the others. So the rows are landed
without them.

Source: server 8.0.18, sql/field.h, `Field_typed_array`: a JSON document, so its size takes four bytes.
"""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from ingest.binlog.assembly import replaced
from ingest.binlog.events.table_map import TableMap

_VALUES: Final = ("before_values", "after_values")
_PRESENT: Final = ("before_columns", "after_columns")


def without_arrays(batch: pa.RecordBatch, maps: Sequence[TableMap]) -> pa.RecordBatch:
    """Return a batch of `ROW_EVENTS` without hidden columns.

    Parameters
    ----------
    batch
        Rows with all columns that are logged.
    maps
        All table maps of the file, which the dictionary of `table_map_id` has in the same order.
    """
    if not any(one.hidden_columns for one in maps):
        return batch
    numbers = batch.column("table_map_id").indices.to_pylist()
    widths = {row: len(maps[number].columns) for row, number in enumerate(numbers) if maps[number].hidden_columns}
    cut = {
        "column_count": widths,
        **{name: {row: batch.column(name)[row].as_py()[:width] for row, width in widths.items()} for name in _VALUES},
        **{
            name: {row: _visible(batch.column(name)[row].as_py(), width) for row, width in widths.items()}
            for name in _PRESENT
        },
    }
    for name, elements in cut.items():
        index = batch.schema.get_field_index(name)
        batch = batch.set_column(index, batch.schema.field(index), replaced(batch.column(index), elements))
    return batch


def _visible(present: list[int] | None, width: int) -> list[int] | None:
    """Return the columns of an image; None if no other column is missing."""
    if present is None:
        return None
    kept = [ordinal for ordinal in present if ordinal < width]
    return kept if len(kept) < width else None
