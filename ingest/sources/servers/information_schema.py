"""Schema snapshots from a live server, with the binlog position at which they are valid.

information_schema takes no part in a consistent read: a transaction's snapshot does not cover it. The global read
lock would cover it, but it needs a privilege and stops the server's writers. So the schema is read without any lock:
position, schema, position again. If the position did not move, nothing happened in between. If it moved, the schema
is read once more. If both reads give the same, no DDL ran between them, and the schema is valid at the position that
was read between them. Otherwise DDL ran in between, and everything is read again.
"""

import time
from datetime import UTC, datetime
from typing import Any

from ingest.errors import SourceError
from ingest.sources.servers.server import Server, ServerIdentity, binary_log_is_off, log_name, server_identity
from ingest.sources.servers.server_check import logs_cascades
from ingest.sources.snapshots.snapshot import SchemaSnapshot, default_rows, schema_rows

ATTEMPTS = 10

# Tables of these schemas are not logged as rows. Tables of `mysql` may be.
_LEFT_OUT = "('information_schema', 'performance_schema', 'sys')"

# All columns of the view by its own names: MySQL 5.6 has no GENERATION_EXPRESSION to select.
_COLUMNS = f"""
select c.*
from information_schema.columns as c
inner join information_schema.tables as t on c.table_schema = t.table_schema and c.table_name = t.table_name
where c.table_schema not in {_LEFT_OUT} and t.table_type not in ('VIEW', 'SYSTEM VIEW')
"""

_KEYS = f"""
select
    constraint_name as CONSTRAINT_NAME, table_schema as TABLE_SCHEMA, table_name as TABLE_NAME,
    column_name as COLUMN_NAME, ordinal_position as ORDINAL_POSITION,
    referenced_table_schema as REFERENCED_TABLE_SCHEMA, referenced_table_name as REFERENCED_TABLE_NAME,
    referenced_column_name as REFERENCED_COLUMN_NAME
from information_schema.key_column_usage
where table_schema not in {_LEFT_OUT}
"""

_RULES = f"""
select
    constraint_schema as CONSTRAINT_SCHEMA, constraint_name as CONSTRAINT_NAME, table_name as TABLE_NAME,
    update_rule as UPDATE_RULE, delete_rule as DELETE_RULE
from information_schema.referential_constraints
where constraint_schema not in {_LEFT_OUT}
"""

_TABLES = f"""
select
    table_schema as TABLE_SCHEMA, table_name as TABLE_NAME, table_type as TABLE_TYPE, engine as ENGINE,
    table_collation as TABLE_COLLATION
from information_schema.tables
where table_schema not in {_LEFT_OUT}
"""

_SCHEMATA = f"""
select
    schema_name as SCHEMA_NAME, default_character_set_name as DEFAULT_CHARACTER_SET_NAME,
    default_collation_name as DEFAULT_COLLATION_NAME
from information_schema.schemata
where schema_name not in {_LEFT_OUT}
"""

# All columns of the view by its own names: only MySQL 8.0.13 and later has EXPRESSION to select.
_UNIQUE_KEYS = f"""
select s.*
from information_schema.statistics as s
where s.table_schema not in {_LEFT_OUT} and (s.non_unique = 0 or s.index_type = 'HASH')
"""

_SHOWS_GENERATED_KEYS = "show_gipk_in_create_table_and_information_schema"

Rows = list[dict[str, Any]]
Schema = tuple[Rows, Rows, Rows, Rows]
Position = tuple[str, int, str | None]


def take_snapshot(server: Server) -> SchemaSnapshot:
    """Read columns, keys, foreign keys and defaults of all tables that the user may see, at one position.

    Needs SELECT on the tables and REPLICATION CLIENT (BINLOG MONITOR on MariaDB); takes no lock.

    Raises
    ------
    SourceError
        The server refuses, its binlog is off, or DDL ran between the reads every time.
    """
    identity = server_identity(server)
    for attempt in range(ATTEMPTS):
        before = binlog_position(server, identity)
        schema = read_schema(server)
        after = binlog_position(server, identity)
        if before == after or read_schema(server) == schema:
            columns, keys, foreign_keys, defaults = schema
            name, offset, gtids = after
            taken_at, logged = datetime.now(UTC), logs_cascades(server)
            return SchemaSnapshot(
                "server", taken_at, name, offset, gtids, columns, keys, foreign_keys, logged, defaults
            )
        time.sleep(0.1 * attempt)
    raise SourceError(
        f"The schema of the server at {server.address} changed while it was read, {ATTEMPTS} times in a row.",
        hint="Try again when no DDL is running.",
    )


def read_definitions(server: Server) -> SchemaSnapshot:
    """Read the same as `take_snapshot`, without a position if the user may not ask for it.

    Raises
    ------
    SourceError
        The server refuses.
    """
    try:
        return take_snapshot(server)
    except SourceError:
        columns, keys, foreign_keys, defaults = read_schema(server)
        return SchemaSnapshot(
            "server", datetime.now(UTC), columns=columns, keys=keys, foreign_keys=foreign_keys, defaults=defaults
        )


def read_schema(server: Server) -> Schema:
    """Return rows of `schema_columns`, `schema_keys`, `foreign_keys` and `schema_defaults`, as they are now."""
    if server.variables(_SHOWS_GENERATED_KEYS).get(_SHOWS_GENERATED_KEYS) == "OFF":
        # The rows of the log have these keys, whatever the server shows.
        server.rows(f"set session {_SHOWS_GENERATED_KEYS} = 1")
    tables = server.rows(_TABLES)
    views = (_COLUMNS, _KEYS, _RULES, _UNIQUE_KEYS)
    columns, keys, rules, statistics = (server.rows(view) for view in views)
    found = schema_rows(columns, keys, rules, tables, statistics, needs_rules=False)
    return *found, default_rows(server.rows(_SCHEMATA), tables)


def binlog_position(server: Server, identity: ServerIdentity | None = None) -> Position:
    """Return the end of the server's binlog: file, offset and GTID set.

    Raises
    ------
    SourceError
        The binlog is off, or the privilege to ask for the position is missing.
    """
    identity = identity or server_identity(server)
    # MySQL 8.2 introduced the new name of the statement, and 8.4 removed the old name.
    is_renamed = identity.flavor == "mysql" and identity.version_numbers >= (8, 2, 0)
    rows = server.rows("show binary log status" if is_renamed else "show master status", need="monitor")
    if not rows:
        raise binary_log_is_off(server)
    row = rows[0]
    name, position = log_name(server.address, row.text("File")), row.number("Position")
    if identity.flavor == "mariadb":
        gtids = server.variables("gtid_binlog_pos").get("gtid_binlog_pos")
    else:
        gtids = str(row.get("Executed_Gtid_Set") or "").replace("\n", "")
    return name, position, gtids or None
