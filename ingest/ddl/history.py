"""Known definitions of tables at every position of a log, from snapshots and the statements after them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ingest.ddl.actions import Action, Key
from ingest.ddl.shapes import Shape, ShapeError, Shapes, TableId

Place = tuple[int, ...]
"""A position in a log. Positions compare as tuples do."""

BEGINNING: Final[Place] = ()
"""The position before every other position."""


@dataclass(frozen=True, slots=True)
class Observation:
    """Tables as a snapshot shows them: rows of `schema_columns` by table, rows of `schema_defaults`, and all keys.

    The keys are None if the snapshot does not have all of them.
    """

    tables: Mapping[TableId, Sequence[Mapping[str, Any]]]
    defaults: Sequence[Mapping[str, Any]] = ()
    keys: Mapping[TableId, Sequence[Key]] | None = None


@dataclass(frozen=True, slots=True)
class Hole:
    """A gap in the log: statements may be missing before it, so nothing is certain from here on."""


@dataclass(frozen=True, slots=True)
class Handover:
    """The start of another server's log: tables are assumed to be unchanged until a snapshot shows them."""


Event = Observation | Hole | Handover | Action


@dataclass(slots=True)
class Version:
    """The definition of a table from one position on, up to its next version.

    Attributes
    ----------
    place
        Position from which on it is valid.
    columns
        Rows of `schema_columns`; None when the definition is unknown, or there is no such table.
    is_observed
        Whether a snapshot shows it.
    is_doubtful
        Whether it was taken over from another server's log.
    """

    place: Place
    columns: list[dict[str, Any]] | None
    is_observed: bool = False
    is_doubtful: bool = False


def versions_of(events: Iterable[tuple[Place, Event]]) -> dict[TableId, list[Version]]:
    """Follow tables through a log.

    Parameters
    ----------
    events
        Snapshots, statements, gaps and handovers with their positions, in order. At one position the later event wins.

    Returns
    -------
    dict of (str, str) to list of Version
        Versions by schema and table name, oldest first. The first version begins at `BEGINNING`.
    """
    fold = _Fold()
    for place, event in events:
        fold.take(place, event)
    return fold.versions


def shapes_after(events: Iterable[tuple[Place, Event]]) -> Shapes:
    """Return the known tables and defaults of schemas after snapshots, statements, gaps and handovers, in order."""
    fold = _Fold()
    for place, event in events:
        fold.take(place, event)
    return fold.shapes


