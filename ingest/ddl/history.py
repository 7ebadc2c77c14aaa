"""Known definitions of tables at every position of a log, from snapshots and the statements after them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Final

from ingest.ddl.actions import Action, Key
from ingest.ddl.backwards import before
from ingest.ddl.column_types import TEXT_TYPES
from ingest.ddl.hashed_keys import is_hash
from ingest.ddl.letter_case import lowered
from ingest.ddl.sequences import SEQUENCE_COLUMNS
from ingest.ddl.shapes import Shape, ShapeError, Shapes, TableId
from ingest.ddl.temporary_tables import MAY_BE_TEMPORARY

Place = tuple[int, ...]
"""A position in a log. Positions compare as tuples do."""

BEGINNING: Final[Place] = ()
"""The position before every other position."""


@dataclass(frozen=True, slots=True)
class Observation:
    """Tables as a snapshot shows them.

    Attributes
    ----------
    tables
        Rows of `schema_columns` by table.
    defaults
        Rows of `schema_defaults`.
    keys
        All keys; None if the snapshot does not have all of them.
    snapshot_id
        The snapshot.
    has_place
        Whether the snapshot has a position. Otherwise its place is an assumption.
    origin
        How the snapshot was made, as `schema_snapshots` has it.
    """

    tables: Mapping[TableId, Sequence[Mapping[str, Any]]]
    defaults: Sequence[Mapping[str, Any]] = ()
    keys: Mapping[TableId, Sequence[Key]] | None = None
    snapshot_id: str = ""
    has_place: bool = True
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Hole:
    """A gap in the log: statements may be missing before it, so nothing is certain from here on.

    Attributes
    ----------
    ends_log
        Whether nothing of the log is known behind the gap.
    """

    ends_log: bool = False


@dataclass(frozen=True, slots=True)
class Handover:
    """The start of another server's log: tables are assumed to be unchanged until a snapshot shows them."""


Event = Observation | Hole | Handover | Action


class Certainty(IntEnum):
    """How sure a definition is.

    LOST: the log before it has a gap. Such a definition may name values, because the types of a row tell whether it
    fits, but bytes are not read by it. ASSUMED: it was taken over from another server's log, or it is that of a
    snapshot without a position.
    """

    LOST = 0
    ASSUMED = 1
    CERTAIN = 2


@dataclass(frozen=True, slots=True)
class Evidence:
    """The snapshot or the statement that a definition comes from, or that made it unknown.

    Attributes
    ----------
    snapshot_id
        The snapshot; empty for a statement.
    place
        Place of the statement.
    detail
        Why the definition is not known; empty if it is known.
    """

    snapshot_id: str = ""
    place: Place = BEGINNING
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Version:
    """The definition of a table from one position on, up to its next version.

    Attributes
    ----------
    place
        Position from which on it is valid.
    columns
        Rows of `schema_columns`; None when the definition is unknown, or there is no such table.
    is_observed
        Whether a snapshot shows it here.
    is_handed_over
        Whether another server's log begins here.
    certainty
        How sure the columns are.
    evidence
        Where the columns come from, or why there are none; None if nothing is known of the table.
    carried
        What a later snapshot and the statements before it tell of the columns, where nothing is known for sure.
    """

    place: Place
    columns: list[dict[str, Any]] | None
    is_observed: bool = False
    is_handed_over: bool = False
    certainty: Certainty = Certainty.CERTAIN
    evidence: Evidence | None = None
    carried: "Version | None" = None


@dataclass(frozen=True, slots=True)
class _Step:
    """A statement on a table that is not known for sure.

    Attributes
    ----------
    table, index
        The table before it, and the index of the table's version there.
    behind
        Index of the first version behind it, among those of the table as it is called then.
    """

    action: Action
    table: TableId
    index: int
    behind: int


