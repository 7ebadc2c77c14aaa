"""Statements as data: the row, the values that it must have, and the values that it gets."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from recover.undo.rows.fold import UNKNOWN, History, Row
from recover.undo.rows.literals import Text
from recover.undo.tables.table import Table

Verb = Literal["INSERT", "UPDATE", "DELETE", "SELECT"]
"""A SELECT compares a row that the server itself has changed."""


def verb_between(now: Row | None, wanted: Row | None) -> Verb:
    """Return the verb of the statement that turns one row into another."""
    return "INSERT" if now is None else "DELETE" if wanted is None else "UPDATE"


@dataclass(frozen=True, slots=True)
class Operation:
    """One statement that changes, or finds, exactly one row.

    Attributes
    ----------
    key
        Columns that find the row as it is now; empty for an INSERT.
    guard
        Further columns, with the values that the row must have.
    values
        Columns that the statement sets.
    kept
        Columns that the statement sets to themselves, because the server would set them to the time.
    defaulted
        Columns that an INSERT leaves to the server, with the values that they get.
    computed
        Generated columns of the key, with the values that they get.
    """

    table: Table
    verb: Verb
    key: Row
    guard: Row
    values: Row
    kept: tuple[str, ...] = ()
    defaulted: Row = field(default_factory=dict)
    computed: Row = field(default_factory=dict)

    @property
    def gives(self) -> Row:
        """The values that the statement gives to columns: those that it sets, and those that follow from them."""
        return {**self.values, **self.defaulted, **self.computed}


Signature = tuple[Any, ...]
"""Facts that decide about a statement besides its values."""


def signature(operation: Operation) -> Signature:
    """Return a signature: the statements of two operations with the same signature differ only in literals."""
    key, guard, values = operation.key, operation.guard, operation.values
    nulls = [value is None for value in (*key.values(), *guard.values(), *values.values())]
    return (operation.verb, operation.table.name, *key, 0, *guard, 0, *values, 0, *operation.kept, *nulls)


class MissingValueError(Exception):
    """The log does not contain a value that a statement needs."""

    def __init__(self, column: str) -> None:
        super().__init__(column)
        self.column = column


def operation_between(table: Table, now: Row | None, wanted: Row | None) -> Operation | None:
    """Return the statement that turns one row into another; None if there is nothing to do.

    Raises
    ------
    MissingValueError
        The log does not contain a value that the statement needs.
    """
    if wanted is None:
        if now is None:
            return None
        key = _known(now, table.row_key)
        # The key finds the row if a value is unknown that the server chose for a column that was added since.
        chosen = {name for name, value in table.defaults.items() if key and value is UNKNOWN and name not in now}
        guarded = [name for name in table.stored_names if name not in key and name not in chosen]
        return Operation(table, "DELETE", key, _known(now, guarded), {})
    if now is None:
        return _insert(table, wanted)
    stamps = table.stamps
    names = [name for name in table.stored_names if name in wanted and wanted[name] != now.get(name, UNKNOWN)]
    values = {name: wanted[name] for name in names}
    if not values:
        return None
    kept = tuple(name for name in table.stored_names if name in stamps and name not in values) if stamps else ()
    computed = _computed(table, wanted)
    keeps_key = values.keys().isdisjoint(table.row_key) and all(now.get(name) == computed[name] for name in computed)
    if table.row_key and keeps_key:
        guarded = list(values)
    else:
        # Another row may have the key by now. If a row loses its key, or has none, only all of its values identify it.
        guarded = [
            name for name in table.stored_names if name in now and (not table.row_key or now[name] is not UNKNOWN)
        ]
    key = _known(now, table.row_key)
    guard = _known(now, [name for name in guarded if name not in key])
    return Operation(table, "UPDATE", key, guard, _known(values, values), kept, computed=computed)


def _computed(table: Table, wanted: Row) -> Row:
    # A generated column that became the key later has no value in the log.
    names = table.generated_key
    return {name: value for name in names if (value := wanted.get(name, UNKNOWN)) is not UNKNOWN} if names else {}


def _insert(table: Table, wanted: Row) -> Operation:
    left = {name: value for name, value in table.defaults.items() if wanted.get(name, UNKNOWN) == value}
    names = [name for name in table.stored_names if name not in left]
    defaulted = {name: value for name, value in left.items() if value is not UNKNOWN}
    values = _known(wanted, names)
    return Operation(table, "INSERT", {}, {}, values, defaulted=defaulted, computed=_computed(table, wanted))


def inverse(table: Table, before: Row | None, after: Row | None) -> Operation | None:
    """Return the statement that takes back one change of a row, by its images. Raises `MissingValueError`."""
    if before is not None and after is not None:
        for name in table.stored_names:
            if name in after and name not in before:
                raise MissingValueError(name)
    return operation_between(table, after, before)


def undo_of(table: Table, history: History) -> Operation | None:
    """Return the statement that takes back what the selection did to a row. Raises `MissingValueError`."""
    return operation_between(table, history.row, history.row_before)


def redo_of(table: Table, history: History) -> Operation | None:
    """Return the statement that does again what the selection did to a row. Raises `MissingValueError`."""
    if history.existed is False:
        return operation_between(table, None, history.after) if history.exists_after else None
    if history.existed and not history.exists_after:
        return operation_between(table, history.before, None)
    now = {**history.first_key, **history.before}
    operation = operation_between(table, now, {**now, **history.after})
    if operation is None:
        return None
    # The undo may have kept a time that a later update set.
    free = table.stamps if table.row_key else frozenset()
    guard = {name: value for name, value in operation.guard.items() if name not in free}
    return replace(operation, guard=guard)


def apply(operations: Iterable[Operation], rows: Sequence[Row]) -> list[Row]:
    """Run statements on rows as a server would, and return the rows.

    Raises
    ------
    ValueError
        A statement does not change exactly one row, or two rows have the same key.
    """
    rows = [dict(row) for row in rows]
    for operation in operations:
        if operation.verb == "INSERT":
            rows.append(operation.gives)
        else:
            wanted = {**operation.key, **operation.guard}
            found = [place for place, row in enumerate(rows) if wanted.items() <= row.items()]
            # Without a key the statement has LIMIT 1: equal rows are interchangeable.
            if not found or (len(found) > 1 and operation.table.row_key):
                raise ValueError(f"{operation.verb} of {operation.table.text} would change {len(found)} rows")
            if operation.verb == "DELETE":
                del rows[found[0]]
            else:
                rows[found[0]].update(operation.gives)
        key = operation.table.row_key
        taken = [tuple(row.get(name) for name in key) for row in rows] if key and len(rows) > 1 else []
        if len(taken) != len({*taken}):
            raise ValueError(f"{operation.verb} of {operation.table.text} would give two rows the same key")
    return rows


def in_order(operations: Sequence[Operation]) -> list[Operation] | None:
    """Order the statements of rows that exchanged keys so that a key is free when a row takes it; None if none can."""
    if len(operations) < 2:
        return list(operations)
    left = list(operations)
    ordered: list[Operation] = []
    while left:
        held = {_key_of(one, one.key) for one in left if one.verb != "INSERT"}
        free = [one for one in left if (goal := _goal(one)) is None or goal not in held - {_key_of(one, one.key)}]
        if not free:
            return None
        first = min(free, key=lambda one: one.verb != "DELETE")
        ordered.append(first)
        left = [one for one in left if one is not first]
    return ordered


def _goal(operation: Operation) -> tuple[Text, ...] | None:
    """Return the key that a statement takes, if it takes a new one."""
    names = operation.table.row_key
    gives = operation.gives
    if operation.verb == "DELETE" or not names or not any(name in gives for name in names):
        return None
    return _key_of(operation, {**operation.key, **gives})


def _key_of(operation: Operation, row: Row) -> tuple[Text, ...]:
    return tuple(row.get(name) for name in operation.table.row_key)


def _known(row: Row, names: Iterable[str]) -> Row:
    found = {name: row.get(name, UNKNOWN) for name in names}
    if UNKNOWN in found.values():
        for name, value in found.items():
            if value is UNKNOWN:
                raise MissingValueError(name)
    return found
