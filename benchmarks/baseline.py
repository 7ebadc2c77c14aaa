"""Lands a baseline of one table from a live server, beside `mysqldump` of the same table.

    python -m benchmarks.baseline --work DIR --rows 5000000

The server is MySQL on this machine. Both read over TCP; mysqldump writes into a file. The seconds of the processor are
those of the client, without the server's: on a machine that does other work they say more than the clock.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measure import run
from tests.servers import mysql

TABLE = (
    "create database bench",
    "create table bench.orders (id bigint primary key, customer int unsigned not null, status varchar(20) not null,"
    " total decimal(12,2), weight double, note varchar(200), created datetime(3), payload varbinary(16))",
)
FIRST_ROWS = 1000
FIRST = f"""insert into bench.orders with recursive n as (select 1 as id union all select id + 1 from n
    where id < {FIRST_ROWS}) select id, id * 7919 % 100003, elt(1 + id % 4, 'new', 'paid', 'shipped', 'returned'),
    id * 1.25, id / 7, if(id % 3, repeat('note ', id % 20), null), timestampadd(second, id, '2026-11-01'),
    unhex(left(sha2(id, 256), 32)) from n"""
MORE = """insert into bench.orders select id + {count}, (customer + {count}) % 100003, status, total, weight, note,
    created, payload from bench.orders where id <= {rows}"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--work", type=Path, required=True, help="an empty folder")
    parser.add_argument("--rows", type=int, default=5_000_000)
    given = parser.parse_args(arguments)
    given.work.mkdir(parents=True, exist_ok=True)
    with mysql.start(given.work / "server", ["--innodb-buffer-pool-size=1G"]) as server:
        server.execute(*TABLE, "use bench", FIRST)
        count = FIRST_ROWS
        while count < given.rows:
            server.execute(MORE.format(count=count, rows=min(count, given.rows - count)))
            count += min(count, given.rows - count)
        program = mysql.command(
            "usr/bin/mysqldump", "--no-defaults", "--user=root", "--host=127.0.0.1", f"--port={server.port}",
            "--protocol=tcp", "--single-transaction", "--source-data=2", "--hex-blob", "--databases", "bench",
            f"--result-file={given.work / 'bench.sql'}",
        )  # fmt: skip
        command = [sys.executable, "-m", "binloom.cli", "baseline", "--source", "bench", "--server", "127.0.0.1"]
        command += ["--port", str(server.port), "--user", "root", "--schemas", "bench"]
        for name, words in (("mysqldump", program), ("binloom baseline", command)):
            done = run(words, environment={"BINLOOM_HOME": str(given.work / "home")})
            used = f"{done.processor_seconds:.1f} s of processor time, {done.peak_bytes >> 20} MiB at most"
            print(f"{name}: {done.seconds:.1f} s, {used}")
        stored = sum(path.stat().st_size for path in (given.work / "home").rglob("baseline_rows/*.parquet"))
        dumped = (given.work / "bench.sql").stat().st_size
        print(f"{given.rows} rows; the dump has {dumped >> 20} MiB, the baseline {stored >> 20} MiB")


if __name__ == "__main__":
    main()
