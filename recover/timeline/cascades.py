"""Foreign keys that may change rows of a table without the log."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from recover.timeline.events import Table

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def cascade_remarks(connection: "DuckDBPyConnection", table: Table) -> Iterator[str]:
    """Yield which foreign keys may have changed rows of a table without the log."""
    rows = connection.execute(
        """select distinct constraint_name, referenced_table_name from binloom.foreign_keys
        where source_id = $source and schema_name = $schema and table_name = $table and is_cascading order by all""",
        table.parameters,
    ).fetchall()
    for name, referenced in rows:
        yield f"Foreign key {name} changes rows when {referenced} changes; not every server logs these changes."
    if _has_unread_foreign_keys(connection, table):
        yield (
            "The table has a foreign key, and no schema snapshot shows its rules. The key may have changed rows that"
            " the log does not contain."
        )


def _has_unread_foreign_keys(connection: "DuckDBPyConnection", table: Table) -> bool:
    """Return whether a statement of the log names a foreign key, and no snapshot shows the table."""
    found = connection.execute(
        """select
            (select count(*) from binloom.table_versions where source_id = $source and schema_name = $schema
                and table_name = $table and evidence = 'snapshot') = 0
            and (select count(*) from binloom.foreign_keys where source_id = $source and schema_name = $schema
                and table_name = $table) = 0
            and (select count(*) from binloom.schema_changes where source_id = $source
                and list_contains(tables, $schema || '.' || $table)
                and regexp_matches(sql_text, '\\breferences\\b', 'i')) > 0""",
        table.parameters,
    ).fetchone()
    return found is not None and bool(found[0])
