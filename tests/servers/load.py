"""Clients that write to a server all the time and survive its failures.

A seed decides what each client tries. The server decides the outcome: a statement may meet a lock, and the server
may be killed in the middle of it. Then the client connects again and goes on.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Self

import pymysql

from tests.servers.server import Server
from tests.support.patience import PATIENCE_SECONDS

SCHEMA = "load_test"
KEYS_A_CLIENT = 1_000_000
RETRY_SECONDS = 0.05

TABLES = [
    f"create database if not exists {SCHEMA} character set utf8mb4",
    f"""
    create table if not exists {SCHEMA}.accounts (
        id int unsigned not null primary key,
        owner varchar(80) not null,
        balance decimal(18,4) not null,
        rate double null,
        kind enum('cash','card','gift') not null,
        flags set('a','b','c') not null,
        opened_on date not null,
        changed_at timestamp(6) null
    ) engine=InnoDB
    """,
    f"""
    create table if not exists {SCHEMA}.documents (
        id int unsigned not null primary key,
        title varchar(200) character set latin1 null,
        body text null,
        content mediumblob null,
        attributes json null
    ) engine=InnoDB
    """,
    f"""
    create table if not exists {SCHEMA}.measures (
        client smallint not null,
        number bigint not null,
        value float null,
        bits bit(12) null,
        measured_at datetime(3) not null,
        took time(2) null,
        primary key (client, number)
    ) engine=InnoDB
    """,
]


class Load:
    """Threads that change the rows of three tables until they are stopped; also a context manager.

    Parameters
    ----------
    server
        The server that they write to.
    clients
        Number of connections; each has rows of its own, so that they do not wait for each other.
    first_client
        Number of the first client; another load on the same rows uses other numbers.
    seed
        Decides what they try.
    pause
        Seconds between two transactions of a client.
    ddl_every
        Number of transactions of the first client after which it runs a DDL statement; 0 for never.

    Attributes
    ----------
    done
        Number of transactions of each kind that the server confirmed.
    logged
        Number of transactions that changed something: rollbacks, and changes of rows that are gone, are not logged.
    lost
        Number of broken connections.
    """

    def __init__(
        self,
        server: Server,
        *,
        clients: int = 3,
        first_client: int = 0,
        seed: int = 1,
        pause: float = 0.01,
        ddl_every: int = 0,
    ) -> None:
        self.server = server
        self.done: Counter[str] = Counter()
        self.logged = 0
        self.lost = 0
        self._pause = pause
        self._ended = threading.Event()
        self._failure: BaseException | None = None
        self._last_error: BaseException | None = None
        self._count = threading.Lock()
        self._clients = [
            _Client(self, number, random.Random(f"{seed}-{number}"), ddl_every if number == first_client else 0)
            for number in range(first_client, first_client + clients)
        ]
        self._threads = [threading.Thread(target=self._work, args=(client,), daemon=True) for client in self._clients]

    def __enter__(self) -> Self:
        self.server.execute(*TABLES)
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Let every client finish its transaction; raise the failure of a client unless it was a lost connection."""
        self._ended.set()
        for thread in self._threads:
            thread.join()
        if self._failure is not None:
            raise self._failure

    def wait_for(self, transactions: int) -> None:
        """Wait until this many more transactions are in the server's log."""
        target, deadline = self.logged + transactions, time.monotonic() + PATIENCE_SECONDS
        while self.logged < target and not self._ended.wait(RETRY_SECONDS):
            if time.monotonic() > deadline:
                raise TimeoutError(f"the clients get nowhere: {self.done}, {self._last_error}")

    def _work(self, client: "_Client") -> None:
        while not self._ended.is_set():
            try:
                with self.server.connect(autocommit=False, read_timeout=30) as connection:
                    while not self._ended.wait(self._pause):
                        kind, is_logged = client.transact(connection)
                        with self._count:
                            self.done[kind] += 1
                            self.logged += is_logged
            except (pymysql.err.OperationalError, pymysql.err.InterfaceError, OSError) as error:
                with self._count:
                    self.lost += 1
                    self._last_error = error
                self._ended.wait(RETRY_SECONDS)
            except BaseException as error:
                self._fail(error)
                return

    def _fail(self, error: BaseException) -> None:
        self._failure = error
        self._ended.set()


