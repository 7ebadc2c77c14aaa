"""Reads a table's rows as the server prints them, each value in binloom's text form."""

from tests.servers.names import quoted
from tests.servers.server import Server

BINARY_TYPES = {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "vector"}
BINARY_TYPES |= {"geometry", "point", "linestring", "polygon"}
BINARY_TYPES |= {"geomcollection", "geometrycollection", "multipoint", "multilinestring", "multipolygon"}

Row = tuple[str | None, ...]


def table_rows(server: Server, schema: str, table: str) -> tuple[list[str], list[Row]]:
    """Return the names of a table's columns, including invisible ones, and its rows in no particular order.

    A system-versioned table of MariaDB has a row for each version: an UPDATE logs the old one as inserted.
    """
    of_table = f"table_schema = {_literal(schema)} and table_name = {_literal(table)}"
    columns = server.execute(
        "select column_name, lower(data_type) from information_schema.columns"
        f" where {of_table} order by ordinal_position"
    )
    ((table_type,),) = server.execute(f"select table_type from information_schema.tables where {of_table}")
    names = [name for name, _ in columns]
    expressions = [_printed(quoted(name), data_type) for name, data_type in columns]
    versions = ""
    if table_type == "SYSTEM VERSIONED":
        versions = " for system_time all"
        declared = f"select 1 from information_schema.columns where {of_table} and generation_expression = 'ROW START'"
        if not server.execute(declared):
            # The server has added these columns itself, and does not list them.
            names += ["row_start", "row_end"]
            expressions += ["row_start", "row_end"]
    # Without converters pymysql returns the text that the server sent.
    with server.connect(conv={}) as connection, connection.cursor() as cursor:
        cursor.execute("set session time_zone = '+00:00'")
        cursor.execute(f"select {', '.join(expressions)} from {quoted(schema)}.{quoted(table)}{versions}")
        rows = [tuple(None if value is None else _text(value) for value in row) for row in cursor.fetchall()]
    return names, rows


def _printed(name: str, data_type: str) -> str:
    """Return the expression whose text is binloom's text form of a column."""
    if data_type == "bit":
        return f"{name} + 0"
    if data_type in BINARY_TYPES:
        return f"concat('0x', hex({name}))"
    if data_type == "float":
        # A FLOAT prints only six digits; the same number as a DOUBLE prints all of them.
        return f"{name} * 1e0"
    return name


def _literal(name: str) -> str:
    return "'" + name.replace("\\", "\\\\").replace("'", "''") + "'"


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode()
