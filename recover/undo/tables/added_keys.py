"""Unique and foreign keys that are newer than the selected changes.

What was true for other keys, that a value was free or had its parent when the selection changed it, need not be true
for these.
"""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from ingest.ddl.tokens import bare
from recover.undo.tables.table import TableName

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_UNIQUE: Final = re.compile(r"\b(?:unique|primary)\b", re.IGNORECASE)
_FOREIGN: Final = re.compile(r"\breferences\b", re.IGNORECASE)


class AddedKeys:
    """The statements since the first selected transaction that may have added keys."""

    def __init__(self, connection: "DuckDBPyConnection", source_id: str) -> None:
        first = "(select min((epoch, file_sequence, transaction_pos)) from selected_transactions)"
        rows = connection.execute(
            f"""select (epoch, file_sequence, start_pos) < {first}, statement_type, binlog_file, start_pos,
                list_transform(tables, lambda one: lower(one)), coalesce(sql_text, '')
            from binloom.schema_changes where source_id = ? order by epoch, file_sequence, start_pos""",
            [source_id],
        ).fetchall()
        self._since = [
            (f"{kind} at {file}:{pos}", tables, bare(text, 0, "mariadb", ()))
            for is_before, kind, file, pos, tables, text in rows
            if not is_before and not kind.startswith("CREATE TABLE")
        ]
        self._created = {
            name
            for is_before, kind, _, _, tables, _ in rows
            if is_before and kind.startswith("CREATE TABLE")
            for name in tables
        }

    def unique(self, table: TableName, columns: Iterable[str]) -> str:
        """Return the statement that added a unique key with some columns; empty if the key is older."""
        return next(self._adding(_UNIQUE, table, columns), "")

    def foreign(self, table: TableName, columns: Iterable[str]) -> str:
        """Return the statement that added a foreign key of some columns; empty if the key is older."""
        return next(self._adding(_FOREIGN, table, columns), "")

    def _adding(self, pattern: re.Pattern[str], table: TableName, columns: Iterable[str]) -> Iterator[str]:
        names = [re.compile(rf"(?<![\w$]){re.escape(name)}(?![\w$])", re.IGNORECASE) for name in columns]
        for statement, tables, text in self._since:
            if ".".join(table).lower() in tables and pattern.search(text) and all(one.search(text) for one in names):
                yield statement

    def shows_all_rows(self, table: TableName) -> bool:
        """Return whether the log begins before the table, so that it shows all of its rows."""
        return ".".join(table).lower() in self._created