class _Fold:
    def __init__(self) -> None:
        self.versions: dict[TableId, list[Version]] = {}
        self.shapes = Shapes()
        # Tables that exist or may exist, with an unknown definition; tables and schemas that are known to be new.
        self._unknown: set[TableId] = set()
        self._absent: set[TableId] = set()
        self._new_schemas: set[str | None] = set()
        # Whether a snapshot listed the tables, and whether one listed the schemas.
        self._has_observed = self._has_schemas = False

    def take(self, place: Place, event: Event) -> None:
        match event:
            case Observation():
                self._observe(place, event)
            case Hole():
                self._lose(place, list(self.versions))
                self.shapes = Shapes()
                self._absent.clear()
                self._new_schemas.clear()
                self._has_observed = self._has_schemas = False
            case Handover():
                for versions in self.versions.values():
                    versions.append(Version(place, versions[-1].columns, is_doubtful=True))
            case Action():
                self._apply(place, event)

    def _observe(self, place: Place, seen: Observation) -> None:
        self._has_observed = True
        self._has_schemas |= any(row["table_name"] is None for row in seen.defaults)
        self.shapes.observe((row for rows in seen.tables.values() for row in rows), seen.defaults, seen.keys)
        for table in seen.tables:
            self._unknown.discard(table)
            self._note(place, table, is_observed=True)

    def _apply(self, place: Place, action: Action) -> None:
        table = (action.schema_name or "", action.table_name or "")
        if action.action == "create_database" and self._has_schemas and action.schema_name not in self.shapes.schemas:
            # The schema is new: the snapshot would have shown an existing one.
            action = replace(action, is_conditional=False)
        concerned = self._concerned(action)
        if action.action.startswith("create_") and action.table_name is not None:
            if action.is_conditional and self._may_be_there(table):
                self._lose(place, [table])
                return
            if not action.is_conditional:
                # The server carried it out, so the table no longer existed.
                self.shapes.tables.pop(table, None)
        held = {one: self._columns(one) for one in concerned}
        may_be_there = self._may_be_there(table)
        try:
            self.shapes.apply(action)
        except ShapeError:
            self._lose(place, concerned)
            return
        for one in concerned:
            if one in self.shapes.tables:
                self._unknown.discard(one)
            elif action.action == "rename_table" and one != table:
                # The statement may have done nothing, or may have renamed a table of which nothing is known.
                if may_be_there:
                    self._unknown.add(one)
            elif action.action in ("drop_table", "drop_database", "rename_table"):
                self._unknown.discard(one)
                self._absent.add(one)
            if self._columns(one) != held[one]:
                self._note(place, one)
        if action.action in ("create_database", "drop_database") and not action.is_conditional:
            self._new_schemas.add(action.schema_name)

    def _may_be_there(self, table: TableId) -> bool:
        """Return whether a table may exist that no snapshot or statement has mentioned."""
        if table in self._unknown:
            return True
        is_told = table in self.shapes.tables or table in self._absent or table[0] in self._new_schemas
        return not (is_told or self._has_observed)

    def _concerned(self, action: Action) -> list[TableId]:
        """Return the tables that an action may change."""
        if action.table_name is None:
            schema = action.schema_name
            known = {*self.shapes.tables, *self.versions}
            return sorted(table for table in known if schema is None or table[0] == schema)
        concerned = [(action.schema_name or "", action.table_name)]
        if action.action == "rename_table":
            concerned.append((action.other_schema_name or "", action.other_table_name or ""))
        return concerned

    def _lose(self, place: Place, tables: Iterable[TableId]) -> None:
        """Mark the definitions of these tables as unknown from here on."""
        for table in tables:
            self.shapes.tables.pop(table, None)
            self._unknown.add(table)
            self._note(place, table)

    def _note(self, place: Place, table: TableId, is_observed: bool = False) -> None:
        versions = self.versions.setdefault(table, [Version(BEGINNING, None)])
        versions.append(Version(place, self._columns(table), is_observed))

    def _columns(self, table: TableId) -> list[dict[str, Any]] | None:
        shape = self.shapes.tables.get(table)
        return None if shape is None else list(shape.column_rows(table))


def last_shown(
    table: TableId,
    columns: Sequence[Mapping[str, Any]],
    actions: Sequence[tuple[Place, Action]],
    is_same: Callable[[Mapping[str, Any], Mapping[str, Any]], bool],
) -> Place:
    """Return the position of the last statement whose outcome a snapshot without a position shows.

    As far as can be told, the snapshot was taken after that statement. Return `BEGINNING` when it shows the
    outcome of no statement.

    Parameters
    ----------
    table, columns
        A table of the snapshot, and its rows of `schema_columns` there.
    actions
        Statements of the log with their positions, in order.
    is_same
        Tells whether two rows of `schema_columns` define columns whose values read the same.
    """
    names = {row["column_name"].casefold(): row for row in columns}
    for place, action in reversed(actions):
        if _shows(table, names, action, is_same):
            return place
    return BEGINNING


def _shows(
    table: TableId,
    names: Mapping[str, Mapping[str, Any]],
    action: Action,
    is_same: Callable[[Mapping[str, Any], Mapping[str, Any]], bool],
) -> bool:
    """Return whether these columns of a table look like the result of an action that changes its definition."""
    if action.action in ("rename_table", "create_like") and action.other_table_name is not None:
        made = (action.other_schema_name or "", action.other_table_name)
        if action.action == "rename_table":
            return made == table
    if (action.schema_name or "", action.table_name or "") != table:
        return False
    defined = list(Shape([*action.columns]).column_rows(table))
    has_defined = bool(defined) and all(
        (found := names.get(row["column_name"].casefold())) is not None and is_same(found, row) for row in defined
    )
    match action.action:
        case "create_table":
            return has_defined and len(defined) == len(names)
        case "create_like" | "create_select":
            return True
        case "add_column":
            return has_defined
        case "modify_column":
            is_renamed = (action.column_name or "").casefold() not in {row["column_name"].casefold() for row in defined}
            return has_defined and not (is_renamed and (action.column_name or "").casefold() in names)
        case "rename_column":
            is_new = action.columns[0].name.casefold() in names
            return is_new and (action.column_name or "").casefold() not in names
        case "drop_column":
            return (action.column_name or "").casefold() not in names
        case "convert_character_set":
            texts = [row["character_set"] for row in names.values() if row["character_set"]]
            return all(action.character_set in (None, character_set) for character_set in texts)
    return False
