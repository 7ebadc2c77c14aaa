"""Masked rows of whole tables, for baselines."""

from typing import Any

import numpy as np
import pyarrow as pa

from ingest.errors import UsageError
from ingest.masking.methods import masked
from ingest.masking.rules import Masks, record_of
from ingest.sources.baselines.baseline_tables import BaselineTable


class TableMasking:
    """Masks the rows of one table of a baseline.

    Attributes
    ----------
    column_names, primary_key_ordinals
        As in `BaselineTable`, without the columns that are dropped.
    record
        The masked columns, as `baselines` has them; None without any.

    Raises
    ------
    UsageError
        A column of the primary key has a mask that does not keep rows apart.
    """

    def __init__(self, table: BaselineTable, masks: Masks | None) -> None:
        names = (table.schema_name, table.table_name)
        self._columns = () if masks is None else masks.columns_of(*names, table.column_names)
        self._key = None if masks is None else masks.key
        keys = set(table.primary_key_ordinals or ())
        for one in self._columns:
            if one.ordinal in keys and one.mask.method != "hash":
                raise UsageError(
                    f"Column {one.name} is in the primary key of {table}, and the masks give it the method"
                    f" {one.mask.method}: rows could not be told apart.",
                    hint="Give it the method hash. Nothing was landed.",
                )
        dropped = {one.ordinal for one in self._columns if one.mask.method == "drop"}
        self._width = len(table.column_names)
        self._kept = [place for place in range(self._width) if place not in dropped]
        self.column_names = [table.column_names[place] for place in self._kept]
        self.primary_key_ordinals = [self._kept.index(place) for place in sorted(keys)] or None
        record = record_of(self._columns, self._key)
        # The places are those of `column_names`.
        self.record: list[dict[str, Any]] | None = [
            {**one, "ordinal": self._kept.index(one["ordinal"]) if one["ordinal"] in self._kept else None}
            for one in record
        ] or None

    def masked(self, rows: pa.ListArray) -> pa.ListArray:
        """Return rows, as lists of the texts of all columns, with masks in place of values."""
        if not self._columns:
            return rows
        # A row has a value for each column, so the values of one column are `width` places apart.
        values = rows.flatten()
        columns = [values.take(pa.array(np.arange(place, len(values), self._width))) for place in range(self._width)]
        for one in self._columns:
            columns[one.ordinal] = masked(columns[one.ordinal], one.mask, self._key)
        count, width = len(rows), len(self._kept)
        in_columns = pa.concat_arrays([columns[place] for place in self._kept])
        by_row = np.arange(count * width).reshape(width, count).T.ravel()
        offsets = pa.array(np.arange(count + 1) * width, pa.int32())
        return pa.ListArray.from_arrays(offsets, in_columns.take(pa.array(by_row)), type=rows.type)
