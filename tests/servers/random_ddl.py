"""Random DDL between row changes: every kind of statement that changes a schema, valid on MySQL and MariaDB.

A seed alone decides the statements. A table always has one integer column that identifies its rows, under any name;
so rows can be written and keys made at any time without asking the server.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from tests.servers.names import quoted
from tests.servers.server import Server

NOON = 1793534400  # 2026-11-01 12:00 UTC
MAX_TABLES = 8
MAX_COLUMNS = 12
MAX_DATABASES = 3

# Types grouped by the form of their values.
INTEGERS = ["int", "INTEGER", "int unsigned", "bigint", "BIGINT(20) UNSIGNED", "int(11)"]
TYPES: dict[str, list[str]] = {
    "number": [
        *("tinyint", "smallint unsigned", "MEDIUMINT", "int", "int(10) unsigned zerofill", "decimal(9,3)", "DEC"),
        *("numeric(12)", "float", "double precision", "REAL", "bool", "tinyint(1)", "bigint", "INT8", "float(30)"),
        "bit(8)",
    ],
    "word": [
        *("char(20)", "varchar(40)", "CHARACTER VARYING(33)", "national varchar(20)", "char(12) ascii", "LONG VARCHAR"),
        *("varchar(20) character set latin1", "text", "tinytext", "text(300)", "mediumtext collate utf8mb4_bin"),
    ],
    "moment": ["date", "datetime", "datetime(3)", "timestamp(6) null", "TIMESTAMP NULL"],
    "label": ["enum('new','old','it''s','a,b')", "set('new','old')"],
    "bytes": ["varbinary(40)", "binary(8)", "blob", "tinyblob", "char(8) byte", "blob(10)"],
    "document": ["json"],
    "other": ["time(2)", "year", "point"],
}
# Each type accepts all values of the types before it.
WIDER: dict[str, list[str]] = {
    "number": ["int", "bigint", "decimal(30,6)", "double", "varchar(60)", "text", "longtext"],
    "word": ["varchar(40)", "varchar(255)", "VARCHAR(100) CHARACTER SET utf8mb4", "text", "mediumtext"],
    "moment": ["datetime", "datetime(6)", "varchar(60)", "text"],
    "label": ["enum('new','old','it''s','a,b')", "varchar(60)", "text"],
    "bytes": ["varbinary(80)", "blob", "mediumblob", "LONG VARBINARY"],
}


@dataclass
class Column:
    """A column, with the properties that statements need."""

    name: str
    kind: str
    type: str
    not_null: bool = False
    is_generated: bool = False


@dataclass
class Table:
    """A table, with the properties that statements need.

    Attributes
    ----------
    key
        Name of the column that identifies rows.
    is_auto
        Whether the key column is AUTO_INCREMENT.
    """

    database: str
    name: str
    columns: list[Column]
    key: str
    has_primary: bool = True
    is_auto: bool = False
    indexes: dict[str, list[str]] = field(default_factory=dict)
    partitions: list[str] = field(default_factory=list)
    has_rows: bool = False
    has_check: bool = False

    @property
    def others(self) -> list[Column]:
        """Columns that may be changed or dropped."""
        return [column for column in self.columns if column.name != self.key]


class RandomDdl:
    """Random DDL statements and row changes.

    Parameters
    ----------
    seed
        Decides everything.
    flavor
        `mysql` or `mariadb`: statements that only one of them has are made only for that one.
    """

    def __init__(self, seed: int, flavor: str) -> None:
        self._random = random.Random(seed)
        self._flavor = flavor
        self._numbers = iter(range(1, 1 << 60))
        self._ids = iter(range(1000, 1 << 30))
        self._databases: list[str] = []
        self._tables: list[Table] = []
        self._default = ""
        self._clock = NOON
        self._kinds: dict[Callable[[], str], int] = {
            self._create_table: 8,
            self._create_like: 4,
            self._create_select: 4,
            self._create_again: 2,
            self._alter: 40,
            self._rename: 5,
            self._swap: 4,
            self._drop: 3,
            self._truncate: 3,
            self._database: 3,
            self._index: 4,
            self._partition: 4,
            self._unrelated: 3,
        }

    @property
    def databases(self) -> list[str]:
        """The databases that exist at the moment."""
        return [*self._databases]

    def steps(self, count: int) -> Iterator[list[str]]:
        """Yield steps of statements: the default database, one DDL statement, and some row changes."""
        yield self._step(self._create_database())
        for _ in range(count - 1):
            if not self._tables:
                yield self._step(self._create_table())
                continue
            make = self._random.choices([*self._kinds], [*self._kinds.values()])[0]
            yield self._step(make())

    def _step(self, ddl: str) -> list[str]:
        # The row changes run in the default database in which the DDL was made.
        use = [f"use {quoted(self._default)}"] if self._default else []
        changes = [change for _ in range(self._random.randint(1, 3)) for change in self._row_change()]
        # The seed also decides the values that a column takes from the clock.
        self._clock += 7
        return [f"set timestamp = {self._clock}", *use, self._commented(ddl), *changes]

    # --- words ---

    def _chance(self, one_in: int) -> bool:
        return self._random.randrange(one_in) == 0

    def _pick(self, among: list[Any]) -> Any:
        return self._random.choice(among)

    def _new_name(self, prefix: str) -> str:
        return self._pick([prefix, prefix, prefix.upper(), f"{prefix} x", f"{prefix}`q", f"{prefix}ä", "select"]) + str(
            next(self._numbers)
        )

    def _name(self, name: str) -> str:
        """Return a name as it may be spelled in a statement."""
        if name.isidentifier() and name.isascii() and self._chance(2):
            return name
        return quoted(name)

    def _column_name(self, name: str) -> str:
        """Return the name of an existing column, in upper or lower case."""
        return self._name(name.swapcase() if name.isascii() and self._chance(6) else name)

    def _table_name(self, table: Table) -> str:
        if table.database == self._default and self._chance(2):
            return self._name(table.name)
        return f"{self._name(table.database)}{self._pick(['.', '.', ' . '])}{self._name(table.name)}"

    def _new_table_name(self, database: str, name: str) -> str:
        return self._table_name(Table(database, name, [], ""))

    def _commented(self, ddl: str) -> str:
        front = ["/* app: shop */ ", "-- it's why\n", '# why "so"\n', "\n\t ", "/**/"]
        front += ["/*!50100 "] if "/*" not in ddl else []
        if self._chance(5):
            mark = self._pick(front)
            return f"{mark}{ddl}*/" if "!" in mark else f"{mark}{ddl}"
        return f"{ddl}{self._pick([' /* done; */', ' -- done', ' # done'])}" if self._chance(8) else ddl

    def _choose_default(self, *databases: str) -> None:
        self._default = self._pick([*databases, *self._databases]) if self._databases else ""

    # --- tables ---

    def _definition(self, column: Column) -> str:
        text = f"{self._name(column.name)} {column.type}"
        if column.is_generated:
            return text
        if column.not_null:
            text += " not null"
            if column.kind == "number" and "bit" not in column.type:
                text += self._pick([" default 0", " DEFAULT +1", " default '1'"])
        elif "null" not in column.type.lower() and column.kind != "key" and self._chance(3):
            text += " NULL"
        if column.kind == "moment" and column.type in ("datetime", "datetime(3)") and self._chance(3):
            digits = "(3)" if "3" in column.type else ""
            text += f" default current_timestamp{digits} on update CURRENT_TIMESTAMP{digits}"
        if self._chance(6):
            text += " comment 'why, it''s (here)'"
        if self._chance(10) and column.kind == "word":
            text += " /* a, b */"
        return text

    def _new_column(self, table: Table | None = None) -> Column:
        name = self._new_name("c")
        if self._chance(10):
            stored = self._pick(["virtual", "STORED", ""])
            words = self._pick(["generated always as", "AS"])
            return Column(name, "generated", f"int {words} (1 + length('a,b)')) {stored}", is_generated=True)
        kind = self._pick(["number", "number", "word", "word", "moment", "label", "bytes", "document", "other"])
        not_null = kind in ("number", "word") and self._chance(2)
        # A partitioned table cannot have a spatial column.
        among = [one for one in TYPES[kind] if one != "point" or table is None or not table.partitions]
        return Column(name, kind, self._pick(among), not_null)

    def _new_table(self, database: str) -> Table:
        key = self._new_name("id")
        columns = [Column(key, "key", self._pick(INTEGERS), not_null=True)]
        columns += [self._new_column() for _ in range(self._random.randint(1, 5))]
        self._random.shuffle(columns)
        return Table(database, self._new_name("t"), columns, key)

    def _free_database(self) -> str:
        return self._pick(self._databases)

    def _create_table(self) -> str:
        if len(self._tables) >= MAX_TABLES:
            return self._drop()
        table = self._new_table(self._free_database())
        self._choose_default(table.database)
        parts = []
        inline = self._chance(3)
        for column in table.columns:
            text = self._definition(column)
            if column.name == table.key and inline:
                text += self._pick([" primary key", " PRIMARY KEY", " key"])
            parts.append(text)
        if not inline:
            table.has_primary = not self._chance(5)
            if table.has_primary:
                parts.append(
                    self._pick(["primary key", "PRIMARY KEY", "constraint pk primary key"])
                    + f" ({self._column_name(table.key)})"
                )
        if self._chance(3):
            name = self._new_name("k")
            table.indexes[name] = [table.key]
            parts.append(
                f"{self._pick(['key', 'UNIQUE KEY', 'index'])} {self._name(name)} ({self._column_name(table.key)})"
            )
        if self._chance(6):
            table.has_check = True
            parts.append(f"check ({quoted(table.key)} <> -7)")
        options = self._pick(
            ["", " engine=InnoDB", " ENGINE InnoDB default charset=utf8mb4 comment='a) b'", " charset latin1"]
        )
        has_space = any(column.type == "point" for column in table.columns)
        if table.has_primary and not table.indexes and not has_space and self._chance(5):
            table.partitions = ["p0", "p1", "p2"]
            options += (
                f" partition by range ({quoted(table.key)}) (partition p0 values less than (1010),"
                " partition p1 values less than (1100), partition p2 values less than maxvalue)"
            )
        self._tables.append(table)
        create = "create table"
        if self._flavor == "mariadb" and self._chance(4):
            create = "create or replace table"
            if self._chance(2) and len(self._tables) > 1:
                gone = self._tables.pop(0)
                table.database, table.name = gone.database, gone.name
        elif self._chance(4):
            create = "create table if not exists"
        return f"{create} {self._table_name(table)} ({', '.join(parts)}){options}"

    def _create_like(self) -> str:
        if len(self._tables) >= MAX_TABLES:
            return self._drop()
        model = self._pick(self._tables)
        table = replace(
            model,
            database=self._free_database(),
            name=self._new_name("t"),
            columns=[replace(column) for column in model.columns],
            indexes={**model.indexes},
            partitions=[*model.partitions],
            has_rows=False,
        )
        self._choose_default(model.database, table.database)
        self._tables.append(table)
        if self._chance(3):
            return f"CREATE TABLE {self._table_name(table)} (LIKE {self._table_name(model)})"
        return f"create table if not exists {self._table_name(table)} like {self._table_name(model)}"

    def _create_select(self) -> str:
        if len(self._tables) >= MAX_TABLES:
            return self._drop()
        model = self._pick(self._tables)
        taken = [column for column in model.columns if column.name == model.key or not self._chance(4)]
        extra = Column(self._new_name("x"), "number", "int")
        table = Table(
            self._free_database(),
            self._new_name("t"),
            [extra, *(replace(column, is_generated=False) for column in taken)],
            model.key,
            has_rows=model.has_rows,
        )
        for column in table.columns:
            if column.kind == "generated":
                column.kind, column.type = "number", "int"
        self._choose_default(model.database, table.database)
        self._tables.append(table)
        names = ", ".join(quoted(column.name) for column in taken)
        return (
            f"create table {self._table_name(table)} ({quoted(extra.name)} int, primary key ({quoted(model.key)}))"
            f" select {names} from {self._table_name(model)}"
        )

    def _create_again(self) -> str:
        """Return a statement that does nothing, because the table already exists, or does not exist."""
        table = self._pick(self._tables)
        self._choose_default(table.database)
        if self._chance(2):
            return f"create table if not exists {self._table_name(table)} (other int)"
        return f"drop table if exists {self._new_table_name(table.database, self._new_name('gone'))}"

    def _drop(self) -> str:
        if not self._tables:
            return self._create_table()
        gone = self._random.sample(self._tables, min(len(self._tables), self._pick([1, 1, 2])))
        self._choose_default(gone[0].database)
        self._tables = [table for table in self._tables if table not in gone]
        names = ", ".join(self._table_name(table) for table in gone)
        condition = self._pick(["", " if exists"])
        return f"drop table{condition} {names}{self._pick(['', '', ' restrict', ' cascade'])}"

    def _truncate(self) -> str:
        table = self._pick(self._tables)
        self._choose_default(table.database)
        table.has_rows = False
        return f"truncate {self._pick(['table ', ''])}{self._table_name(table)}"

    def _rename(self) -> str:
        renamed = self._random.sample(self._tables, min(len(self._tables), self._pick([1, 2])))
        self._choose_default(renamed[0].database)
        parts = []
        for table in renamed:
            before = self._table_name(table)
            table.name = self._new_name("t")
            table.database = self._pick([table.database, self._free_database()])
            parts.append(f"{before} to {self._table_name(table)}")
        return f"rename table {', '.join(parts)}"

    def _swap(self) -> str:
        if len(self._tables) < 2:
            return self._rename()
        one, two = self._random.sample(self._tables, 2)
        self._choose_default(one.database)
        aside = self._new_table_name(one.database, self._new_name("aside"))
        first, second = self._table_name(one), self._table_name(two)
        one.database, two.database, one.name, two.name = two.database, one.database, two.name, one.name
        return f"RENAME TABLE {first} TO {aside}, {second} TO {first}, {aside} TO {second}"

    # --- databases ---

    def _create_database(self) -> str:
        name = self._new_name("db")
        text = f"create {self._pick(['database', 'schema'])} {self._pick(['', 'if not exists '])}{quoted(name)}"
        # The new database cannot be the default yet.
        self._choose_default()
        self._databases.append(name)
        return text + self._pick(["", " character set utf8mb4", " /*!40100 DEFAULT CHARACTER SET latin1 */"])

    def _database(self) -> str:
        if len(self._databases) < MAX_DATABASES:
            return self._create_database()
        name = self._pick(self._databases)
        self._databases.remove(name)
        self._tables = [table for table in self._tables if table.database != name]
        self._choose_default()
        return f"drop {self._pick(['database', 'SCHEMA'])} {self._pick(['', 'if exists '])}{quoted(name)}"

    # --- ALTER ---

    def _alter(self) -> str:
        table = self._pick(self._tables)
        self._choose_default(table.database)
        name = self._table_name(table)
        used: set[str] = set()
        whole = self._whole(table)
        parts = [whole] if whole else []
        for _ in range(0 if whole else self._pick([1, 1, 1, 2, 3, 4])):
            part = self._part(table, used)
            if part:
                parts.append(part)
        if not parts:
            return f"alter table {name} comment = 'nothing, really'"
        words = "alter table"
        if self._flavor == "mariadb" and self._chance(8):
            words = self._pick(["alter table if exists", "alter ignore table"])
        options = self._pick(["", "", "", ", algorithm=default", ", LOCK=DEFAULT", ", ALGORITHM=COPY, LOCK=SHARED"])
        return f"{words} {name} {', '.join(parts)}{'' if whole or table.partitions else options}"

    def _whole(self, table: Table) -> str:
        """Return a change that cannot be combined with others, or an empty string."""
        if self._chance(12):
            table.name = self._new_name("t")
            table.database = self._default
            return f"rename {self._pick(['to ', 'as ', ''])}{self._name(table.name)}"
        if self._chance(12):
            return f"convert to character set {self._pick(['utf8mb4', 'utf8mb4 collate utf8mb4_bin'])}"
        if self._chance(12):
            return self._pick(["engine=InnoDB", "FORCE", "comment 'a, b'", "default character set utf8mb4"])
        pairs = [column for column in table.others if not column.is_generated and not _indexed(table, column)]
        if len(pairs) > 1 and self._chance(8):
            one, two = self._random.sample(pairs, 2)
            first = f"change {quoted(one.name)} {self._definition(replace(one, name=two.name))}"
            second = f"change {quoted(two.name)} {self._definition(replace(two, name=one.name))}"
            one.name, two.name = two.name, one.name
            return f"{first}, {second}"
        is_free = not (table.partitions or table.indexes or table.has_check)
        if is_free and table.has_primary and self._chance(10):
            return self._new_key(table)
        return ""

    def _new_key(self, table: Table) -> str:
        """Replace the key column by a new one, which the server numbers."""
        old = table.key
        table.columns = [column for column in table.columns if column.name != old]
        table.key, table.is_auto = self._new_name("id"), True
        table.columns.append(Column(table.key, "key", "bigint", not_null=True))
        added = f"{self._name(table.key)} bigint not null auto_increment primary key first"
        return f"drop {self._column_name(old)}, add {added}"

    def _part(self, table: Table, used: set[str]) -> str:
        free = [column for column in table.others if column.name not in used]
        makes = [self._add, self._add, self._drop_column, self._modify, self._change, self._rename_column, self._keys]
        return self._pick(makes)(table, free, used)

    def _place(self, table: Table, used: set[str], own: str) -> str:
        others = [column.name for column in table.columns if column.name not in used and column.name != own]
        if self._chance(2) or not others:
            return self._pick(["", " first"])
        anchor = self._pick(others)
        used.add(anchor)
        return f" after {self._column_name(anchor)}"

    def _add(self, table: Table, _: list[Column], used: set[str]) -> str:
        if len(table.columns) >= MAX_COLUMNS:
            return ""
        column = self._new_column(table)
        text = self._definition(column)
        used.add(column.name)
        if self._chance(5):
            second = self._new_column(table)
            used.add(second.name)
            text = f"add {self._pick(['', 'column '])}({text}, {self._definition(second)})"
            table.columns += [column, second]
            return text
        place = self._place(table, used, column.name)
        table.columns.append(column)
        condition = "if not exists " if self._flavor == "mariadb" and self._chance(4) else ""
        word = self._pick(["", "column "])
        return f"add {word or ('column ' if condition else '')}{condition}{text}{place}"

    def _drop_column(self, table: Table, free: list[Column], used: set[str]) -> str:
        candidates = [column for column in free if not _indexed(table, column)]
        if not candidates or len(table.columns) < 3:
            return ""
        column = self._pick(candidates)
        table.columns.remove(column)
        used.add(column.name)
        is_conditional = self._flavor == "mariadb" and self._chance(4)
        words = "column if exists " if is_conditional else self._pick(["column ", ""])
        return f"drop {words}{self._column_name(column.name)}"

    def _changeable(self, table: Table, free: list[Column]) -> Column | None:
        candidates = [
            column
            for column in free
            if column.kind in WIDER and not column.is_generated and not _indexed(table, column)
        ]
        return self._pick(candidates) if candidates else None

    def _widen(self, column: Column) -> None:
        wider = WIDER[column.kind]
        at = wider.index(column.type) if column.type in wider else -1
        if (
            column.kind == "number"
            and at < 0
            and column.type in ("bit(8)", "float", "float(30)", "REAL", "double precision")
        ):
            return
        if at < 0 and column.kind == "number" and column.type in ("decimal(9,3)", "DEC", "numeric(12)"):
            at = 1
        if at < 0 and column.kind == "word":
            at = wider.index("varchar(255)") if "text" not in column.type.lower() and "LONG" not in column.type else 3
        if at < 0 and column.kind == "bytes":
            at = 0
        if "set" in column.type[:3]:
            at = 0
        if at + 1 < len(wider):
            column.type = wider[self._random.randrange(at + 1, len(wider))]
            if column.type in ("varchar(60)", "text", "longtext"):
                column.kind = "word"
        if column.not_null and self._chance(2):
            column.not_null = False

    def _modify(self, table: Table, free: list[Column], used: set[str]) -> str:
        column = self._changeable(table, free)
        if column is None:
            return self._modify_key(table, used)
        self._widen(column)
        used.add(column.name)
        place = self._place(table, used, column.name) if self._chance(2) else ""
        condition = (
            "column if exists " if self._flavor == "mariadb" and self._chance(4) else self._pick(["", "column "])
        )
        return f"modify {condition}{self._definition(column)}{place}"

    def _modify_key(self, table: Table, used: set[str]) -> str:
        column = next(column for column in table.columns if column.name == table.key)
        if table.key in used or table.partitions or table.is_auto or column.type not in INTEGERS:
            return ""
        used.add(table.key)
        column.type = "bigint"
        # NOT NULL is implied in a primary key.
        column.not_null = column.not_null and not table.has_primary
        text = self._definition(column)
        column.not_null = True
        return f"modify {text}{self._pick(['', ' first'])}"

    def _change(self, table: Table, free: list[Column], used: set[str]) -> str:
        column = self._changeable(table, free)
        if column is None:
            return ""
        old = column.name
        self._widen(column)
        used.add(old)
        column.name = self._new_name("c")
        used.add(column.name)
        place = self._place(table, used, column.name) if self._chance(2) else ""
        return f"change {self._pick(['', 'column '])}{self._column_name(old)} {self._definition(column)}{place}"

    def _rename_column(self, table: Table, free: list[Column], used: set[str]) -> str:
        column = self._pick(free) if free else None
        if column is None:
            return ""
        old = column.name
        used.add(old)
        column.name = self._new_name("c")
        used.add(column.name)
        for columns in table.indexes.values():
            columns[:] = [column.name if name == old else name for name in columns]
        return f"rename column {self._column_name(old)} to {self._name(column.name)}"

    def _keys(self, table: Table, _: list[Column], used: set[str]) -> str:
        if table.key in used or table.partitions:
            return ""
        if table.indexes and self._chance(2):
            name = self._pick([*table.indexes])
            if name in used:
                return ""
            used.add(name)
            del table.indexes[name]
            return f"drop {self._pick(['key', 'index'])} {self._name(name)}"
        if self._chance(2):
            name = self._new_name("k")
            table.indexes[name] = [table.key]
            used.update((name, table.key))
            kind = self._pick(["key", "index", "unique", "unique index"])
            return f"add {kind} {self._name(name)} ({self._column_name(table.key)})"
        if "#key" in used or table.is_auto:
            return ""
        used.update(("#key", table.key))
        table.has_primary = not table.has_primary
        if not table.has_primary:
            return "drop primary key"
        return f"add {self._pick(['', 'constraint pk '])}primary key ({self._column_name(table.key)})"

    # --- others ---

    def _index(self) -> str:
        table = self._pick(self._tables)
        self._choose_default(table.database)
        if table.partitions:
            return self._alter()
        if table.indexes and self._chance(2):
            name = self._pick([*table.indexes])
            del table.indexes[name]
            return f"drop index {self._name(name)} on {self._table_name(table)}"
        name = self._new_name("k")
        table.indexes[name] = [table.key]
        kind = self._pick(["index", "unique index"])
        return (
            f"create {kind} {self._name(name)} on {self._table_name(table)} ({self._column_name(table.key)})"
            f"{self._pick(['', ' algorithm=inplace lock=none', ' comment ' + repr('x')])}"
        )

    def _partition(self) -> str:
        partitioned = [table for table in self._tables if len(table.partitions) > 1]
        if not partitioned:
            return self._alter()
        table = self._pick(partitioned)
        self._choose_default(table.database)
        name = table.partitions[0]
        if self._chance(2):
            return f"alter table {self._table_name(table)} truncate partition {name}"
        table.partitions.remove(name)
        return f"ALTER TABLE {self._table_name(table)} DROP PARTITION {name}"

    def _unrelated(self) -> str:
        table = self._pick(self._tables)
        self._choose_default(table.database)
        view = self._new_table_name(table.database, self._new_name("v"))
        if self._chance(2):
            return f"create or replace view {view} as select {quoted(table.key)} from {self._table_name(table)}"
        return f"create temporary table {self._new_table_name(table.database, self._new_name('tmp'))} (a int)"

    # --- rows ---

    def _row_change(self) -> list[str]:
        if not self._tables:
            return []
        table = self._pick(self._tables)
        name = f"{quoted(table.database)}.{quoted(table.name)}"
        if not table.has_rows or self._chance(2):
            return [self._insert(table, name)]
        written = [column for column in table.others if not column.is_generated]
        if self._chance(4) or not written:
            return [f"delete from {name} order by {quoted(table.key)} limit 1"]
        column = self._pick(written)
        value = self._value(column)
        return [f"update {name} set {quoted(column.name)} = {value} order by {quoted(table.key)} limit 3"]

    def _insert(self, table: Table, name: str) -> str:
        columns = [column for column in table.columns if not column.is_generated]
        rows = [
            "(" + ", ".join(self._value(column, is_key=column.name == table.key) for column in columns) + ")"
            for _ in range(self._random.randint(1, 3))
        ]
        table.has_rows = True
        names = ", ".join(quoted(column.name) for column in columns)
        return f"insert into {name} ({names}) values {', '.join(rows)}"

    def _value(self, column: Column, is_key: bool = False) -> str:
        if is_key:
            return str(next(self._ids))
        if not column.not_null and self._chance(4):
            return "null"
        number = self._random.randrange(1, 100)
        match column.kind:
            case "number" | "generated":
                return str(number) if column.type not in ("bool", "tinyint(1)") else str(number % 2)
            case "word":
                return f"'w{number}'"
            case "moment":
                return f"'2026-11-{number % 28 + 1:02d}'"
            case "label":
                return self._pick(["'new'", "'old'"])
            case "bytes":
                return f"x'{number:04x}'"
            case "document":
                return f"'{{\"a\": {number}}}'"
        if column.type == "point":
            return f"st_geomfromtext('POINT({number} 1)')"
        return "'2026'" if column.type == "year" else f"'00:00:{number % 60:02d}'"


def _indexed(table: Table, column: Column) -> bool:
    return any(column.name in columns for columns in table.indexes.values())


def run(server: Server, ddl: RandomDdl, count: int) -> None:
    """Run this many steps on a server, on one connection.

    Raises
    ------
    AssertionError
        The server refuses a statement: the message contains it.
    """
    with server.connect() as connection, connection.cursor() as cursor:
        for step in ddl.steps(count):
            run_step(cursor, step)


def run_step(cursor: Any, step: list[str]) -> None:
    """Run the statements of one step.

    Raises
    ------
    AssertionError
        The server refuses a statement: the message contains it.
    """
    for statement in step:
        try:
            cursor.execute(statement)
        except Exception as error:
            raise AssertionError(f"{error}: {statement}\n{step}") from error
