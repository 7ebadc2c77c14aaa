"""The definitions of tables and foreign keys that an undo needs, and where they come from.

For each table, the first of these that knows all of it:

1. the log's own statements, from the CREATE TABLE on;
2. the server that rows are compared with;
3. the schema snapshots that were given or landed, with the statements of the log after them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from recover.sources.cluster.thrift import Cluster
from recover.sources.files.document_types import DocumentTypes
from recover.sources.landed_snapshot import newest_snapshot_on_cluster
from recover.sources.log import Log
from recover.timeline.baselines import sequence_of_file
from recover.timeline.events import Place, TableEvent
from recover.undo.tables.table import ForeignKey, Table, TableName, foreign_keys_of_snapshot, tables_of_snapshot

if TYPE_CHECKING:
    from ingest.ddl.actions import Action, Column
    from ingest.ddl.foreign_keys import KeyInTime
    from ingest.ddl.history import Event
    from ingest.ddl.history import Place as Position
    from ingest.ddl.shapes import Shape, Shapes
    from ingest.landing.schema_history import SchemaHistory
    from ingest.sources.snapshots.snapshot import SchemaSnapshot
    from recover.selection.catalog import TableVersion

OF_SERVER: Final = "the server {}"
"""Where a definition is from."""
_SNAPSHOTS: Final = {
    "server": "the definitions that a server had",
    "files": "the export of information_schema",
    "ddl": "the file of CREATE statements",
    "binlog": "statements in expired files",
}
_CREATING: Final = ("create_table", "create_like")
_INDIFFERENT: Final = ("truncate_table", "drop_partition", "truncate_partition", "exchange_partition")
"""Actions after which a table has the same columns and keys."""


@dataclass(frozen=True)
class Definitions:
    """The tables of a source at one place of its log.

    Attributes
    ----------
    origins
        By table, where its definition comes from, in words.
    place
        Where a snapshot was taken to which the statements since are not applied; None for all others.
    has_all_children
        Whether a snapshot or a server has shown the foreign keys of all tables. A log has those that it has created.
    unread
        Columns of tables that are left out, because nothing tells the character set of these columns.
    """

    tables: Mapping[TableName, Table]
    foreign_keys: tuple[ForeignKey, ...] = ()
    place: Place | None = None
    origins: Mapping[TableName, str] = field(default_factory=dict)
    has_all_children: bool = True
    unread: Mapping[TableName, Sequence[str]] = field(default_factory=dict)

    def shows(self, event: TableEvent) -> bool:
        """Return whether they are from after an event. Without a place, they are taken to be the newest."""
        return self.place is None or event.place < self.place

    def with_documents(self, log: Log, names: Collection[TableName], *, json_as_text: bool = False) -> Self:
        """Return these definitions with the types that the documents of some tables have in a log.

        Parameters
        ----------
        json_as_text
            Whether a document whose types are unknown has no member that its text does not tell.
        """
        is_needed = any(table.has_documents for name, table in self.tables.items() if name in names)
        types = log.documents.types(names) if is_needed and log.documents is not None else DocumentTypes()
        if json_as_text:
            types.otherwise = {}
        return replace(self, tables={name: table.with_documents(types) for name, table in self.tables.items()})

    @classmethod
    def of_log(cls, log: Log, source_id: str, *of_server: Self) -> Self:
        """Return the definitions at the end of a log; `of_server` is asked after the log itself."""
        if log.copies is not None:
            return cls.of_cluster(source_id, log.copies.cluster).after(*of_server)
        history = history_of(log, source_id)
        events = history.evidence()
        of_statements = [event for event in events if not _is_observation(event[1])]
        shown = [event for event in events if not _is_hole(event[1])]
        given = cls.of_evidence(history, shown, log.versions)
        if log.snapshot is not None and log.snapshot.binlog_file is None:
            # Without a position, it is taken to be the newest if the statements of the log do not fit it.
            applied = cls.of_evidence(history, shown, log.versions, needs_character_sets=False)
            given = cls.of_snapshot(log.snapshot).after(given, applied)
        given = given.after(cls.of_evidence(history, of_statements, log.versions), *of_server)
        return cls.of_evidence(history, of_statements, log.versions, needs_character_sets=False).after(given)

    @classmethod
    def at(cls, log: Log, source_id: str, name: TableName, place: Place) -> Self:
        """Return the definitions at a place. A later snapshot shows a table that no statement changed in between."""
        history = history_of(log, source_id)
        events = history.evidence()
        before = [event for event in events if event[0][:3] <= tuple(place)]
        of_statements = [event for event in before if not _is_observation(event[1])]
        shown = [event for event in before if not _is_hole(event[1])]
        shown += _shown_later(events[len(before) :], name)
        given = cls.of_evidence(history, shown, log.versions)
        return given.after(cls.of_evidence(history, of_statements, log.versions))

    @classmethod
    def of_evidence(
        cls,
        history: "SchemaHistory",
        events: "Sequence[tuple[Position, Event]]",
        versions: "Iterable[TableVersion]" = (),
        *,
        needs_character_sets: bool = True,
    ) -> Self:
        """Return the definitions of the tables of which evidence tells all; `versions` have further character sets.

        Without a character set, a text is not written; a row without this text is.
        """
        from ingest.ddl.column_types import Dialect
        from ingest.ddl.history import shapes_after
        from ingest.sources.snapshots.snapshot_ddl import rows_of_shapes
        from ingest.versions import NEWEST

        shapes = shapes_after(events)
        _fill_character_sets(shapes, versions)
        unread = {name: _without_character_set(shape) for name, shape in shapes.tables.items()}
        unread = {name: columns for name, columns in unread.items() if columns and needs_character_sets}
        shapes.tables = {name: one for name, one in shapes.tables.items() if name not in unread and _is_whole(one)}
        if not shapes.tables:
            return cls({}, has_all_children=False, unread=unread)
        _fill_references(shapes)
        found = cls.of_rows(*rows_of_shapes(shapes, Dialect("mysql", NEWEST)))
        has_all = any(_is_observation(event) for _, event in events)
        origins = _origins(history, events, shapes.tables)
        return replace(found, origins=origins, has_all_children=has_all, unread=unread)

    def after(self, *earlier: Self) -> Self:
        """Return these definitions for the tables that earlier ones do not have."""
        found = self
        for one in reversed(earlier):
            keys = (key for key in found.foreign_keys if key.table not in one.tables)
            found = replace(
                found,
                tables={**found.tables, **one.tables},
                foreign_keys=(*one.foreign_keys, *keys),
                origins={**found.origins, **one.origins},
                has_all_children=found.has_all_children or one.has_all_children,
                unread={**found.unread, **one.unread},
            )
        return found

    @classmethod
    def of_server(cls, snapshot: "SchemaSnapshot", server: str) -> Self:
        """Return the definitions of a live server, which are the newest."""
        at = f" at {snapshot.binlog_file}:{snapshot.binlog_pos}" if snapshot.binlog_file is not None else ""
        found = cls.of_rows(snapshot.columns, snapshot.keys, snapshot.foreign_keys)
        return replace(found, origins=dict.fromkeys(found.tables, f"{OF_SERVER.format(server)}{at}"))

    @classmethod
    def of_snapshot(cls, snapshot: "SchemaSnapshot", epoch: int = 0) -> Self:
        """Return the definitions of a snapshot; `epoch` is that of its position."""
        place = None
        if snapshot.binlog_file is not None and snapshot.binlog_pos is not None:
            place = Place(epoch, sequence_of_file(snapshot.binlog_file), snapshot.binlog_pos)
        found = cls.of_rows(snapshot.columns, snapshot.keys, snapshot.foreign_keys, place)
        return replace(found, origins=dict.fromkeys(found.tables, _SNAPSHOTS[snapshot.origin]))

    @classmethod
    def of_cluster(cls, source_id: str, cluster: Cluster) -> Self:
        """Return the definitions of the newest snapshot of a cluster; none if there is no snapshot."""
        found = newest_snapshot_on_cluster(source_id, cluster)
        return cls({}) if found is None else cls.of_snapshot(*found)

    @classmethod
    def of_rows(
        cls,
        columns: list[dict[str, Any]],
        keys: list[dict[str, Any]],
        foreign_keys: list[dict[str, Any]],
        place: Place | None = None,
    ) -> Self:
        """Return the definitions that rows of `schema_columns`, `schema_keys` and `foreign_keys` give."""
        return cls(tables_of_snapshot(columns, keys), tuple(foreign_keys_of_snapshot(foreign_keys)), place)


def history_of(log: Log, source_id: str) -> "SchemaHistory":
    """Return the evidence for the definitions of a source's tables: of files, or the landed one."""
    from ingest.landing.schema_history import SchemaHistory
    from ingest.warehouse.record import SourceRecord

    if log.history is not None:
        return log.history
    if source_id not in log.histories:
        home = log.home or Path()
        log.histories[source_id] = SchemaHistory.load(SourceRecord.load(source_id, home), home, with_keys=True)
    return log.histories[source_id]


