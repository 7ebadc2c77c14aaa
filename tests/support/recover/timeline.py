"""A random workload on a server, and what its tables contained after each transaction."""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from pymysql.converters import conversions

from tests.servers import Server

SCHEMA = "timeline"
CREATE = (
    f"create database {SCHEMA} character set utf8mb4",
    f"use {SCHEMA}",
    "set time_zone = '+00:00'",
    "create table items (id int primary key, name varchar(40), n decimal(10,2), at datetime(3))",
    "create table pairs (a int, b varchar(20), v double, primary key (b, a))",
    "create table keyless (n int, t varchar(10))",
)
DOCUMENTS = "create table documents (id int primary key, n int, doc json)"
DOCUMENT = '{"a": [1, 2.50], "name": "long enough that only its change is logged"}'
TABLES = ("items", "pairs", "keyless")
_ENCODERS = {kind: encode for kind, encode in conversions.items() if not isinstance(kind, int)}
NAMES = ("", "a", "A", "a ", "ü|x", "x\\y", "it's", "🎂", "line\nline", "NULL")


@dataclass(frozen=True)
class Dump:
    """The rows of all tables at a position."""

    position: str
    rows: dict[str, Counter[tuple[str | None, ...]]]


@dataclass
class Timeline:
    """Runs transactions in one session, and dumps all tables after each."""

    server: Server
    seed: int
    has_documents: bool
    dumps: list[Dump] = field(default_factory=list)

    def run(
        self, transactions: int, afterwards: Mapping[int, Callable[[], object]] = MappingProxyType({})
    ) -> list[Dump]:
        """Run random transactions; return the dumps. Some functions are called after the transactions of a number."""
        self._chance = random.Random(self.seed)
        # Values as the server prints them.
        with self.server.connect(conv=_ENCODERS) as connection, connection.cursor() as cursor:
            for statement in (*CREATE, *([DOCUMENTS] if self.has_documents else [])):
                cursor.execute(statement)
            for number in range(transactions):
                self._transact(cursor, number)
                self.dumps.append(self._dump(cursor))
                afterwards.get(number, lambda: None)()
        return self.dumps

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables."""
        return (*TABLES, "documents") if self.has_documents else TABLES

    def _transact(self, cursor: Any, number: int) -> None:
        image = self._chance.choice(("FULL", "FULL", "MINIMAL", "NOBLOB"))
        cursor.execute(f"set session binlog_row_image = {image}")
        if self.has_documents:
            option = self._chance.choice(("", "PARTIAL_JSON"))
            cursor.execute(f"set session binlog_row_value_options = '{option}'")
        if number % 17 == 16:
            cursor.execute(f"truncate table {self._chance.choice(self.tables)}")
            return
        if number % 23 == 22:
            self._prepared(cursor)
            return
        cursor.execute("begin")
        for _ in range(self._chance.randint(1, 6)):
            self._change(cursor)
        cursor.execute("rollback" if self._chance.random() < 0.05 else "commit")

    def _prepared(self, cursor: Any) -> None:
        """Prepare a transaction, and commit it or roll it back after another one."""
        with self.server.connect(database=SCHEMA) as other, other.cursor() as prepared:
            prepared.execute("xa start 'x'")
            key = self._key() + 1000
            prepared.execute(f"insert into items values ({key}, 'xa', 1, null) ")
            prepared.execute("xa end 'x'")
            prepared.execute("xa prepare 'x'")
            cursor.execute(f"insert into keyless values ({key}, 'xa')")
            self.dumps.append(self._dump(cursor))
            prepared.execute(self._chance.choice(("xa commit 'x'", "xa rollback 'x'")))
        cursor.execute("delete from items where id > 1000")

    def _change(self, cursor: Any) -> None:
        key, other = self._key(), self._key()
        name = self._chance.choice(NAMES)
        number = self._chance.choice(("null", "0", "-1.50", "12345678.90"))
        statements: list[tuple[str, tuple[Any, ...]]] = [
            ("replace into items values (%s, %s, " + number + ", '2026-11-01 00:00:00.125')", (key, name)),
            ("insert ignore into items values (%s, %s, " + number + ", null)", (key, name)),
            ("update items set name = %s where id between %s and %s", (name, key, key + 3)),
            ("update ignore items set id = %s where id = %s", (other, key)),
            ("update ignore items set id = id + 100 where id < 100 and id >= %s order by id desc limit 3", (key,)),
            ("update ignore items set id = id - 100 where id >= 100 and id < 200 and (id - 100) not in"
             " (select * from (select id from items) as i) limit 2", ()),
            ("delete from items where id = %s", (key,)),
            ("insert ignore into pairs values (%s, %s, 0.1)", (key, name)),
            ("update pairs set v = v * 3 where a < %s", (key,)),
            ("update ignore pairs set b = %s where a = %s", (name, key)),
            ("delete from pairs where a = %s", (key,)),
            ("insert into keyless values (%s, %s), (%s, %s)", (key % 3, name, key % 3, name)),
            ("update keyless set n = n + 1 where n = %s limit 2", (key % 3,)),
            ("delete from keyless where n = %s limit 1", (key % 4,)),
        ]  # fmt: skip
        if self.has_documents:
            statements += [
                ("insert ignore into documents values (%s, 1, %s)", (key, DOCUMENT)),
                ("update documents set doc = json_set(doc, '$.a[0]', %s) where id >= %s", (other, key)),
                ("update documents set doc = json_remove(doc, '$.b'), n = n + 1 where id = %s", (key,)),
                ("update documents set doc = json_set(doc, '$.b', %s) where id = %s", (name, key)),
                ("update documents set n = null where id = %s", (key,)),
            ]  # fmt: skip
        statement, parameters = self._chance.choice(statements)
        cursor.execute(statement, parameters)

    def _key(self) -> int:
        return self._chance.randint(0, 15)

    def _dump(self, cursor: Any) -> Dump:
        is_renamed = self.server.flavor == "mysql" and not self.server.version.startswith("5.")
        cursor.execute("show binary log status" if is_renamed else "show master status")
        file, position, *_ = cursor.fetchone()
        rows: dict[str, Counter[tuple[str | None, ...]]] = {}
        for table in self.tables:
            cursor.execute(f"select * from {table}")
            rows[table] = Counter(cursor.fetchall())
        return Dump(f"{file}:{position}", rows)
