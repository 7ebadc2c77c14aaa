"""Measures the pages of `binloom ui` on a warehouse in the marts' layout: `python -m benchmarks.ui --rows 10M`.

The warehouse is the one of `benchmarks.lookup`, with transactions of 20 rows and one of 100,000. A client without a
browser asks for each page in turn; a figure is the median of `--rounds`. The first page is asked once for each start.
"""

import argparse
import os
import re
import signal
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from time import perf_counter
from typing import Final
from urllib.parse import urlencode

import httpx2

from benchmarks.lookup import FILE, FIRST_HOUR, ROWS, SOURCE, UNITS, generate

HOURS: Final = 60
BIG: Final = 100_000
_ADDRESS: Final = re.compile(r"(http://\S+/)\?token=(\S+)\n")
_TRANSACTIONS: Final = """
    select source_id, epoch, binlog_file, 1::bigint as file_sequence, transaction_pos as start_pos,
        max(end_pos) as end_pos, concat_ws('/', source_id, epoch, binlog_file, transaction_pos) as transaction_id,
        any_value(gtid) as gtid, null::varchar as xa_xid, null::varchar as xa_end_transaction_id,
        9::bigint as thread_id, min(event_timestamp) as started_at, max(committed_at) as committed_at,
        'commit' as outcome, count(*) as row_events, count_if(event_type = 'INSERT') as inserts,
        count_if(event_type = 'UPDATE') as updates, 0::bigint as deletes
    from read_parquet($files, hive_types = {'epoch': integer}) group by all order by start_pos"""


def prepare(home: Path, rows: int) -> None:
    """Write the warehouse."""
    import duckdb
    import pyarrow.parquet as pq

    generate(home, rows - BIG, HOURS)
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    at = FIRST_HOUR + timedelta(hours=HOURS)
    values = {"hour": HOURS, "rows": BIG, "keys": rows, "at": f"{at:%F %T}+00", "source": SOURCE, "file": FILE}
    mart = home / "warehouse" / "binloom.db"
    folder = mart / "row_changes" / f"event_hour={at:%Y-%m-%d-%H}" / f"source_id={SOURCE}" / "epoch=0"
    path = folder / f"binlog_file={FILE}" / "file_part=0" / "part-00000.zstd.parquet"
    path.parent.mkdir(parents=True)
    one_transaction = ROWS.replace(" + number // 20 * 6000 as transaction_pos", " as transaction_pos")
    pq.write_table(connection.sql(one_transaction, params=values).to_arrow_table(), path, compression="zstd")
    # The columns of the folders come last, as Spark has them.
    found = connection.sql(_TRANSACTIONS, params={"files": str(mart / "row_changes" / "**" / "*.parquet")})
    pq.write_table(found.to_arrow_table(), mart / "transactions" / "part-00000.zstd.parquet", compression="zstd")


@contextmanager
def served(home: Path) -> Iterator[tuple[httpx2.Client, float, int]]:
    """Start the command; give a client, the seconds until the address was there, and the number of the process."""
    started = perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "binloom.cli", "ui", "--no-browser"],
        env={**os.environ, "BINLOOM_HOME": str(home)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    found = _ADDRESS.fullmatch(process.stdout.readline())
    assert found is not None
    try:
        with httpx2.Client(base_url=found[1], timeout=120) as client:
            seconds = perf_counter() - started
            client.get("/", params={"token": found[2]})
            yield client, seconds, process.pid
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


def pages() -> dict[str, str]:
    """Return the pages by their names."""
    begin = FIRST_HOUR + timedelta(hours=10)
    day = {"since": f"{begin:%F %T}", "until": f"{begin + timedelta(days=1):%F %T}"}
    hour = {"since": f"{begin:%F %T}", "until": f"{begin + timedelta(hours=1):%F %T}"}
    big = f"{SOURCE}/0/{FILE}/{HOURS * 100_000_000}"
    return {
        "the first page again": "/",
        "a zoom to a day": f"/?{urlencode(day)}",
        "a zoom to an hour": f"/?{urlencode(hour)}",
        "transactions": "/transactions",
        "transactions of an hour": f"/transactions?{urlencode(hour)}",
        "a transaction of 100,000 rows": f"/transaction?{urlencode({'id': big})}",
        "its last part": f"/transaction?{urlencode({'id': big, 'page': BIG // 50})}",
    }


def peak_megabytes(process: int) -> float:
    """Return the most memory that a process had."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) / 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("/tmp/binloom-bench"))
    parser.add_argument("--rows", default="10M", help="row changes")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    rows = int(given.rows[:-1]) * UNITS[given.rows[-1]]
    home = given.work / f"ui-{given.rows}"
    if not home.is_dir():
        prepare(home, rows)
    figures: dict[str, list[float]] = {}
    peak = 0.0
    for _ in range(given.rounds):
        with served(home) as (client, start, process):
            figures.setdefault("start, until the address is there", []).append(start)
            for name, address in {"the first page": "/", **pages()}.items():
                began = perf_counter()
                answer = client.get(address)
                figures.setdefault(name, []).append(perf_counter() - began)
                assert answer.status_code == 200, answer.text[-2000:]
            peak = max(peak, peak_megabytes(process))
    for name, found in figures.items():
        print(f"| {name} | {statistics.median(found):.2f} s | |")
    print(f"| memory of the process at its peak | {peak:.0f} MB | |")


if __name__ == "__main__":
    main()
