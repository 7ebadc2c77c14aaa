"""The order of statements, tried on the keys of all rows that the log has seen.

Folded statements have no order of their own. Two orders are tried; in each, every unique value must be free when a row
takes it, and every foreign key must have its parent. When neither works, only the reverse of commit order does.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from recover.undo.classify import Direction
from recover.undo.fold import UNKNOWN, Row
from recover.undo.holders import Search, holders
from recover.undo.literals import LABELS, TEXTS
from recover.undo.operations import Verb
from recover.undo.tables import ForeignKey, Table, TableName

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

ORDERS: Final[tuple[tuple[Verb, ...], ...]] = (("INSERT", "UPDATE", "DELETE"), ("DELETE", "UPDATE", "INSERT"))
"""Orders of verbs: the first keeps foreign keys whole, the second frees unique values before they are taken."""

ORDERS_THAT_CARRY: Final[tuple[tuple[Verb, ...], ...]] = (
    ("INSERT", "UPDATE", "DELETE"),
    ("UPDATE", "INSERT", "DELETE"),
    ("UPDATE", "DELETE", "INSERT"),
)
"""Orders for a plan in which the server changes the children of updated rows: a child is deleted as it is then."""

_ROWS_AT_ONCE: Final = 20_000


def table_ranks(tables: Iterable[TableName], foreign_keys: Sequence[ForeignKey]) -> dict[TableName, int]:
    """Return a rank for each table: parents before their children, as far as foreign keys have no circles."""
    left = sorted(tables)
    parents = {table: {key.parent for key in foreign_keys if key.table == table} - {table} for table in left}
    ranks: dict[TableName, int] = {}
    while left:
        free = [table for table in left if not parents[table] & {*left}] or left[:1]
        for table in free:
            ranks[table] = len(ranks)
        left = [table for table in left if table not in ranks]
    return ranks


class Step(NamedTuple):
    """The row that a statement changes, and when it does.

    Attributes
    ----------
    row_key
        The key of the row now, as the log has it.
    verb
        The verb of the statements that it is printed with: rows that exchanged keys have one for all of theirs.
    rank, place
        Rank of its table, and its place among the statements of the table.
    """

    row_key: str
    verb: Verb
    rank: int
    place: int


class Claims:
    """The effects of a plan's statements on unique values and foreign keys."""

    def __init__(
        self,
        connection: "DuckDBPyConnection",
        tables: Sequence[Table],
        keys: Sequence[ForeignKey],
        others: Mapping[TableName, Table],
    ) -> None:
        self._connection = connection
        # Claims are written while the connection still reads changes; its temporary tables would be its own.
        self._writer = connection.cursor()
        self._others = others
        self._tables = {table.name: table for table in tables}
        self.foreign_keys = [key for key in keys if key.table in self._tables or key.parent in self._tables]
        self._waiting: list[tuple[str, str, str, str, int, int, int]] = []
        self._ranks = table_ranks(self._tables, keys)
        self._unique = {
            table.name: [
                key
                for key in table.unique_keys
                if key != table.row_key and not any(table.by_name[name].is_generated for name in key)
            ]
            for table in tables
        }
        connection.execute(
            "create or replace table claims (grp varchar, val varchar, row_key varchar, verb varchar, rank int,"
            " place bigint, delta int)"
        )

    def is_needed(self, table: Table) -> bool:
        """Return whether statements on a table can meet a unique value or a foreign key."""
        return bool(self._unique[table.name]) or any(table.name in (key.table, key.parent) for key in self.foreign_keys)

    def add(self, table: Table, step: Step, now: Row | None, wanted: Row | None) -> None:
        """Record the values that a statement takes and gives up."""
        for number, names in enumerate(self._unique[table.name]):
            self._add(f"unique {table.text} {number}", table, names, step, now, wanted)
        for number, key in enumerate(self.foreign_keys):
            if key.table == table.name:
                self._add(f"child {number}", table, key.columns, step, now, wanted)
            if key.parent == table.name:
                self._add(f"parent {number}", table, key.parent_columns, step, now, wanted)

    def _add(
        self, group: str, table: Table, names: Sequence[str], step: Step, now: Row | None, wanted: Row | None
    ) -> None:
        left, taken = _value(table, now, names), _value(table, wanted, names)
        if left == taken:
            return
        for value, delta in ((left, -1), (taken, 1)):
            if value is not None:
                self._waiting.append((group, value, *step, delta))
        if len(self._waiting) >= _ROWS_AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        if not self._waiting:
            return
        import pyarrow as pa

        names = ("grp", "val", "row_key", "verb", "rank", "place", "delta")
        batch = pa.table(dict(zip(names, zip(*self._waiting, strict=True), strict=True)))
        self._writer.register("waiting_claims", batch)
        self._writer.execute("insert into claims select * from waiting_claims")
        self._writer.unregister("waiting_claims")
        self._waiting.clear()

    def has(self, table: Table) -> bool:
        """Return whether the plan contains a table."""
        return table.name in self._tables

    def rank(self, table: Table) -> int:
        """Return the rank of a table: parents have lower ranks than their children."""
        return self._ranks[table.name]

    def problem(self, order: Sequence[Verb]) -> str:
        """Return why an order of verbs cannot work, empty if it can."""
        self._flush()
        numbers = ", ".join(f"'{verb}': {number}" for number, verb in enumerate(order))
        self._connection.execute(
            "create or replace temp view placed_claims as select *,"
            f" map {{{numbers}}}[verb] * 1000000000000000 +"
            " if(verb = 'DELETE', 10000 - rank, rank) * 100000000000 + place as turn"
            " from claims"
        )
        return self._taken_unique() or self._orphan()

    def _taken_unique(self) -> str:
        found = self._connection.execute(
            "select grp, val from (select *,"
            " sum(case when delta < 0 then 1 else 0 end) over (partition by grp, val) +"
            " sum(delta) over (partition by grp, val order by turn, delta) as holders"
            " from placed_claims where starts_with(grp, 'unique')) where holders > 1 limit 1"
        ).fetchone()
        return "" if found is None else f"two rows would have the same unique value in {found[0].split(' ')[1]}"

    def _orphan(self) -> str:
        for number, key in enumerate(self.foreign_keys):
            found = self._connection.execute(
                "with parents as (select val, turn, delta from placed_claims where grp = $parent),"
                " children as (select val, turn, delta from placed_claims where grp = $child),"
                " orphans as ("
                "  select children.val from children where children.delta > 0"
                "  and exists (select 1 from parents where parents.val = children.val)"
                "  and (select if(min(parents.delta) < 0, 1, 0) +"
                "         coalesce(sum(parents.delta) filter (where parents.turn <= children.turn), 0)"
                "       from parents where parents.val = children.val) < 1),"
                " left_alone as ("
                "  select parents.val from parents where parents.delta < 0"
                "  and (select count(*) filter (where children.delta < 0) +"
                "         coalesce(sum(children.delta) filter (where children.turn <= parents.turn), 0)"
                "       from children where children.val = parents.val) > 0)"
                " select val from orphans union all select val from left_alone limit 1",
                {"parent": f"parent {number}", "child": f"child {number}"},
            ).fetchone()
            if found is not None:
                return f"foreign key {key.name} of {'.'.join(key.table)} would have no parent for a moment"
        return ""

    def claimed(self, group: str, delta: int) -> int:
        """Return how many values of a group are taken (1) or given up (-1)."""
        self._flush()
        row = self._connection.execute(
            "select count(*) from claims where grp = ? and delta = ?", [group, delta]
        ).fetchone()
        return int(row[0]) if row else 0

    def outside(self, source_id: str, direction: Direction) -> Iterator[str]:
        """Yield which rows keep what the plan is in need of: a unique value that it takes, a parent that it removes."""
        self._flush()
        is_redo, what = direction is Direction.REDO, direction.value
        for table in self._tables.values():
            for number, names in enumerate(self._unique[table.name]):
                group = f"unique {table.text} {number}"
                if not self.claimed(group, 1):
                    continue
                search = Search(source_id, table, names, (group, 1), group, is_redo)
                for one in holders(self._connection, search):
                    has = "has" if one.is_sure else "may have"
                    yield (
                        f"{one.row} of {table.text} {has} a unique value ({', '.join(names)}) that the {what} needs,"
                        f" since {one.transaction}"
                    )
        for number, key in enumerate(self.foreign_keys):
            child = self._others.get(key.table)
            if child is None or not self.claimed(f"parent {number}", -1):
                continue
            search = Search(source_id, child, key.columns, (f"parent {number}", -1), f"child {number}", is_redo)
            for one in holders(self._connection, search):
                refers = "refers" if one.is_sure else "may refer"
                yield (
                    f"{one.row} of {child.text} {refers} ({key.name}) to a row that the {what} removes,"
                    f" since {one.transaction}"
                )


def _value(table: Table, row: Row | None, names: Sequence[str]) -> str | None:
    """Return a text that is the same for all values that a server may treat as equal; None if a value is NULL."""
    if row is None:
        return None
    parts = []
    for name in names:
        value = row.get(name, UNKNOWN)
        if value is None:
            return None
        column = table.by_name[name]
        folds = column.data_type in TEXTS | LABELS
        parts.append((value.rstrip(" ").lower() if folds else value).replace("|", "||"))
    return " | ".join(parts)
