"""Tables as the DDL of a binlog leaves them, and as a server has them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ingest.binlog import open_binlog
from ingest.ddl.actions import Action, Column
from ingest.ddl.shapes import Shapes
from ingest.landing.batches import landed_batches
from tests.servers import Server

TableId = tuple[str, str]
Described = dict[TableId, dict[str, Any]]


def logged_actions(path: Path) -> list[Action]:
    """Actions of a binlog file, as they are landed."""
    found = []
    for kind, batch in landed_batches(open_binlog(path)):
        if kind == "ddl_actions":
            for row in batch.to_pylist():
                facts = {name: row[name] for name in Action.__slots__ if name in row}
                columns = tuple(Column(**column) for column in row["columns"])
                found.append(Action(**{**facts, "columns": columns, "key_columns": tuple(row["key_columns"])}))
    return found


def folded(shapes: Shapes) -> Described:
    """The tables, in the words of `described`."""
    return {
        table: {
            "columns": [(one.name, one.data_type, one.column_type, one.is_nullable) for one in shape.columns],
            "primary_key": [*shape.primary_key],
        }
        for table, shape in shapes.tables.items()
    }


def described(server: Server, databases: Iterable[str]) -> Described:
    """The tables of databases, as information_schema has them."""
    names = [*databases]
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(
            "select table_schema, table_name, column_name, data_type, column_type, is_nullable"
            " from information_schema.columns join information_schema.tables using (table_schema, table_name)"
            " where table_schema in %s and table_type in ('BASE TABLE', 'SEQUENCE')"
            " order by ordinal_position",
            (names,),
        )
        tables: Described = {}
        for schema, table, name, data_type, column_type, is_nullable in cursor.fetchall():
            shape = tables.setdefault((schema, table), {"columns": [], "primary_key": []})
            column = (name, _text(data_type), _text(column_type), is_nullable == "YES")
            shape["columns"].append(column)
        cursor.execute(
            "select table_schema, table_name, column_name from information_schema.key_column_usage"
            " where table_schema in %s and constraint_name = 'PRIMARY' order by ordinal_position",
            (names,),
        )
        for schema, table, name in cursor.fetchall():
            tables[schema, table]["primary_key"].append(name)
    return tables


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
