"""The schema hints that the values of a segment depend on, recorded with it: it is stale when they are others."""

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ingest.binlog.events.hints import SchemaHints
from ingest.landing.task import SegmentResult
from ingest.warehouse.segments import Segment, SegmentState

if TYPE_CHECKING:
    from ingest.masking.rules import Masks

MAP_NAMING = ("schema_name", "table_name", "columns")
"""Columns of `table_maps` that tell whether a table map has the names of its columns."""

# Schema and table, and `_NAMES` if the values also depend on the names of the columns, because masks choose by name.
_Described = tuple[str, str] | tuple[str, str, str]
_NAMES = "names"


def used_hints(hints: SchemaHints, outcome: SegmentResult, masks: "Masks | None") -> str | None:
    """Return `hints_used` of a decoded segment; None if no value depends on hints."""
    tables: set[_Described] = set()
    for batch in outcome.table_maps:
        for table_map in batch.select([*MAP_NAMING, "hint", "unknown_hints"]).to_pylist():
            table = table_map["schema_name"], table_map["table_name"]
            if table_map["hint"] != "metadata" or table_map["unknown_hints"]:
                tables.add(table)
            has_names = bool(table_map["columns"]) and table_map["columns"][0]["name"] is not None
            if not has_names and masks is not None and masks.concerns(*table):
                tables.add((*table, _NAMES))
    return _as_text(_digests(hints, outcome.segment, tables))


def merged_hints(hints: SchemaHints, whole: Segment, states: Iterable[SegmentState]) -> str | None:
    """Return `hints_used` of a segment that is merged from others, none of which is stale."""
    return _as_text(_digests(hints, whole, {table for state in states for table in _tables_of(state)}))


def stale_segments(hints: SchemaHints, states: Iterable[SegmentState], table_filter: str | None) -> Iterator[Segment]:
    """Yield the segments that were decoded with hints that differ from these."""
    for state in states:
        # Segments that earlier versions of binloom landed do not record their hints.
        if state.status != "completed" or state.table_filter != table_filter or not state.hints_used:
            continue
        if json.loads(state.hints_used) != _digests(hints, state.segment, _tables_of(state)):
            yield state.segment


def _tables_of(state: SegmentState) -> list[_Described]:
    """Return the tables of a segment whose values depend on hints, from its latest state."""
    return [tuple(described) for described in map(json.loads, json.loads(state.hints_used or "{}"))]


def _digests(hints: SchemaHints, segment: Segment, tables: Iterable[_Described]) -> dict[str, str]:
    """Return a hash of the schema hints of each table in a segment, by the table's schema and name as JSON."""
    return {
        json.dumps(described): hints.digest(
            described[:2],
            segment.binlog_file,
            segment.first_byte,
            segment.end,
            with_names=described[2:] == (_NAMES,),
        )
        for described in tables
    }


def _as_text(digests: dict[str, str]) -> str | None:
    return json.dumps(digests, sort_keys=True) if digests else None
