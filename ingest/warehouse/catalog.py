"""The raw tables in Spark's catalog."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from ingest.warehouse.descriptions import COLUMN_DESCRIPTIONS
from ingest.warehouse.tables import RAW_SCHEMA, RAW_TABLES, RawTable


class Rows(Protocol):
    """The rows of a statement."""

    def collect(self) -> Sequence[Sequence[Any]]:
        """Return them all."""


class Statements(Protocol):
    """Runs statements of Spark SQL: a session of this process, or one of a Thrift server."""

    def sql(self, statement: str, /) -> Rows:
        """Run a statement."""


def spark_type(arrow_type: pa.DataType) -> str:
    """Return the Spark SQL type of an Arrow type.

    Raises
    ------
    TypeError
        For an Arrow type that no raw table uses.
    """
    if pa.types.is_dictionary(arrow_type):
        return spark_type(arrow_type.value_type)
    if pa.types.is_list(arrow_type):
        return f"array<{spark_type(arrow_type.value_type)}>"
    if pa.types.is_map(arrow_type):
        return f"map<{spark_type(arrow_type.key_type)},{spark_type(arrow_type.item_type)}>"
    if pa.types.is_struct(arrow_type):
        return f"struct<{','.join(f'`{field.name}`:{spark_type(field.type)}' for field in arrow_type)}>"
    for matches, name in (
        (pa.types.is_string, "string"),
        (pa.types.is_int32, "int"),
        (pa.types.is_int64, "bigint"),
        (pa.types.is_boolean, "boolean"),
        (pa.types.is_timestamp, "timestamp"),
    ):
        if matches(arrow_type):
            return name
    raise TypeError(f"no Spark type is known for the Arrow type {arrow_type}")


def sql_literal(text: str) -> str:
    """Return a text as a string literal of Spark SQL, as macro text_literal does.

    Single quotes, backslashes and unprintable characters become code points. So does `{`: Spark replaces `${name}`
    with the value of a setting, even inside a literal.
    """
    signs = (sign if sign.isprintable() and sign not in "\\'{" else f"\\U{ord(sign):08x}" for sign in text)
    return f"'{''.join(signs)}'"


def create_statement(table: RawTable, folder: str | None = None) -> str:
    """Return the Spark statement that creates a table when it is missing.

    Parameters
    ----------
    table
        The table.
    folder
        Folder of the table's files. When the folder already contains files, Spark creates the table only if the
        statement has a location.
    """
    columns = ",\n".join(f"    {_column_ddl(field)}" for field in table.columns)
    partitioned = f"\npartitioned by ({', '.join(table.partition)})" if table.partition else ""
    return (
        f"create table if not exists {table.qualified_name} (\n{columns}\n)\nusing parquet{partitioned}"
        + (f"\nlocation {sql_literal(folder)}" if folder else "")
        + f"\ncomment {sql_literal(table.description)}"
    )


def ensure_tables(session: Statements, warehouse: Path) -> list[str]:
    """Create schema `binlog_raw`, its missing tables, and the missing columns of its tables.

    Runs three statements when nothing is missing.

    Parameters
    ----------
    session
        Session that runs the statements.
    warehouse
        Folder that contains the tables, as `binlog_raw.db/<table>/`.

    Returns
    -------
    list of str
        Names of the tables that were created.
    """
    session.sql(f"create schema if not exists {RAW_SCHEMA} comment 'What the binary logs say, as decoded'")
    present = {row[1] for row in session.sql(f"show tables in {RAW_SCHEMA}").collect()}
    missing = [table for table in RAW_TABLES.values() if table.name not in present]
    for table in missing:
        session.sql(create_statement(table, str(warehouse / f"{RAW_SCHEMA}.db" / table.name)))
    _ensure_columns(session, [table for table in RAW_TABLES.values() if table.name in present])
    return [table.name for table in missing]


def _ensure_columns(session: Statements, tables: Sequence[RawTable]) -> None:
    """Add the columns that existing tables lack. They are NULL in rows that are already landed."""
    layout = hashlib.sha256("".join(create_statement(table) for table in RAW_TABLES.values()).encode()).hexdigest()
    if any(layout in row[1] for row in session.sql(f"describe schema extended {RAW_SCHEMA}").collect()):
        return
    for table in tables:
        known = {row[0] for row in session.sql(f"show columns in {table.qualified_name}").collect()}
        added = ", ".join(_column_ddl(field) for field in table.columns if field.name not in known)
        if added:
            session.sql(f"alter table {table.qualified_name} add columns ({added})")
    session.sql(f"alter schema {RAW_SCHEMA} set dbproperties ('binloom.layout' = '{layout}')")


def _column_ddl(field: pa.Field) -> str:
    return f"`{field.name}` {spark_type(field.type)} comment {sql_literal(COLUMN_DESCRIPTIONS[field.name])}"
