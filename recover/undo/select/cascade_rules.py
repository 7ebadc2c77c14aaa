"""Rules of foreign keys that made the server change rows, together with those that were changed."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Self

from ingest.ddl.actions import INACTIVE_RULES
from recover.undo.select.selected import Selected, is_selected
from recover.undo.tables.table import ForeignKey, TableName

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

UNLESS_LOGGED: Final = ", unless the server logs them, as MySQL does from 9.6 on by default"


@dataclass
class Changed:
    """Tables of which rows were deleted, and columns that were set, in lower case."""

    deleted: set[TableName] = field(default_factory=set)
    updated: defaultdict[TableName, set[str]] = field(default_factory=lambda: defaultdict(set))

    @classmethod
    def by_selection(cls, connection: "DuckDBPyConnection", selected: Selected) -> Self:
        """Return what the selected changes did."""
        found = cls()
        # Most updates of a table change the same columns.
        kinds = connection.execute(
            "select distinct schema_name, table_name, event_type, changed_columns from binloom.row_changes as changes"
            f" where {is_selected(selected.is_whole)}"
        ).fetchall()
        for schema, name, event_type, columns in kinds:
            found.add((schema, name), event_type, columns or ())
        return found

    def add(self, table: TableName, event_type: str, columns: Iterable[str]) -> None:
        """Add changes of a table; `columns` are those that an UPDATE changed."""
        if event_type == "DELETE":
            self.deleted.add(table)
        elif event_type == "UPDATE":
            self.updated[table].update(map(str.lower, columns))

    def through(self, keys: Collection[ForeignKey]) -> dict[ForeignKey, set[str]]:
        """Return the foreign keys that made the server change rows, also through each other, and the rules that ran.

        What they changed is added.
        """
        found: dict[ForeignKey, set[str]] = {}
        size = -1
        while size != (size := self._size):
            for key, rules in self.by(keys):
                found[key] = rules
                self._carry(key)
        return found

    def by(self, keys: Iterable[ForeignKey]) -> Iterator[tuple[ForeignKey, set[str]]]:
        """Yield the foreign keys by which these changes made the server change rows, and the rules that ran."""
        for key in keys:
            is_moved = not self.updated[key.parent].isdisjoint(map(str.lower, key.parent_columns))
            ran = ([key.delete_rule] if key.parent in self.deleted else []) + ([key.update_rule] if is_moved else [])
            if rules := {*ran} - INACTIVE_RULES:
                yield key, rules

    @property
    def _size(self) -> int:
        return len(self.deleted) + sum(map(len, self.updated.values()))

    def _carry(self, key: ForeignKey) -> None:
        if key.parent in self.deleted and key.delete_rule in ("CASCADE", "UNKNOWN"):
            self.deleted.add(key.table)
        self.updated[key.table].update(map(str.lower, key.columns))


def rows_of_cascade(key: ForeignKey, rules: Collection[str]) -> str:
    """Return what a foreign key did by some rules, as the beginning of a sentence."""
    did = "deleted or changed" if "CASCADE" in rules else "changed"
    return f"rows of {'.'.join(key.table)} that foreign key {key.name} {did} ({' and '.join(sorted(rules))})"
