"""Masked row images: batches of `row_events` and `table_maps` with masks in place of values.

Rows of a table that a rule may concern are landed only if its column names are known. Otherwise they are reported in
`unsupported_events` and left out, because nobody could tell which of their values must be masked.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingest.binlog.batches import JSON_CHANGES, ORDINALS, TEXTS, UNSUPPORTED_EVENTS, BatchKind
from ingest.masking.methods import HIDDEN, masked
from ingest.masking.rules import MaskedColumn, Masks, record_of

if TYPE_CHECKING:
    from ingest.binlog.decoder import Binlog
    from ingest.binlog.events.hints import SchemaHints
    from ingest.binlog.events.table_map import TableMap

MASKED_COLUMNS: Final = pa.field(
    "masked_columns",
    pa.list_(
        pa.field(
            "element",
            pa.struct(
                [
                    pa.field("ordinal", pa.int32()),
                    pa.field("column_name", pa.string()),
                    pa.field("tag", pa.string()),
                    pa.field("method", pa.string()),
                    pa.field("fingerprint", pa.string()),
                ]
            ),
        )
    ),
)
"""Column of `table_maps`: the columns whose values are masked in rows of this table map."""

NO_NAMES: Final = "no_names_to_mask"
"""Reason of rows that are left out because their column names are not known."""
KEY_LOST: Final = "key_would_be_lost"
"""Reason of rows that are left out because their masked key would not tell rows apart."""

_DETAILS: Final = {
    NO_NAMES: "masks may concern this table, and neither the log nor a schema snapshot tells the names of its columns "
    "here; its rows are left out until a snapshot is landed",
    KEY_LOST: "masks that do not keep rows apart (drop, null, partial) concern a column of the primary key; the rows "
    "are left out: only the method hash is possible there",
}
_SIDES: Final = (("before", "INSERT"), ("after", "DELETE"))
_EVENT_TYPES: Final = {"INSERT": "WRITE_ROWS", "UPDATE": "UPDATE_ROWS", "DELETE": "DELETE_ROWS"}
_COUNTS: Final = {"INSERT": "inserts", "UPDATE": "updates", "DELETE": "deletes"}


@dataclass(frozen=True, slots=True)
class _Treatment:
    """How rows of one table map are masked: their columns, the new id of the map, or why they are left out."""

    columns: tuple[MaskedColumn, ...] = ()
    table_map_id: str = ""
    refusal: str | None = None


class RowMasking:
    """Masks the batches of one log, in the order in which the decoder yields them.

    Parameters
    ----------
    masks
        Masks of the source.
    log
        The log, whose batches are being iterated.
    hints
        Schema hints that the log is decoded with.
    """

    def __init__(self, masks: Masks, log: "Binlog", hints: "SchemaHints | None") -> None:
        self._masks = masks
        self._log = log
        self._hints = hints
        self._treatments: list[_Treatment] = []
        # How many table maps were yielded; and rows that are left out, by the position of their transaction.
        self._yielded = 0
        self._left_out: dict[int, Counter[str]] = {}

    def table_maps(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch of table maps with their masks. A map with masks has an id of its own."""
        ids = batch["table_map_id"].to_pylist()
        recorded: list[list[dict[str, Any]] | None] = []
        for place, map_id in enumerate(ids):
            # The decoder yields maps in the order of their numbers, without those of tables that are not wanted.
            while self._log.table_maps[self._yielded].table_map_id != map_id:
                self._yielded += 1
            treatment = self._treatment(self._yielded)
            self._yielded += 1
            ids[place] = treatment.table_map_id
            recorded.append(record_of(treatment.columns, self._masks.key) or None)
        place = batch.schema.get_field_index("table_map_id")
        batch = batch.set_column(place, batch.schema.field(place), pa.array(ids, pa.string()))
        return batch.append_column(MASKED_COLUMNS, pa.array(recorded, MASKED_COLUMNS.type))

    def row_events(self, batch: pa.RecordBatch) -> Iterator[tuple[BatchKind, pa.RecordBatch]]:
        """Yield a batch of rows with masks, and a batch of `unsupported_events` for the rows that are left out."""
        numbers = _indices(batch["table_map_id"])
        treatments = {number: self._treatment(number) for number in np.unique(numbers).tolist()}
        if all(not one.columns and one.refusal is None for one in treatments.values()):
            yield "row_events", batch
            return
        refused = [number for number, one in treatments.items() if one.refusal is not None]
        if refused:
            is_refused = np.isin(numbers, refused)
            yield "unsupported_events", self._refusals(batch.filter(pa.array(is_refused)))
            batch, numbers = batch.filter(pa.array(~is_refused)), numbers[~is_refused]
        columns = {number: treatments[number].columns for number in np.unique(numbers).tolist()}
        columns = {number: listed for number, listed in columns.items() if listed}
        if columns:
            yield "row_events", self._masked(batch, numbers, columns)
        elif batch.num_rows:
            yield "row_events", batch

    def transactions(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch of transactions whose counts of rows are without those that are left out."""
        if not self._left_out:
            return batch
        starts = batch["start_pos"].to_pylist()
        left_out = [self._left_out.pop(start, Counter()) for start in starts]
        for kind, name in [*_COUNTS.items(), (None, "row_events")]:
            place = batch.schema.get_field_index(name)
            gone = [one.total() if kind is None else one[kind] for one in left_out]
            counts = pc.subtract(batch[name], pa.array(gone, pa.int64()))
            batch = batch.set_column(place, batch.schema.field(place), counts)
        return batch

    # --- what is done with a table ---

    def _treatment(self, number: int) -> _Treatment:
        while len(self._treatments) <= number:
            self._treatments.append(self._decide(self._log.table_maps[len(self._treatments)]))
        return self._treatments[number]

    def _decide(self, table_map: "TableMap") -> _Treatment:
        schema, table, names = table_map.schema_name, table_map.table_name, table_map.column_names
        if not self._masks.concerns(schema, table):
            return _Treatment(table_map_id=table_map.table_map_id)
        if names is None:
            return _Treatment(table_map_id=table_map.table_map_id, refusal=NO_NAMES)
        columns = self._masks.columns_of(schema, table, names)
        keys = self._key_names(table_map)
        if any(one.mask.method != "hash" and one.name in keys for one in columns):
            return _Treatment(table_map_id=table_map.table_map_id, refusal=KEY_LOST)
        if not columns:
            return _Treatment(table_map_id=table_map.table_map_id)
        digest = hashlib.blake2b(table_map.table_map_id.encode(), digest_size=16)
        digest.update(repr(record_of(columns, self._masks.key)).encode())
        return _Treatment(columns, digest.hexdigest())

    def _key_names(self, table_map: "TableMap") -> set[str]:
        """Return the columns that are in the primary key, by the event or by any known definition of the table."""
        keys = {column.name for column in table_map.columns if column.is_primary_key and column.name is not None}
        if self._hints is not None:
            keys |= self._hints.key_names(table_map.schema_name, table_map.table_name)
        return keys

    def _refusals(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        numbers = _indices(rows["table_map_id"])
        names = ["start_pos", "end_pos", "event_type", "schema_name", "table_name", "transaction_pos"]
        events: dict[tuple[int, int, str], dict[str, Any]] = {}
        for number, row in zip(numbers.tolist(), rows.select(names).to_pylist(), strict=True):
            kind, transaction = row["event_type"], row.pop("transaction_pos")
            self._left_out.setdefault(transaction, Counter())[kind] += 1
            reason = self._treatment(number).refusal or ""
            event = {**row, "event_type": _EVENT_TYPES[kind], "reason": reason, "detail": _DETAILS[reason]}
            events[row["start_pos"], number, kind] = event
        return pa.RecordBatch.from_pylist(list(events.values()), UNSUPPORTED_EVENTS)

    # --- the images ---

    def _masked(
        self, batch: pa.RecordBatch, numbers: npt.NDArray[np.int32], columns: dict[int, tuple[MaskedColumn, ...]]
    ) -> pa.RecordBatch:
        dropped = {
            number: [one.ordinal for one in listed if one.mask.method == "drop"] for number, listed in columns.items()
        }
        kinds = batch["event_type"].cast(pa.string()).to_numpy(zero_copy_only=False)
        for side, absent_in in _SIDES:
            values = f"{side}_values"
            batch = _with(batch, values, self._masked_images(batch[values], numbers, columns))
            name = f"{side}_columns"
            has_image = kinds != absent_in
            batch = _with(batch, name, _without(batch[name], batch["column_count"], numbers, dropped, has_image))
        if batch["json_changes"].null_count < batch.num_rows:
            batch = _with(batch, "json_changes", _masked_changes(batch["json_changes"], numbers, columns))
        ids = pa.array([self._treatment(number).table_map_id for number in range(len(self._log.table_maps))])
        return _with(batch, "table_map_id", pa.DictionaryArray.from_arrays(_arrow(numbers), ids, safe=False))

    def _masked_images(
        self, images: pa.ListArray, numbers: npt.NDArray[np.int32], columns: dict[int, tuple[MaskedColumn, ...]]
    ) -> pa.ListArray:
        values, offsets = images.values, images.offsets.to_numpy()
        places: list[npt.NDArray[np.int64]] = []
        texts: list[pa.Array] = []
        for number, listed in columns.items():
            starts = offsets[:-1][numbers == number]
            for one in listed:
                at = starts.astype(np.int64) + one.ordinal
                places.append(at)
                texts.append(masked(values.take(pa.array(at)), one.mask, self._masks.key))
        found, new = np.concatenate(places), pa.concat_arrays(texts)
        order = np.argsort(found)
        is_masked = np.zeros(len(values), dtype=bool)
        is_masked[found] = True
        replaced = pc.replace_with_mask(values, pa.array(is_masked), new.take(pa.array(order)))
        return pa.ListArray.from_arrays(images.offsets, replaced, type=TEXTS)


def _without(
    present: pa.ListArray,
    widths: pa.Array,
    numbers: npt.NDArray[np.int32],
    dropped: dict[int, list[int]],
    has_image: npt.NDArray[np.bool_],
) -> pa.ListArray:
    """Return the ordinals that are present in images (NULL: all) without dropped ones. Rows without image stay."""
    dropping = [number for number, ordinals in dropped.items() if ordinals]
    rows = np.flatnonzero(np.isin(numbers, dropping) & has_image)
    if not len(rows):
        return present
    shapes: dict[tuple[int, ...], int] = {}
    places = np.arange(len(present))
    known = present.take(pa.array(rows)).to_pylist()
    for row, width, listed in zip(rows.tolist(), widths.take(pa.array(rows)).to_pylist(), known, strict=True):
        gone = dropped[int(numbers[row])]
        left = tuple(one for one in (range(width) if listed is None else listed) if one not in gone)
        places[row] = len(present) + shapes.setdefault(left, len(shapes))
    added = pa.array([list(shape) for shape in shapes], ORDINALS)
    return pa.concat_arrays([present, added]).take(pa.array(places))


def _masked_changes(
    changes: pa.ListArray, numbers: npt.NDArray[np.int32], columns: dict[int, tuple[MaskedColumn, ...]]
) -> pa.ListArray:
    """Return the changes of JSON documents, in masked columns without paths and values.

    They remain in the list, so that nobody takes such a document for one that was not changed.
    """
    hidden = {number: {one.ordinal for one in listed} for number, listed in columns.items()}
    shown = [
        None if listed is None else [_shown(one, hidden.get(number, set())) for one in listed]
        for number, listed in zip(numbers.tolist(), changes.to_pylist(), strict=True)
    ]
    return pa.array(shown, JSON_CHANGES)


def _shown(change: dict[str, Any], hidden: set[int]) -> dict[str, Any]:
    if change["column_ordinal"] not in hidden:
        return change
    return {**change, "path": HIDDEN, "value": None if change["value"] is None else HIDDEN}


def _indices(ids: pa.DictionaryArray) -> npt.NDArray[np.int32]:
    numbers: npt.NDArray[np.int32] = ids.indices.to_numpy(zero_copy_only=False)
    return numbers


def _arrow(numbers: npt.NDArray[np.int32]) -> pa.Array:
    return pa.array(numbers, pa.int32())


def _with(batch: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    place = batch.schema.get_field_index(name)
    return batch.set_column(place, batch.schema.field(place), values)
