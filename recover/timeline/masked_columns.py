"""Masked columns: their values in the tables are not those of the server."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ingest.binlog.filters import matches

if TYPE_CHECKING:
    from recover.selection.catalog import TableVersion
    from recover.selection.filters import Filters
    from recover.sources.cluster.thrift import Cluster
    from recover.sources.log import Log
    from recover.timeline.events import Table

MaskedTables = Mapping[tuple[str, str], Mapping[str, str]]
"""Methods of masking by column, by schema and table."""


def masked_tables(log: "Log", source_id: str) -> MaskedTables:
    """Return the columns of a source that are masked in any landed row or baseline. Files themselves have no masks."""
    if log.copies is not None:
        return _of_cluster(log.copies.cluster, source_id)
    if not log.is_landed or log.home is None:
        return {}
    from ingest.warehouse.masks import recorded_masks

    return recorded_masks(source_id, log.home)


def masked_in_words(log: "Log", table: "Table") -> str | None:
    """Return a sentence on the masked columns of a table, None if it has none."""
    columns = masked_tables(log, table.source_id).get((table.schema_name, table.table_name))
    return None if not columns else f"masked in {table}: {in_words(columns)}; these are not the values of the server."


def in_words(columns: Mapping[str, str]) -> str:
    """Return columns with their methods."""
    return ", ".join(f"{name} ({method})" for name, method in sorted(columns.items()))


def masks_in_filters(log: "Log", filters: "Filters") -> str | None:
    """Return a sentence on the masked columns that filters compare, None if they compare none."""
    words = {word.lower() for text in (*filters.where, *filters.changed) for word in re.findall(r"\w+", text)}
    has_keys = bool(filters.keys or filters.key_from or filters.key_to)
    if not words and not has_keys:
        return None
    versions = [one for one in log.versions if not filters.sources or one.source_id in filters.sources]
    masks = {source: masked_tables(log, source) for source in {one.source_id for one in versions}}
    found: dict[str, str] = {}
    for version in versions:
        columns = masks[version.source_id].get((version.schema_name, version.table_name), {})
        if columns and _is_selected(version, filters.tables):
            for name, method in columns.items():
                if name.lower() in words or (has_keys and name in version.primary_key):
                    found[f"{version.name}.{name}"] = method
    return f"masked columns are compared as the tables have them: {in_words(found)}." if found else None


def _is_selected(version: "TableVersion", patterns: Sequence[str]) -> bool:
    names = (version.name.lower(), version.table_name.lower())
    return not patterns or any(matches(name, pattern.lower()) for name in names for pattern in patterns)


def _of_cluster(cluster: "Cluster", source_id: str) -> MaskedTables:
    from json import loads

    from sqlglot import exp

    query = (
        exp.select("schema_name", "table_name", exp.func("to_json", exp.column("masked_columns")).as_("masks"))
        .from_("binlog_raw.table_maps")
        .where(exp.column("source_id").eq(source_id), exp.column("masked_columns").is_(exp.null()).not_())
    )
    found: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for row in cluster.records(query):
        names = row["schema_name"], row["table_name"]
        found[names] |= {one["column_name"]: one["method"] for one in loads(row["masks"])}
    return found
