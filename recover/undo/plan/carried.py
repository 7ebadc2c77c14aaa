"""Rows that a server changes by itself while the statements of a plan run: children of a parent with a new key.

ON UPDATE CASCADE gives children the new key, also when an undo gives the parent its old key back. ON UPDATE SET NULL
empties their columns. A statement on such a child finds the row as the server has left it; if nothing is left to do,
the row is only compared.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from recover.undo.rows.fold import UNKNOWN, Row
from recover.undo.rows.literals import LABELS, TEXTS, Text
from recover.undo.rows.operations import Operation
from recover.undo.tables.table import ForeignKey, Table, TableName

Turn = tuple[int, int]
"""Rank of a table and place of a chain: the order of statements of one verb."""

_CARRYING: Final = ("CASCADE", "SET NULL")
_MOST: Final = 200_000
"""Parents with another key are in memory."""


class CarryError(Exception):
    """The server would change a row in a way that the plan does not contain. The message is a sentence without end."""


@dataclass(frozen=True, slots=True)
class _Carry:
    """A parent that gets another key: its key until then, and the values that its children get."""

    turn: Turn
    key: tuple[Text, ...]
    values: tuple[Text, ...]


@dataclass
class CarriedRows:
    """The children that statements on their parents change.

    Attributes
    ----------
    keys
        Foreign keys whose parents may carry their children.
    """

    keys: tuple[ForeignKey, ...] = ()
    _carries: dict[tuple[int, tuple[Text, ...]], list[_Carry]] = field(default_factory=dict)
    _numbers: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, foreign_keys: Iterable[ForeignKey]) -> "CarriedRows":
        """Return the rows that foreign keys carry. Within one table, servers refuse to do so."""
        return cls(tuple(key for key in foreign_keys if key.update_rule in _CARRYING and key.table != key.parent))

    def __bool__(self) -> bool:
        return bool(self._carries)

    def of_child(self, table: TableName) -> "CarriedRows":
        """Return what may happen to the rows of one table."""
        numbers = {number for number in self._numbers if self.keys[number].table == table}
        if not numbers:
            return CarriedRows()
        carries = {key: found for key, found in self._carries.items() if key[0] in numbers}
        return CarriedRows(self.keys, carries, numbers)

    def add(self, table: Table, turn: Turn, now: Row, then: Row) -> list[ForeignKey]:
        """Record that a statement changes a row of a parent; return the foreign keys by which it carries children."""
        found = []
        for number, key in enumerate(self.keys):
            if key.parent != table.name:
                continue
            old = tuple(now.get(name, UNKNOWN) for name in key.parent_columns)
            new = tuple(then.get(name, UNKNOWN) for name in key.parent_columns)
            if old == new or None in old:
                continue
            if UNKNOWN in old or UNKNOWN in new:
                raise CarryError(f"the log lacks a key of {table.text} that foreign key {key.name} refers to")
            values = new if key.update_rule == "CASCADE" else (None,) * len(new)
            place = (number, folded(table, key.parent_columns, old))
            self._carries.setdefault(place, []).append(_Carry(turn, old, values))
            self._numbers.add(number)
            found.append(key)
        if len(self._carries) > _MOST:
            raise CarryError(f"more than {_MOST} rows of parents get another key: select less")
        return found

    def forget(self, table: Table, row: Row) -> None:
        """Record that a row of a parent takes its keys: the row that had them before carries no children any more."""
        for number, key in enumerate(self.keys):
            if key.parent == table.name and number in self._numbers:
                taken = tuple(row.get(name, UNKNOWN) for name in key.parent_columns)
                self._carries.pop((number, folded(table, key.parent_columns, taken)), None)

    def steps(self, table: Table, row: Row) -> list[tuple[Turn, Row]]:
        """Return the row of a child after each statement that carries it, with the turns of these statements."""
        found: list[tuple[Turn, Row]] = []
        numbers = [number for number in self._numbers if self.keys[number].table == table.name]
        while numbers:
            ready: list[tuple[_Carry, ForeignKey]] = []
            for number in numbers:
                key = self.keys[number]
                value = tuple(row.get(name, UNKNOWN) for name in key.columns)
                for carry in self._carries.get((number, folded(table, key.columns, value)), ()):
                    if not found or carry.turn > found[-1][0]:
                        if carry.key != value:
                            raise CarryError(
                                f"texts in foreign key {key.name} of {table.text} differ only in case or spaces"
                                " from those of their parent"
                            )
                        ready.append((carry, key))
                        break
            if not ready:
                break
            turn = min(carry.turn for carry, _ in ready)
            new: Row = {}
            for carry, key in ready:
                if carry.turn != turn:
                    continue
                for name, text in zip(key.columns, carry.values, strict=True):
                    if new.setdefault(name, text) != text:
                        raise CarryError(f"two foreign keys of {table.text} give column {name} different values")
            row = {**row, **new}
            found.append((turn, row))
        return found

    def assert_left_alone(self, table: Table, rows: Iterable[Row]) -> None:
        """Raise `CarryError` if the server changes one of some rows that the plan leaves as they are."""
        for row in rows:
            if self.steps(table, row):
                key = "|".join(str(row.get(name)) for name in table.row_key)
                raise CarryError(f"the server would also change row {key} of {table.text}, which the plan leaves alone")

    def adjusted(self, operation: Operation, now: Row) -> Operation:
        """Return a statement for a row as the server has left it; `now` is the row before all statements."""
        table = operation.table
        steps = self.steps(table, now)
        if not steps:
            return operation
        carried = steps[-1][1]
        new = {name: value for name, value in carried.items() if now.get(name, UNKNOWN) != value}
        if not table.row_key:
            raise CarryError(f"{table.text} has no key that would find the rows which the server itself changes")
        values = {name: value for name, value in operation.values.items() if carried.get(name, UNKNOWN) != value}
        if operation.verb == "UPDATE" and {**carried, **values} != {**now, **operation.values}:
            raise CarryError(
                f"the server would change {', '.join(sorted(new))} of row {'|'.join(map(str, operation.key.values()))}"
                f" of {table.text} to a value that the plan does not contain (--with-cascades adds what the log lacks)"
            )
        key = {name: new.get(name, value) for name, value in operation.key.items()}
        guard = {name: new.get(name, value) for name, value in operation.guard.items()}
        adjusted = replace(operation, key=key, guard=guard, values=values)
        if operation.verb == "UPDATE" and not values:
            return replace(adjusted, verb="SELECT", kept=())
        return adjusted


class RunningRows:
    """The rows that a server changes while statements run change by change, in the reverse of commit order."""

    def __init__(self, foreign_keys: Iterable[ForeignKey]) -> None:
        self._carried = CarriedRows.of(foreign_keys)
        self._turn = 0

    def adjusted(self, operation: Operation, now: Row | None, wanted: Row | None) -> Operation:
        """Return the next statement, from a row to another, for the row as the server has left it."""
        table, carried = operation.table, now
        if not any(table.name in (key.table, key.parent) for key in self._carried.keys):
            return operation
        if now is not None:
            operation = self._carried.adjusted(operation, now)
            for _, row in self._carried.steps(table, now):
                self._move(table, carried or now, row)
                carried = row
        if wanted is not None and carried is not None:
            self._move(table, carried, {**carried, **wanted})
        elif wanted is not None:
            self._carried.forget(table, wanted)
        return operation

    def _move(self, table: Table, now: Row, then: Row) -> None:
        self._turn += 1
        if self._carried.add(table, (self._turn, 0), now, then):
            self._carried.forget(table, then)


def of_rows(effects: Iterable[tuple[str, Row | None, Row | None]], table: Table) -> Mapping[tuple[Text, ...], Row]:
    """Return the rows that statements change, by their keys."""
    return {tuple(now.get(name) for name in table.row_key): now for _, now, _ in effects if now is not None}


def folded(table: Table, names: Iterable[str], values: Iterable[Text]) -> tuple[Text, ...]:
    """Return values in a form that is the same for all values that a server may treat as equal."""
    return tuple(
        value.rstrip(" ").lower() if value is not None and table.by_name[name].data_type in TEXTS | LABELS else value
        for name, value in zip(names, values, strict=True)
    )
