"""Table definitions that result from the DDL of a binlog, and those of a server."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from ingest.binlog import open_binlog
from ingest.ddl.actions import Action, Column
from ingest.ddl.batches import statement_actions
from ingest.ddl.shapes import Shapes
from ingest.sources.servers.address import ServerAddress
from ingest.sources.servers.information_schema import take_snapshot
from ingest.sources.servers.server import Server as LiveServer
from ingest.versions import Flavor
from ingest.warehouse.landed import landed_batches
from tests.servers import Server

TableId = tuple[str, str]
Described = dict[TableId, dict[str, Any]]


def logged_actions(path: Path) -> list[Action]:
    """Return the actions of a binlog file as they are landed."""
    found = []
    for kind, batch in landed_batches(open_binlog(path)):
        if kind == "ddl_actions":
            for row in batch.to_pylist():
                facts = {name: row[name] for name in Action.__slots__ if name in row}
                columns = tuple(Column(**column) for column in row["columns"])
                found.append(Action(**{**facts, "columns": columns, "key_columns": tuple(row["key_columns"])}))
    return found


def stated_actions(path: Path) -> list[Action]:
    """Return the actions of the statements of a binlog file, including the parts that are not landed."""
    log = open_binlog(path)
    version = log.format.version
    return [
        action
        for kind, batch in log.batches()
        if kind == "statements"
        for statement in batch.to_pylist()
        if statement["kind"] == "QUERY"
        for action in statement_actions(statement, cast(Flavor, log.format.flavor), version)
    ]


def observed(shapes: Shapes, server: Server, databases: Iterable[str]) -> None:
    """Load the databases from a snapshot of the server."""
    names = {*databases}
    with LiveServer(ServerAddress(server.host, server.port, "root")) as live:
        snapshot = take_snapshot(live)
    columns, defaults = (
        [row for row in rows if row["schema_name"] in names] for rows in (snapshot.columns, snapshot.defaults)
    )
    shapes.observe(columns, defaults)


def folded(shapes: Shapes) -> Described:
    """Return the tables in the form of `described`."""
    return {
        table: {
            "columns": [
                (one.name, one.data_type, one.column_type, one.is_nullable, _character_set(one.character_set))
                for one in shape.columns
            ],
            "primary_key": [*shape.primary_key],
            "character_set": shape.character_set,
        }
        for table, shape in shapes.tables.items()
    }


def described(server: Server, databases: Iterable[str]) -> Described:
    """Return the tables of databases from information_schema."""
    names = [*databases]
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(
            "select table_schema, table_name, column_name, data_type, column_type, is_nullable, character_set_name,"
            " table_collation"
            " from information_schema.columns join information_schema.tables using (table_schema, table_name)"
            " where table_schema in %s and table_type in ('BASE TABLE', 'SEQUENCE', 'SYSTEM VERSIONED')"
            " order by ordinal_position",
            (names,),
        )
        tables: Described = {}
        for schema, table, name, data_type, column_type, is_nullable, character_set, collation in cursor.fetchall():
            default = collation.partition("_")[0] if collation else None
            shape = tables.setdefault((schema, table), {"columns": [], "primary_key": [], "character_set": default})
            column = (
                *(name, _text(data_type), _text(column_type), is_nullable == "YES"),
                _character_set(character_set),
            )
            shape["columns"].append(column)
        cursor.execute(
            "select table_schema, table_name, column_name from information_schema.key_column_usage"
            " where table_schema in %s and constraint_name = 'PRIMARY' order by ordinal_position",
            (names,),
        )
        for schema, table, name in cursor.fetchall():
            tables[schema, table]["primary_key"].append(name)
    return tables


def described_databases(server: Server, databases: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return the default character sets and collations of databases."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(
            "select schema_name, default_character_set_name, default_collation_name"
            " from information_schema.schemata where schema_name in %s",
            ([*databases],),
        )
        return {name: (character_set, collation) for name, character_set, collation in cursor.fetchall()}


def described_collations(server: Server, databases: Iterable[str]) -> dict[tuple[str, str, str], str]:
    """Return the collations of the columns that have one."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(
            "select table_schema, table_name, column_name, collation_name from information_schema.columns"
            " where table_schema in %s and collation_name is not null",
            ([*databases],),
        )
        return {(schema, table, name): collation for schema, table, name, collation in cursor.fetchall()}


def _character_set(name: str | None) -> str | None:
    """Normalise the character set of an ENUM of bytes: MySQL reports none for it, other servers report `binary`."""
    return None if name == "binary" else name


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
