"""The order of statements, tried on the keys of all rows that the log has seen.

Folded statements have no order of their own. Two orders are tried; in each, every unique value must be free when a row
takes it, and every foreign key must have its parent. When neither works, only the reverse of commit order does.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from recover.sources.engine import registered
from recover.undo.options import Direction, Mode, UndoOptions
from recover.undo.plan.classify import Conflict
from recover.undo.plan.holders import Holder, Search, gone_or_replaced, holders, without_row
from recover.undo.prove.against import LiveServer, equals
from recover.undo.rows.equality import Part, parts_of_columns, parts_of_key, register
from recover.undo.rows.fold import UNKNOWN, Row
from recover.undo.rows.literals import UnprintableValueError
from recover.undo.rows.operations import Verb
from recover.undo.select.changes import key_of_row, label_of_row
from recover.undo.tables.added_keys import AddedKeys
from recover.undo.tables.ranks import table_ranks
from recover.undo.tables.table import ForeignKey, Table, TableName, UniqueKey

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
        source_id: str,
    ) -> None:
        self._connection = connection
        self._source = source_id
        # Claims are written while the connection still reads changes; its temporary tables would be its own.
        self._writer = connection.cursor()
        self._others = others
        self._tables = {table.name: table for table in tables}
        self.foreign_keys = [key for key in keys if key.table in self._tables or key.parent in self._tables]
        self._waiting: list[tuple[object, ...]] = []
        self._ranks = table_ranks(self._tables, keys)
        self._unique = {table.name: [*_unique_keys(table)] for table in tables}
        self._parts = {
            (table.name, names): parts_of_columns(table, names)
            for key in self.foreign_keys
            for name, names in ((key.table, key.columns), (key.parent, key.parent_columns))
            if (table := self._tables.get(name) or others.get(name)) is not None
        }
        self._added = AddedKeys(connection, source_id)
        register(connection)
        connection.execute(
            "create or replace table claims (grp varchar, parts varchar[], exact varchar[], forms varchar[],"
            " is_plain boolean, row_key varchar, verb varchar, rank int, place bigint, delta int)"
        )

    def is_needed(self, table: Table) -> bool:
        """Return whether statements on a table can meet a unique value or a foreign key."""
        return bool(self._unique[table.name]) or any(table.name in (key.table, key.parent) for key in self.foreign_keys)

    def add(self, table: Table, step: Step, now: Row | None, wanted: Row | None) -> None:
        """Record the values that a statement takes and gives up."""
        for number, (_, parts) in enumerate(self._unique[table.name]):
            self._add(f"unique {table.text} {number}", parts, step, now, wanted)
        for number, key in enumerate(self.foreign_keys):
            if key.table == table.name:
                self._add(f"child {number}", self._parts[table.name, key.columns], step, now, wanted)
            if key.parent == table.name:
                self._add(f"parent {number}", self._parts[table.name, key.parent_columns], step, now, wanted)

    def _add(self, group: str, parts: Sequence[Part], step: Step, now: Row | None, wanted: Row | None) -> None:
        if now is not None and wanted is not None and not _is_set(parts, now, wanted):
            return
        left, taken = _values(parts, now), _values(parts, wanted, now)
        for values, delta in ((left, -1), (taken, 1)):
            if values is not None:
                forms = [one.form(value) for one, value in zip(parts, values, strict=True)]
                exact, loose = [one.exact for one in forms], [one.loose for one in forms]
                self._waiting.append((group, values, exact, loose, all(one.is_plain for one in forms), *step, delta))
        if len(self._waiting) >= _ROWS_AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        if not self._waiting:
            return
        import pyarrow as pa

        names = ("grp", "parts", "exact", "forms", "is_plain", "row_key", "verb", "rank", "place", "delta")
        batch = pa.table(dict(zip(names, zip(*self._waiting, strict=True), strict=True)))
        with registered(self._writer, "waiting_claims", batch):
            self._writer.execute("insert into claims select * from waiting_claims")
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
        # Values that may be equal count as equal; so do all values of a part that is unknown in one of them.
        self._connection.execute(
            "create or replace temp view placed_claims as"
            " with groups as (select grp, list_transform(range(1, max(len(parts)) + 1), lambda number:"
            "  list_contains(list_transform(list(parts), lambda one: one[number] is null), true)) as are_unknown"
            "  from claims group by grp),"
            " known as (select claims.*, list_filter(forms, lambda one, number: not are_unknown[number]) as loose,"
            "  list_filter(exact, lambda one, number: not are_unknown[number]) as sure"
            "  from claims inner join groups using (grp))"
            " select *, if(bool_and(is_plain) over (partition by replace(grp, 'parent', 'child'), loose),"
            "  sure, loose)::varchar as val,"
            f" map {{{numbers}}}[verb] * 1000000000000000 +"
            " if(verb = 'DELETE', 10000 - rank, rank) * 100000000000 + place as turn"
            " from known"
        )
        return self._taken_unique() or self._orphan()

    def _taken_unique(self) -> str:
        found = self._connection.execute(
            "select grp from (select *,"
            " sum(case when delta < 0 then 1 else 0 end) over (partition by grp, val) +"
            " sum(delta) over (partition by grp, val order by turn, delta) as holders"
            " from placed_claims where starts_with(grp, 'unique')) where holders > 1 and delta = 1 limit 1"
        ).fetchone()
        if found is None:
            return ""
        return f"two rows would have the same unique value in {found[0].partition(' ')[2].rpartition(' ')[0]}"

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

    def outside(self, direction: Direction, server: LiveServer | None = None) -> Iterator["Obstacle"]:
        """Yield which rows keep what the plan is in need of: a unique value that it takes, a parent that it removes.

        A parent that the plan needs may be gone, too. A server knows better than the log which rows are there.
        """
        self._flush()
        is_redo, what = direction is Direction.REDO, direction.value
        for table in self._tables.values():
            for number, (key, parts) in enumerate(self._unique[table.name]):
                group = f"unique {table.text} {number}"
                if not self.claimed(group, 1):
                    continue
                added = self._added.unique(table.name, (part.column for part in key.parts if part.column))
                search = Search(self._source, table, parts, (group, 1), group, is_redo, bool(added))
                for one in self._holding(search, server):
                    has = "has" if one.is_sure else "may have"
                    text = f"{one.row} of {table.text} {has} a unique value ({key.text}) that the {what} needs"
                    yield Obstacle(table, one, text)
        for number, foreign in enumerate(self.foreign_keys):
            yield from self._children(number, foreign, is_redo, what)
            yield from self._parents(number, foreign, is_redo, what, server)

    def _holding(self, search: Search, server: LiveServer | None) -> list[Holder]:
        """Return the rows that hold a value which the plan takes."""
        logged = holders(self._connection, search)
        answers = {} if server is None else self._keys_on_server(search, server)
        transactions = {(one.row, one.claimant): one.transaction for one in logged}
        own = {row_key for row_key, _ in self._claims(search.own)}
        return [one for one in logged if one.claimant not in answers] + [
            Holder(label, transactions.get((f"row {key}", claimant), ""), True, claimant)
            for claimant, rows in answers.items()
            for key, label in rows.items()
            if key not in own
        ]

    def _keys_on_server(self, search: Search, server: LiveServer) -> dict[str, dict[str, str]]:
        """Return the keys, as the log has them, and labels of the rows on a server that have the value of each claim.

        A claim is left out if the server cannot be asked for it.
        """
        conditions: dict[str, str] = {}
        for claimant, values in self._claims(*search.values):
            with suppress(UnprintableValueError):
                known = [
                    equals(search.table.by_name[part.name], part.length, value)
                    for part, value in zip(search.parts, values, strict=True)
                    if part.name is not None and part.kind != "folded" and value is not None
                ]
                if len(known) == len(search.parts):
                    conditions[claimant] = " and ".join(known)
        found = server.keys_of(search.table, [*conditions.values()])
        keys = ({key_of_row(search.table, row): label_of_row(search.table, row) for row in rows} for rows in found)
        return dict(zip(conditions, keys, strict=True))

    def _claims(self, group: str, delta: int | None = None) -> list[tuple[str, list[str | None]]]:
        """Return the claims of a group: the key of the row, and the values."""
        return self._connection.execute(
            "select row_key, parts from claims where grp = $group and delta = coalesce($delta, delta) order by row_key",
            {"group": group, "delta": delta},
        ).fetchall()

    def unseen(self) -> Iterator[str]:
        """Yield the unique keys that are newer than the selection: rows that the log lacks may have their values."""
        self._flush()
        for table in self._tables.values():
            for number, (key, _) in enumerate(self._unique[table.name]):
                added = self._added.unique(table.name, (part.column for part in key.parts if part.column))
                is_taken = self.claimed(f"unique {table.text} {number}", 1)
                if added and is_taken and not self._added.shows_all_rows(table.name):
                    yield (
                        f"a row that the log does not show may have a value of unique key ({key.text}) of {table.text},"
                        f" which {added} added since: ask the server (--against)"
                    )

    def _children(self, number: int, key: ForeignKey, is_redo: bool, what: str) -> Iterator["Obstacle"]:
        """Yield the rows that refer to a parent which the plan removes."""
        parent, child = self._tables.get(key.parent), self._others.get(key.table)
        if parent is None or child is None or not self.claimed(f"parent {number}", -1):
            return
        parts = self._parts[child.name, key.columns]
        search = Search(self._source, child, parts, (f"parent {number}", -1), f"child {number}", is_redo)
        for one in holders(self._connection, search):
            refers = "refers" if one.is_sure else "may refer"
            text = f"{one.row} of {child.text} {refers} ({key.name}) to a row that the {what} removes"
            yield Obstacle(parent, one, text)

    def _parents(
        self, number: int, key: ForeignKey, is_redo: bool, what: str, server: LiveServer | None
    ) -> Iterator["Obstacle"]:
        """Yield the rows that are gone, or have another key, and that a row of the plan refers to."""
        child, parent = self._tables.get(key.table), self._others.get(key.parent)
        if child is None or parent is None or not self.claimed(f"child {number}", 1):
            return
        parts = self._parts[parent.name, key.parent_columns]
        search = Search(self._source, parent, parts, (f"child {number}", 1), f"parent {number}", is_redo)
        answers = {} if server is None else self._keys_on_server(search, server)
        needy = set(without_row(self._connection, search, is_given_only=True)) if answers else set()
        for claimant in sorted(needy & {claimant for claimant, keys in answers.items() if not keys}):
            text = f"row {claimant} of {child.text} has no parent in {parent.text} ({key.name}) on the server"
            yield Obstacle(child, Holder("", "", True, claimant), text)
        if added := self._added.foreign(child.name, key.columns):
            are_known = self._added.shows_all_rows(parent.name)
            for claimant in without_row(self._connection, search):
                if claimant in answers:
                    continue
                has = "has" if are_known else "may have"
                text = f"row {claimant} of {child.text} {has} no parent in {parent.text} ({key.name})"
                yield Obstacle(child, Holder("", added, are_known, claimant), text)
            return
        on_server = {claimant: [f"row {one}" for one in keys] for claimant, keys in answers.items()}
        gone, replaced = gone_or_replaced(self._connection, search, on_server)
        for one in replaced:
            text = f"the {what} refers ({key.name}) to {one.row} of {parent.text}, whose value another row has now"
            yield Obstacle(child, one, text)
        for one in gone:
            if one.claimant in answers:
                continue
            refers = "refers" if one.is_sure else "may refer"
            text = f"{one.row} of {parent.text}, to which the {what} {refers} ({key.name}), is gone or has another key"
            yield Obstacle(child, one, text)


class Obstacle(NamedTuple):
    """A row outside the plan, or one that is gone, because of which the server would refuse a row of the plan.

    Attributes
    ----------
    table
        Table of the row of the plan.
    holder
        The row in the way, and the row of the plan.
    text
        The reason without its end.
    """

    table: Table
    holder: Holder
    text: str

    @property
    def as_conflict(self) -> Conflict:
        """The row of the plan, as one that is left as it is."""
        return Conflict(self.table, self.holder.claimant, self.text, (), (*filter(None, (self.holder.transaction,)),))

    def problem(self, options: UndoOptions, selected: Collection[str], is_whole: bool) -> str:
        """Return the reason with the transaction that caused it, and with ways out.

        Parameters
        ----------
        selected
            The names of the selected transactions, which may be selected only in part.
        """
        transaction, ways = self.holder.transaction, []
        if transaction in selected:
            ways += [] if is_whole else ["take the whole transaction back (leave out --rows-only)"]
        elif transaction and is_whole and options.mode is not Mode.DEPENDENTS:
            ways.append("take that transaction back, too (--with-dependents)")
        if not options.by_transaction:
            ways.append(f"leave out row {self.holder.claimant} of {self.table.text} (--skip-conflicts)")
        if not self.holder.is_sure:
            ways.append("ask the server (--against)")
        ways = ways or ["change the row in the way by hand"]
        since = f", since {transaction}" if transaction else ""
        return f"{self.text}{since}: {', or '.join(ways)}"


def _unique_keys(table: Table) -> Iterator[tuple[UniqueKey, tuple[Part, ...]]]:
    """Yield the keys in which rows with different keys may be equal."""
    for key in table.all_keys:
        parts = parts_of_key(table, key)
        if key != UniqueKey.of_columns(table.row_key) or not all(one.is_exact for one in parts):
            yield key, parts


def _is_set(parts: Sequence[Part], now: Row, wanted: Row) -> bool:
    """Return whether a statement gives a key another value, or may do so."""
    names = {name for part in parts for name in part.sources}
    return any(now.get(name, UNKNOWN) != wanted.get(name, UNKNOWN) for name in names)


def _values(parts: Sequence[Part], row: Row | None, before: Row | None = None) -> list[str | None] | None:
    """Return the values of a key, None for unknown ones; no list if one of them is NULL, so that the key is free.

    A generated value is that of an image: it is unknown in a row that has columns of two images.
    """
    if row is None:
        return None
    values: list[str | None] = []
    for part in parts:
        value = part.value(row)
        is_mixed = before is not None and len(part.sources) > 2
        if value is None and not is_mixed:
            return None
        values.append(None if value == UNKNOWN or is_mixed else value)
    return values
