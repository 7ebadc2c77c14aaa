"""What is known of tables at every place of a log: snapshots, and the statements since, one after another."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ingest.ddl.actions import Action
from ingest.ddl.shapes import Shape, ShapeError, Shapes, TableId

Place = tuple[int, ...]
"""Where something stands in a log. Places compare as their tuples do."""

BEGINNING: Final[Place] = ()
"""Before every other place."""


@dataclass(frozen=True, slots=True)
class Observation:
    """Tables as a snapshot shows them: rows of `schema_columns` by table, and rows of `schema_defaults`."""

    tables: Mapping[TableId, Sequence[Mapping[str, Any]]]
    defaults: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Hole:
    """From here on nothing is certain: statements may be missing before."""


@dataclass(frozen=True, slots=True)
class Handover:
    """Another server's log begins: a table is taken to be as before until a snapshot shows it."""


Event = Observation | Hole | Handover | Action


@dataclass(slots=True)
class Version:
    """A table from one place on, up to its next version.

    Attributes
    ----------
    place
        From where on.
    columns
        Rows of `schema_columns`; None when nothing tells them, or there is no such table.
    is_observed
        Whether a snapshot shows it.
    is_doubtful
        Whether it is taken over from another server's log.
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
        Snapshots, statements and holes with their places, in order. Of events at one place the later one counts.

    Returns
    -------
    dict of (str, str) to list of Version
        By schema and name, oldest first. The first version begins before everything.
    """
    fold = _Fold()
    for place, event in events:
        fold.take(place, event)
    return fold.versions


class _Fold:
    def __init__(self) -> None:
        self.versions: dict[TableId, list[Version]] = {}
        self._shapes = Shapes()
        # Tables that are there, or may be, and of which nothing is known; tables and schemas that are known to be new.
        self._unknown: set[TableId] = set()
        self._absent: set[TableId] = set()
        self._new_schemas: set[str | None] = set()
        # Whether a snapshot listed the tables, and the schemas.
        self._has_observed = self._has_schemas = False

    def take(self, place: Place, event: Event) -> None:
        match event:
            case Observation():
                self._observe(place, event)
            case Hole():
                self._lose(place, list(self.versions))
                self._shapes = Shapes()
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
        self._shapes.observe((row for rows in seen.tables.values() for row in rows), seen.defaults)
        for table in seen.tables:
            self._unknown.discard(table)
            self._note(place, table, is_observed=True)

    def _apply(self, place: Place, action: Action) -> None:
        table = (action.schema_name or "", action.table_name or "")
        if action.action == "create_database" and self._has_schemas and action.schema_name not in self._shapes.schemas:
            # Otherwise the snapshot had shown it.
            action = replace(action, is_conditional=False)
        concerned = self._concerned(action)
        if action.action.startswith("create_") and action.table_name is not None:
            if action.is_conditional and self._may_be_there(table):
                self._lose(place, [table])
                return
            if not action.is_conditional:
                # It was carried out, so there was no such table any more.
                self._shapes.tables.pop(table, None)
        held = {one: self._columns(one) for one in concerned}
        try:
            self._shapes.apply(action)
        except ShapeError:
            self._lose(place, concerned)
            return
        for one in concerned:
            if one in self._shapes.tables:
                self._unknown.discard(one)
            elif action.action in ("drop_table", "drop_database", "rename_table"):
                self._unknown.discard(one)
                self._absent.add(one)
            if self._columns(one) != held[one]:
                self._note(place, one)
        if action.action in ("create_database", "drop_database") and not action.is_conditional:
            self._new_schemas.add(action.schema_name)

    def _may_be_there(self, table: TableId) -> bool:
        """Whether there may be a table that nothing told of."""
        if table in self._unknown:
            return True
        is_told = table in self._shapes.tables or table in self._absent or table[0] in self._new_schemas
        return not (is_told or self._has_observed)

    def _concerned(self, action: Action) -> list[TableId]:
        """The tables that an action may change."""
        if action.table_name is None:
            schema = action.schema_name
            known = {*self._shapes.tables, *self.versions}
            return sorted(table for table in known if schema is None or table[0] == schema)
        concerned = [(action.schema_name or "", action.table_name)]
        if action.action == "rename_table":
            concerned.append((action.other_schema_name or "", action.other_table_name or ""))
        return concerned

    def _lose(self, place: Place, tables: Iterable[TableId]) -> None:
        """From here on nothing tells what these tables look like."""
        for table in tables:
            self._shapes.tables.pop(table, None)
            self._unknown.add(table)
            self._note(place, table)

    def _note(self, place: Place, table: TableId, is_observed: bool = False) -> None:
        versions = self.versions.setdefault(table, [Version(BEGINNING, None)])
        versions.append(Version(place, self._columns(table), is_observed))

    def _columns(self, table: TableId) -> list[dict[str, Any]] | None:
        shape = self._shapes.tables.get(table)
        return None if shape is None else list(shape.column_rows(table))


def last_shown(
    table: TableId,
    columns: Sequence[Mapping[str, Any]],
    actions: Sequence[tuple[Place, Action]],
    is_same: Callable[[Mapping[str, Any], Mapping[str, Any]], bool],
) -> Place:
    """Return where the last statement stands whose outcome a snapshot without a position shows.

    The snapshot was taken behind it, as far as anybody can tell. `BEGINNING` when it shows the outcome of none.

    Parameters
    ----------
    table, columns
        A table of the snapshot, and its rows of `schema_columns`.
    actions
        Statements of the log with their places, in order.
    is_same
        Whether two rows of `schema_columns` define columns whose values read the same.
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
    """Whether a table with these columns looks as if an action had been carried out that changes what it looks like."""
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
