"""Writes a binlog of any size, as an online shop would: `python benchmarks/generate.py --size 256M --out DIR`.

A real server logs it: `orders` with 15 mixed columns, changed in transactions of some ten to a hundred
rows; half of the changed rows are inserts, a third updates, the rest deletes. DIR gets `binlog.000001`
and the schema under `schema/`.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pymysql

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.servers import DISTRIBUTIONS, Server

UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
# A server rotates at this size at the latest, so a larger target becomes several files.
LARGEST_FILE = 1 << 30
# The clock of an hourly log starts this many hours ago.
HOURS_AGO = 2000
# The table stops growing at this number of rows.
LARGE_TABLE = 1_000_000

SCHEMA = [
    "create database bench character set utf8mb4",
    """
    create table bench.orders (
        id bigint unsigned not null auto_increment primary key,
        customer_id int unsigned not null,
        store_id smallint not null,
        status enum('new','paid','packed','shipped','delivered','cancelled') not null,
        quantity int not null,
        is_gift tinyint(1) not null,
        total decimal(12,2) not null,
        weight double not null,
        currency char(3) character set latin1 not null,
        email varchar(100) not null,
        comment varchar(255) null,
        ordered_on date not null,
        created_at datetime(6) not null,
        updated_at timestamp null,
        attributes json null
    ) engine=InnoDB
    """,
    # Contains the numbers 0 to 399: inserts select from here.
    "create table bench.numbers (n int primary key) engine=InnoDB",
]

INSERT = """
    insert into bench.orders
        (id, customer_id, store_id, status, quantity, is_gift, total, weight, currency, email, comment, ordered_on,
         created_at, updated_at, attributes)
    select
        %(first)s + n, 1 + floor(rand() * 1000000), n %% 400 - 100, 1 + n %% 6, 1 + floor(rand() * 20), n %% 7 = 0,
        rand() * 5000, rand() * 30, elt(1 + n %% 4, 'EUR', 'CHF', 'USD', 'JPY'),
        concat('customer', floor(rand() * 1000000), if(n %% 11, '@example.org', '@bücher.example')),
        if(n %% 3, null, concat('Please ring twice, floor ', n, if(n %% 9, '', ' – merci 🙏'))),
        current_date - interval n %% 30 day, now(6), if(n %% 5, now(), null),
        if(n %% 2, null, json_object('channel', elt(1 + n %% 3, 'web', 'app', 'phone'), 'items', n, 'score', rand()))
    from bench.numbers
    where n < %(rows)s
"""
UPDATE = """
    update bench.orders
    set
        status = 1 + (status + 1) %% 6,
        updated_at = now(),
        total = total + 1.5,
        comment = if(id %% 4, comment, 'changed')
    where id between %s and %s
"""
DELETE = "delete from bench.orders where id between %s and %s"


def size_in_bytes(text: str) -> int:
    """Parse `256M`, `1G` or plain bytes."""
    unit = UNITS.get(text[-1:].upper())
    return int(float(text[:-1]) * unit) if unit else int(text)


def write(server: Server, size: int, hourly: bool = False, last: int = 0) -> None:
    """Run transactions until the server has written this many bytes of binlog; `hourly`: one hour for each file.

    `last`: bytes that it writes afterwards, into a file of their own.
    """
    prepare(server)
    first_hour = int(time.time()) - HOURS_AGO * 3600
    with server.connect(autocommit=False) as connection:
        for number in rounds(connection):
            if number % 20 == 0 and log_size(server) >= size:
                if not last:
                    return
                server.flush()
                size, last = log_size(server) + last, 0
            if hourly:
                with connection.cursor() as cursor:
                    cursor.execute("set timestamp = %s", first_hour + 3600 * len(server.binlogs()))


def prepare(server: Server) -> None:
    """Make the tables; the rows that fill them beforehand are not logged."""
    server.execute(
        *SCHEMA,
        "set session sql_log_bin = 0",
        "insert into bench.numbers values " + ", ".join(f"({n})" for n in range(400)),
    )


def log_size(server: Server) -> int:
    """Return the size of a server's binlog in bytes."""
    return sum(path.stat().st_size for path in server.binlogs())


def rounds(connection: "pymysql.connections.Connection[Any]") -> Iterator[int]:
    """Run rounds of six transactions endlessly; yield the number of each transaction after it is done.

    A round inserts 180 rows, updates 120 and deletes 60, or 180 once the table has grown large; keys have no gaps.
    """
    oldest, following = 1, 1
    cursor = connection.cursor()
    for number in count(1):
        for rows in (100, 60, 20):
            cursor.execute(INSERT, {"first": following, "rows": rows})
            following += rows
            connection.commit()
        for rows in (90, 30):
            # A prime stride spreads the updates over the existing rows.
            first = oldest + (number * 7919) % (following - oldest - rows)
            cursor.execute(UPDATE, (first, first + rows - 1))
            connection.commit()
        deleted = 60 if following - oldest < LARGE_TABLE else 180
        cursor.execute(DELETE, (oldest, oldest + deleted - 1))
        oldest += deleted
        connection.commit()
        yield number


def generate(
    distribution_name: str, size: int, out: Path, options: Sequence[str] = (), *, hourly: bool = False, last: int = 0
) -> list[Path]:
    """Write binlogs of about `size` bytes, one of `last` bytes, and the schema under `out`; return the binlogs."""
    distribution = DISTRIBUTIONS[distribution_name]
    distribution.get()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="generate-", dir=out) as work:
        limit = f"--max-binlog-size={min(LARGEST_FILE, max(4096, size * 2))}"
        with distribution.start(Path(work), [limit, *options]) as server:
            write(server, size, hourly, last)
            server.flush()
            files = []
            for path in server.binlogs()[:-1]:
                files.append(Path(shutil.move(path, out / path.name)))
                files[-1].chmod(0o644)
            server.snapshot_dir(out / "schema")
    return files


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=size_in_bytes, required=True, help="bytes of binlog to write: 256M, 2G")
    parser.add_argument("--out", type=Path, required=True, help="folder for the binlogs and schema/")
    parser.add_argument("--server", choices=sorted(DISTRIBUTIONS), default="mysql")
    parser.add_argument("--option", action="append", default=[], help="a server option, such as --binlog-checksum=NONE")
    arguments = parser.parse_args()
    for path in generate(arguments.server, arguments.size, arguments.out, arguments.option):
        print(f"{path}  {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
