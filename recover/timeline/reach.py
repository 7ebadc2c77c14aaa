"""Statements that may change rows of tables which they do not name: those on a view."""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from recover.sources.engine import columns_of_table
from recover.timeline.events import Place

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SYSTEM_SCHEMAS: Final = ("mysql", "sys", "performance_schema", "information_schema")
"""Servers have their tables, and nobody adds views on other tables."""

_ON_TABLES: Final = ("CREATE TABLE", "ALTER TABLE", "TRUNCATE TABLE", "DROP TABLE", "CREATE INDEX", "DROP INDEX")
_CONDITIONAL: Final = re.compile(r"\bif\s+(?:not\s+)?exists\b", re.IGNORECASE)


@dataclass
class _Turn:
    """A statement from which on a name is that of a view or of a table; None where it does not tell."""

    place: Place
    was_view: bool | None
    is_view: bool | None


def _shown(connection: "DuckDBPyConnection", source_id: str) -> set[str]:
    """Return the names that definitions or row events show to be those of tables."""
    places = ["binloom.table_versions", "binloom.quarantined_row_events"]
    # Of decoded files, the tables whose rows are not read are only here.
    if columns_of_table(connection, "binloom_staging", "logged_tables"):
        places.append("binloom_staging.logged_tables")
    query = " union ".join(
        f"select lower(concat_ws('.', schema_name, table_name)) from {place} where source_id = $source"
        for place in places
    )
    return {name for (name,) in connection.execute(query, {"source": source_id}).fetchall()}


class Reach:
    """What the log and the definitions tell of the tables that statements name: texts such as `shop.orders`.

    Parameters
    ----------
    connection
        It has the tables of `table_log.MARTS`.
    source_id
        Name of the source.
    """

    def __init__(self, connection: "DuckDBPyConnection", source_id: str) -> None:
        self._shown = _shown(connection, source_id)
        self._turns: dict[str, list[_Turn]] = defaultdict(list)
        statements = connection.execute(
            """select epoch, file_sequence, start_pos, statement_type, list_transform(tables, lambda one: lower(one)),
                lower(coalesce(schema_name, default_schema, '')), actions, coalesce(sql_text, '')
            from binloom.schema_changes where source_id = $source
            order by epoch, file_sequence, start_pos, payload_ordinal""",
            {"source": source_id},
        ).fetchall()
        for epoch, sequence, pos, kind, names, schema, actions, text in statements:
            self._add(Place(epoch, sequence, pos), kind, set(names or ()), schema, actions, text)

    def beyond(self, schema: str | None, table: str, place: Place) -> str | None:
        """Return in words why a statement on a table may change others, too; None if it changes only this one."""
        names = self._names(schema, table)
        if not names or any(self._may_be_view(name, place) for name in names):
            return "which may be a view"
        return None

    def _names(self, schema: str | None, table: str) -> set[str]:
        """Return the table; without a schema, the tables of this name in all schemas."""
        if schema is not None:
            return {f"{schema}.{table}".lower()}
        return {name for name in (*self._shown, *self._turns) if name.endswith(f".{table.lower()}")}

    def _may_be_view(self, name: str, place: Place) -> bool:
        turns = self._turns.get(name, [])
        at = bisect_left(turns, place, key=lambda turn: turn.place)
        is_view = turns[at - 1].is_view if at > 0 else None
        if is_view is None and at < len(turns):
            is_view = turns[at].was_view
        return name not in self._shown if is_view is None else is_view

    def _add(self, place: Place, kind: str, names: set[str], schema: str, actions: Sequence[str], text: str) -> None:
        """Take what a statement tells; statements come in the order of the log."""
        if kind == "DROP VIEW":
            self._turn(names, _Turn(place, was_view=True, is_view=None))
        elif kind.endswith(" VIEW"):
            self._turn(names, _Turn(place, was_view=None, is_view=True))
        elif kind == "CREATE TRIGGER":
            # Views have no triggers.
            self._shown |= names
        elif kind in _ON_TABLES:
            self._add_table(place, kind, names, actions, text)

    def _add_table(self, place: Place, kind: str, names: set[str], actions: Sequence[str], text: str) -> None:
        if "temporary table" in actions[0]:
            self._shown |= names
        elif _CONDITIONAL.search(text) is None:
            self._shown |= names
            self._turn(names, _Turn(place, was_view=None if kind == "CREATE TABLE" else False, is_view=False))
        elif kind == "CREATE TABLE":
            # With IF NOT EXISTS, it does not end a view of this name.
            self._shown |= names

    def _turn(self, names: Iterable[str], turn: _Turn) -> None:
        for name in names:
            self._turns[name].append(turn)
