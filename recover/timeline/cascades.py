"""Rows that a foreign key may have changed without the log.

Most servers run cascades in the storage engine, which logs only that the parent was deleted or got another key. A row
that refers to the former key of a parent may therefore be gone, or have another value. Servers that log cascades show
this row again afterwards.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from ingest.ddl.actions import INACTIVE_RULES, Action
from ingest.ddl.letter_case import lowered
from recover.sources.engine import literal
from recover.timeline.events import Change, Effect, Image, Place, Table, TableEvent
from recover.timeline.readings import readings_of
from recover.timeline.rows import Version
from recover.timeline.table_log import columns_of, events_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_MOST_LOST: Final = 100_000
"""Values of one foreign key that are kept in memory."""


@dataclass(frozen=True)
class Cascades:
    """What foreign keys may have done to the rows of a table.

    Attributes
    ----------
    remarks
        Why any row may be another than the log shows, in sentences.
    lost
        By columns of the table in lower case: the values that their parents lost, each with the changes that took it.
    """

    remarks: tuple[str, ...] = ()
    lost: tuple[tuple[tuple[str, ...], Mapping[tuple[str, ...], list[TableEvent]]], ...] = ()

    def mark(self, versions: Iterable[Version]) -> Iterator[Version]:
        """Yield versions of rows, in their order; one that a parent may have ended is doubtful from there on."""
        gone: int | None = None
        for version in versions:
            if version.line == gone and version.defect == "not_deleted":
                # The cascade deleted the row before.
                version = replace(version, defect=None)
            marked = self._marked(version)
            gone = None if marked is version else version.line
            yield marked

    def _marked(self, version: Version) -> Version:
        row, begin, end = version.row, version.place, version.ended_by
        # Another change than an INSERT shows that the row was still there.
        if row is None or not self.lost or (isinstance(end, Change) and end.event_type != "INSERT"):
            return version
        held = {lowered(name): value for name, value in row.items()}
        found = (
            event
            for columns, by_value in self.lost
            for event in _losses_of(held, columns, by_value)
            if (begin is None or begin < event.place) and (end is None or event.place < end.place)
        )
        first = min(found, key=lambda event: event.place, default=None)
        return version if first is None else replace(version, doubts=(*version.doubts, first))


NO_CASCADES: Final = Cascades()


def cascades_of(
    connection: "DuckDBPyConnection", table: Table, until: Place | None, has_rows: Callable[[Table], bool]
) -> Cascades:
    """Return what foreign keys may have done to the rows of a table before a place.

    Parameters
    ----------
    connection
        It has the tables of `table_log.MARTS`.
    has_rows
        Tells of a table whether the connection has all of its row changes.
    """
    known = _cascading_keys(connection, table.source_id)
    remarks: list[str] = []
    lost: list[tuple[tuple[str, ...], dict[tuple[str, ...], list[TableEvent]]]] = []
    for key in (one for one in known if one.table == table):
        parents = [_Parents(connection, one, until, has_rows) for one in (key, *_above(key, known))]
        reason = next((one.why_hidden for one in parents if one.why_hidden is not None), None)
        if reason is None and (above := next((one for one in parents[1:] if one.have_lost_any), None)) is not None:
            reason = f"{above.key.losses}, which may have changed rows of {above.key.table}"
        values = parents[0].lost_values() if reason is None else {}
        if values is None:
            reason = f"{key.losses}, and only the server knows which rows refer to these"
        elif values:
            lost.append((tuple(map(lowered, key.columns)), values))
        if reason is not None:
            remarks.append(f"{key} may have changed rows of {table} without the log: {reason}.")
    return Cascades(tuple(dict.fromkeys(remarks)), tuple(lost))


@dataclass(frozen=True)
class _Key:
    """A foreign key that changes rows of its table when rows of its parent are deleted, or get another key."""

    name: str | None
    table: Table
    columns: tuple[str, ...]
    parent: Table
    parent_columns: tuple[str, ...]
    follows_deletes: bool
    follows_updates: bool

    def __str__(self) -> str:
        return "A foreign key" if self.name is None else f"Foreign key {self.name}"

    @property
    def losses(self) -> str:
        """What makes the key change rows, in words."""
        return f"rows of {self.parent} were deleted, or got another key"


@dataclass(frozen=True)
class _Parents:
    """The rows that a foreign key refers to, up to a place."""

    connection: "DuckDBPyConnection"
    key: _Key
    until: Place | None
    has_rows: Callable[[Table], bool]

    @cached_property
    def why_hidden(self) -> str | None:
        """Why the log does not show which rows lost their parents; None if it does."""
        key = self.key
        if not self.has_rows(key.parent):
            return f"the changes of {key.parent} were not read"
        own = {event.place for event in events_of(self.connection, key.table, self.until)}
        for event in events_of(self.connection, key.parent, self.until):
            # Events of both tables are told of the table itself.
            if event.effect in (Effect.OBSCURES, Effect.REPLACES) and event.place not in own:
                return f"the log does not show all changes of {key.parent} because of {event}"
        if not self.have_lost_any:
            return None
        if not key.parent_columns or any(name is None for name in self._names):
            return f"{key.losses}, and the columns that the foreign key refers to are not known"
        lacks = " or ".join(f"map_contains(row_before, {literal(name or '')}) is not true" for name in self._names)
        if self._has(f"{self._losing} and ({lacks})"):
            return f"{key.losses}, and the log does not show their keys"
        if self._has(self._partial_updates):
            return f"{key.losses}, and updates of {key.table} do not show {', '.join(key.columns)}"
        return None

    @cached_property
    def have_lost_any(self) -> bool:
        """Whether rows of the parent were deleted, or got another key, in a way that the foreign key follows."""
        return self._has(self._losing)

    def lost_values(self) -> dict[tuple[str, ...], list[TableEvent]] | None:
        """Return the values that the parents lost, with the changes that took them; None if they cannot be compared."""
        if not self.have_lost_any:
            return {}
        before = ", ".join(f"row_before[{literal(name or '')}]" for name in self._names)
        rows = self.connection.execute(
            f"select epoch, file_sequence, start_pos, binlog_file, event_type, gtid, thread_id, [{before}]"
            f" from ({self._losing}) limit {_MOST_LOST + 1}"
        ).fetchall()
        if len(rows) > _MOST_LOST:
            return None
        found: dict[tuple[str, ...], list[TableEvent]] = {}
        for epoch, sequence, position, file, event_type, gtid, thread_id, values in rows:
            # No row refers to NULL.
            if None in values:
                continue
            value = _comparable(values)
            if value is None:
                return None
            reason = f"the {event_type} of the row of {self.key.parent} that it refers to"
            event = TableEvent(
                Place(epoch, sequence, position), Effect.OBSCURES, reason, file, gtid=gtid, thread_id=thread_id
            )
            found.setdefault(value, []).append(event)
        return found

    def _has(self, query: str) -> bool:
        return self.connection.execute(f"{query} limit 1").fetchone() is not None

    @cached_property
    def _names(self) -> list[str | None]:
        """The columns that the foreign key refers to as the images name them."""
        versions = columns_of(self.connection, self.key.parent).values()
        names = {lowered(name): name for columns in versions for name in columns.types}
        return [names.get(lowered(name)) for name in self.key.parent_columns]

    @cached_property
    def _losing(self) -> str:
        """A query of the changes by which parents were deleted or got another key."""
        losing = ["event_type = 'DELETE'"] if self.key.follows_deletes else []
        if self.key.follows_updates:
            names = ", ".join(literal(lowered(name)) for name in self.key.parent_columns)
            changed = f"list_has_any(list_transform(changed_columns, lambda name: lower(name)), [{names}]::varchar[])"
            losing.append(f"(event_type = 'UPDATE' and {changed if names else 'true'})")
        return f"{self._changes(self.key.parent)} and ({' or '.join(losing)})"

    @cached_property
    def _partial_updates(self) -> str:
        """A query of the updates that do not show to which parent a row refers."""
        columns = ", ".join(literal(lowered(name)) for name in self.key.columns)
        shown = "list_transform(map_keys(row_before), lambda name: lower(name))"
        return f"{self._changes(self.key.table)} and event_type = 'UPDATE' and not list_has_all({shown}, [{columns}])"

    def _changes(self, table: Table) -> str:
        names = zip(("source_id", "schema_name", "table_name"), table.parameters.values(), strict=True)
        place = "" if self.until is None else f" and (epoch, file_sequence, start_pos) < {tuple(self.until)}"
        named = " and ".join(f"{column} = {literal(name)}" for column, name in names)
        return f"select * from binloom.row_changes where {named} and outcome != 'rollback'{place}"


def _losses_of(
    held: Image, columns: Iterable[str], by_value: Mapping[tuple[str, ...], list[TableEvent]]
) -> Iterator[TableEvent]:
    """Yield the changes that took the value that a row refers to; all of them if the value is unknown."""
    values = [held.get(name, "") for name in columns]
    if None in values:
        return
    known = _comparable(value for value in values if value is not None)
    if known is not None and all(name in held for name in columns):
        yield from by_value.get(known, ())
    else:
        for events in by_value.values():
            yield from events


def _comparable(values: Iterable[str]) -> tuple[str, ...] | None:
    """Return what is equal for values that a server may take for equal; None if only the server knows which are."""
    texts = tuple(value.lower().rstrip(" ") for value in values)
    return texts if all(text.isascii() and text.isprintable() for text in texts) else None


def _above(key: _Key, known: Iterable[_Key]) -> list[_Key]:
    """Return the foreign keys that may change rows of the parent of a foreign key, through any number of tables."""
    found: list[_Key] = []
    waiting = [key]
    while waiting:
        below = waiting.pop()
        new = [one for one in known if one.table == below.parent and one != key and one not in found]
        found += new
        waiting += new
    return found


def _cascading_keys(connection: "DuckDBPyConnection", source_id: str) -> list[_Key]:
    """Return the cascading foreign keys that snapshots show, or that statements of the log have made."""
    found = {(key.table, key.columns, key.parent): key for key in _of_statements(connection, source_id)}
    found |= {(key.table, key.columns, key.parent): key for key in _of_snapshots(connection, source_id)}
    return [*found.values()]


def _of_snapshots(connection: "DuckDBPyConnection", source_id: str) -> Iterator[_Key]:
    rows = connection.execute(
        """select constraint_name, schema_name, table_name, list(column_name order by ordinal_position),
            referenced_schema_name, referenced_table_name, list(referenced_column_name order by ordinal_position),
            any_value(delete_rule), any_value(update_rule)
        from binloom.foreign_keys where source_id = $source and is_cascading
        group by all order by all""",
        {"source": source_id},
    ).fetchall()
    names = _Names(connection, source_id)
    for name, schema, table, columns, parent_schema, parent, parent_columns, *rules in rows:
        yield _Key(
            name,
            names.table(schema, table),
            tuple(columns),
            names.table(parent_schema, parent),
            tuple(parent_columns),
            *map(_is_active, rules),
        )


def _of_statements(connection: "DuckDBPyConnection", source_id: str) -> Iterator[_Key]:
    rows = connection.execute(
        """select sql_text, default_schema, actions from binloom.schema_changes
        where source_id = $source and regexp_matches(sql_text, '\\breferences\\b', 'i')
            and regexp_matches(sql_text, '\\b(cascade|set)\\b', 'i')
        order by epoch, file_sequence, start_pos""",
        {"source": source_id},
    ).fetchall()
    names = _Names(connection, source_id)
    for text, schema, actions in rows:
        for reading in readings_of(text, schema, tuple(actions)):
            yield from _of_actions(reading, names)


def _of_actions(actions: Iterable[Action], names: "_Names") -> Iterator[_Key]:
    for action in actions:
        for key in action.keys:
            rules = [rule is not None and _is_active(rule) for rule in (key.delete_rule, key.update_rule)]
            if key.is_foreign and any(rules):
                schema = action.schema_name or ""
                yield _Key(
                    key.name,
                    names.table(schema, action.table_name or ""),
                    tuple(name or "" for name in key.columns),
                    names.table(key.referenced_schema_name or schema, key.referenced_table_name or ""),
                    key.referenced_columns,
                    *rules,
                )


def _is_active(rule: str | None) -> bool:
    """Return whether a rule may change rows; a rule that a snapshot does not tell may do so."""
    return (rule or "").upper() not in INACTIVE_RULES


class _Names:
    """The names of tables as the row changes of a source have them; foreign keys may be written with other letters."""

    def __init__(self, connection: "DuckDBPyConnection", source_id: str) -> None:
        rows: Collection[tuple[str, str]] = connection.execute(
            "select distinct schema_name, table_name from binloom.table_versions where source_id = $source",
            {"source": source_id},
        ).fetchall()
        self._source_id = source_id
        self._tables = frozenset(rows)
        self._by_letters = {(lowered(schema), lowered(table)): (schema, table) for schema, table in rows}

    def table(self, schema: str, name: str) -> Table:
        """Return the table that a foreign key names."""
        written = schema, name
        known = written if written in self._tables else self._by_letters.get((lowered(schema), lowered(name)), written)
        return Table(self._source_id, *known)
