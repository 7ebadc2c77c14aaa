"""Random transactions whose later writes are always visible: every value is written once."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

TABLES = {
    "p": "create table p (id int primary key, code varchar(20) character set utf8mb4 not null, a int,"
    " b varchar(30) character set latin1, d decimal(10,2), unique key (code))",
    "c": "create table c (id int primary key auto_increment, p_id int null, a double, b varbinary(20),"
    " e enum('x','y','z'), constraint c_p foreign key (p_id) references p (id))",
    "k": "create table k (a int null, b varchar(10) character set utf8mb4 null, c bit(5))",
    "w": "create table w (x varchar(10) character set utf8mb4 not null, y int not null, v int, t datetime null,"
    " s timestamp null default null on update current_timestamp, primary key (x, y))",
    "n": "create table n (a int not null, b int not null, name varchar(10) character set utf8mb4"
    " collate utf8mb4_general_ci, latin varchar(20) character set latin1 collate latin1_german2_ci, x double,"
    " primary key (b, a), unique key (name), unique key (latin(3)), unique key (x))",
    "q": "create table q (q int not null, e enum('','x','y'), v int, n_a int, n_b int,"
    " s timestamp null default null on update current_timestamp, unique key (q),"
    " constraint q_n foreign key (n_b, n_a) references n (b, a))",
}
"""Keys of one and several columns, also in another order; unique keys under collations, of the beginnings of texts, of
floating-point numbers, and instead of a primary key; foreign keys, no key, and a time of update."""

FIRST_MARK = 10000

Rows = dict[str, Counter[tuple[str | None, ...]]]
Row = dict[str, str | None]
LoggedChange = tuple[str, str, dict[str, str | None] | None, dict[str, str | None] | None, bool]


@dataclass(frozen=True)
class Alteration:
    """An ALTER TABLE, and the values that a row of the table has after it."""

    table: str
    clauses: str
    altered: Callable[[Row], Row] = dict


def _with(**values: str | None) -> Callable[[Row], Row]:
    return lambda row: {**row, **values}


def _without(*names: str) -> Callable[[Row], Row]:
    return lambda row: {name: value for name, value in row.items() if name not in names}


def _renamed(old: str, new: str) -> Callable[[Row], Row]:
    return lambda row: {new if name == old else name: value for name, value in row.items()}


ALTERATIONS = (
    Alteration("p", "add column z int", _with(z=None)),
    Alteration("p", "add column z int not null default 7 first", _with(z="7")),
    Alteration("p", "drop column d", _without("d")),
    Alteration("p", "modify a bigint after b"),
    Alteration("p", "change a renamed int", _renamed("a", "renamed")),
    Alteration("p", "drop index code"),
    Alteration("c", "drop foreign key c_p"),
    Alteration("c", "add column z varchar(5) not null default 'z' after id", _with(z="z")),
    Alteration("c", "drop column e, modify b varbinary(40)", _without("e")),
    Alteration("k", "add column z int default 4 after a", _with(z="4")),
    Alteration("w", "drop column v", _without("v")),
    Alteration("w", "modify x varchar(20) character set utf8mb4 not null, add column z int first", _with(z=None)),
    Alteration("n", "drop column x", _without("x")),
    Alteration("n", "drop index latin, modify name varchar(20) character set utf8mb4 collate utf8mb4_bin"),
    Alteration("q", "drop foreign key q_n, drop column n_a, drop column n_b", _without("n_a", "n_b")),
    Alteration("q", "add column z int, add index (v)", _with(z=None)),
)
"""Alterations whose effect on each value is known."""


class Workload:
    """Transactions from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._last = 100

    def transactions(self) -> list[list[str]]:
        """Return statements of transactions. A statement may fail: its transaction goes on without it."""
        return [
            [self._statement() for _ in range(self.random.randint(1, 5))] for _ in range(self.random.randint(6, 14))
        ]

    def alterations(self, transactions: int) -> dict[int, list[Alteration]]:
        """Return alterations of some tables, by the number of the transaction before which they run."""
        by_table = {found.table: found for found in self.random.sample(ALTERATIONS, k=len(ALTERATIONS))}
        chosen = self.random.sample(sorted(by_table), k=self.random.randint(1, 3))
        placed: dict[int, list[Alteration]] = {}
        for table in chosen:
            placed.setdefault(self.random.randint(1, transactions), []).append(by_table[table])
        return placed

    def _statement(self) -> str:
        self._last += 1
        makes = (self._parents, self._parents, self._children, self._without_key, self._with_time)
        make = self.random.choice((*makes, self._with_collations, self._with_unique_key))
        return make(self._last, self.random.random())

    def _id(self) -> int:
        return self.random.randint(1, 12)

    def _parents(self, value: int, chance: float) -> str:
        choose = self.random.choice
        if chance < 0.3:
            code = f"c{choose(range(8))}" if self.random.random() < 0.3 else f"c{value}"
            return f"insert into p values ({self._id()}, '{code}', {value}, 'B''\\\\ ä{value}', {value}.5)"
        if chance < 0.75:
            sets = [f"a = {value}", f"d = {value}.25", f"b = concat(id, {value})", f"a = {value}, d = null"]
            sets.append(f"code = concat(id, _utf8mb4 x'F09F8E81', {value})")
            return f"update p set {choose(sets)} where id between {self._id()} and {self._id()}"
        if chance < 0.85:
            return f"update p set id = id + {choose((1, 20, -20))} where id = {self._id()}"
        return f"delete from p where id = {self._id()}"

    def _children(self, value: int, chance: float) -> str:
        choose = self.random.choice
        if chance < 0.45:
            parent = choose(("null", self._id()))
            return f"insert into c (p_id, a, b, e) values ({parent}, {value}e0, x'{value:06x}', '{choose('xyz')}')"
        if chance < 0.8:
            sets = [f"a = {value}", f"b = x'{value:08x}'", f"p_id = {self._id()}, a = {value}"]
            return f"update c set {choose(sets)} where id % 5 = {choose(range(5))}"
        return f"delete from c where id % 7 = {choose(range(7))} limit 2"

    def _without_key(self, value: int, chance: float) -> str:
        choose = self.random.choice
        if chance < 0.5:
            row = f"({choose(('null', 1, 2, 3))}, {choose(('null', repr('a'), repr('A'), repr('a ')))}, b'101')"
            return f"insert into k values {row}{f', ({value}, 7, 1)' if self.random.random() < 0.5 else ''}"
        if chance < 0.8:
            return f"update k set a = {value} where a = {choose((1, 2, 3))} limit 1"
        return f"delete from k where a = {choose((1, 2, 3))} limit 1"

    def _with_time(self, value: int, chance: float) -> str:
        choose = self.random.choice
        x = choose(("a", "b", "Z", "é", "x|y", "\\\\"))
        if chance < 0.4:
            time = f"2024-01-01 00:00:{value % 60:02d}"
            return f"insert into w values ('{x}', {choose((1, 2, 3))}, {value}, '{time}', null)"
        if chance < 0.75:
            return f"update w set {choose((f'v = {value}', f't = from_unixtime({value} * 1000)'))} where x = '{x}'"
        if chance < 0.87:
            return f"update w set y = y + 1, v = {value} where x = '{x}' order by y desc limit 1"
        return f"delete from w where x = '{x}' limit 1"

    def _with_collations(self, value: int, chance: float) -> str:
        choose = self.random.choice
        name = choose(("a", "A", "Ä", "ä ", "ß", "s", "b", f"c{value}", f"c{value}"))
        latin = choose(("ä", "ae", "AE", "abcd", "ABCe", f"{value}", f"{value}", f"{value}"))
        x = choose(("0e0", "-0e0", f"{value}e0", f"{value}e0", "null"))
        if chance < 0.4:
            row = f"{choose((1, 2, 3))}, {choose((1, 2, 3))}, '{name}', '{latin}', {x}"
            return f"{choose(('insert', 'insert', 'replace'))} into n values ({row})"
        if chance < 0.75:
            sets = (f"name = '{name}'", f"latin = '{latin}'", f"x = {x}", "a = a + 10", f"name = null, x = {x}")
            return f"update n set {choose(sets)} where a % 10 = {choose((1, 2, 3))} limit 2"
        return f"delete from n where b = {choose((1, 2, 3))} limit 1"

    def _with_unique_key(self, value: int, chance: float) -> str:
        choose = self.random.choice
        parent = choose(("null, null", f"{choose((1, 2, 3))}, {choose((1, 2, 3))}"))
        if chance < 0.45:
            row = f"{self._id()}, '{choose(('', 'x', 'y'))}', {value}, {parent}, null"
            return f"{choose(('insert', 'replace'))} into q values ({row})"
        if chance < 0.8:
            a, b = parent.split(", ")
            sets = (
                f"v = {value}",
                f"e = '{choose(('', 'x', 'y'))}', v = {value}",
                f"n_a = {a}, n_b = {b}, v = {value}",
                f"s = from_unixtime({value} * 1000)",
            )
            return f"update q set {choose(sets)} where q % 3 = {choose((0, 1, 2))}"
        return f"delete from q where q = {self._id()}"


