"""Foreign keys through the log: when each of them was there, and which names it and its columns had."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from ingest.ddl.actions import INACTIVE_RULES, Action, Key
from ingest.ddl.history import Event, Observation, Place
from ingest.ddl.key_names import named
from ingest.ddl.letter_case import lowered
from ingest.ddl.shapes import TableId

_DROPPING = ("drop foreign key", "drop constraint")


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
    """Return all foreign keys that snapshots and statements show, in the order in which they became known.

    A key that a snapshot shows, and no statement before it, may always have been there.
    """
    fold = _Fold()
    for place, event in events:
        if isinstance(event, Observation):
            fold.observe(event)
        elif isinstance(event, Action):
            fold.apply(place[:3], event)
    return fold.keys


class _Fold:
    """The keys so far; those without an end are there at the present place."""

    def __init__(self) -> None:
        self.keys: list[KeyInTime] = []

    def observe(self, seen: Observation) -> None:
        for table in seen.tables:
            for name, key in named((seen.keys or {}).get(table, ()), table[1]):
                if key.is_foreign:
                    found = _key(name, _id(*table), key, None)
                    if not any(one.until is None and one.is_same(found) for one in self.keys):
                        self.keys.append(found)

    def apply(self, place: Place, action: Action) -> None:
        table, other = (
            _id(action.schema_name, action.table_name),
            _id(action.other_schema_name, action.other_table_name),
        )
        match action.action:
            case "create_table" | "create_select" | "create_like" if not action.is_conditional:
                self._change(table, lambda key: replace(key, until=place))
            case "drop_table":
                self._change(table, lambda key: replace(key, until=place))
            case "drop_database":
                self.keys = [
                    replace(key, until=place) if key.until is None and key.table[-1][0] == table[0] else key
                    for key in self.keys
                ]
            case "rename_table":
                self.keys = [_with_table(key, table, other) if key.until is None else key for key in self.keys]
            case "rename_column" | "modify_column" if action.column_name and action.columns:
                self._rename_column(table, lowered(action.column_name), lowered(action.columns[0].name))
        for name in action.dropped_keys:
            self._drop(place, table, name, action)
        self._add(place, table, action)

    def _change(self, table: TableId, change: Callable[[KeyInTime], KeyInTime]) -> None:
        self.keys = [change(key) if key.until is None and key.table[-1] == table else key for key in self.keys]

    def _rename_column(self, table: TableId, old: str, new: str) -> None:
        if old == new:
            return
        for at, key in enumerate(self.keys):
            if key.until is None and key.table[-1] == table:
                key = replace(key, columns=_with_name(key.columns, old, new))
            if key.until is None and key.parent[-1:] == (table,):
                key = replace(key, parent_columns=_with_name(key.parent_columns, old, new))
            self.keys[at] = key

    def _drop(self, place: Place, table: TableId, name: str, action: Action) -> None:
        is_known = False
        for at, key in enumerate(self.keys):
            if key.until is None and key.table[-1] == table and lowered(key.name) == lowered(name):
                self.keys[at], is_known = replace(key, until=place), True
        if not is_known and action.detail in _DROPPING and not action.is_conditional:
            self.keys.append(KeyInTime(name, (table,), until=place))

    def _add(self, place: Place, table: TableId, action: Action) -> None:
        new = [key for key in action.keys if key.is_foreign]
        if not new:
            return
        there = [
            Key(key.name, (), referenced_table_name="")
            for key in self.keys
            if key.until is None and key.table[-1] == table
        ]
        names = [name for name, _ in named([*there, *new], table[1])][len(there) :]
        for name, key in zip(names, new, strict=True):
            self.keys.append(_key(name, table, key, place))


def _key(name: str, table: TableId, key: Key, since: Place | None) -> KeyInTime:
    return KeyInTime(
        name,
        (table,),
        (_id(key.referenced_schema_name or table[0], key.referenced_table_name),),
        tuple((lowered(column or ""),) for column in key.columns),
        tuple((lowered(column),) for column in key.referenced_columns),
        (key.delete_rule or "NO ACTION").upper(),
        (key.update_rule or "NO ACTION").upper(),
        since,
    )


def _with_table(key: KeyInTime, old: TableId, new: TableId) -> KeyInTime:
    if key.table[-1] == old:
        key = replace(key, table=(*key.table, new))
    if key.parent[-1:] == (old,):
        key = replace(key, parent=(*key.parent, new))
    return key


def _with_name(columns: Sequence[tuple[str, ...]], old: str, new: str) -> tuple[tuple[str, ...], ...]:
    return tuple((*names, new) if names[-1] == old else names for names in columns)


def _id(schema: str | None, table: str | None) -> TableId:
    return lowered(schema or ""), lowered(table or "")
