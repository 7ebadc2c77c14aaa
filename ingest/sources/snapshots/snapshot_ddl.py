"""Schema snapshots from DDL, as `mysqldump --no-data` writes it or SHOW CREATE TABLE prints it."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from ingest.ddl.actions import Column, Default, Key
from ingest.ddl.batches import sql_mode_bits
from ingest.ddl.column_types import Dialect
from ingest.ddl.scripts import Statement, statements_of
from ingest.ddl.shapes import Shape, ShapeError, Shapes, TableId
from ingest.ddl.statements import actions_of
from ingest.ddl.tokens import quotes_with_dollars
from ingest.errors import SnapshotInputError
from ingest.sources.snapshots.snapshot import SchemaSnapshot, schema_rows
from ingest.versions import Flavor, version_of

_USE: Final = re.compile(r"(?is)^(?:--[^\n]*\n|#[^\n]*\n|\s)*use\s+(`(?:[^`]|``)+`|\S+)")
_SQL_MODE: Final = re.compile(r"(?is)\bsql_mode\s*=\s*'([^']*)'")
_SERVER_VERSION: Final = re.compile(r"(?m)^-- Server version\s+(\S+)")
_ANY_USE: Final = re.compile(r"(?im)^use\s")
_DATABASE: Final = re.compile(r"(?m)^-- Host: .*\bDatabase: (\S.*)$")
_LOG_POSITION: Final = re.compile(
    r"(?:MASTER|SOURCE)_LOG_FILE\s*=\s*'([^']+)'\s*,\s*(?:MASTER|SOURCE)_LOG_POS\s*=\s*(\d+)"
)
_HEAD: Final = 4096


def read_snapshot_ddl(
    path: Path, schema: str | None = None, binlog_file: str | None = None, binlog_pos: int | None = None
) -> SchemaSnapshot:
    """Read a snapshot from a file of DDL statements.

    The statements are carried out in order, so the file may also alter, rename and drop tables that it has created.

    Parameters
    ----------
    path
        The file.
    schema
        Schema of tables that are named without a schema before any USE; None: the head of a dump names it.
    binlog_file, binlog_pos
        Position in the binlog at which it is valid; read from the file if `mysqldump --source-data` has written it.

    Raises
    ------
    SnapshotInputError
        The file cannot be read, a statement is not understood or does not fit those before it, a table has no
        schema, or there is no table.
    """
    try:
        script = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise SnapshotInputError(
            f"{path} cannot be read: {error.strerror or error}.",
            hint="Give a file that `mysqldump --no-data` has written.",
            path=str(path),
        ) from error
    return snapshot_of_ddl(path, script, schema, binlog_file, binlog_pos)


def snapshot_of_ddl(
    path: Path | str,
    script: str,
    schema: str | None = None,
    binlog_file: str | None = None,
    binlog_pos: int | None = None,
) -> SchemaSnapshot:
    """Return the snapshot from the text of DDL statements; `path` is their file in messages."""
    dialect = _dialect(script)
    database = _DATABASE.search(script, 0, _HEAD)
    if schema is None and database is not None and not _ANY_USE.search(script):
        # A dump of one schema names it only here.
        schema = database[1].strip()
    shapes = _carried_out(path, script, schema, dialect)
    if not shapes.tables:
        raise SnapshotInputError(
            f"{path} creates no table.",
            hint="Give a file with CREATE TABLE statements, such as `mysqldump --no-data` writes.",
            path=str(path),
        )
    if binlog_file is None and (written := _LOG_POSITION.search(script)):
        binlog_file, binlog_pos = written[1], int(written[2])
    columns, keys, foreign_keys = rows_of_shapes(shapes, dialect)
    return SchemaSnapshot(
        "ddl",
        datetime.now(UTC),
        binlog_file,
        binlog_pos,
        columns=columns,
        keys=keys,
        foreign_keys=foreign_keys,
        defaults=_default_rows(shapes),
    )


def _dialect(script: str) -> Dialect:
    """Return the dialect of the server that a dump was taken from, by its head; the newest MySQL for other files."""
    found = _SERVER_VERSION.search(script, 0, _HEAD)
    is_mariadb = "MariaDB" in (found[1] if found else script[:_HEAD]) or "/*M!" in script
    flavor: Flavor = "mariadb" if is_mariadb else "mysql"
    return Dialect(flavor, version_of(flavor, found[1] if found else None))


def _carried_out(path: Path | str, script: str, schema: str | None, dialect: Dialect) -> Shapes:
    shapes, sql_mode = Shapes(begins_empty=True), 0
    for statement in statements_of(script, quotes_with_dollars(dialect.flavor, dialect.version)):
        if used := _USE.match(statement.text):
            schema = used[1].strip("`").replace("``", "`")
        if mode := _SQL_MODE.search(statement.text):
            sql_mode = sql_mode_bits(mode[1].upper())
        for action in actions_of(statement.text, schema, sql_mode, dialect.flavor, dialect.version):
            if action.table_name is not None and action.schema_name is None and action.action != "not_understood":
                raise _failure(
                    path,
                    statement,
                    f"table {action.table_name} has no schema",
                    "Write USE and the name of the schema before it.",
                )
            try:
                shapes.apply(action)
            except ShapeError as error:
                raise _failure(
                    path,
                    statement,
                    str(error),
                    "Take the statement out of the file, or take the snapshot with --server.",
                ) from error
    return shapes


def _failure(path: Path | str, statement: Statement, message: str, hint: str) -> SnapshotInputError:
    return SnapshotInputError(f"{path}, line {statement.line}: {message}.", hint=hint, path=str(path))


# --- rows in the form of information_schema ---


def rows_of_shapes(
    shapes: Shapes, dialect: Dialect
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the tables as rows of `schema_columns`, `schema_keys` and `foreign_keys`."""
    return schema_rows(
        _column_rows(shapes),
        _key_rows(shapes),
        _rule_rows(shapes, dialect),
        (),
        [*_prefix_rows(shapes)],
        shows_all=False,
    )