def without_selection(
    changes: Iterable[LoggedChange],
    columns: dict[str, list[str]],
    alterations: Mapping[int, Iterable[Alteration]],
) -> Rows:
    """Return the rows of each table if the selected changes had never been logged.

    Rows are followed by their whole images, and an update sets the columns that it changed: written apart from
    `recover.undo`.
    """
    now: dict[str, list[Row]] = {table: [] for table in columns}
    without: dict[str, list[Row | None]] = {table: [] for table in columns}
    left: dict[str, list[Row]] = {table: [] for table in columns}

    def alter(made: Iterable[Alteration]) -> None:
        for alteration in made:
            table, altered = alteration.table, alteration.altered
            now[table] = [altered(row) for row in now[table]]
            without[table] = [altered(row) if row is not None else None for row in without[table]]
            left[table] = [altered(row) for row in left[table]]

    waiting = dict(sorted(alterations.items()))
    for table, event_type, before, after, is_selected in changes:
        if after is not None and after.get("b") == "mark":
            alter(waiting.pop(int(after["a"] or 0) - FIRST_MARK, ()))
        rows, others = now[table], without[table]
        if event_type == "INSERT":
            rows.append(dict(after or {}))
            others.append(None if is_selected else dict(after or {}))
            continue
        place = next(number for number, row in enumerate(rows) if row == before)
        other = others[place]
        if event_type == "DELETE":
            del rows[place], others[place]
            if is_selected and other is not None:
                left[table].append(other)
            continue
        assert before is not None and after is not None
        rows[place] = dict(after)
        if not is_selected and other is not None:
            other.update({name: value for name, value in after.items() if value != before[name] or name == "s"})
    for made in waiting.values():
        alter(made)
    return {
        table: Counter(
            tuple(row[name] for name in columns[table])
            for row in (*(row for row in without[table] if row is not None), *left[table])
        )
        for table in columns
    }


