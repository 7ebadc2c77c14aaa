"""Odd statements that define tables: every clause that a server may accept, in any combination and spelling.

Many of them are refused, which is part of what is tested: a refused statement changes nothing and is not logged. So the
statements are made from the tables that the server has at the moment, and a seed decides the rest. No temporary table
hides another one: docs/schema-history.md names that limit.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tests.servers.names import quoted

TableName = tuple[str, str]

DATABASES: Final = ("d1", "d2")
_MOST_TABLES: Final = 14
_TYPES: Final = [
    *("int", "int unsigned", "bigint unsigned", "smallint", "tinyint unsigned", "mediumint unsigned", "bool", "serial"),
    *("int(5) zerofill", "int4", "int1 unsigned", "middleint", "bit", "bit(5)", "year", "json", "dec(5)", "fixed(5,1)"),
    *(
        "decimal(9,2)",
        "decimal(9,2) unsigned",
        "double",
        "double(9,2)",
        "float unsigned",
        "float(7,3)",
        "float8",
        "real",
    ),
    *("char", "char(5) charset utf8mb4", "char(4) byte", "nchar(3)", "national varchar(9)", "char varying(9)"),
    *("varchar(20)", "varchar(20) character set latin1", "varchar(300)", "varchar(9) binary", "varcharacter(9)"),
    *("text", "text(70)", "text(300)", "text charset latin1", "tinytext", "mediumtext", "long", "long varchar"),
    *("blob", "blob(300)", "tinyblob", "long varbinary", "varbinary(10)", "binary(4)", "time", "time(3)"),
    *("date", "datetime", "datetime(3)", "timestamp null", "timestamp(6) null"),
    *("enum('a','b','c')", "enum('b','a')", "set('r','g','b')", "set('g','r')", "enum('x','ä','z') charset latin1"),
    *("enum('a ','b') character set binary", "set(x'61',x'62')", "enum(0x61,'b')", "enum(_latin1'é','b')"),
    *("enum('it''s','a\\\\b')", "enum('é','Č','x')", "set('é','b')", "enum('ж','é') charset utf8mb4"),
]
_OWN_TYPES: Final = {
    "mysql": ["vector(3)", "point", "geometry", "varchar(9) charset utf8mb4 collate utf8mb4_0900_ai_ci"],
    "mariadb": ["uuid", "inet6", "inet4", "varchar(9) compressed", "blob compressed", "text compressed"],
}
_GENERATED: Final = [
    *("int generated always as (1+1) virtual", "varchar(9) as (concat('a,',')')) stored", "int as (7)"),
    "int generated always as (length('(')) stored",
]
_LIKE_NUMBERS: Final = ("1$", "0X", "2e_")
_SPACES: Final = [*" " * 4, "  ", "\n", "\t", " /* , ( */ ", " /*!99999 x, */ ", " -- c\n ", "/**/ ", "\v"]
_OPTIONS: Final = [
    *[""] * 4,
    *(" engine=InnoDB", " default charset=latin1", " charset latin1 collate latin1_bin", " character set = utf8mb4"),
    *(" comment='a, (b'", " engine=innodb row_format=dynamic, comment 'x'", " charset binary", " auto_increment=5"),
    " engine=MyISAM",
]
_CONVERSIONS: Final = [
    *(
        "convert to character set latin1",
        "convert to charset latin2",
        "convert to charset utf8mb4",
        "convert to character set binary",
    ),
    *("convert to character set utf8mb4 collate utf8mb4_bin", "convert to character set default"),
]
_TABLE_OPTIONS: Final = [
    *("default character set latin1", "character set = utf8mb4", "collate latin1_bin", "engine=innodb", "force"),
    *(
        "comment 'x'",
        "row_format=compact",
        "auto_increment = 9",
        "remove partitioning",
        "algorithm=copy",
        "lock=shared",
    ),
    *("partition by hash (1) partitions 3", "algorithm = inplace"),
]
_OF_DATABASES: Final = [
    *("alter database d1 character set latin1", "alter database d2 charset utf8mb4"),
    *("alter database d1 collate utf8mb4_bin", "alter schema d2 default character set = cp1251"),
]
_SEQUENCES: Final = [
    *("create sequence d1.s1", "create or replace sequence d1.s1 as int unsigned", "drop sequence if exists d1.s1"),
    *("alter sequence d1.s1 restart 5", "create sequence if not exists d2.s2 as tinyint"),
    "alter sequence if exists d1.s1 as bigint unsigned",
]
_UNRELATED: Final = [
    *("create or replace view d1.v as select 1 as a", "create view d2.v2 as select 2", "drop view if exists d1.v"),
    *("create temporary table d1.tmp1 (a int)", "drop temporary table if exists d1.tmp1"),
]
_SESSIONS: Final = [
    *("use d1", "use d1", "use d2", "set names utf8mb4", "set names utf8mb4", "set names latin1", "set names binary"),
    *("set sql_mode=''", "set sql_mode=''", "set sql_mode='ansi_quotes'", "set sql_mode='no_backslash_escapes'"),
    *("set collation_server=latin1_swedish_ci", "set collation_server=default", "set character_set_connection=latin1"),
    *("set explicit_defaults_for_timestamp=0", "set explicit_defaults_for_timestamp=1"),
]
_OWN_SESSIONS: Final = {
    "mysql": [
        *["set sql_generate_invisible_primary_key=1"] * 3,
        "set sql_generate_invisible_primary_key=0",
        "set default_collation_for_utf8mb4=utf8mb4_general_ci",
    ],
    "mariadb": ["set sql_mode='maxdb'", "set sql_mode='oracle'", "set system_versioning_alter_history=keep"],
}


def _bare(name: str) -> str:
    """Return a name that looks like a number without quotes, and any other with them."""
    return name if name.startswith(_LIKE_NUMBERS) else quoted(name)


class OddDdl:
    """Statements for a server.

    Parameters
    ----------
    seed
        Decides the statements for the tables that are given.
    flavor
        `mysql` or `mariadb`: each has statements of its own.
    """

    def __init__(self, seed: int, flavor: str) -> None:
        self._random = random.Random(seed)
        self._is_mariadb = flavor == "mariadb"
        self._types = [*_TYPES, *_OWN_TYPES[flavor]]
        self._sessions = [*_SESSIONS, *_OWN_SESSIONS[flavor]]
        self._numbers = iter(range(1, 1 << 30))

    def session(self) -> str:
        """Return a statement that changes what later statements mean."""
        return self._pick(self._sessions)

    def statement(self, tables: Mapping[TableName, Sequence[str]]) -> str:
        """Return a statement.

        Parameters
        ----------
        tables
            The columns of each table that the server has.
        """
        if not tables:
            return self._create(tables)
        kinds: dict[Callable[[Mapping[TableName, Sequence[str]]], str], int] = {
            self._create: 8 if len(tables) < _MOST_TABLES else 1,
            self._alter: 22,
            self._rename: 2,
            self._drop: 2,
            self._other: 5,
        }
        (make,) = self._random.choices([*kinds], [*kinds.values()])
        statement = make(tables)
        return self._wrapped(statement) if self._chance(6) else statement

    def _wrapped(self, statement: str) -> str:
        """Return a statement behind, or in, what servers skip before the verb."""
        kinds = [f"/*!40000 {statement} */", f"/* x */\v{statement}", f"-- x\n{statement};"]
        if self._is_mariadb:
            kinds += [f"/*M!100000 {statement} */", f"set\vstatement max_statement_time=99 for {statement}"]
        return statement if "*/" in statement else self._pick(kinds)

    # --- words ---

    def _pick(self, among: Sequence[str]) -> str:
        return self._random.choice(among)

    def _chance(self, one_in: int) -> bool:
        return self._random.randrange(one_in) == 0

    def _new(self, prefix: str) -> str:
        forms = [prefix, prefix, prefix.upper(), f"{prefix} x", f"{prefix}`q", f"{prefix}ä"]
        words = ["select", "first ", "key", "Order", "n'q", 'd"q', "%_", *_LIKE_NUMBERS]
        return f"{self._pick([*forms, *words])}{next(self._numbers)}"

    def _some(self, tables: Mapping[TableName, Sequence[str]], count: int = 1) -> list[TableName]:
        return self._random.sample([*tables], min(len(tables), count))

    def _table(self, table: TableName) -> str:
        database, name = table
        if database == "d1" and self._chance(2):
            return _bare(name)
        return self._pick([f"{quoted(database)}.", f"{quoted(database)} . ", f"{database}."]) + _bare(name)

    def _new_table(self) -> str:
        return self._table((self._pick(DATABASES), self._new("t")))

    def _column(self, table: TableName, name: str) -> str:
        written = quoted(name.swapcase() if name.isascii() and self._chance(8) else name)
        if self._is_mariadb and self._chance(8):
            return self._pick([f"{quoted(table[1])}.{written}", f"{quoted(table[0])}.{quoted(table[1])}.{written}"])
        return written

    def _type(self) -> str:
        if self._chance(3):
            # Columns of the same type can be taken for each other.
            return "int"
        written = self._pick(self._types)
        return written if self._chance(2) or "'" in written else written.upper()

    def _definition(self, name: str) -> str:
        if self._chance(12):
            return f"{quoted(name)} {self._pick(_GENERATED)}"
        text = f"{_bare(name)}{self._pick(_SPACES)}{self._type()}"
        if self._chance(4):
            text += self._pick([" null", " not null", " NULL", " NOT NULL"])
        if self._chance(6):
            text += " comment 'x, y) first'"
        if self._chance(8):
            text += " invisible default null" if self._is_mariadb else " invisible"
        rare = [" check (1=1)", " unique", " unique key", " primary key", " references d1.nowhere (id)"]
        rare += [" without system versioning"] if self._is_mariadb else [" column_format dynamic", " visible"]
        rare += [" check (1 in (1,2))"] if not self._is_mariadb else []
        return text + (self._pick(rare) if self._chance(4) else "")

    def _place(self, others: Sequence[str]) -> str:
        if self._chance(3):
            return self._pick(_SPACES) + self._pick(["first", "FIRST"])
        return f" after {_bare(self._pick(others))}" if others and self._chance(2) else ""

    def _condition(self, words: str) -> str:
        return words if self._is_mariadb and self._chance(3) else ""

    # --- tables ---

    def _create(self, tables: Mapping[TableName, Sequence[str]]) -> str:
        if tables and self._chance(12):
            return f"create table if not exists {self._table(*self._some(tables))} (z int)"
        words = ["create table", "CREATE TABLE", "create table if not exists"]
        words += ["create or replace table"] * 2 if self._is_mariadb else []
        create = self._pick(words)
        table = self._new_table()
        if "replace" in create and tables and self._chance(2):
            table = self._table(*self._some(tables))
        kind = self._random.randrange(10)
        if tables and kind == 0:
            (model,) = self._some(tables)
            return f"{create} {table} {self._pick(['like {}', '( like {} )']).format(self._table(model))}"
        if tables and kind == 1:
            (model,) = self._some(tables)
            return f"{create} {table}{self._selected(self._table(model), tables[model])}"
        return f"{create} {table} {self._elements()}"

    def _selected(self, model: str, columns: Sequence[str]) -> str:
        lists = ["", " (extra int)"]
        chosen = ["*", "1 as one, 'x' as `two`", "1, now(), 'a'"]
        if columns:
            lists.append(f" ({quoted(columns[0])} varchar(50), zz int)")
            chosen.append(", ".join(quoted(name) for name in columns[:3]))
        words = self._pick(["", "as ", "ignore ", "replace "])
        return f"{self._pick(lists)} {words}select {self._pick(chosen)} from {model}"

    def _elements(self) -> str:
        names = [self._new("c") for _ in range(self._random.randint(1, 6))]
        items = [self._definition(name) for name in names]
        first, some = quoted(names[0]), quoted(self._pick(names))
        if self._chance(3):
            of_key = ", ".join(map(quoted, self._random.sample(names, min(len(names), self._random.randint(1, 2)))))
            items.append(f"{self._pick(['primary key', 'constraint pk primary key'])} ({of_key})")
        rare = [
            *(f"key ({some})", f"unique ({some})", "constraint ck check (1 = 1)"),
            f"constraint fk foreign key ({first}) references d1.nowhere (id) on delete cascade",
        ]
        if not self._is_mariadb:
            rare += ["key ((1+1))", f"key fk ((lower({first})))"]
            rare.append(f"index mv ((cast(json_extract({first},'$.a') as unsigned array)))")
        if self._chance(2):
            items.append(self._pick(rare))
        options = self._pick(_OPTIONS)
        if self._is_mariadb:
            options += " with system versioning" if self._chance(8) else ""
            if self._chance(8):
                ends = ["rs timestamp(6) generated always as row start", "re timestamp(6) generated always as row end"]
                ends[1] += self._pick(["", " invisible"])
                items += [*ends, "period for system_time(rs, re)"]
                options += "" if "versioning" in options else " with system versioning"
            if self._chance(8):
                items += ["ps date", "pe date", "period for app(ps, pe)"]
        self._random.shuffle(items)
        if self._chance(12):
            options += self._pick([" partition by hash (1) partitions 2", f" partition by key ({first}) partitions 2"])
        return f"({', '.join(items)}){options}"

    def _alter(self, tables: Mapping[TableName, Sequence[str]]) -> str:
        (table,) = self._some(tables)
        words = ["alter table", "ALTER TABLE"]
        words += ["alter ignore table", "alter online table", "alter table if exists"] if self._is_mariadb else []
        wait = self._pick(["", "", " wait 5", " wait 50"]) if self._is_mariadb else ""
        columns = tables[table]
        if len(columns) > 1 and self._chance(5):
            one, other = map(quoted, self._random.sample([*columns], 2))
            actions = [f"rename column {one} to {other}", f"rename column {other} to {one}"]
        elif columns and self._chance(8):
            name = self._new("c")
            actions = [f"change {quoted(self._pick(columns))} {self._definition(name)}"]
            actions.append(f"add {self._definition(self._new('c'))} after {_bare(name)}")
        else:
            actions = [self._action(table, columns) for _ in range(self._random.choice([1, 1, 1, 2, 2, 3]))]
            # MariaDB copies a table with a space in its name, and then keeps it under both names.
            renames = [one for one in actions if one.startswith("rename ") and not one.startswith("rename column")]
            actions = renames[:1] if self._is_mariadb and renames else actions
            # MySQL makes a TINYTEXT of a TEXT that the statement defines, as docs/schema-history.md tells.
            conversions = [one for one in actions if one.startswith("convert to")]
            actions = actions if self._is_mariadb or not conversions else conversions
        return f"{self._pick(words)} {self._table(table)}{wait} {', '.join(actions)}"

    def _action(self, table: TableName, columns: Sequence[str]) -> str:
        kinds: dict[Callable[[TableName, str, Sequence[str]], str], int] = {
            self._add: 8,
            self._drop_column: 4,
            self._modify: 4,
            self._change: 4,
            self._rename_column: 2,
            self._of_table: 8,
        }
        (make,) = self._random.choices([*kinds], [*kinds.values()])
        column = self._pick(columns) if columns else "nothing"
        return make(table, column, [name for name in columns if name != column])

    def _add(self, table: TableName, column: str, others: Sequence[str]) -> str:
        one, other = self._definition(self._new("c")), self._definition(self._new("c"))
        if self._chance(4):
            condition = self._condition(" if not exists")
            return f"add {'column' if condition else self._pick(['', 'column'])}{condition} ({one}, {other})"
        if self._chance(6):
            return f"add {one}, add {other} first, add {self._definition(self._new('c'))}{self._place(others)}"
        condition = self._condition(" if not exists")
        return f"add {'column' if condition else self._pick(['', 'COLUMN'])}{condition} {one}{self._place(others)}"

    def _drop_column(self, table: TableName, column: str, others: Sequence[str]) -> str:
        return f"drop column{self._condition(' if exists')} {self._column(table, column)}"

    def _modify(self, table: TableName, column: str, others: Sequence[str]) -> str:
        if self._is_mariadb and self._chance(6):
            return f"modify {quoted(table[1])}.{quoted(column)} {self._type()}"
        return f"modify column{self._condition(' if exists')} {self._definition(column)}{self._place(others)}"

    def _change(self, table: TableName, column: str, others: Sequence[str]) -> str:
        name = self._pick([self._new("c"), column, *others[:1]])
        old = self._column(table, column)
        return f"change column{self._condition(' if exists')} {old} {self._definition(name)}{self._place(others)}"

    def _rename_column(self, table: TableName, column: str, others: Sequence[str]) -> str:
        return f"rename column {self._column(table, column)} to {quoted(self._pick([self._new('c'), *others[:1]]))}"

    def _of_table(self, table: TableName, column: str, others: Sequence[str]) -> str:
        name = quoted(column)
        kinds = [
            *_CONVERSIONS,
            *_TABLE_OPTIONS,
            *(
                f"add primary key ({name})",
                "drop primary key",
                f"add key ({name})",
                f"add unique ({name})",
                f"add unique ({name}) using hash",
            ),
            *(
                f"add index k1 ({name})",
                "drop key k1",
                f"alter column {name} set default 3",
                f"alter {name} drop default",
            ),
            *(f"order by {name}", f"partition by key ({name})", "add check (1=1)", "drop constraint ck"),
            *(f"rename {self._pick(['', 'to ', 'as '])}{self._new_table()}" for _ in range(3)),
            *(f"add constraint fk2 foreign key ({name}) references d1.nowhere (id)", "drop foreign key fk"),
        ]
        if self._is_mariadb:
            kinds += [f"add index if not exists k1 ({name})", "add system versioning", "drop system versioning"]
            kinds += ["add period for app2(ps,pe)", "drop period for app"]
        else:
            kinds += [f"alter column {name} set invisible", f"alter column {name} set visible"]
            kinds += ["rename index k1 to k2", "alter index k1 invisible"]
        return self._pick(kinds)

    def _rename(self, tables: Mapping[TableName, Sequence[str]]) -> str:
        pairs = [f"{self._table(one)} to {self._new_table()}" for one in self._some(tables, self._random.randint(1, 3))]
        if len(tables) > 1 and self._chance(3):
            one, other = self._some(tables, 2)
            pairs = [
                f"{self._table(one)} to d1.swap",
                f"{self._table(other)} to {self._table(one)}",
                f"d1.swap to {self._table(other)}",
            ]
        return f"rename table{self._condition(' if exists')} {', '.join(pairs)}"

    def _drop(self, tables: Mapping[TableName, Sequence[str]]) -> str:
        names = [self._table(one) for one in self._some(tables, self._random.choice([1, 1, 2]))]
        if self._chance(3):
            names.insert(self._random.randrange(len(names) + 1), "d1.missing")
        return f"drop table {self._pick(['', 'if exists '])}{', '.join(names)}"

    def _other(self, tables: Mapping[TableName, Sequence[str]]) -> str:
        (one,) = self._some(tables)
        name, columns = self._table(one), tables[one]
        key = quoted(columns[0]) if columns else "nothing"
        kinds = [
            *(f"truncate {self._pick(['', 'table '])}{name}", self._pick(_OF_DATABASES), self._pick(_UNRELATED)),
            *(
                f"create index kk on {name} ({key})",
                f"drop index kk on {name}",
                f"create unique index k1 on {name} ({key})",
            ),
            self._pick([f"analyze table {name}", f"optimize table {name}", f"repair table {name}"]),
        ]
        return self._pick([*kinds, *([self._pick(_SEQUENCES)] if self._is_mariadb else [])])
