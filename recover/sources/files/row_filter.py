"""Rows of a batch that may have one of some keys: found on the decoder's arrays, before a row becomes anything else.

Converting a row costs ten times as much as decoding it. A row that passes may still have another key; the condition of
the selection decides.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ingest.errors import UsageError
from recover.selection.catalog import TableVersion
from recover.selection.comparison import canonical
from recover.selection.keys import named_key

if TYPE_CHECKING:
    import pyarrow as pa

KeyTexts = Mapping[int, Sequence[str]]
"""Texts that a column may have, by the ordinal of the column; a row may have one of some keys if all columns do."""


def texts_of_keys(keys: Sequence[str], version: TableVersion) -> KeyTexts:
    """Return the texts of the key columns of a table, but only of columns for which every key has one text."""
    found: dict[int, set[str] | None] = {}
    fitting = []
    for key in keys:
        try:
            fitting.append({one.ordinal: canonical(value, one) for one, value in named_key(key, version).items()})
        except UsageError:
            # The key is of another table.
            continue
    for column in version.key_columns:
        texts = [one.get(column.ordinal) for one in fitting]
        found[column.ordinal] = None if None in texts else {text for text in texts if text is not None}
    return {ordinal: sorted(texts) for ordinal, texts in found.items() if texts is not None}


def rows_with_keys(batch: "pa.RecordBatch", texts_by_map: Mapping[str, Sequence[KeyTexts]]) -> "pa.RecordBatch":
    """Return the rows that may have one of the keys, before or after the change.

    Parameters
    ----------
    batch
        Row events as the decoder yields them.
    texts_by_map
        By `table_map_id`, the texts for each version of its table. Rows of other table maps stay.
    """
    import numpy as np
    import pyarrow as pa

    ids = batch.column("table_map_id")
    places = np.asarray(ids.indices)
    stays = np.ones(batch.num_rows, dtype=bool)
    names = ids.dictionary.to_pylist()
    for place in np.flatnonzero(np.bincount(places)):
        alternatives = texts_by_map.get(names[place])
        if alternatives is None:
            continue
        rows = np.flatnonzero(places == place)
        may_fit = np.zeros(len(rows), dtype=bool)
        for texts in alternatives:
            may_fit |= _may_fit(batch, rows, texts)
        stays[rows] = may_fit
    return batch if stays.all() else batch.filter(pa.array(stays))


def rows_of_map(batch: "pa.RecordBatch", table_map_id: str, first: int, end: int) -> "pa.RecordBatch":
    """Return the rows of a table map whose events begin in [first, end)."""
    import pyarrow.compute as pc

    positions = batch.column("start_pos")
    if not batch.num_rows or positions[0].as_py() >= end or positions[-1].as_py() < first:
        return batch.slice(0, 0)
    is_there = pc.and_(pc.greater_equal(positions, first), pc.less(positions, end))
    return batch.filter(pc.and_(is_there, pc.equal(batch.column("table_map_id"), table_map_id)))


def _may_fit(batch: "pa.RecordBatch", rows: Any, texts: KeyTexts) -> Any:
    import numpy as np

    fits = np.ones(len(rows), dtype=bool)
    for ordinal, wanted in texts.items():
        fits &= _has(batch.column("before_values"), rows, ordinal, wanted) | _has(
            batch.column("after_values"), rows, ordinal, wanted
        )
    return fits


def _has(values: Any, rows: Any, ordinal: int, wanted: Sequence[str]) -> Any:
    """Return which rows have one of the texts in a column of one image."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    # Every list has the same elements as the table has columns, also those of absent columns and images.
    places = np.asarray(values.offsets)[rows] + ordinal
    texts = values.values
    # Most values have another length, which costs less to find out than to copy them.
    ends = np.frombuffer(texts.buffers()[1], dtype=np.int32)[texts.offset :]
    sizes = ends[places + 1] - ends[places]
    has = np.zeros(len(sizes), dtype=bool)
    for size in {len(text.encode()) for text in wanted}:
        has |= sizes == size
    near = np.flatnonzero(has)
    column = texts.take(pa.array(places[near]))
    has[near] = pc.is_in(column, value_set=pa.array(wanted, pa.string())).to_numpy(zero_copy_only=False)
    return has