def play(
    cursor: Any, transactions: Iterable[Iterable[str]], alterations: Mapping[int, Iterable[Alteration]]
) -> dict[int, list[Alteration]]:
    """Run transactions on a connection without autocommit; each one marks itself in table `k`.

    Returns
    -------
    dict
        The alterations that the server did not refuse.
    """
    made: dict[int, list[Alteration]] = {}

    def alter(number: int) -> None:
        made[number] = [
            found
            for found in alterations.get(number, ())
            if _runs(cursor, f"alter table {found.table} {found.clauses}")
        ]

    number = -1
    for number, statements in enumerate(transactions):
        alter(number)
        # Each has its own time, so that a time of update shows every update.
        cursor.execute(f"set timestamp = {1500000000 + 10 * number}")
        cursor.execute(f"insert into k (a, b, c) values ({FIRST_MARK + number}, 'mark', null)")
        run_possible(cursor, statements)
    alter(number + 1)
    return made


def run_possible(cursor: Any, statements: Iterable[str]) -> None:
    """Run the statements of a transaction, but those that the server refuses, and commit it."""
    for statement in statements:
        _runs(cursor, statement)
    cursor.execute("commit")


def _runs(cursor: Any, statement: str) -> bool:
    import pymysql

    try:
        cursor.execute(statement)
    except pymysql.err.MySQLError:
        return False
    return True
