"""Random DDL that changes the text form of values, between row changes: labels, signs, character sets, column order.

The statements and the values are the same on every kind of server: the log of a server with FULL metadata is
the expected answer for all of them. A seed alone decides the statements.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

LETTERS = "abcxyzäößéñ"
WIDTHS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
CHARACTER_SETS = ["latin1", "utf8mb4", "cp850", "utf8mb3", "ucs2"]
MOST_TABLES, MOST_COLUMNS = 6, 9


@dataclass(frozen=True)
class Column:
    """A column: `kind` is the family of its values, `labels` are the labels of ENUM and SET."""

    name: str
    kind: str
    type: str
    labels: tuple[str, ...] = ()
    is_unsigned: bool = False


class RandomValues:
    """Steps of statements, each followed by some row changes."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._numbers = iter(range(1, 1 << 30))
        self._tables: dict[str, list[Column]] = {}
        self._databases: list[str] = []
        self._kinds: dict[Callable[[], list[str]], int] = {
            self._create: 3,
            self._create_like: 2,
            self._add: 6,
            self._modify: 14,
            self._change: 3,
            self._drop_column: 3,
            self._move: 3,
            self._rename: 3,
            self._swap: 2,
            self._convert: 2,
            self._default: 2,
            self._drop: 1,
        }

    def begin(self) -> list[str]:
        """Return the statements at the beginning."""
        return [*self._database(" character set latin1"), *self._database(""), *self._create(), *self._create()]

    def steps(self, count: int) -> Iterator[list[str]]:
        """Yield steps: a change of the schema, then changes of rows."""
        for _ in range(count):
            make = self._random.choices([*self._kinds], [*self._kinds.values()])[0]
            if not self._tables:
                make = self._create
            yield [*make(), *(self._row_change() for _ in range(self._random.randint(2, 4)))]

    # --- words ---

    def _name(self, prefix: str) -> str:
        return f"{prefix}{next(self._numbers)}"

    def _table(self) -> str:
        return self._random.choice([*self._tables])

    def _word(self) -> str:
        return "".join(self._random.choice(LETTERS) for _ in range(self._random.randint(1, 6)))

    def _labels(self, count: int) -> tuple[str, ...]:
        return tuple(f"{self._word()}{number}" for number in range(count))

    def _new_column(self, name: str | None = None) -> Column:
        name = name or self._name("c")
        kind = self._random.choice(["integer", "integer", "enum", "enum", "set", "text", "text", "bytes", "other"])
        return self._of_kind(name, kind)

    def _of_kind(self, name: str, kind: str) -> Column:
        if kind == "integer":
            width, sign = self._random.choice([*WIDTHS]), self._random.random() < 0.5
            return Column(name, kind, width + (" unsigned" if sign else ""), is_unsigned=sign)
        if kind in ("enum", "set"):
            count = self._random.choice([2, 3, 5, 300 if kind == "enum" else 20])
            return self._labelled(Column(name, kind, ""), self._labels(count))
        if kind == "text":
            base = self._random.choice(["char(12)", "varchar(40)", "varchar(200)", "text", "tinytext"])
            character_set = self._random.choice(["", *(f" character set {one}" for one in CHARACTER_SETS)])
            return Column(name, kind, base + character_set)
        if kind == "bytes":
            return Column(name, kind, self._random.choice(["varbinary(30)", "binary(6)", "blob"]))
        return Column(name, "other", self._random.choice(["decimal(12,3)", "datetime(3)", "year", "double", "date"]))

    def _labelled(self, column: Column, labels: tuple[str, ...]) -> Column:
        quoted = ",".join(f"'{label}'" for label in labels)
        return replace(column, type=f"{column.kind}({quoted})", labels=labels)

    def _definitions(self, columns: list[Column]) -> str:
        return ", ".join(["id int not null primary key", *(f"{column.name} {column.type}" for column in columns)])

    # --- tables ---

    def _database(self, options: str) -> list[str]:
        name = self._name("db")
        self._databases.append(name)
        return [f"create database {name}{options}"]

    def _create(self) -> list[str]:
        if len(self._tables) >= MOST_TABLES:
            return self._modify()
        table = f"{self._random.choice(self._databases)}.{self._name('t')}"
        self._tables[table] = [self._new_column() for _ in range(self._random.randint(2, 5))]
        charsets = ["", " default charset=latin1", " default charset=utf8mb4", " character set cp850"]
        options = self._random.choice(charsets)
        return [f"create table {table} ({self._definitions(self._tables[table])}){options}"]

    def _create_like(self) -> list[str]:
        if len(self._tables) >= MOST_TABLES:
            return self._modify()
        model, table = self._table(), f"{self._random.choice(self._databases)}.{self._name('t')}"
        self._tables[table] = [*self._tables[model]]
        return [f"create table {table} like {model}"]

    def _drop(self) -> list[str]:
        table = self._table()
        del self._tables[table]
        return [f"drop table {table}", *self._create()]

    def _rename(self) -> list[str]:
        table, new = self._table(), f"{self._random.choice(self._databases)}.{self._name('t')}"
        self._tables[new] = self._tables.pop(table)
        return [f"rename table {table} to {new}"]

    def _swap(self) -> list[str]:
        if len(self._tables) < 2:
            return self._rename()
        one, two = self._random.sample([*self._tables], 2)
        aside = f"{self._databases[0]}.{self._name('aside')}"
        self._tables[one], self._tables[two] = self._tables[two], self._tables[one]
        return [f"rename table {one} to {aside}, {two} to {one}, {aside} to {two}"]

    def _convert(self) -> list[str]:
        # MySQL 5.6 and MariaDB damage other labels here: their own SELECT shows ö as ? or cuts the label there.
        plain = [
            table
            for table, columns in self._tables.items()
            if all(label.isascii() for column in columns for label in column.labels)
        ]
        if not plain:
            return self._default()
        character_set = self._random.choice(["utf8mb4", "utf8mb3"])
        return [f"alter table {self._random.choice(plain)} convert to character set {character_set}"]

    def _default(self) -> list[str]:
        if self._random.random() < 0.5:
            database = self._random.choice(self._databases)
            return [f"alter database {database} character set {self._random.choice(CHARACTER_SETS[:2])}"]
        return [f"alter table {self._table()} default character set {self._random.choice(CHARACTER_SETS[:2])}"]

    # --- columns ---

    def _place(self, columns: list[Column]) -> tuple[str, int]:
        if self._random.random() < 0.4 or not columns:
            return "", len(columns)
        at = self._random.randrange(len(columns))
        return f" after {columns[at].name}", at + 1

    def _add(self) -> list[str]:
        table = self._table()
        columns = self._tables[table]
        if len(columns) >= MOST_COLUMNS:
            return self._drop_column()
        column = self._new_column()
        place, at = self._place(columns)
        columns.insert(at, column)
        return [f"alter table {table} add {column.name} {column.type}{place}"]

    def _drop_column(self) -> list[str]:
        table = self._table()
        columns = self._tables[table]
        if len(columns) < 3:
            return self._add()
        column = columns.pop(self._random.randrange(len(columns)))
        return [f"alter table {table} drop {column.name}"]

    def _redefined(self, column: Column) -> Column:
        """Return the column redefined so that the same bytes mean another value, or more values fit."""
        if column.labels:
            labels = [*column.labels]
            if self._random.random() < 0.5:
                self._random.shuffle(labels)
            most = 60 if column.kind == "set" else 400
            return self._labelled(column, (*self._labels(self._random.randint(0, 2)), *labels)[:most])
        turns_binary = column.kind == "text" and self._random.random() < 0.3
        return self._of_kind(column.name, "bytes" if turns_binary else column.kind)

    def _modify(self) -> list[str]:
        table = self._table()
        columns = self._tables[table]
        at = self._random.randrange(len(columns))
        columns[at] = self._redefined(columns[at])
        # Existing rows would be converted, and each server does that differently.
        return [f"truncate table {table}", f"alter table {table} modify {columns[at].name} {columns[at].type}"]

    def _change(self) -> list[str]:
        table = self._table()
        columns = self._tables[table]
        at = self._random.randrange(len(columns))
        old, columns[at] = columns[at].name, replace(self._redefined(columns[at]), name=self._name("c"))
        return [f"truncate table {table}", f"alter table {table} change {old} {columns[at].name} {columns[at].type}"]

    def _move(self) -> list[str]:
        table = self._table()
        columns = self._tables[table]
        column = columns.pop(self._random.randrange(len(columns)))
        place, at = self._place(columns)
        place, at = (place, at) if place else (" after id", 0)
        columns.insert(at, column)
        return [f"truncate table {table}", f"alter table {table} modify {column.name} {column.type}{place}"]

    # --- rows ---

    def _row_change(self) -> str:
        table = self._table()
        columns = self._tables[table]
        chance = self._random.random()
        if chance < 0.6:
            count = self._random.randint(1, 3)
            rows = [", ".join([str(next(self._numbers)), *map(self._value, columns)]) for _ in range(count)]
            names = ", ".join(["id", *(column.name for column in columns)])
            return f"insert into {table} ({names}) values {', '.join(f'({row})' for row in rows)}"
        if chance < 0.9:
            column = self._random.choice(columns)
            return f"update {table} set {column.name} = {self._value(column)} order by id desc limit 2"
        return f"delete from {table} order by id limit 1"

    def _value(self, column: Column) -> str:
        if self._random.random() < 0.15:
            return "null"
        match column.kind:
            case "integer":
                bits = WIDTHS[column.type.split()[0]]
                low, high = (0, (1 << bits) - 1) if column.is_unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)
                return str(self._random.choice([low, high, self._random.randint(low, high), 1]))
            case "enum":
                return f"'{self._random.choice(column.labels)}'"
            case "set":
                chosen = self._random.sample(column.labels, self._random.randint(0, min(3, len(column.labels))))
                return f"'{','.join(chosen)}'"
            case "text":
                return f"'{self._word()}'"
            case "bytes":
                return f"x'{self._random.getrandbits(40):010x}'"
        number = self._random.randint(1, 28)
        if column.type == "year":
            return "2026"
        if column.type == "date":
            return f"'2026-11-{number:02d}'"
        return f"'2026-11-{number:02d} 10:00:00.{number:03d}'" if "time" in column.type else f"{number}.25"