def versions_of(events: Iterable[tuple[Place, Event]], *, breaks_before: bool = False) -> dict[TableId, list[Version]]:
    """Follow tables through a log.

    Parameters
    ----------
    events
        Snapshots, statements, gaps and handovers with their positions, in order. At one position the later event wins.
    breaks_before
        Whether a table also has a version at each gap and handover before its first evidence. The gap behind the log is
        none of them: a snapshot taken there shows the tables of the whole log.

    Returns
    -------
    dict of (str, str) to list of Version
        Versions by schema and table name, oldest first. The first version begins at `BEGINNING`.
    """
    fold = _Fold(breaks_before)
    for place, event in events:
        fold.take(place, event)
    return fold.versions


def shapes_after(events: Iterable[tuple[Place, Event]]) -> Shapes:
    """Return the known tables and defaults of schemas after snapshots, statements, gaps and handovers, in order."""
    fold = _Fold()
    for place, event in events:
        fold.take(place, event)
    return fold.known_shapes()


_CHANGES_NO_COLUMNS: Final = frozenset(
    {"truncate_table", "drop_partition", "truncate_partition", "exchange_partition", "create_database", "other"}
)


class _Fold:
    """Every table is in one of three: `_known` and the shapes, `_gaps`, or `_absent`; or nothing has mentioned it."""

    def __init__(self, breaks_before: bool = False) -> None:
        self.versions: dict[TableId, list[Version]] = {}
        self._unheard_of = [Version(BEGINNING, None)]
        self._breaks_before = breaks_before
        self._shapes = Shapes()
        self._known: dict[TableId, tuple[Certainty, Evidence]] = {}
        # Tables that exist or may exist, with an unknown definition, and what made it unknown, if it was a statement.
        self._gaps: dict[TableId, Evidence | None] = {}
        # Tables that do not exist, and schemas without tables that nothing has mentioned.
        self._absent: dict[TableId, Evidence] = {}
        self._new_schemas: set[str | None] = set()
        # The statements on tables without a sure definition since the last gap, by the names that the tables have now.
        self._unapplied: dict[TableId, list[_Step]] = {}
        # Whether a snapshot listed the tables, and whether one listed the schemas.
        self._has_observed = self._has_schemas = False

    def known_shapes(self) -> Shapes:
        """Return the shapes without those of which only names may be known."""
        for table, (certainty, _) in self._known.items():
            if certainty is Certainty.LOST:
                del self._shapes.tables[table]
        return self._shapes

    def take(self, place: Place, event: Event) -> None:
        if self._breaks_before and (isinstance(event, Handover) or (isinstance(event, Hole) and not event.ends_log)):
            self._unheard_of.append(Version(place, None, is_handed_over=isinstance(event, Handover)))
        match event:
            case Observation():
                self._observe(place, event)
            case Hole():
                self._lose_sight(place)
                if not event.ends_log:
                    self._unapplied.clear()
            case Handover():
                self._doubt(Certainty.ASSUMED)
                self._unapplied.clear()
                for table in self.versions:
                    self._note(place, table, is_handed_over=True)
            case Action() if event.statement_type.endswith(" VIEW"):
                self._take_view(place, event)
            case Action() if self._may_change_columns(event):
                self._apply(place, event)
            case Action():
                self._apply_beside_columns(event)

    def _observe(self, place: Place, seen: Observation) -> None:
        if seen.has_place:
            # Tables and schemas that it lacks do not exist there.
            self._has_observed = True
            self._has_schemas |= any(row["table_name"] is None for row in seen.defaults)
        tables = {one: rows for one, rows in seen.tables.items() if seen.has_place or self._may_be(one, rows)}
        for table, rows in tables.items():
            self._fill_character_sets(table, rows)
        columns = (row for rows in tables.values() for row in rows)
        self._shapes.observe(columns, seen.defaults, seen.keys, has_place=seen.has_place)
        certainty = Certainty.CERTAIN if seen.has_place else Certainty.ASSUMED
        for table in tables:
            self._carry_back(table, Evidence(seen.snapshot_id))
            self._know(table, certainty, Evidence(seen.snapshot_id))
            self._note(place, table, is_observed=True)

    def _may_be(self, table: TableId, rows: Iterable[Mapping[str, Any]]) -> bool:
        """Return whether a table may be as a snapshot without a position shows it: it is unknown, or looks the same."""
        certainty, _ = self._known.get(table, (None, None))
        return certainty is not Certainty.CERTAIN or outline(_shown(self._columns(table) or ())) == outline(
            _shown(rows)
        )

    def _fill_character_sets(self, table: TableId, rows: Iterable[Mapping[str, Any]]) -> None:
        """Take from a snapshot the character sets that the last statement on a table did not tell."""
        last = next(iter(self.versions.get(table, [])[-1:]), None)
        if last is None or last.columns is None or last.certainty is Certainty.LOST:
            return
        seen = {lowered(row["column_name"]): row for row in rows}
        if outline(_shown(last.columns)) != outline(_shown(seen.values())):
            return
        columns = []
        for row in last.columns:
            there = seen.get(lowered(row["column_name"]), row)
            is_text = row["data_type"] in TEXT_TYPES and row["column_type"] == there["column_type"]
            if is_text and row["character_set"] is None:
                row = {**row, "character_set": there["character_set"], "collation": there.get("collation")}
            columns.append(row)
        self.versions[table][-1] = replace(last, columns=columns)

    def _carry_back(self, table: TableId, evidence: Evidence) -> None:
        """Tell what the table was before the statements that it was not known at."""
        steps = self._unapplied.pop(table, [])
        shape, upto = self._shapes.tables[table], len(self.versions.get(table, [])) - 1
        for step in reversed(steps):
            self._tell(table, range(step.behind, upto + 1), shape, evidence)
            earlier = before(shape, step.action)
            if earlier is None:
                return
            table, shape, upto = step.table, earlier, step.index
        if steps:
            self._tell(table, [upto], shape, evidence)

    def _tell(self, table: TableId, numbers: Iterable[int], shape: Shape, evidence: Evidence) -> None:
        columns = list(shape.column_rows(table))
        for number in numbers:
            then = self.versions[table][number]
            carried = Version(then.place, columns, certainty=Certainty.ASSUMED, evidence=evidence)
            self.versions[table][number] = replace(then, carried=carried)

    def _lose_sight(self, place: Place) -> None:
        """Statements may be missing before this place: tables may have changed, and others may exist by now."""
        self._doubt(Certainty.LOST)
        self._gaps |= dict.fromkeys(self._absent)
        self._absent.clear()
        self._shapes.forget_schemas()
        self._new_schemas.clear()
        self._has_observed = self._has_schemas = False
        for table in self.versions:
            self._note(place, table)

    def _doubt(self, at_most: Certainty) -> None:
        for table, (certainty, evidence) in self._known.items():
            self._known[table] = min(certainty, at_most), evidence

    def _may_change_columns(self, action: Action) -> bool:
        # ADD PERIOD makes the columns that it names NOT NULL.
        if action.action not in _CHANGES_NO_COLUMNS or action.key_columns:
            return True
        # A long unique key has a hidden column, and one that is USING HASH has it until the next ALTER TABLE.
        shape = self._shapes.tables.get(action.model)
        changes_keys = bool(action.keys or action.dropped_keys)
        return shape is not None and (changes_keys or any(is_hash(one.name, one.extra) for one in shape.columns))

    def _apply_beside_columns(self, action: Action) -> None:
        if action.action == "create_database":
            if self._has_schemas and action.schema_name not in self._shapes.schemas:
                # The schema is new: the snapshot would have shown an existing one.
                action = replace(action, is_conditional=False)
            if not action.is_conditional:
                self._new_schemas.add(action.schema_name)
        self._shapes.apply(action)

    def _apply(self, place: Place, action: Action) -> None:
        table = (action.schema_name or "", action.table_name or "")
        if action.statement_type == "DROP SEQUENCE" and not self._may_be_sequence(table):
            # IF EXISTS: the server leaves a table alone.
            return
        if self._is_view(table) and (action.action == "drop_table" or action.is_conditional_creation):
            # The server leaves a view alone.
            return
        made = Certainty.CERTAIN, Evidence(place=place)
        if action.action.startswith("create_"):
            if action.is_conditional and self._may_be_there(table):
                if table in self._known or self._gaps.get(table) is not None:
                    # The table exists, and the statement did nothing.
                    return
                made = Certainty.LOST, Evidence(place=place)
            elif not action.is_conditional:
                # The server carried it out, so the table no longer existed.
                self._shapes.tables.pop(table, None)
        concerned = self._concerned(action)
        self._hold(place, table, action)
        held = {one: self._columns(one) for one in concerned}
        may_be_there = self._may_be_there(table)
        known = self._known.get(action.model)
        try:
            self._shapes.apply(action)
        except ShapeError:
            self._lose(place, concerned, action)
            return
        for one in concerned:
            if one in self._shapes.tables:
                if held[one] == self._columns(one):
                    continue
                if action.action == "rename_table" and known is not None:
                    self._know(one, *known)
                else:
                    self._know(one, min(made[0], known[0]) if known is not None else made[0], made[1])
            elif action.action == "rename_table" and one != table:
                # The statement may have done nothing, or may have renamed a table of which nothing is known.
                if may_be_there:
                    self._forget(one, Evidence(place=place, detail=_RENAMED_UNKNOWN))
                    self._note(place, one)
            elif action.action in ("drop_table", "drop_database", "rename_table"):
                self._miss(one, place, "renamed" if action.action == "rename_table" else "dropped")
            if self._columns(one) != held[one]:
                self._note(place, one)
        if action.action == "drop_database" and not action.is_conditional:
            self._new_schemas.add(action.schema_name)

    def _hold(self, place: Place, table: TableId, action: Action) -> None:
        """Keep a statement on a table that is not known for sure, for a later snapshot of the table."""
        certainty, _ = self._known.get(table, (Certainty.LOST, None))
        is_known = table in self._absent or certainty is not Certainty.LOST
        if is_known or action.table_name is None or action.action.startswith(("create_", "drop_table")):
            for one in self._concerned(action):
                self._unapplied.pop(one, None)
            return
        is_renamed = action.action == "rename_table"
        now = self._concerned(action)[1] if is_renamed else table
        index, behind = (len(self.versions.setdefault(one, [*self._unheard_of])) for one in (table, now))
        self._unapplied[now] = [*self._unapplied.pop(table, []), _Step(action, table, index - 1, behind)]
        if action.is_conditional and not is_renamed:
            # It may have changed the table.
            self._note(place, table)

    def _know(self, table: TableId, certainty: Certainty, evidence: Evidence) -> None:
        self._known[table] = certainty, evidence
        self._gaps.pop(table, None)
        self._absent.pop(table, None)

    def _miss(self, table: TableId, place: Place, detail: str) -> None:
        self._shapes.tables.pop(table, None)
        self._known.pop(table, None)
        self._gaps.pop(table, None)
        self._absent[table] = Evidence(place=place, detail=detail)

    def _is_view(self, table: TableId) -> bool:
        return table in self._absent and self._absent[table].detail == _A_VIEW

    def _take_view(self, place: Place, action: Action) -> None:
        """Take a statement on a view: there is no table of this name, whatever was known."""
        table, is_dropped = (action.schema_name or "", action.table_name or ""), action.statement_type == "DROP VIEW"
        # Servers log DROP VIEW IF EXISTS of a table, too, which does nothing.
        may_be_table = not self._is_view(table) if is_dropped else table in self._known or self._may_be_there(table)
        if action.is_conditional and may_be_table:
            return
        self._unapplied.pop(table, None)
        self._miss(table, place, "dropped" if is_dropped else _A_VIEW)
        self._note(place, table)

    def _forget(self, table: TableId, evidence: Evidence | None) -> None:
        self._shapes.tables.pop(table, None)
        self._known.pop(table, None)
        self._absent.pop(table, None)
        self._gaps[table] = evidence

    def _may_be_there(self, table: TableId) -> bool:
        """Return whether a table may exist that no snapshot or statement has mentioned."""
        certainty, _ = self._known.get(table, (None, None))
        if table in self._gaps or certainty is Certainty.LOST:
            return True
        is_told = certainty is not None or table in self._absent or table[0] in self._new_schemas
        return not (is_told or self._has_observed)

    def _concerned(self, action: Action) -> list[TableId]:
        """Return the tables that an action may change."""
        if action.table_name is None:
            schema = action.schema_name
            known = {*self._shapes.tables, *self.versions}
            return sorted(table for table in known if schema is None or table[0] == schema)
        concerned = [(action.schema_name or "", action.table_name)]
        if action.action == "rename_table":
            concerned.append((action.other_schema_name or "", action.other_table_name or ""))
        return concerned

    def _lose(self, place: Place, tables: Iterable[TableId], action: Action) -> None:
        """Take the definitions of these tables for unknown from here on, because an action does not fit them."""
        for table in tables:
            if action.action == "rename_table" and table == (action.schema_name or "", action.table_name or ""):
                self._miss(table, place, "renamed")
            else:
                detail = self._why_unknown(table, action)
                self._forget(table, Evidence(place=place, detail=detail) if detail else self._gaps.get(table))
            self._note(place, table)

    def _why_unknown(self, table: TableId, action: Action) -> str | None:
        """Return why a definition is unknown after an action that does not fit it, None if it was unknown before."""
        match action.action:
            case "not_understood":
                return MAY_BE_TEMPORARY if action.detail == MAY_BE_TEMPORARY else "a statement is not understood"
            case "create_select":
                return "created with the columns of a query"
            case "create_like":
                return "created like a table that is not known"
            case "rename_table":
                return _RENAMED_UNKNOWN
        if table in self._absent:
            return "altered while it should not exist"
        return "altered in a way that its columns do not allow" if table in self._known else None

    def _may_be_sequence(self, table: TableId) -> bool:
        return (columns := self._columns(table)) is None or {row["column_name"] for row in columns} == SEQUENCE_COLUMNS

    def _note(self, place: Place, table: TableId, *, is_observed: bool = False, is_handed_over: bool = False) -> None:
        versions = self.versions.setdefault(table, [*self._unheard_of])
        certainty, evidence = self._known.get(
            table, (Certainty.CERTAIN, self._absent.get(table) or self._gaps.get(table))
        )
        columns = self._columns(table)
        versions.append(Version(place, columns, is_observed, is_handed_over, certainty, evidence))

    def _columns(self, table: TableId) -> list[dict[str, Any]] | None:
        shape = self._shapes.tables.get(table)
        return None if shape is None else list(shape.column_rows(table))


_A_VIEW: Final = "a view"
_RENAMED_UNKNOWN: Final = "renamed from a table that is not known"


def outline(rows: Iterable[Mapping[str, Any]]) -> list[tuple[str, str, bool]]:
    """Return name and type of each column in rows of `schema_columns`, and whether it is in the primary key."""
    return [
        (lowered(row["column_name"]), (row["data_type"] or "").lower(), row["primary_key_ordinal"] is not None)
        for row in rows
    ]


def _shown(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the columns that a server shows, in table order."""
    shown = (row for row in rows if not is_hash(row["column_name"], row["extra"] or ""))
    return sorted(shown, key=lambda row: row["ordinal_position"])