def keys_in_time(log: Log, source_id: str) -> "list[KeyInTime]":
    """Return the foreign keys of a source through its log; those of a cluster are taken to have always been there."""
    from ingest.ddl.foreign_keys import KeyInTime, foreign_keys_through
    from ingest.ddl.letter_case import lowered

    # Reading the evidence of a large home takes seconds.
    if log.history is None and log.copies is None and not _may_cascade(log, source_id):
        return []
    if log.copies is None:
        return foreign_keys_through(history_of(log, source_id).evidence())
    return [
        KeyInTime(
            key.name,
            ((lowered(key.table[0]), lowered(key.table[1])),),
            ((lowered(key.parent[0]), lowered(key.parent[1])),),
            tuple((lowered(name),) for name in key.columns),
            tuple((lowered(name),) for name in key.parent_columns),
            key.delete_rule,
            key.update_rule,
        )
        for key in Definitions.of_cluster(source_id, log.copies.cluster).foreign_keys
    ]


def _may_cascade(log: Log, source_id: str) -> bool:
    """Return whether a snapshot or a statement in a landed log may show a foreign key that changes rows."""
    found = log.connection.execute(
        r"""select 1 from binloom.foreign_keys where source_id = $source and is_cascading
        union all
        select 1 from binloom.schema_changes where source_id = $source and (
            (regexp_matches(sql_text, 'references', 'i') and regexp_matches(sql_text, '\b(cascade|set)\b', 'i'))
            or (regexp_matches(sql_text, '\bdrop\b', 'i') and regexp_matches(sql_text, '\b(foreign|constraint)\b', 'i'))
        )
        limit 1""",
        {"source": source_id},
    )
    return found.fetchone() is not None


