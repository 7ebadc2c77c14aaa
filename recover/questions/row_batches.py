"""Facts of the rows in a batch of `ROW_EVENTS`, as arrays: updates that change nothing, and texts of keys."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


def dictionary_of(column: Any) -> pa.DictionaryArray:
    """Return a column of texts as a dictionary and indices."""
    return column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode()


def changes_nothing(batch: pa.RecordBatch) -> Bools:
    """Return, for each row, whether all values of its after image are those of its before image, shape (rows,).

    It is the rule of `changed_columns` in `row_changes`: a value that only the after image has is a change. The result
    has a meaning only for updates.
    """
    before, after = batch.column("before_values"), batch.column("after_values")
    offsets = before.offsets.to_numpy()
    base = int(offsets[0])
    first, last = after.offsets[0].as_py(), after.offsets[-1].as_py()
    old = before.values.slice(base, int(offsets[-1]) - base)
    new = after.values.slice(first, last - first)
    both_null = pc.and_(old.is_null(), new.is_null())
    is_same = pc.fill_null(pc.equal(old, new), False)
    changed = ~np.asarray(pc.or_(is_same, both_null))
    places = offsets - base
    # A value that is only in the after image is new; one that is only in the before image was not written.
    if (known := _present(batch.column("before_columns"), places)) is not None:
        changed |= ~known
    if (written := _present(batch.column("after_columns"), places)) is not None:
        changed &= written
    sums = np.concatenate([[0], np.cumsum(changed)])
    return np.asarray((sums[places[1:]] == sums[places[:-1]]) & np.asarray(batch.column("undecoded_columns").is_null()))


def key_texts(batch: pa.RecordBatch, rows: Ints, is_insert: Bools, ordinals: Sequence[int]) -> pa.Array:
    """Return the keys of some rows as `pk_values` has them; NULL where a part is NULL.

    Parameters
    ----------
    batch
        The rows.
    rows
        Numbers of the rows in the batch, shape (n,).
    is_insert
        Whether the key is in the after image, shape (n,).
    ordinals
        Ordinals of the columns of the key.
    """
    found = []
    for name, chosen in (("after_values", rows[is_insert]), ("before_values", rows[~is_insert])):
        images = batch.column(name)
        starts = images.offsets.to_numpy()[chosen]
        parts = [_escaped(images.values.take(pa.array(starts + ordinal))) for ordinal in ordinals]
        found.append(pc.binary_join_element_wise(*parts, "|") if len(parts) > 1 else parts[0])
    return pa.concat_arrays(found)


def _escaped(texts: pa.Array) -> pa.Array:
    return pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), "|", "\\|")


def _present(columns: pa.Array, places: Ints) -> Bools | None:
    """Return which values partial images contain; None if all images are full."""
    if columns.null_count == len(columns):
        return None
    present = np.ones(int(places[-1]), dtype=bool)
    partial = np.flatnonzero(np.asarray(columns.is_valid()))
    widths = places[partial + 1] - places[partial]
    present[np.repeat(places[partial], widths) + _counting(widths)] = False
    rows = np.asarray(pc.list_parent_indices(columns))
    present[places[rows] + np.asarray(pc.list_flatten(columns))] = True
    return present


def _counting(widths: Ints) -> Ints:
    """Return 0, 1, ... up to each width, one after the other."""
    ends = np.cumsum(widths)
    return np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - widths, widths)
