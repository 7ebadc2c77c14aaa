"""Writes the information_schema views that binloom reads as a schema snapshot from a folder."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pymysql.cursors

SYSTEM_SCHEMAS = ("information_schema", "mysql", "performance_schema", "sys")
VIEWS = {
    "columns": ("*", "table_schema", "table_schema, table_name, ordinal_position"),
    "key_column_usage": ("*", "table_schema", "table_schema, table_name, constraint_name, ordinal_position"),
    "referential_constraints": ("*", "constraint_schema", "constraint_schema, table_name, constraint_name"),
    # The other columns of these views count rows and bytes, or tell when a table was made.
    "tables": (
        "table_schema, table_name, table_type, engine, table_collation",
        "table_schema",
        "table_schema, table_name",
    ),
    "statistics": (
        "table_schema, table_name, non_unique, index_name, seq_in_index, column_name, sub_part, index_type",
        "table_schema",
        "table_schema, table_name, index_name, seq_in_index",
    ),
    "schemata": (
        "schema_name, default_character_set_name, default_collation_name",
        "schema_name",
        "schema_name",
    ),
}


def write(connection: "pymysql.connections.Connection[Any]", directory: Path) -> Path:
    """Write one JSON file for each view: an array of rows with the server's own upper-case column names.

    The rows are ordered and limited to user schemas, so that the files of two runs can be compared.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with connection.cursor(pymysql.cursors.DictCursor) as cursor:
        for view, (wanted, schema_column, order) in VIEWS.items():
            if view == "statistics" and _has_expressions(cursor):
                wanted += ", expression"
            cursor.execute(
                f"select {wanted} from information_schema.{view} where {schema_column} not in %s order by {order}",
                (SYSTEM_SCHEMAS,),
            )
            rows = [{name.upper(): _plain(value) for name, value in row.items()} for row in cursor.fetchall()]
            text = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
            (directory / f"{view}.json").write_text(f"[\n{text}\n]\n" if rows else "[]\n")
    return directory


def _has_expressions(cursor: Any) -> bool:
    """Whether the server has keys with expressions: MySQL 8.0.13 and later."""
    return bool(cursor.execute("show columns from information_schema.statistics like 'expression'"))


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return int(value)
    if isinstance(value, bytes):
        return value.decode()
    return value
