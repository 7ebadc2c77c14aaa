"""Rows that a foreign key may have changed without the log.

An engine that runs a cascade itself logs the change of the parent only. A child that it removed, emptied or moved would
still have the old value of the key. So if no row of the child has a value that a parent lost since the dump, no cascade
has changed a row.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from recover.restore.refusal import RestoreRefusedError
from recover.sources.engine import literal, quoted, registered
from recover.timeline.events import Table
from recover.undo.tables.table import ForeignKey, TableName

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

_INACTIVE: Final = frozenset({"RESTRICT", "NO ACTION"})


def is_cascading(key: ForeignKey) -> bool:
    """Return whether a foreign key changes rows of its table when rows of its parent change."""
    return not {key.update_rule.upper(), key.delete_rule.upper()} <= _INACTIVE


def cascading_parents(tables: Iterable[TableName], keys: Iterable[ForeignKey]) -> set[TableName]:
    """Return the tables whose changes may change rows of some tables, directly or through others."""
    found: set[TableName] = set()
    known, of_table = set(tables), [key for key in keys if is_cascading(key)]
    while added := {key.parent for key in of_table if key.table in known} - found:
        found |= added
        known |= added
    return found


@dataclass(frozen=True)
class LostKeys:
    """The values that parents of a foreign key lost since the dump, in a table of the connection."""

    connection: "DuckDBPyConnection"
    key: ForeignKey
    name: str

    def assert_unused(self, rows: "pa.Table") -> None:
        """Refuse rows that have such a value."""
        values = [comparable(quoted(name)) for name in self.key.columns]
        with registered(self.connection, "batch", rows):
            found = self.connection.execute(
                f"select 1 from batch where [{', '.join(values)}] in (select lost from {self.name}) limit 1"
            ).fetchall()
        if found:
            table, parent = ".".join(self.key.table), ".".join(self.key.parent)
            raise RestoreRefusedError(
                f"Rows of {parent} were deleted, or got another key, and rows of {table} refer to them: foreign key"
                f" {self.key.name} may have changed these rows, which not every server logs.",
                hint="Restore the dump and the log on a scratch server; it runs the foreign keys.",
            )


def lost_keys(
    connection: "DuckDBPyConnection",
    source_id: str,
    name: TableName,
    keys: Iterable[ForeignKey],
    has_read: Callable[[TableName], bool],
) -> Iterator[LostKeys]:
    """Yield the values that parents of a table lost, by foreign key; only of keys whose parents lost any.

    All changes in the files count, also those before the dump and after the moment. A value too many refuses a table
    that could be restored; the ends of prepared transactions need not be looked for.
    """
    known = [key for key in keys if is_cascading(key)]
    for key in (one for one in known if one.table == name):
        if not has_read(key.parent):
            raise RestoreRefusedError(
                f"Foreign key {key.name} of {'.'.join(name)} is not in the dump, and may have changed rows without the"
                " log.",
                hint=f"Name {'.'.join(key.parent)}, too; or give a dump that has the foreign key.",
            )
        above = [one for one in known if one.table == key.parent and one.parent != key.parent]
        if grand := next((one for one in above if _loses(connection, source_id, one)), None):
            raise RestoreRefusedError(
                f"Rows of {'.'.join(grand.parent)} were deleted, or got another key. Foreign keys may then have changed"
                f" rows of {'.'.join(key.parent)} and of {'.'.join(name)}, which not every server logs.",
                hint="Restore the dump and the log on a scratch server; it runs the foreign keys.",
            )
        table = quoted(f"values lost by {key.name} of {'.'.join(name)}")
        connection.execute(f"create or replace table {table} as {_lost(key)}", Table(source_id, *key.parent).parameters)
        counted = connection.execute(f"select count(*) from {table}").fetchone()
        if counted is not None and counted[0]:
            yield LostKeys(connection, key, table)


def _loses(connection: "DuckDBPyConnection", source_id: str, key: ForeignKey) -> bool:
    found = connection.execute(
        f"select count(*) from ({_lost(key)})", Table(source_id, *key.parent).parameters
    ).fetchone()
    return found is not None and found[0] > 0


def _lost(key: ForeignKey) -> str:
    """Return a query of the values that rows of the parent lost."""
    before = [f"row_before[{literal(name)}]" for name in key.parent_columns]
    after = [f"row_after[{literal(name)}]" for name in key.parent_columns]
    changed = " or ".join(
        f"(map_contains(row_after, {literal(name)}) and {one} is distinct from {other})"
        for name, one, other in zip(key.parent_columns, before, after, strict=True)
    )
    return f"""select distinct [{", ".join(map(comparable, before))}] as lost from binloom.row_changes
        where source_id = $source and schema_name = $schema and table_name = $table and outcome != 'rollback'
            and (event_type = 'DELETE' or (event_type = 'UPDATE' and ({changed})))"""


def comparable(text: str) -> str:
    """Return an expression that is equal for texts that a collation may take for equal."""
    return f"strip_accents(lower(rtrim({text})))"
