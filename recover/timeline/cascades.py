"""Rows that a foreign key may have changed without the log.

Most servers run cascades in the storage engine, which logs only that the parent was deleted or got another key. A row
that refers to the former key of a parent may therefore be gone, or have another value. Servers that log cascades show
this row again afterwards.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from ingest.ddl.actions import INACTIVE_RULES
from ingest.ddl.foreign_keys import KeyInTime
from ingest.ddl.letter_case import lowered
from recover.sources.engine import literal
from recover.timeline.baselines import baseline_of
from recover.timeline.events import Change, Effect, Image, Place, Table, TableEvent
from recover.timeline.rows import Version
from recover.timeline.table_log import columns_of, events_of, events_since, shows_all_rows, versions_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Values = tuple[str, ...]
"""The values of the columns of a foreign key, in a form in which equal ones are the same."""

_MOST_LOST: Final = 100_000
"""Values of one foreign key that are kept in memory."""
# Letters that some collations take for equal: Swedish v and w, Lithuanian i and y.
EQUAL_LETTERS: Final = ("wy", "vi")


@dataclass(frozen=True)
class Lost:
    """The values that the parents of a foreign key lost, each with the changes that took it.

    Attributes
    ----------
    columns
        For each column of the foreign key, the names that it had, in lower case.
    """

    columns: tuple[tuple[str, ...], ...]
    by_value: Mapping[Values, Sequence[TableEvent]]

    def of(self, held: Image) -> Iterator[TableEvent]:
        """Yield the changes that took the value that a row refers to; all of them if the value is unknown."""
        there = [next((name for name in names if name in held), None) for names in self.columns]
        values = [held[name] for name in there if name is not None]
        # No row refers to NULL.
        if None in values:
            return
        known = _comparable(value for value in values if value is not None)
        if known is not None and len(known) == len(self.columns):
            yield from self.by_value.get(known, ())
        else:
            for events in self.by_value.values():
                yield from events


@dataclass(frozen=True)
class Cascades:
    """What foreign keys may have done to the rows of a table.

    Attributes
    ----------
    remarks
        Why any row may be another than the log shows, in sentences.
    lost
        What the parents lost, by foreign key.
    has_key
        Whether the table has a primary key: without one, nothing tells which of several equal rows are gone.
    """

    remarks: tuple[str, ...] = ()
    lost: tuple[Lost, ...] = ()
    has_key: bool = True

    def mark(self, found: Iterable[Version]) -> Iterator[Version]:
        """Yield versions of rows, in their order; one that a parent may have ended is doubtful from there on."""
        gone: int | None = None
        for version in found:
            if version.line == gone and version.defect == "not_deleted":
                # The cascade deleted the row before.
                version = replace(version, defect=None)
            marked = version if (first := self._loss(version)) is None else _doubtful(version, first)
            gone = None if marked is version else version.line
            yield marked

    def _loss(self, version: Version) -> TableEvent | None:
        """Return the first change of a parent that may have ended a version of a row."""
        row, begin, end = version.row, version.place, version.ended_by
        if row is None or not self.lost:
            return None
        # Another change of the row than an INSERT shows that it was still there.
        if self.has_key and isinstance(end, Change) and end.event_type != "INSERT" and end.key == version.key:
            return None
        held = {lowered(name): value for name, value in row.items()}
        found = (
            event
            for lost in self.lost
            for event in lost.of(held)
            if not self.has_key or ((begin is None or begin < event.place) and (end is None or event.place < end.place))
        )
        return min(found, key=lambda event: event.place, default=None)


def _doubtful(version: Version, since: TableEvent) -> Version:
    return replace(version, doubts=(*version.doubts, since))


NO_CASCADES: Final = Cascades()


@dataclass
class CascadeFinder:
    """Finds what foreign keys may have done to the rows of tables before a place.

    Attributes
    ----------
    connection
        It has the tables of `table_log.MARTS`.
    source_id
        The source whose log it is.
    keys
        The foreign keys of all tables, through the log.
    until
        The place; None: the end of the log.
    has_rows
        Tells of a table whether the connection has all of its row changes.
    """

    connection: "DuckDBPyConnection"
    source_id: str
    keys: Sequence[KeyInTime]
    until: Place | None
    has_rows: Callable[[Table], bool]
    _asked: set[Table] = field(default_factory=set)

    def of(self, table: Table) -> Cascades:
        """Return what foreign keys may have done to the rows of a table."""
        self._asked.add(table)
        name = lowered(table.schema_name), lowered(table.table_name)
        remarks: list[str] = []
        lost: list[Lost] = []
        for key in (one for one in self.keys if one.is_cascading and name in one.table):
            parents = _Parents(self, key, table)
            reason = parents.why_hidden
            values = parents.lost_values() if reason is None else None
            if reason is None and values is None:
                reason = f"{parents.losses}, and only the server knows which rows refer to these"
            if values:
                lost.append(Lost(key.columns, values))
            if reason is None:
                reason = self._unseen_losses(key)
            if reason is not None:
                remarks.append(f"Foreign key {key.name} may have changed rows of {table} without the log: {reason}.")
        has_key = all(columns.primary_key for columns in columns_of(self.connection, table).values())
        found = Cascades(tuple(dict.fromkeys(remarks)), tuple(lost), has_key)
        # A row of the table may refer, perhaps through others, to one that is gone without the log.
        if self._refers_to_itself(name) and self.changes_rows(table, found):
            remark = f"Foreign keys may have changed any row of {table} without the log: its rows refer to each other."
            return replace(found, remarks=(*found.remarks, remark))
        return found

    def tables(self, names: Iterable[tuple[str, str]]) -> list[Table]:
        """Return the tables with some names in lower case, as the log writes them."""
        wanted = [*names]
        rows = self.connection.execute(
            """select schema_name, table_name from binloom.table_versions where source_id = $source
            union select schema_name, table_name from binloom.quarantined_row_events where source_id = $source""",
            {"source": self.source_id},
        ).fetchall()
        found = [row for row in rows if (lowered(row[0] or ""), lowered(row[1] or "")) in wanted]
        return [Table(self.source_id, *row) for row in sorted(found)]

    def changes_rows(self, table: Table, cascades: Cascades) -> bool:
        """Return whether a row of a table may have been changed without the log."""
        if cascades.remarks:
            return True
        if not cascades.lost:
            return False
        connection, until = self.connection, self.until
        baseline, known = baseline_of(connection, table, until), columns_of(connection, table)
        events = events_since(connection, table, events_of(connection, table, until), baseline, until)
        if not shows_all_rows(events):
            # Rows that the log does not show may be gone, too.
            return True
        found = versions_of(connection, table, events, known, baseline, until)
        return any(marked.doubts for marked in cascades.mark(replace(one, doubts=()) for one in found))

    def _refers_to_itself(self, name: tuple[str, str]) -> bool:
        """Return whether a table refers to itself by foreign keys with a cascade, through any number of tables."""
        reached: set[tuple[str, str]] = set()
        waiting = [name]
        while waiting:
            below = waiting.pop()
            above = {
                one for key in self.keys if key.is_cascading and below in key.table for one in key.parent
            } - reached
            reached |= above
            waiting += above
        return name in reached

    def _unseen_losses(self, key: KeyInTime) -> str | None:
        """Return why rows of the parent may be gone, or have another key, without the log."""
        for parent in self.tables(key.parent):
            # What comes back to a table in a circle is looked for in the table itself.
            if parent not in self._asked:
                finder = replace(self, _asked={*self._asked})
                if finder.changes_rows(parent, finder.of(parent)):
                    return f"another foreign key may have changed rows of {parent}"
        return None


@dataclass(frozen=True)
class _Parents:
    """The rows that a foreign key refers to, up to a place."""

    finder: CascadeFinder
    key: KeyInTime
    table: Table

    @property
    def losses(self) -> str:
        """What makes the key change rows, in words."""
        parent = ".".join(self.key.parent[-1]) if self.key.parent else "another table"
        return f"rows of {parent} were deleted, or got another key"

    @cached_property
    def tables(self) -> list[Table]:
        """The parent under all of its names."""
        return self.finder.tables(self.key.parent)

    @cached_property
    def why_hidden(self) -> str | None:
        """Why the log does not show which rows lost their parents; None if it does."""
        key, connection, until = self.key, self.finder.connection, self.finder.until
        if not key.parent:
            return "a statement dropped it, and nothing shows to which table it referred"
        if unread := next((table for table in self.tables if not self.finder.has_rows(table)), None):
            return f"the changes of {unread} were not read"
        own = {event.place for event in events_of(connection, self.table, until)}
        for table in self.tables:
            for event in events_of(connection, table, until):
                is_renamed = len(self.tables) > 1 and event.effect is Effect.REPLACES
                # Events of both tables are told of the table itself.
                if event.effect in (Effect.OBSCURES, Effect.REPLACES) and event.place not in own and not is_renamed:
                    return f"the log does not show all changes of {table} because of {event}"
        if not self._have_lost_any:
            return None
        if self._has(f"{self._losing()} offset {_MOST_LOST}"):
            return f"more than {_MOST_LOST:,} {self.losses}"
        if not key.parent_columns or not all(self._names):
            return f"{self.losses}, and the columns that the foreign key refers to are not known"
        if self._has_other_labels():
            return f"{self.losses}, and the server compares the numbers of labels, which differ in the two tables"
        lacks = " or ".join(
            f"not ({' or '.join(f'coalesce(map_contains(row_before, {literal(name)}), false)' for name in names)})"
            for names in self._names
        )
        if self._has(f"{self._losing()} and ({lacks})"):
            return f"{self.losses}, and the log does not show their keys"
        if self._has(self._partial_updates()):
            names = ", ".join(columns[-1] for columns in key.columns)
            return f"{self.losses}, and updates of {self.table} do not show {names}"
        return None

    def lost_values(self) -> dict[Values, list[TableEvent]] | None:
        """Return the values that the parents lost, with the changes that took them; None if they cannot be compared."""
        if not self._have_lost_any:
            return {}
        before = ", ".join(
            f"coalesce({', '.join(f'row_before[{literal(name)}]' for name in names)})" for names in self._names
        )
        rows = self.finder.connection.execute(
            "select epoch, file_sequence, start_pos, binlog_file, event_type, gtid, thread_id,"
            f" schema_name || '.' || table_name, [{before}] from ({self._losing()})"
        ).fetchall()
        found: dict[Values, list[TableEvent]] = {}
        for epoch, sequence, position, file, event_type, gtid, thread_id, parent, values in rows:
            # No row refers to NULL.
            if None in values:
                continue
            value = _comparable(values)
            if value is None:
                return None
            reason = f"the {event_type} of the row of {parent} that it refers to"
            event = TableEvent(
                Place(epoch, sequence, position), Effect.OBSCURES, reason, file, gtid=gtid, thread_id=thread_id
            )
            found.setdefault(value, []).append(event)
        return found

    def _has(self, query: str) -> bool:
        return self.finder.connection.execute(f"{query} limit 1").fetchone() is not None

    @cached_property
    def _have_lost_any(self) -> bool:
        """Whether rows of the parent were deleted, or got another key, while the foreign key was there."""
        return self._has(self._losing())

    @cached_property
    def _names(self) -> list[list[str]]:
        """The columns that the foreign key refers to, each with its names as the images have them."""
        known = {name for table in self.tables for name in _types(self.finder.connection, table)}
        return [sorted(name for name in known if lowered(name) in names) for names in self.key.parent_columns]

    def _has_other_labels(self) -> bool:
        """Return whether a column has an ENUM or SET whose labels are not those of the parent's column."""
        connection = self.finder.connection
        own = {lowered(name): text for name, text in _types(connection, self.table).items()}
        for names, parents in zip(self.key.columns, self._names, strict=True):
            types = {own[name] for name in names if name in own}
            types |= {
                text for table in self.tables for name, text in _types(connection, table).items() if name in parents
            }
            if len(types) > 1 and any(text.startswith(("enum", "set")) for text in types):
                return True
        return False

    def _losing(self) -> str:
        """Return a query of the changes by which parents were deleted or got another key while the key was there."""
        losing = ["event_type = 'DELETE'"] if self.key.delete_rule not in INACTIVE_RULES else []
        if self.key.update_rule not in INACTIVE_RULES:
            names = ", ".join(literal(name) for names in self.key.parent_columns for name in names)
            changed = f"list_has_any(list_transform(changed_columns, lambda name: lower(name)), [{names}]::varchar[])"
            losing.append(f"(event_type = 'UPDATE' and {changed if names else 'true'})")
        limits = []
        if self.key.since:
            epoch, sequence, position = self.key.since
            # DuckDB compares no tuple with two others.
            limits.append(
                f"(epoch > {epoch} or (epoch = {epoch} and (file_sequence > {sequence} or (file_sequence = {sequence}"
                f" and start_pos >= {position}))))"
            )
        changes = self._changes(self.tables, self.finder.until, self.key.until)
        return " and ".join([changes, f"({' or '.join(losing)})", *limits])

    def _partial_updates(self) -> str:
        """Return a query of the updates that do not show to which parent a row refers."""
        shown = "list_transform(map_keys(row_before), lambda name: lower(name))"
        seen = " and ".join(f"list_has_any({shown}, {[*names]})" for names in self.key.columns)
        return f"{self._changes([self.table], self.finder.until)} and event_type = 'UPDATE' and not ({seen})"

    def _changes(self, tables: Sequence[Table], *until: tuple[int, ...] | None) -> str:
        ends = [tuple(place) for place in until if place is not None]
        place = f" and (epoch, file_sequence, start_pos) < {min(ends)}" if ends else ""
        named = " or ".join(
            f"(schema_name = {literal(table.schema_name)} and table_name = {literal(table.table_name)})"
            for table in tables
        )
        return (
            f"select * from binloom.row_changes where source_id = {literal(self.table.source_id)}"
            f" and ({named or 'false'}) and outcome != 'rollback'{place}"
        )


def _types(connection: "DuckDBPyConnection", table: Table) -> dict[str, str]:
    """Return the columns that a table has at some time, with one of their types."""
    return {name: text for columns in columns_of(connection, table).values() for name, text in columns.types.items()}


def _comparable(values: Iterable[str]) -> Values | None:
    """Return what is equal for values that a server may take for equal; None if only the server knows which are."""
    letters = str.maketrans(*EQUAL_LETTERS)
    texts = tuple(value.lower().rstrip(" ").translate(letters) for value in values)
    return texts if all(text.isascii() and text.isprintable() for text in texts) else None
