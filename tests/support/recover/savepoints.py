"""Transactions with savepoints that nest, end and return at random, on a real server."""

import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pymysql

from tests.servers import Server, mysql56
from tests.support.recover.undo_servers import position_of

SCHEMA = "held"
Rows = Counter[tuple[str, ...]]

# Servers compare these without case, and MariaDB since 11.5 with accents.
_NAMES = ("a", "A", "b", "`c d`", "`e``f`", "Ö", "ö", "`b`", "`savepoint`")
# A statement that is not the same on a replica is logged as rows, also by MIXED.
_NUMBER = "crc32(uuid()) % 1000"
_XA_EVERY = 8


@dataclass
class Played:
    """A log, and what the tables contained after each of its transactions.

    Attributes
    ----------
    path
        The file.
    contents
        By position after a transaction, the rows of the tables `t` and `stays`.
    """

    path: Path
    contents: dict[int, dict[str, Rows]] = field(default_factory=dict)


def play(server: Server, transactions: int, seed: int, session: tuple[str, ...] = ()) -> Played:
    """Run transactions in a new file of a server's log.

    Parameters
    ----------
    session
        Statements that a session runs first.
    """
    chance = random.Random(seed)
    server.execute(f"drop database if exists {SCHEMA}")
    server.flush()
    server.execute(
        f"create database {SCHEMA}",
        f"create table {SCHEMA}.t (id int primary key, n int) engine = innodb",
        f"create table {SCHEMA}.stays (id int auto_increment primary key) engine = myisam",
    )
    contents = {}
    with server.connect(database=SCHEMA) as connection, connection.cursor() as cursor:
        for statement in session:
            cursor.execute(statement)
        for number in range(transactions):
            for statement in [*_transaction(chance, server, number), "drop temporary table if exists kept"]:
                try:
                    cursor.execute(statement)
                except pymysql.err.OperationalError as error:
                    # The savepoint was released, or another with its name is gone.
                    assert error.args[0] == 1305, (statement, error)
            rows = {table: _rows(cursor, table) for table in ("t", "stays")}
            contents[position_of(server)] = rows
    return Played(server.flush(), contents)


def _transaction(chance: random.Random, server: Server, number: int) -> list[str]:
    is_xa = number % _XA_EVERY == _XA_EVERY - 1
    # A savepoint before the first change is none of the log: the rollback to it is one of the whole transaction.
    steps = [f"insert into t values ({1000 + number}, {_NUMBER})"]
    steps += [_step(chance, server) for _ in range(chance.randrange(4, 16))]
    if is_xa:
        name = f"'x{number}'"
        return [f"xa start {name}", *steps, f"xa end {name}", f"xa prepare {name}", f"xa commit {name}"]
    return ["begin", *steps, "commit"]


def _step(chance: random.Random, server: Server) -> str:
    key, name = chance.randrange(12), chance.choice(_NAMES)
    steps = {
        f"insert into t values ({key}, {_NUMBER}) on duplicate key update n = {_NUMBER}": 5,
        f"delete from t where id = {key} and uuid() != ''": 2,
        f"savepoint {name}": 4,
        f"rollback to savepoint {name}": 2,
        f"/* again */ Rollback Work To {name}": 1,
        f"release savepoint {name}": 1,
        # With MIXED, the first one keeps MySQL 5.6 from cutting rows out of the log.
        "create temporary table if not exists kept (id int)": 4 if server.distribution is mysql56 else 0,
        # Its row keeps MariaDB from cutting the others out of the log. With GTIDs, MySQL refuses it.
        "insert into stays values (null)": 2 if server.flavor == "mariadb" else 0,
    }
    return chance.choices([*steps], [*steps.values()])[0]


def _rows(cursor: "pymysql.cursors.Cursor", table: str) -> Rows:
    cursor.execute(f"select * from {table}")
    return Counter(tuple(map(str, row)) for row in cursor.fetchall())