def former_keys(
    keys: "Iterable[KeyInTime]", since: Place, names: Iterable[TableName], until: Place | None = None
) -> list[ForeignKey]:
    """Return those of `keys_in_time` with a cascade that were there after a place, and that a statement dropped.

    Parameters
    ----------
    names
        They spell the names of tables as the log does.
    until
        Only keys that were added before it; None: all of them.
    """
    dropped = (key for key in keys if key.until is not None and key.until > tuple(since))
    return _spelled([key for key in dropped if until is None or key.since is None or key.since <= tuple(until)], names)


def undescribed_keys(keys: "Iterable[KeyInTime]", described: Iterable[TableName]) -> list[ForeignKey]:
    """Return those of `keys_in_time` with a cascade that are still there, of tables without a definition at the end."""
    from ingest.ddl.letter_case import lowered

    names = [*described]
    known = {(lowered(schema), lowered(table)) for schema, table in names}
    return _spelled([key for key in keys if key.until is None and key.table[-1] not in known], names)


def _spelled(keys: "Iterable[KeyInTime]", names: Iterable[TableName]) -> list[ForeignKey]:
    """Return keys with a cascade under their last names, spelled as in `names`."""
    from ingest.ddl.letter_case import lowered

    spelled = {(lowered(schema), lowered(table)): (schema, table) for schema, table in names}
    return [
        ForeignKey(
            key.name,
            spelled.get(key.table[-1], key.table[-1]),
            tuple(columns[-1] for columns in key.columns),
            spelled.get(key.parent[-1], key.parent[-1]),
            tuple(columns[-1] for columns in key.parent_columns),
            key.update_rule,
            key.delete_rule,
        )
        for key in keys
        if key.is_cascading and key.parent
    ]


def _is_observation(event: "Event") -> bool:
    from ingest.ddl.history import Observation

    return isinstance(event, Observation)


def _is_hole(event: "Event") -> bool:
    from ingest.ddl.history import Hole

    return isinstance(event, Hole)


