"""Brings one table back from a dump and the log after it: `python -m benchmarks.restore --rows 1M --log 200M`.

A real server has a table of so many rows, is dumped, and changes rows until its log has so many bytes. The other way is
what people do without binloom: a scratch server, `mysql < dump`, and `mysqlbinlog | mysql`; its time is without the
start of the server. The rows of both are compared.
"""

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.generate import DELETE, INSERT, UPDATE, prepare, size_in_bytes
from benchmarks.measure import run
from benchmarks.run import BINLOOM
from tests.servers import DISTRIBUTIONS, Server
from tests.servers.dumped import dumped

UNITS = {"K": 1_000, "M": 1_000_000}
ROWS_OF_AN_INSERT = 400
CHANGED_AT_ONCE = 40
TABLE = "bench.orders"


def generate(folder: Path, rows: int, log_bytes: int) -> None:
    """Write a dump, the log after it, and a checksum of the table at its end."""
    folder.mkdir(parents=True)
    with (
        tempfile.TemporaryDirectory(prefix="generate-", dir=folder) as work,
        DISTRIBUTIONS["mysql"].start(Path(work), ["--max-binlog-size=1G"]) as server,
    ):
        prepare(server)
        with server.connect(autocommit=False) as connection, connection.cursor() as cursor:
            cursor.execute("set session sql_log_bin = 0")
            for first in range(1, rows, ROWS_OF_AN_INSERT):
                cursor.execute(INSERT, {"first": first, "rows": min(ROWS_OF_AN_INSERT, rows + 1 - first)})
            connection.commit()
        server.flush()
        (folder / "dump.sql").write_bytes(
            dumped(server, "--single-transaction", "--source-data=2", "--databases", "bench")
        )
        change(server, rows, log_bytes)
        (folder / "checksum").write_text(checksum(server))
        server.flush()
        for log in server.binlogs()[1:-1]:
            shutil.move(log, folder / log.name)
            (folder / log.name).chmod(0o644)


def change(server: Server, rows: int, log_bytes: int) -> None:
    """Change rows all over the table: two inserts, two updates and a delete in each round."""
    chance, last = random.Random(1), rows
    with server.connect(autocommit=False) as connection, connection.cursor() as cursor:
        while sum(path.stat().st_size for path in server.binlogs()[1:]) < log_bytes:
            for _ in range(50):
                for statement in (UPDATE, UPDATE, DELETE):
                    first = chance.randrange(1, rows)
                    count = CHANGED_AT_ONCE if statement is UPDATE else CHANGED_AT_ONCE // 2
                    cursor.execute(statement, (first, first + count - 1))
                cursor.execute(INSERT, {"first": last + 1, "rows": CHANGED_AT_ONCE // 2})
                last += CHANGED_AT_ONCE // 2
                connection.commit()


def checksum(server: Server) -> str:
    """Return the number of rows of the table, and a sum over all of their values."""
    ((count,),) = server.execute(f"select count(*) from {TABLE}")
    ((_, found),) = server.execute(f"checksum table {TABLE}")
    return f"{count} {found}"


def load(server: Server, *paths: Path) -> None:
    """Run scripts with the server's own client."""
    for path in paths:
        with path.open("rb") as script:
            subprocess.run(client(server), stdin=script, check=True, stdout=subprocess.DEVNULL)


def client(server: Server) -> list[str]:
    """Return the command of the client."""
    tools = server.distribution
    words = [f"--socket={server.socket}", "--user=root", "--max-allowed-packet=1G"]
    return tools.command("usr/bin/mysql", "--no-defaults", f"--character-sets-dir={tools.share / 'charsets'}", *words)


def replay(server: Server, folder: Path) -> float:
    """Return the seconds that the other way takes."""
    began = time.monotonic()
    load(server, folder / "dump.sql")
    logs = [str(path) for path in sorted(folder.glob("binlog.0*"))]
    first = (folder / "dump.sql").read_bytes()[:4000].split(b"LOG_POS=")[1].split(b";")[0].decode()
    reader = server.distribution.command(
        "usr/bin/mysqlbinlog", "--no-defaults", "--skip-gtids", f"--start-position={first}", *logs
    )
    with subprocess.Popen(reader, stdout=subprocess.PIPE) as process:
        subprocess.run(client(server), stdin=process.stdout, check=True, stdout=subprocess.DEVNULL)
    assert process.returncode == 0
    return time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("/tmp/binloom-bench"))
    parser.add_argument("--rows", default="1M", help="rows of the table")
    parser.add_argument("--log", default="200M", help="bytes of the log after the dump")
    arguments = parser.parse_args()
    rows = int(arguments.rows[:-1]) * UNITS[arguments.rows[-1]]
    folder = arguments.work / f"restore-{arguments.rows}-{arguments.log}"
    DISTRIBUTIONS["mysql"].get()
    if not (folder / "checksum").is_file():
        shutil.rmtree(folder, ignore_errors=True)
        generate(folder, rows, size_in_bytes(arguments.log))
    logs = sorted(folder.glob("binlog.0*"))
    dump_size = (folder / "dump.sql").stat().st_size
    size = sum(one.stat().st_size for one in logs)
    sizes = f"{dump_size / 1e6:.0f} MB of dump, {size / 1e6:.0f} MB of log"
    print(f"{rows:,} rows, {sizes}", flush=True)
    measured = {}
    for format in ("sql", "csv", "parquet"):
        output = folder / f"restored.{format}"
        origin = ["--from-dump", str(folder / "dump.sql"), "--files", *map(str, logs)]
        measured[format] = run([BINLOOM, "restore", TABLE, "--format", format, "--output", str(output), *origin])
        one = measured[format]
        print(
            f"restore to {format}: {one.seconds:.1f} s, {one.processor_seconds:.1f} s of processor time,"
            f" {one.peak_bytes / 1e6:.0f} MB of memory",
            flush=True,
        )
    options = ["--max-allowed-packet=1G", "--gtid-mode=OFF_PERMISSIVE"]
    with (
        tempfile.TemporaryDirectory(prefix="scratch-", dir=folder) as work,
        DISTRIBUTIONS["mysql"].start(Path(work), options) as server,
    ):
        seconds = replay(server, folder)
        replayed = checksum(server)
        server.execute(f"truncate table {TABLE}")
        load(server, folder / "restored.sql")
        assert checksum(server) == replayed == (folder / "checksum").read_text()
    print(f"dump and log on a scratch server: {seconds:.1f} s; ratio {measured['sql'].seconds / seconds:.2f}")


if __name__ == "__main__":
    main()
