"""Lands baselines of a table without a lock while clients write to it, and proves that each is exact.

    python -m benchmarks.baseline_without_lock --work DIR --rows 5000000 --rounds 10

A baseline is exact if its rows, with all changes of the log behind its position, are the rows of the server at last.
This is computed by DuckDB, from the landed rows and the decoded log. An existing DIR/server is used again.
"""

import argparse
import random
import sys
import threading
import time
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from benchmarks.measure import run
from ingest.binlog import open_binlog
from ingest.warehouse.files import read_rows
from ingest.warehouse.home import raw_table_dir
from ingest.warehouse.tables import BASELINE_ROWS, BASELINES
from tests.servers import mysql, mysql56
from tests.servers.accounts import create_account
from tests.servers.managed import PRIVILEGES, known_to, without_lock
from tests.servers.server import Server

DOUBLED_FROM = 1000


class Load(threading.Thread):
    """A client that changes, adds, moves and deletes rows at a rate, in transactions of one to three rows."""

    def __init__(self, server: Server, number: int, clients: int, rows: int, rate: float) -> None:
        super().__init__(daemon=True)
        self.ended = threading.Event()
        self.done = 0
        self._server, self._number, self._clients, self._rows, self._pause = server, number, clients, rows, 1 / rate

    def run(self) -> None:
        """Write until `ended` is set."""
        chance = random.Random(self._number)
        following = self._rows + 1 + self._number
        due = time.monotonic()
        with self._server.connect(autocommit=False) as connection, connection.cursor() as cursor:
            while not self.ended.is_set():
                for _ in range(chance.choice((1, 1, 3))):
                    key = chance.randrange(self._rows // self._clients) * self._clients + self._number
                    kind = chance.random()
                    if kind < 0.8:
                        cursor.execute(f"update bench.t set n = n + 1, note = '{chance.random()}' where id = {key}")
                    elif kind < 0.9:
                        cursor.execute(f"insert into bench.t values ({following}, 0, 'new', null, 0.1)")
                        following += self._clients
                    else:
                        cursor.execute(f"delete from bench.t where id = {key}")
                connection.commit()
                self.done += 1
                due += self._pause
                time.sleep(max(due - time.monotonic(), 0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--rate", type=float, default=1000, help="transactions a second")
    parser.add_argument("--clients", type=int, default=2)
    parser.add_argument("--server", choices=("mysql", "mysql56"), default="mysql")
    parser.add_argument("--gtid-mode", choices=("ON", "OFF"), default="ON")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    distribution = {"mysql": mysql, "mysql56": mysql56}[given.server]
    options = [] if given.server == "mysql56" else [f"--gtid-mode={given.gtid_mode}", "--enforce-gtid-consistency=ON"]
    with distribution.start(given.work / "server", options) as server:
        rows = _table(server, given.rows)
        account = create_account(server, given.work, "admin", known_to(server, without_lock(PRIVILEGES["rds"])))
        first = server.binlogs()[-1].name
        loads = [
            Load(server, number, given.clients, rows, given.rate / given.clients) for number in range(given.clients)
        ]
        home = given.work / f"home-{time.time_ns()}"
        words = ["baseline", "--source", "bench", "--server", f"127.0.0.1:{server.port}", "--tables", "bench.t"]
        command = [sys.executable, "-m", "binloom.cli", *words, "--defaults-file", str(account.defaults_file)]
        for load in loads:
            load.start()
        for number in range(given.rounds):
            before, begun = sum(load.done for load in loads), time.monotonic()
            done = run(command, environment={"BINLOOM_HOME": str(home)})
            rate = (sum(load.done for load in loads) - before) / (time.monotonic() - begun)
            print(f"round {number + 1}: {done.seconds:.1f} s, {rate:,.0f} transactions a second", flush=True)
        for load in loads:
            load.ended.set()
            load.join()
        assert_exact(server, home, first)


def _table(server: Server, rows: int) -> int:
    """Make the table with at least this number of rows, if it is not there; return the number."""
    if not server.execute("select 1 from information_schema.tables where table_schema = 'bench'"):
        server.execute(
            "create database bench",
            "create table bench.t (id int primary key, n bigint, note varchar(30), price decimal(9,2), rate double)"
            " engine=InnoDB",
        )
        with server.connect(autocommit=False) as connection, connection.cursor() as cursor:
            cursor.execute("set session sql_log_bin = 0")
            cursor.executemany(
                "insert into bench.t values (%s, 0, 'as it was', 9.50, 1e-7)", [(key,) for key in range(DOUBLED_FROM)]
            )
            count = DOUBLED_FROM
            while count < rows:
                more = min(count, rows - count)
                cursor.execute(
                    f"insert into bench.t select id + {count}, n, note, price, rate from bench.t where id < {more}"
                )
                connection.commit()
                count += more
    ((last,),) = server.execute("select max(id) + 1 from bench.t")
    return int(last)


def assert_exact(server: Server, home: Path, first: str) -> None:
    """Compare each baseline and the changes behind it with the rows of the server."""
    db = duckdb.connect()
    server.flush()
    changes = [_changes(path) for path in server.binlogs() if path.name >= first]
    db.register("logged", pa.concat_tables(changes))
    db.execute("create table changes as select * from logged")
    rows = f"read_parquet('{raw_table_dir(BASELINE_ROWS.name, home)}/*.parquet')"
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("select id, n, note, price, cast(rate * 1e0 as char) from bench.t")
        names = ["id", "n", "note", "price", "rate"]
        columns = zip(*cursor.fetchall(), strict=True)
        last = pa.table({name: [_text(value) for value in column] for name, column in zip(names, columns, strict=True)})
    db.register("arrived", last)
    db.execute("create table last as select [id, n, note, price, rate] as image from arrived")
    exact = 0
    for baseline in read_rows(BASELINES, home):
        place = f"('{baseline['binlog_file']}', {baseline['binlog_pos']})"
        db.execute(
            f"""create or replace table behind as
            select key, last(image order by binlog_file, pos, ordinal) as image from changes
            where (binlog_file, pos) >= {place} group by key"""
        )
        result = db.execute(
            f"""with carried as (
                select row_values as image from {rows} where baseline_id = '{baseline["baseline_id"]}'
                    and row_values[1] not in (select key from behind)
                union all select image from behind where len(image) > 0
            )
            select (select count(*) from (from carried except all from last)),
                (select count(*) from (from last except all from carried)), (select count(*) from behind)"""
        ).fetchone()
        assert result is not None
        is_exact = result[:2] == (0, 0)
        exact += is_exact
        print(
            f"{baseline['binlog_file']}:{baseline['binlog_pos']}, proved by {baseline['position_proof']}:"
            f" {baseline['row_count']:,} rows, {result[2]:,} changed later, {'exact' if is_exact else result}"
        )
    print(f"{exact} of {len(read_rows(BASELINES, home))} are exact")


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _changes(path: Path) -> pa.Table:
    """Return key, place and image of each changed row; the image of a deleted row is empty."""
    batches = []
    for batch in open_binlog(path).row_batches():
        kinds, befores, afters = (batch[name].to_pylist() for name in ("event_type", "before_values", "after_values"))
        changes = [
            (before, []) if kind == "DELETE" else (after, after)
            for kind, before, after in zip(kinds, befores, afters, strict=True)
        ]
        batches.append(
            {
                "key": [row[0] for row, _ in changes],
                "image": [after for _, after in changes],
                "pos": batch["start_pos"].to_pylist(),
                "ordinal": batch["row_ordinal"].to_pylist(),
            }
        )
    schema = pa.schema(
        [("key", pa.string()), ("image", pa.list_(pa.string())), ("pos", pa.int64()), ("ordinal", pa.int64())]
    )
    tables = [pa.table(batch, schema) for batch in batches] or [schema.empty_table()]
    whole = pa.concat_tables(tables)
    return whole.append_column("binlog_file", pa.array([path.name] * len(whole), pa.string()))


if __name__ == "__main__":
    main()
