"""Actions of DDL statements as Arrow batches, made from the batches of statements that the decoder yields."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ingest.binlog.text.server_statements import is_of_server
from ingest.ddl.actions import Action, Default
from ingest.ddl.labels import UTF8, Literals
from ingest.ddl.sql_modes import (
    ANSI_QUOTES,
    MAXDB,
    MODES_OF_VALUES,
    MSSQL,
    NO_BACKSLASH_ESCAPES,
    ORACLE,
    REAL_AS_FLOAT,
)
from ingest.ddl.verbs import DDL_PATTERN
from ingest.versions import Flavor, version_of

_NAMES: Final = pa.list_(pa.field("element", pa.string()))

DDL_ACTIONS: Final = pa.schema(
    [
        pa.field("start_pos", pa.int64(), nullable=False),
        pa.field("end_pos", pa.int64(), nullable=False),
        pa.field("payload_ordinal", pa.int32(), nullable=False),
        pa.field("action_ordinal", pa.int32(), nullable=False),
        pa.field("action", pa.string(), nullable=False),
        pa.field("statement_type", pa.string(), nullable=False),
        pa.field("schema_name", pa.string()),
        pa.field("table_name", pa.string()),
        pa.field("other_schema_name", pa.string()),
        pa.field("other_table_name", pa.string()),
        pa.field("column_name", pa.string()),
        pa.field(
            "columns",
            pa.list_(
                pa.field(
                    "element",
                    pa.struct(
                        [
                            pa.field("name", pa.string()),
                            pa.field("data_type", pa.string()),
                            pa.field("column_type", pa.string()),
                            pa.field("character_set", pa.string()),
                            pa.field("collation", pa.string()),
                            pa.field("is_nullable", pa.bool_()),
                            pa.field("is_generated", pa.bool_()),
                        ]
                    ),
                )
            ),
            nullable=False,
        ),
        pa.field("place", pa.string()),
        pa.field("after_column", pa.string()),
        pa.field("key_columns", _NAMES, nullable=False),
        pa.field("character_set", pa.string()),
        pa.field("collation", pa.string()),
        pa.field("is_conditional", pa.bool_(), nullable=False),
        pa.field("detail", pa.string()),
    ]
)
"""One row for each action, in the order of the log and of `action_ordinal`."""

# SQL modes that change how a statement is parsed, or what it does to rows; the bits are the server's.
_MODES: Final = {
    "REAL_AS_FLOAT": REAL_AS_FLOAT,
    "ANSI_QUOTES": ANSI_QUOTES,
    "ORACLE": ORACLE,
    "MSSQL": MSSQL,
    "MAXDB": MAXDB,
    "NO_BACKSLASH_ESCAPES": NO_BACKSLASH_ESCAPES,
    **MODES_OF_VALUES,
}
_COLUMN_FIELDS: Final = [field.name for field in DDL_ACTIONS.field("columns").type.value_type]
# Error 1051: some of the tables were not there. Older statements are landed without an error.
_ENDS_OF_DROPS: Final = (None, 0, 1051)
_FACTS: Final = [name for name in DDL_ACTIONS.names[4:] if name != "columns"]


def sql_mode_bits(text: str | None) -> int:
    """Return the bits of the SQL modes that change what a statement means; `text` holds the names of modes."""
    return sum(_MODES.get(name, 0) for name in (text or "").split(","))


def ddl_batch(statements: pa.RecordBatch, flavor: Flavor, server_version: str | None) -> pa.RecordBatch | None:
    """Return the actions of the DDL statements in a batch of statements; None when there are none.

    Only statements that begin like DDL are parsed. The log of a server that logs all changes as statements
    therefore costs no more than one pass of a regular expression.

    Parameters
    ----------
    statements
        Batch from the decoder.
    flavor, server_version
        Flavor and version of the server that wrote the statements.
    """
    is_query = pc.equal(statements["kind"], "QUERY")
    chosen = pc.and_(is_query, pc.match_substring_regex(statements["sql_text"], DDL_PATTERN))
    if not pc.any(chosen).as_py():
        return None
    version = version_of(flavor, server_version)
    rows: list[dict[str, Any]] = []
    for statement in statements.filter(chosen).to_pylist():
        actions = statement_actions(statement, flavor, version)
        rows += [_row(statement, ordinal, action) for ordinal, action in enumerate(actions)]
    return pa.RecordBatch.from_pylist(rows, DDL_ACTIONS) if rows else None


def statement_actions(statement: Mapping[str, Any], flavor: Flavor, version: tuple[int, ...]) -> list[Action]:
    """Return the actions of a logged statement, completed with the settings of its session.

    A database that is created without a character set, or altered to DEFAULT, gets the default of `collation_server`.
    MySQL converts a table to DEFAULT with the default of the session's schema, not of the table's own schema.
    `other_schema_name` names the session's schema where the two differ. A session without a schema uses
    `collation_server`.

    Source: server, sql/sql_yacc.yy, CONVERT_SYM in `alter_list_item`, and sql/sql_class.h, `collation_database`.

    Parameters
    ----------
    statement
        A row of `statements`.
    flavor, version
        Flavor and version of the server that wrote it.
    """
    # Importing the tokenizer takes a while, and most segments contain no DDL.
    from ingest.ddl.column_types import Dialect, character_set_of, collation_of, resolved
    from ingest.ddl.statements import actions_of

    mode = sql_mode_bits(statement["sql_mode"])
    text = statement["sql_text"]
    if is_of_server(text.encode()):
        # The server escapes, whatever the mode of the session; tried on MySQL 9.7 and 5.6, MariaDB 10.11 and 11.8.
        literals, mode = None, mode & ~NO_BACKSLASH_ESCAPES
    else:
        literals = _literals(statement)
    actions = actions_of(text, statement["default_schema"], mode, flavor, version, literals)
    default: Default = (None, None)
    if statement["collation_server"] is not None:
        collation = collation_of(statement["collation_server"], Dialect(flavor, version))
        default = character_set_of(collation), collation

    def in_session(action: Action) -> Action:
        if statement.get("error_code") and action.statement_type.endswith(" VIEW"):
            # It failed because a table has the name. Servers log it if it dropped other views; MySQL 5.6 always does.
            return replace(action, is_conditional=True)
        if statement.get("error_code") not in _ENDS_OF_DROPS and action.action == "drop_table":
            # MySQL 5.6 also names the tables that it left alone, because foreign keys refer to them.
            return replace(action, action="not_understood", detail="it failed, and may have left some of its tables")
        is_reset = action.detail == "alter database" and action.character_set == "default"
        by_session = flavor == "mysql" and action.action == "convert_character_set" and action.character_set is None
        if by_session and statement["default_schema"]:
            is_own = statement["default_schema"] == action.schema_name
            return action if is_own else replace(action, other_schema_name=statement["default_schema"])
        if by_session or is_reset or action.action == "create_database":
            character_set, collation = resolved(action.character_set, action.collation, default)
            return replace(action, character_set=character_set, collation=collation)
        return action

    return [in_session(action) for action in actions]


def _literals(statement: Mapping[str, Any]) -> Literals | None:
    """Return how the server read the literals of a statement; None if they mean what the text shows."""
    client, connection = (statement.get(f"character_set_{of}") for of in ("client", "connection"))
    if client is None:
        return None
    # Older statements are landed without the character set of the connection: most sessions have only one.
    connection = connection or client
    return None if client == connection in UTF8 else Literals(client, connection)


def _row(statement: dict[str, Any], ordinal: int, action: Action) -> dict[str, Any]:
    return {
        "start_pos": statement["start_pos"],
        "end_pos": statement["end_pos"],
        "payload_ordinal": statement["payload_ordinal"],
        "action_ordinal": ordinal,
        **{name: getattr(action, name) for name in _FACTS},
        "columns": [{name: getattr(column, name) for name in _COLUMN_FIELDS} for column in action.columns],
    }
