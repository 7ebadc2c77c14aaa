"""Rows of a snapshot, carried to the end of a part of the log in which the snapshot began.

A transaction in the part may be in the snapshot or not. Each row that none of them changed is as at the end. Each
other one is in the snapshot as one of its versions, and becomes the last of them. So it does not matter which
transactions the snapshot contains.
"""

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from ingest.errors import SourceError
from ingest.sources.baselines.baseline_tables import BaselineTable
from ingest.sources.baselines.logged_changes import Key, UnloggedWriteError
from ingest.sources.baselines.row_versions import NotInLogError, Row, RowVersions, ValueNotLoggedError


def carried(
    batches: Iterable[pa.ListArray], table: BaselineTable, versions: Mapping[Key, RowVersions], end: str
) -> Iterator[pa.ListArray]:
    """Yield the rows of a table at the end of the part, from the rows that the snapshot has.

    Parameters
    ----------
    batches
        All rows of the snapshot.
    versions
        The versions of each row that the part changes, by key.
    end
        The end of the part, `file:position`.

    Raises
    ------
    UnloggedWriteError
        A row of the snapshot is none of its versions.
    SourceError
        The log does not have all values of the last version of a row.
    """
    ordinals = table.primary_key_ordinals or ()
    changed = [pa.array({key[place] for key in versions}, pa.string()) for place in range(len(ordinals))]
    found: dict[Key, Row] = {}
    for batch in batches:
        is_changed = _may_be_changed(batch, ordinals, changed)
        if not pc.any(is_changed).as_py():
            yield batch
            continue
        kept = [True] * len(batch)
        for at in pc.indices_nonzero(is_changed).to_pylist():
            row = tuple(batch[at].as_py())
            key = tuple(row[ordinal] for ordinal in ordinals)
            if key in versions:
                found[key] = row
                kept[at] = False
        yield batch.filter(pa.array(kept))
    rows = []
    for key, of_row in versions.items():
        try:
            rows.append(of_row.carried(found.get(key)))
        except NotInLogError:
            raise UnloggedWriteError(table, key, end) from None
        except ValueNotLoggedError:
            raise SourceError(
                f"The log does not have all values of the row with key {shown(key)} of table {table} at {end}, because"
                " binlog_row_image is not FULL.",
                hint="Start the baseline again, or set binlog_row_image=FULL.",
            ) from None
    if left := [row for row in rows if row is not None]:
        yield pa.array(left, pa.list_(pa.string()))


def shown(key: Key) -> str:
    """Return a key as people write it."""
    return "|".join(map(str, key))


def _may_be_changed(batch: pa.ListArray, ordinals: tuple[int, ...], changed: list[pa.Array]) -> pa.Array:
    """Return which rows have in each column of the key a value of a changed row."""
    columns = (pc.is_in(pc.list_element(batch, at), values) for at, values in zip(ordinals, changed, strict=True))
    is_changed = next(columns)
    for column in columns:
        is_changed = pc.and_(is_changed, column)
    return is_changed
