"""Schema snapshots without the values in them: defaults and comments of masked columns."""

from collections import defaultdict
from dataclasses import replace
from typing import Any

from ingest.masking.rules import Masks
from ingest.sources.snapshots.snapshot import SchemaSnapshot

_WITH_VALUES = ("column_default", "column_comment")


def masked_snapshot(snapshot: SchemaSnapshot, masks: Masks | None) -> SchemaSnapshot:
    """Return a snapshot without the defaults and comments of masked columns. Labels of ENUM and SET stay."""
    if masks is None:
        return snapshot
    by_table: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in snapshot.columns:
        by_table[row["schema_name"], row["table_name"]].append(row)
    hidden = {
        (*table, one.name)
        for table, rows in by_table.items()
        for one in masks.columns_of(*table, [row["column_name"] for row in rows])
    }
    columns = [
        {**row, **{name: None for name in _WITH_VALUES if name in row}}
        if (row["schema_name"], row["table_name"], row["column_name"]) in hidden
        else row
        for row in snapshot.columns
    ]
    return replace(snapshot, columns=columns)