class _Client:
    """One client: its rows, and its next transaction."""

    def __init__(self, load: Load, number: int, chance: random.Random, ddl_every: int) -> None:
        self.number = number
        self.chance = chance
        self.ddl_every = ddl_every
        self.transactions = 0
        self.following = number * KEYS_A_CLIENT + 1
        self.oldest = self.following
        self._kinds: list[tuple[Callable[[Any], int], int]] = [
            (self._insert, 5),
            (self._update, 4),
            (self._delete, 2),
            (self._mix, 3),
            (self._rollback, 1),
        ]

    def transact(self, connection: "pymysql.connections.Connection[Any]") -> tuple[str, bool]:
        """Run the next transaction; return its kind, and whether it is in the log."""
        self.transactions += 1
        with connection.cursor() as cursor:
            if self.ddl_every and self.transactions % self.ddl_every == 0:
                self._ddl(cursor)
                return "ddl", True
            ((kind,),) = (self.chance.choices(*zip(*self._kinds, strict=True)),)
            changed = kind(cursor)
            if kind == self._rollback:
                connection.rollback()
                return "rollback", False
            connection.commit()
        return kind.__name__.removeprefix("_"), changed > 0

    # Each kind returns the number of changed rows as the server counts them: an unchanged row does not count.

    def _insert(self, cursor: Any) -> int:
        # Keys are never reused, so it does not matter whether a commit without an answer happened.
        rows = self.chance.choice((1, 1, 2, 5, 20))
        first, self.following = self.following, self.following + rows
        keys = range(first, first + rows)
        table = self.chance.choice(("accounts", "documents", "measures"))
        if table == "accounts":
            cursor.executemany(
                f"insert into {SCHEMA}.accounts values (%s, %s, %s, %s, %s, %s, '2026-11-20', now(6))",
                [(key, *self._account()) for key in keys],
            )
        elif table == "documents":
            cursor.executemany(
                f"insert into {SCHEMA}.documents values (%s, %s, %s, %s, %s)",
                [(key, *self._document()) for key in keys],
            )
        else:
            cursor.executemany(
                f"insert into {SCHEMA}.measures values (%s, %s, %s, %s, '2026-11-20 12:00:00.125', '-01:02:03.45')",
                [(self.number, key, self.chance.uniform(-9, 9), self.chance.getrandbits(12)) for key in keys],
            )
        return rows

    def _update(self, cursor: Any) -> int:
        first, last = self._range(30)
        accounts: int = cursor.execute(
            f"update {SCHEMA}.accounts set balance = balance + %s, changed_at = now(6) where id between %s and %s",
            (self.chance.randrange(-500, 500), first, last),
        )
        documents: int = cursor.execute(
            f"update {SCHEMA}.documents set title = %s, attributes = json_set(coalesce(attributes, '{{}}'), '$.n', %s)"
            " where id between %s and %s",
            (self._text(), self.chance.randrange(1000), first, last),
        )
        return accounts + documents

    def _delete(self, cursor: Any) -> int:
        self.oldest = max(self.oldest, self.following - 500)
        last = min(self.oldest + self.chance.randrange(8), self.following - 1)
        deleted = sum(
            cursor.execute(f"delete from {SCHEMA}.{table} where id between %s and %s", (self.oldest, last))
            for table in ("accounts", "documents")
        )
        self.oldest = last + 1
        return deleted

    def _mix(self, cursor: Any) -> int:
        return sum(
            self.chance.choice((self._insert, self._update, self._delete))(cursor)
            for _ in range(self.chance.randrange(1, 4))
        )

    def _rollback(self, cursor: Any) -> int:
        return self._mix(cursor)

    def _ddl(self, cursor: Any) -> None:
        name = f"extra_{self.number}_{self.transactions // self.ddl_every}"
        cursor.execute(
            self.chance.choice(
                (
                    f"create table {SCHEMA}.{name} (id int primary key, note varchar(20))",
                    f"alter table {SCHEMA}.measures comment = '{name}'",
                    f"create or replace view {SCHEMA}.rich as select id from {SCHEMA}.accounts where balance > 5",
                )
            )
        )

    def _range(self, rows: int) -> tuple[int, int]:
        first = self.chance.randrange(max(self.oldest, self.following - 500), self.following + 1)
        return first, first + self.chance.randrange(rows)

    def _account(self) -> tuple[Any, ...]:
        chance = self.chance
        rate = None if chance.random() < 0.3 else chance.uniform(-1e6, 1e6)
        flags = ",".join(flag for flag in "abc" if chance.random() < 0.5)
        return self._text(), chance.randrange(-(10**9), 10**9), rate, chance.choice(("cash", "card", "gift")), flags

    def _document(self) -> tuple[Any, ...]:
        chance = self.chance
        # One blob in ten spans several network packets.
        size = chance.randrange(40_000, 90_000) if chance.random() < 0.05 else chance.randrange(400)
        attributes = f'{{"n": {chance.randrange(99)}, "list": [1.0, null, "{self._text()}"]}}'
        return self._text(), self._text() * 9 + " – ü 🙏", chance.randbytes(size), attributes

    def _text(self) -> str:
        return "".join(self.chance.choices("abcdefghij klmnop", k=self.chance.randrange(24)))
