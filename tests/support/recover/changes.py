"""A small log of row changes in memory, with the columns of the marts that filters use."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import duckdb

from recover.selection.catalog import Column, TableVersion
from recover.selection.condition import select
from recover.selection.filters import Filters, key_text

Image = Mapping[str, str | None] | None


def table(
    name: str, *columns: tuple[str, str], key: Sequence[str] = ("id",), version: str | None = None
) -> TableVersion:
    """Return a version of a table; a column is its name and type."""
    return TableVersion(
        table_version_id=version or name,
        source_id="s",
        schema_name=name.partition(".")[0],
        table_name=name.partition(".")[2],
        columns=tuple(
            Column(
                ordinal=ordinal,
                name=column,
                data_type=type_name.split("(")[0].split()[0],
                column_type=type_name,
                character_set="utf8mb4" if "char" in type_name or "text" in type_name else None,
                is_nullable=column not in key,
                is_primary_key=column in key,
            )
            for ordinal, (column, type_name) in enumerate(columns)
        ),
        primary_key=tuple(key),
    )


def row_changes(*changes: tuple[TableVersion, Image, Image]) -> "duckdb.DuckDBPyConnection":
    """Return a connection with `binloom.row_changes`: a version, the row before and the row after of each change."""
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    connection.execute("create schema binloom")
    connection.execute(
        """create table binloom.row_changes (
            number bigint, source_id varchar, schema_name varchar, table_name varchar, table_version_id varchar,
            event_type varchar, pk_values varchar, pk_hash varchar, pk_values_after varchar, changed_columns varchar[],
            row_before map(varchar, varchar), row_after map(varchar, varchar), gtid varchar, event_hour varchar,
            event_timestamp timestamptz, thread_id bigint
        )"""
    )
    for number, (version, before, after) in enumerate(changes):
        connection.execute(
            "insert into binloom.row_changes values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [number, *_change(number, version, before, after)],
        )
    return connection


def _change(number: int, version: TableVersion, before: Image, after: Image) -> list[Any]:
    old, new = _key(version, before), _key(version, after)
    key = new if before is None else old
    is_update = before is not None and after is not None
    return [
        version.source_id,
        version.schema_name,
        version.table_name,
        version.table_version_id,
        "UPDATE" if is_update else "INSERT" if before is None else "DELETE",
        key,
        None if key is None else sha256(key.encode()).hexdigest(),
        new if is_update and new != old else None,
        [name for name in before or {} if (after or {}).get(name) != (before or {})[name]] if is_update else None,
        _map(before),
        _map(after),
        f"11111111-1111-1111-1111-111111111111:{number + 1}",
        f"2026-11-17-{8 + number // 60:02d}",
        f"2026-11-17 {8 + number // 60:02d}:{number % 60:02d}:00+00",
        number,
    ]


def _key(version: TableVersion, image: Image) -> str | None:
    if image is None or not version.primary_key:
        return None
    return key_text(str(image[name]) for name in version.primary_key)


def _map(image: Image) -> Any:
    return None if image is None else {"key": list(image), "value": list(image.values())}


def numbers(connection: "duckdb.DuckDBPyConnection", versions: Sequence[TableVersion], **filters: Any) -> list[int]:
    """Return the numbers of the changes that filters select."""
    selection = select(Filters.of(**filters), versions)
    return sorted(row[0] for row in connection.execute(selection.sql("number")).fetchall())
