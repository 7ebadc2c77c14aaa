"""Statements that may change rows of tables which they do not name: those on a view, and on a table with triggers."""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ingest.ddl.verbs import phrase
from recover.sources.engine import columns_of_table
from recover.timeline.events import Place

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SYSTEM_SCHEMAS: Final = ("mysql", "sys", "performance_schema", "information_schema")
"""Servers have their tables, and nobody can add views on other tables, or triggers."""

_FIRST: Final = Place(-1, 0, 0)
"""A place before all others."""

_ON_TABLES: Final = ("CREATE TABLE", "ALTER TABLE", "TRUNCATE TABLE", "DROP TABLE", "CREATE INDEX", "DROP INDEX")
_CONDITIONAL: Final = phrase("if", "(?:not|exists)")
_QUOTED: Final = r"(?:`(?:[^`]|``)+`|\"[^\"]+\"|[\w$]+)"
_TRIGGER: Final = re.compile(
    rf"\btrigger\s+(?:if\s+(?:not\s+)?exists\s+)?(?:{_QUOTED}\s*\.\s*)?({_QUOTED})", re.IGNORECASE
)


def trigger_of(text: str) -> str:
    """Return the name of the trigger that a statement creates or drops, in lower case; empty if it is not found."""
    found = _TRIGGER.search(text)
    return found[1].strip('`"').lower() if found else ""


@dataclass
class _Turn:
    """A statement from which on a name is that of a view or of a table; None where it does not tell."""

    place: Place
    was_view: bool | None
    is_view: bool | None


@dataclass
class _Trigger:
    """A trigger, and the tables of which one has it; none if its statement does not tell.

    Of a trigger that a dump shows, only the table is known.
    """

    schema: str
    name: str
    tables: set[str]
    since: Place
    until: Place | None = None

    def is_there(self, place: Place) -> bool:
        return self.since <= place and (self.until is None or place < self.until)


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


def _triggered(connection: "DuckDBPyConnection", source_id: str) -> set[str]:
    """Return the tables that have triggers before the log begins, which only a dump shows."""
    if not columns_of_table(connection, "binloom_staging", "triggered_tables"):
        return set()
    found = connection.execute(
        "select lower(concat_ws('.', schema_name, table_name)) from binloom_staging.triggered_tables"
        " where source_id = ?",
        [source_id],
    )
    return {name for (name,) in found.fetchall()}


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
        self._triggers = [_Trigger("", "", {name}, _FIRST) for name in _triggered(connection, source_id)]
        statements = connection.execute(
            """select epoch, file_sequence, start_pos, statement_type, list_transform(tables, lambda one: lower(one)),
                lower(coalesce(schema_name, default_schema, '')), actions, coalesce(sql_text, '')
            from binloom.schema_changes where source_id = $source
            order by epoch, file_sequence, start_pos, payload_ordinal""",
            {"source": source_id},
        ).fetchall()
        for epoch, sequence, pos, kind, names, schema, actions, text in statements:
            self._add(Place(epoch, sequence, pos), kind, set(names or ()), schema, actions, text)
        self._schemas = {name.partition(".")[0] for name in self._shown}

    def beyond(self, schema: str | None, table: str, place: Place) -> str | None:
        """Return in words why a statement on a table may change others, too; None if it changes only this one."""
        names = self._names(schema, table)
        if not names or any(self._may_be_view(name, place) for name in names):
            return "which may be a view"
        for trigger in self._triggers:
            if trigger.is_there(place) and (not trigger.tables or not trigger.tables.isdisjoint(names)):
                return "which has triggers"
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
        return self._is_missing(name) if is_view is None else is_view

    def _is_missing(self, name: str) -> bool:
        """Return whether other tables of its schema are shown, and a name is not.

        Of a schema without any, nothing is known: tools keep tables of their own there, which they write by statements.
        """
        return name not in self._shown and name.partition(".")[0] in self._schemas

    def _add(self, place: Place, kind: str, names: set[str], schema: str, actions: Sequence[str], text: str) -> None:
        """Take what a statement tells; statements come in the order of the log."""
        if kind == "DROP VIEW":
            self._turn(names, _Turn(place, was_view=True, is_view=None))
        elif kind.endswith(" VIEW"):
            self._turn(names, _Turn(place, was_view=None, is_view=True))
        elif kind == "CREATE TRIGGER":
            # Views have no triggers.
            self._shown |= names
            self._triggers.append(_Trigger(schema, trigger_of(text), set(names), place))
        elif kind == "DROP TRIGGER":
            self._end(place, (one for one in self._triggers if (one.schema, one.name) == (schema, trigger_of(text))))
        elif kind in _ON_TABLES:
            self._add_table(place, kind, names, actions, text)
        self._follow_tables(place, names, schema, {action.split(" ")[0] for action in actions})

    def _add_table(self, place: Place, kind: str, names: set[str], actions: Sequence[str], text: str) -> None:
        if "temporary table" in actions[0]:
            self._shown |= names
        elif _CONDITIONAL.search(text) is None:
            self._shown |= names
            self._turn(names, _Turn(place, was_view=None if kind == "CREATE TABLE" else False, is_view=False))
        elif kind == "CREATE TABLE":
            # With IF NOT EXISTS, it does not end a view of this name.
            self._shown |= names

    def _follow_tables(self, place: Place, names: set[str], schema: str, steps: set[str]) -> None:
        """Let triggers go with their tables. After a RENAME, a trigger is on one of the tables that it names."""
        if "drop_database" in steps:
            self._end(place, (one for one in self._triggers if one.schema == schema))
        if "drop_table" in steps:
            self._end(place, (one for one in self._triggers if one.tables and one.tables <= names))
        if "rename_table" in steps:
            for trigger in self._triggers:
                if not trigger.tables.isdisjoint(names):
                    trigger.tables |= names

    def _turn(self, names: Iterable[str], turn: _Turn) -> None:
        for name in names:
            self._turns[name].append(turn)

    def _end(self, place: Place, triggers: Iterable[_Trigger]) -> None:
        for trigger in triggers:
            if trigger.until is None:
                trigger.until = place