def _shown_later(events: "Iterable[tuple[Position, Event]]", name: TableName) -> "list[tuple[Position, Event]]":
    """Return the next snapshot that shows a table as it was before, if there is one."""
    from ingest.ddl.actions import Action
    from ingest.ddl.history import Observation

    for place, event in events:
        if isinstance(event, Observation) and name in event.tables:
            return [(place, Observation({name: event.tables[name]}, event.defaults, event.keys, origin=event.origin))]
        if isinstance(event, Action) and _may_redefine(event, name):
            return []
    return []


def _may_redefine(action: "Action", name: TableName) -> bool:
    named = (action.schema_name, action.table_name), (action.other_schema_name, action.other_table_name)
    is_of_schema = action.table_name is None and action.schema_name in (None, name[0])
    is_creating = action.action in _CREATING and named[0] != name
    return (name in named and not is_creating and action.action not in _INDIFFERENT) or (
        is_of_schema and action.action in ("drop_database", "not_understood")
    )


def _fill_character_sets(shapes: "Shapes", versions: "Iterable[TableVersion]") -> None:
    """Take the character sets that no statement tells from table maps, if all of these agree."""
    from ingest.ddl.column_types import TEXT_TYPES

    told: dict[tuple[TableName, str], set[str]] = {}
    for version in versions:
        for logged in version.columns:
            if logged.character_set is not None:
                table = (version.schema_name, version.table_name)
                told.setdefault((table, logged.name), set()).add(logged.character_set)
    for name, shape in shapes.tables.items():
        for at, column in enumerate(shape.columns):
            found = told.get((name, column.name), ())
            if column.data_type in TEXT_TYPES and column.character_set is None and len(found) == 1:
                shape.columns[at] = replace(column, character_set=next(iter(found)))


def _is_whole(shape: "Shape") -> bool:
    return shape.has_all_keys and all(column.data_type is not None for column in shape.columns)


def _without_character_set(shape: "Shape") -> list[str]:
    return [column.name for column in shape.columns if column.data_type is not None and _lacks_character_set(column)]


def _lacks_character_set(column: "Column") -> bool:
    """Return whether a column has texts or labels, and its definition lacks the character set that tells them."""
    from ingest.binlog.events.hints import enum_members
    from ingest.ddl.column_types import TEXT_TYPES

    if column.data_type in ("enum", "set") and enum_members(column.column_type or "") is None:
        return True
    return column.data_type in TEXT_TYPES and column.character_set is None


def _fill_references(shapes: "Shapes") -> None:
    """Name the columns that a foreign key refers to without naming them: the primary key of the parent."""
    for shape in shapes.tables.values():
        for at, key in enumerate(shape.keys):
            parent = shapes.tables.get((key.referenced_schema_name or "", key.referenced_table_name or ""))
            if key.is_foreign and not key.referenced_columns and parent is not None:
                shape.keys[at] = replace(key, referenced_columns=parent.primary_key)


def _origins(
    history: "SchemaHistory", events: "Iterable[tuple[Position, Event]]", known: Iterable[TableName]
) -> dict[TableName, str]:
    """Return where the definition of each table comes from, in words."""
    from ingest.ddl.actions import Action
    from ingest.ddl.history import Observation

    firsts: dict[TableName, str] = {}
    since: dict[TableName, set[tuple[int, ...]]] = {}
    for place, event in events:
        if isinstance(event, Observation):
            firsts |= dict.fromkeys(event.tables, _SNAPSHOTS.get(event.origin, "a schema snapshot"))
            since |= {name: set() for name in event.tables}
        elif isinstance(event, Action):
            name = (event.schema_name or "", event.table_name or "")
            if event.action in _CREATING and not (event.is_conditional and name in firsts):
                firsts[name] = f"{event.statement_type} at {history.file_at(place)}:{place[4]}"
                since[name] = set()
            elif event.action == "rename_table" and name in firsts:
                new = (event.other_schema_name or "", event.other_table_name or "")
                firsts[new], since[new] = firsts.pop(name), {*since.pop(name), place[:5]}
            elif name in since and event.action not in _INDIFFERENT:
                since[name].add(place[:5])
    return {name: firsts[name] + _and_since(len(since[name])) for name in known if name in firsts}


def _and_since(count: int) -> str:
    return f" and {count} statement{'s' if count > 1 else ''} of the log since" if count else ""
