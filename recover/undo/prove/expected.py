"""The rows that statements expect on a server before the first of them runs."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from recover.undo.rows.fold import Row
from recover.undo.rows.literals import Text
from recover.undo.rows.operations import Operation, Verb
from recover.undo.tables.table import Table


@dataclass(slots=True)
class Expected:
    """A row that must be on the server, or must not be there yet.

    Attributes
    ----------
    key
        Columns that find the row; empty if the table has no key.
    guard
        Further columns, with the values that the row must have.
    verb
        Verb of the first statement on the row: an `INSERT` needs that there is no row with its key.
    count
        How many equal rows of a table without a key must be there.
    wanted
        The values that the statements give the row.
    own_key
        Present key of the row, if a statement gives it another key: the server may treat both keys as equal.
    is_passing
        Whether a later statement takes the key away again, so that only this row tells that it must be free.
    """

    table: Table
    key: Row
    guard: Row
    verb: Verb
    count: int = 1
    wanted: Row = field(default_factory=dict)
    own_key: Row = field(default_factory=dict)
    is_passing: bool = False

    @property
    def is_absent(self) -> bool:
        """Whether no row may have this key."""
        return self.count == 0

    def as_operation(self) -> Operation:
        """Return a statement that finds exactly this row."""
        return Operation(self.table, "DELETE", self.key, self.guard, {})


def expected_rows(operations: Iterable[Operation], *, are_steps: bool) -> list[Expected]:
    """Return what the statements of one chain expect, in the order in which they run.

    Parameters
    ----------
    are_steps
        Whether a statement may change a row that an earlier one changed or made, as with `--by-transaction`. Otherwise
        each of them has a row of its own.
    """
    operations = [*operations]
    if not operations:
        return []
    return [*(_keyed(operations) if operations[0].table.row_key else _keyless(operations, are_steps))]


@dataclass(slots=True)
class _Touched:
    """A row while the statements run; `expected` is None if a statement inserted it."""

    expected: Expected | None
    values: Row


def _keyed(operations: Iterable[Operation]) -> Iterator[Expected]:
    now: dict[tuple[Text, ...], _Touched | None] = {}
    expected: list[Expected] = []
    absent: dict[tuple[Text, ...], Expected] = {}
    for operation in operations:
        table, names = operation.table, operation.table.row_key
        touched: _Touched | None = None
        if operation.verb != "INSERT":
            here = tuple(operation.key[name] for name in names)
            touched = now.get(here)
            if touched is None:
                touched = _Touched(Expected(table, operation.key, {}, operation.verb), {})
                assert touched.expected is not None
                expected.append(touched.expected)
            if touched.expected is not None:
                for name, value in operation.guard.items():
                    if name not in touched.values:
                        touched.expected.guard.setdefault(name, value)
                touched.expected.wanted.update(operation.values)
            now[here] = None
            if here in absent:
                absent[here].is_passing = True
        if operation.verb == "DELETE":
            continue
        values = {**operation.key, **operation.gives}
        if not values.keys() >= {*names}:
            continue
        goal = tuple(values[name] for name in names)
        moves = operation.verb == "INSERT" or any(values[name] != operation.key[name] for name in names)
        if moves and goal not in now:
            own = {} if touched is None or touched.expected is None else touched.expected.key
            key = {name: values[name] for name in names}
            absent[goal] = Expected(table, key, {}, operation.verb, 0, operation.values, own)
            expected.append(absent[goal])
        touched = touched or _Touched(None, {})
        touched.values.update(values)
        now[goal] = touched
    yield from expected


def _keyless(operations: Iterable[Operation], are_steps: bool) -> Iterator[Expected]:
    made: Counter[tuple[tuple[str, Text], ...]] = Counter()
    needed: Counter[tuple[tuple[str, Text], ...]] = Counter()
    first: dict[tuple[tuple[str, Text], ...], Operation] = {}
    for operation in operations:
        row = dict(operation.guard)
        if operation.verb != "INSERT":
            image = tuple(sorted(row.items(), key=lambda one: one[0]))
            if are_steps and made[image]:
                made[image] -= 1
            else:
                needed[image] += 1
                first.setdefault(image, operation)
        if are_steps and operation.verb != "DELETE":
            made[tuple(sorted({**row, **operation.values}.items(), key=lambda one: one[0]))] += 1
    for image, count in needed.items():
        operation = first[image]
        yield Expected(operation.table, {}, operation.guard, operation.verb, count)
