"""Statements after the schema snapshot that may have given a table other columns, keys or children."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ingest.ddl.tokens import bare
from recover.timeline.events import Effect, Place, TableEvent
from recover.undo.tables.definitions import Definitions
from recover.undo.tables.table import Table, TableName

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_HARMLESS: Final = (
    *("drop_partition", "truncate_partition", "other add partition", "other reorganize partition"),
    *("other coalesce partition", "other analyze partition", "other check partition", "other optimize partition"),
    *("other rebuild partition", "other repair partition", "other alter ", "other rename index", "other nothing"),
    *("other comment", "other auto_increment", "other order by", "other create trigger", "other drop trigger"),
    *("other create temporary table", "other drop temporary table"),
)
"""Beginnings of actions that leave columns and keys as they are. Unknown ones are taken to change them."""
_INDEXING: Final = ("other add index", "other create index")
_CREATING: Final = ("create_table", "create_like", "create_select")
_IS_UNIQUE: Final = re.compile(r"\bunique\b", re.IGNORECASE)
_IS_CONDITIONAL: Final = re.compile(r"\bif\s+not\s+exists\b", re.IGNORECASE)
_RENAMING: Final = ("rename_table", "exchange_partition")
_REFERRING: Final = ("CREATE TABLE", "ALTER TABLE")


@dataclass(frozen=True)
class _Statement:
    """A statement that changed a definition; its text is without comments."""

    event: TableEvent
    schema_name: str
    tables: tuple[str, ...]
    is_understood: bool
    text: str

    def changes(self, table: Table) -> bool:
        """Return whether a table may have other columns or keys afterwards."""
        if not self.is_understood:
            return re.search(_word(table.name[1]), self.text, re.IGNORECASE) is not None
        if table.text.lower() not in self.tables:
            is_of_schema = self.schema_name == table.name[0].lower()
            return is_of_schema and any(action.startswith("drop_database") for action in self.event.actions)
        return not all(map(self._is_harmless, self.event.actions))

    def _is_harmless(self, action: str) -> bool:
        return (
            action.startswith(_HARMLESS)
            or (action.startswith(_INDEXING) and not _IS_UNIQUE.search(self.text))
            or (action.startswith(_CREATING) and _IS_CONDITIONAL.search(self.text) is not None)
        )

    def refers_to(self, table: Table) -> bool:
        """Return whether a foreign key refers to a table. A name without a schema is of the schema of the statement."""
        schema, name = map(_word, table.name)
        is_needed = "?" if self.schema_name == table.name[0].lower() else ""
        pattern = rf"\breferences\b[\s`\"]*(?:{schema}){is_needed}[\s`\".]*{name}"
        return self.event.reason in _REFERRING and re.search(pattern, self.text, re.IGNORECASE) is not None

    def renames(self, table: TableName) -> bool:
        """Return whether the rows of a table may be logged under another name afterwards."""
        return ".".join(table).lower() in self.tables and any(one.startswith(_RENAMING) for one in self.event.actions)


def changed_since_snapshot(
    connection: "DuckDBPyConnection", source_id: str, table: Table, definitions: Definitions
) -> Iterator[str]:
    """Yield a reason if a statement after the snapshot may have changed what it shows of a table."""
    if definitions.place is None:
        return
    children = [key.table for key in definitions.foreign_keys if key.parent == table.name]
    for statement in _statements_since(connection, source_id, definitions.place):
        if statement.changes(table):
            what = f"{statement.event} of {table.text}"
        elif statement.refers_to(table) or any(map(statement.renames, children)):
            what = f"{statement.event}, after which other rows may refer to {table.text}"
        else:
            continue
        yield f"the schema snapshot is older than {what}: land a new one with `binloom snapshot`"
        return


def _statements_since(connection: "DuckDBPyConnection", source_id: str, place: Place) -> Iterator[_Statement]:
    found = connection.execute(
        """select epoch, file_sequence, start_pos, binlog_file, statement_type, actions,
            lower(coalesce(schema_name, '')), list_transform(tables, lambda one: lower(one)), is_understood,
            coalesce(sql_text, '')
        from binloom.schema_changes
        where source_id = $source
            and (epoch, file_sequence, start_pos) >= ($epoch, $file_sequence, $pos)
        order by epoch, file_sequence, start_pos""",
        {"source": source_id, **place._asdict()},
    ).fetchall()
    for *where, binlog_file, statement_type, actions, schema, tables, is_understood, text in found:
        event = TableEvent(Place(*where), Effect.ALTERS, statement_type, binlog_file, tuple(actions))
        yield _Statement(event, schema, tuple(tables), is_understood, bare(text, 0, "mariadb", ()))


def _word(name: str) -> str:
    """Return a pattern for a name as statements write it."""
    written = re.escape(name.replace("`", "``"))
    return rf"(?<![\w$]){written}(?![\w$])"
