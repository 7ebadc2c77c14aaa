"""Foreign keys through the log: when each of them was there, and which names it and its columns had."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ingest.ddl.actions import INACTIVE_RULES, Action, Key
from ingest.ddl.history import Event, Hole, Observation, Place
from ingest.ddl.key_names import MAY_DROP_FOREIGN_KEYS, after_rename, with_added
from ingest.ddl.letter_case import lowered
from ingest.ddl.shapes import TableId


@dataclass(frozen=True)
class KeyInTime:
    """A foreign key from one place of the log to another.

    Attributes
    ----------
    name
        Its name, also one that the server has chosen.
    table, parent
        Names of its table and of the one that it refers to, in lower case, the present one last; no parent if the key
        is known only because a statement dropped it.
    columns, parent_columns
        For each column, the names that it had, in lower case.
    delete_rule, update_rule
        In upper case; NO ACTION if no rule is written, UNKNOWN if nothing shows it.
    since, until
        Behind the statement that added the key, and behind the one that dropped it; None: there from the beginning, or
        until the end.
    """

    name: str
    table: tuple[TableId, ...]
    parent: tuple[TableId, ...] = ()
    columns: tuple[tuple[str, ...], ...] = ()
    parent_columns: tuple[tuple[str, ...], ...] = ()
    delete_rule: str = "UNKNOWN"
    update_rule: str = "UNKNOWN"
    since: Place | None = None
    until: Place | None = None

    @property
    def is_cascading(self) -> bool:
        """Whether the key changes rows of its table when rows of its parent change."""
        return not {self.delete_rule, self.update_rule} <= INACTIVE_RULES

    def is_same(self, other: "KeyInTime") -> bool:
        """Return whether another evidence shows this key as it is now."""
        rules = {self.delete_rule, self.update_rule} - INACTIVE_RULES
        return (
            self.table[-1:] == other.table[-1:]
            and self.parent[-1:] == other.parent[-1:]
            and [names[-1] for names in self.columns] == [names[-1] for names in other.columns]
            and rules == {other.delete_rule, other.update_rule} - INACTIVE_RULES
            and (self.delete_rule in INACTIVE_RULES) == (other.delete_rule in INACTIVE_RULES)
        )


def foreign_keys_through(events: Iterable[tuple[Place, Event]]) -> list[KeyInTime]:
    """Return all foreign keys that snapshots and statements show.

    A key that a snapshot shows, and no statement before it, may always have been there.
    """
    fold = _Fold()
    for place, event in events:
        if isinstance(event, Observation):
            fold.observe(event)
        elif isinstance(event, Action):
            fold.apply(place[:3], event)
        elif isinstance(event, Hole):
            fold.complete.clear()
    return [*fold.ended, *(key for keys in fold.present.values() for key in keys)]


class _Fold:
    """The keys that are there at a place, by their tables, and those that ended before it."""

    def __init__(self) -> None:
        self.present: dict[TableId, list[KeyInTime]] = {}
        # Tables that are there and have no other foreign keys.
        self.complete: set[TableId] = set()
        self.ended: list[KeyInTime] = []

    def observe(self, seen: Observation) -> None:
        for table in seen.tables:
            if seen.keys is not None and seen.has_place:
                self.complete.add(_id(*table))
            keys = (seen.keys or {}).get(table, ())
            shown = [_key(_id(*table), key, None) for key in keys if key.is_foreign]
            there = self.present.setdefault(_id(*table), []) if shown else []
            there += [key for key in shown if not any(one.is_same(key) for one in there)]

    def apply(self, place: Place, action: Action) -> None:
        table = _id(action.schema_name, action.table_name)
        match action.action:
            case "create_table" | "create_select" | "create_like" if not action.is_conditional:
                self._end(place, table)
                self.complete.add(table)
            case "create_table" if table in self.complete:
                return
            case "drop_table":
                self._end(place, table)
            case "drop_database":
                for one in [one for one in self.present if one[0] == table[0]]:
                    self._end(place, one)
                self.complete = {one for one in self.complete if one[0] != table[0]}
            case "not_understood":
                # It may have added keys, and to any table if it names none.
                self.complete = {one for one in self.complete if action.table_name and one != table}
            case "rename_table":
                self._rename_table(table, _id(action.other_schema_name, action.other_table_name))
            case "rename_column" | "modify_column" if action.column_name and action.columns:
                self._rename_column(table, lowered(action.column_name), lowered(action.columns[0].name))
        if action.detail in MAY_DROP_FOREIGN_KEYS:
            for name in action.dropped_keys:
                self._drop(place, table, name, may_be_none=action.is_conditional or action.detail == "drop constraint")
        if any(key.is_foreign for key in action.keys):
            self._add(place, table, action)

    def _end(self, place: Place, table: TableId) -> None:
        self.ended += [replace(key, until=place) for key in self.present.pop(table, [])]
        self.complete.discard(table)

    def _rename_table(self, old: TableId, new: TableId) -> None:
        if old in self.complete:
            self.complete.remove(old)
            self.complete.add(new)
        if old in self.present:
            self.present[new] = [
                replace(key, name=after_rename(key.name, old[1], new[1]), table=(*key.table, new))
                for key in self.present.pop(old)
            ]
        for keys in self.present.values():
            keys[:] = [replace(key, parent=(*key.parent, new)) if key.parent[-1] == old else key for key in keys]

    def _rename_column(self, table: TableId, old: str, new: str) -> None:
        if old == new:
            return
        for child, keys in self.present.items():
            for at, key in enumerate(keys):
                columns = _with_name(key.columns, old, new) if child == table else key.columns
                is_parent = key.parent[-1] == table
                parent_columns = _with_name(key.parent_columns, old, new) if is_parent else key.parent_columns
                keys[at] = replace(key, columns=columns, parent_columns=parent_columns)

    def _drop(self, place: Place, table: TableId, name: str, *, may_be_none: bool) -> None:
        there = self.present.get(table, [])
        dropped = [key for key in there if lowered(key.name) == lowered(name)]
        there[:] = [key for key in there if key not in dropped]
        self.ended += [replace(key, until=place) for key in dropped]
        if not dropped and not (may_be_none and table in self.complete):
            self.ended.append(KeyInTime(name, (table,), until=place))

    def _add(self, place: Place, table: TableId, action: Action) -> None:
        there = self.present.setdefault(table, [])
        taken = [Key(key.name, (), referenced_table_name="") for key in there]
        keys = with_added(taken, (key for key in action.keys if key.is_foreign), table[1])
        there += [_key(table, key, place) for key in keys[len(taken) :]]


def _key(table: TableId, key: Key, since: Place | None) -> KeyInTime:
    return KeyInTime(
        key.name or "",
        (table,),
        (_id(key.referenced_schema_name or table[0], key.referenced_table_name),),
        tuple((lowered(column or ""),) for column in key.columns),
        tuple((lowered(column),) for column in key.referenced_columns),
        (key.delete_rule or "NO ACTION").upper(),
        (key.update_rule or "NO ACTION").upper(),
        since,
    )


def _with_name(columns: Sequence[tuple[str, ...]], old: str, new: str) -> tuple[tuple[str, ...], ...]:
    return tuple((*names, new) if names[-1] == old else names for names in columns)


def _id(schema: str | None, table: str | None) -> TableId:
    return lowered(schema or ""), lowered(table or "")
