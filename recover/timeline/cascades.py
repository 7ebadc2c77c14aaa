"""Foreign keys that may change rows of a table without the log."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ingest.ddl.tokens import bare
from recover.timeline.events import Table

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_CASCADE: Final = re.compile(r"\bon\s+(?:delete|update)\s+(?:cascade|set\s+(?:null|default))\b", re.IGNORECASE)


def cascade_remarks(connection: "DuckDBPyConnection", table: Table) -> Iterator[str]:
    """Yield which foreign keys may have changed rows of a table without the log."""
    rows = connection.execute(
        """select distinct constraint_name, referenced_table_name from binloom.foreign_keys
        where source_id = $source and schema_name = $schema and table_name = $table and is_cascading order by all""",
        table.parameters,
    ).fetchall()
    for name, referenced in rows:
        yield f"Foreign key {name} changes rows when {referenced} changes; not every server logs these changes."
    if (statement := _statement_of_cascade(connection, table)) is not None:
        yield (
            f"The {statement} has a foreign key that changes rows of this table when another table changes; not every"
            " server logs these changes."
        )


def _statement_of_cascade(connection: "DuckDBPyConnection", table: Table) -> str | None:
    """Return the first statement of the log with a cascade, for a table of which no snapshot shows one."""
    found = connection.execute(
        """select statement_type, binlog_file, start_pos, sql_text from binloom.schema_changes
        where source_id = $source and list_contains(tables, $schema || '.' || $table)
            and regexp_matches(sql_text, '\\breferences\\b', 'i')
            and (select count(*) from binloom.foreign_keys where source_id = $source and schema_name = $schema
                and table_name = $table and is_cascading) = 0
        order by epoch, file_sequence, start_pos""",
        table.parameters,
    ).fetchall()
    for statement_type, file, position, text in found:
        # A comment may stand between the words, or contain them: then one too many is told rather than one too few.
        if any(map(_CASCADE.search, (text, bare(text, 0, "mariadb", ())))):
            return f"{statement_type} at {file}:{position}"
    return None
