"""Which tables have triggers: those of a server, and those of a dump."""

import re
from collections.abc import Collection
from typing import Final

from ingest.sources.dumps.dump import TableName
from ingest.sources.servers.server import Server

_NAME: Final = r"(?:`(?:[^`]|``)+`|[\w$]+)"
_SCHEMA_OR_TRIGGER: Final = re.compile(
    rf"^USE\s+({_NAME})|\bTRIGGER\s+(?:{_NAME}\s*\.\s*)?{_NAME}\s+(?:BEFORE|AFTER)\s+(?:INSERT|UPDATE|DELETE)\s+ON\s+"
    rf"(?:({_NAME})\s*\.\s*)?({_NAME})",
    re.IGNORECASE | re.MULTILINE,
)


def tables_with_triggers(server: Server, tables: Collection[TableName]) -> set[TableName] | None:
    """Return which of some tables have triggers; None if the user may not see them.

    Raises
    ------
    SourceError
        The server refuses to answer.
    """
    # Without the privilege TRIGGER a server shows none.
    (me,) = server.rows("select current_user() as name")
    grantee = "'" + "'@'".join(str(me["name"]).rsplit("@", 1)) + "'"
    schemas = [schema for schema, _ in tables]
    listed = ", ".join(["%s"] * len(schemas))
    seen = server.rows(
        "select table_schema as name from information_schema.schema_privileges"
        " where privilege_type = 'TRIGGER' and grantee = %s"
        " union all select '*' from information_schema.user_privileges"
        " where privilege_type = 'TRIGGER' and grantee = %s",
        [grantee, grantee],
    )
    visible = {row["name"] for row in seen}
    found = server.rows(
        "select distinct event_object_schema as s, event_object_table as t from information_schema.triggers"
        f" where event_object_schema in ({listed})",
        schemas,
    )
    having = {(row["s"], row["t"]) for row in found} & {*tables}
    return having if having or "*" in visible or visible >= {*schemas} else None


def triggered_tables(script: str, schema: str | None) -> frozenset[TableName]:
    """Return the tables of which a script creates triggers; `schema` is that of names before any USE."""
    found, current = set(), schema or ""
    for match in _SCHEMA_OR_TRIGGER.finditer(script):
        used, owner, table = (None if name is None else _unquoted(name) for name in match.groups())
        current = used or current
        if table is not None:
            found.add((owner or current, table))
    return frozenset(found)


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name