def _column_rows(shapes: Shapes) -> Iterator[dict[str, Any]]:
    for table, shape in shapes.tables.items():
        for ordinal, column in enumerate(shape.columns, 1):
            yield {
                **_table_columns(table),
                "COLUMN_NAME": column.name,
                "ORDINAL_POSITION": ordinal,
                "DATA_TYPE": column.data_type,
                "COLUMN_TYPE": column.column_type,
                "COLUMN_KEY": _column_key(shape, column),
                "CHARACTER_SET_NAME": column.character_set,
                "COLLATION_NAME": column.collation,
                "IS_NULLABLE": "YES" if column.is_nullable else "NO",
                "EXTRA": column.extra,
            }


def _default_rows(shapes: Shapes) -> list[dict[str, Any]]:
    """Return rows of `schema_defaults` for the tables and schemas whose default the statements give."""
    found: list[tuple[str, str | None, Default]] = [(name, None, default) for name, default in shapes.schemas.items()]
    found += [(*table, (shape.character_set, shape.collation)) for table, shape in shapes.tables.items()]
    return [
        {"schema_name": schema, "table_name": table, "character_set": character_set, "collation": collation}
        for schema, table, (character_set, collation) in sorted(found, key=lambda one: (one[0], one[1] or ""))
        if character_set is not None
    ]


def _column_key(shape: Shape, column: Column) -> str:
    if column.name in shape.primary_key:
        return "PRI"
    return "UNI" if any(key.columns == (column.name,) and not key.is_foreign for key in shape.keys) else ""


def _key_rows(shapes: Shapes) -> Iterator[dict[str, Any]]:
    for table, shape in shapes.tables.items():
        for name, key in _named_keys(table, shape):
            for ordinal, column in enumerate(key.columns, 1):
                if column is None:
                    continue
                yield {
                    **_table_columns(table),
                    "CONSTRAINT_NAME": name,
                    "COLUMN_NAME": _written(shape, column),
                    "ORDINAL_POSITION": ordinal,
                    "REFERENCED_TABLE_SCHEMA": key.referenced_schema_name,
                    "REFERENCED_TABLE_NAME": key.referenced_table_name,
                    "REFERENCED_COLUMN_NAME": (*key.referenced_columns, *[None] * ordinal)[ordinal - 1],
                }


def _prefix_rows(shapes: Shapes) -> Iterator[dict[str, Any]]:
    """Yield the rows of STATISTICS for unique keys with prefixes or expressions."""
    for table, shape in shapes.tables.items():
        for name, key in _named_keys(table, shape):
            has_expression = None in key.columns
            for ordinal, (column, length, expression) in enumerate(key.parts, 1):
                if has_expression or length is not None:
                    yield {
                        **_table_columns(table),
                        "INDEX_NAME": name,
                        "NON_UNIQUE": 0,
                        "INDEX_TYPE": "BTREE",
                        "SEQ_IN_INDEX": ordinal,
                        "COLUMN_NAME": None if column is None else _written(shape, column),
                        "SUB_PART": length,
                        "EXPRESSION": expression,
                    }


def _rule_rows(shapes: Shapes, dialect: Dialect) -> Iterator[dict[str, Any]]:
    unsaid = "RESTRICT" if dialect.is_mariadb or dialect.version < (8,) else "NO ACTION"
    for table, shape in shapes.tables.items():
        for name, key in _named_keys(table, shape):
            if key.is_foreign:
                yield {
                    "CONSTRAINT_SCHEMA": table[0],
                    "CONSTRAINT_NAME": name,
                    "TABLE_NAME": table[1],
                    "UPDATE_RULE": key.update_rule or unsaid,
                    "DELETE_RULE": key.delete_rule or unsaid,
                }


def _named_keys(table: TableId, shape: Shape) -> Iterator[tuple[str, Key]]:
    if shape.primary_key:
        yield "PRIMARY", Key("PRIMARY", shape.primary_key)
    for key in shape.keys:
        # A name that is no column is that of a period: its columns are not known in a later statement.
        if key.columns and all(column is None or shape.index(column) is not None for column in key.columns):
            yield key.name or "", key


def _table_columns(table: TableId) -> dict[str, str]:
    return {"TABLE_SCHEMA": table[0], "TABLE_NAME": table[1]}


def _written(shape: Shape, name: str) -> str:
    at = shape.index(name)
    return name if at is None else shape.columns[at].name
