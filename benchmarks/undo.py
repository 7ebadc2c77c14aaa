"""Takes back one transaction that changed a million rows: `python -m benchmarks.undo --work DIR --rows 1M`.

A real server logs the transaction: an UPDATE of four columns of each row of the shop's `orders`, which are filled
beforehand without a log. It is selected by its position, so that the file is decoded, folded, proved and printed.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.generate import INSERT, UPDATE, prepare
from benchmarks.measure import run
from benchmarks.run import BINLOOM
from tests.servers import DISTRIBUTIONS

UNITS = {"K": 1_000, "M": 1_000_000}
ROWS_OF_AN_INSERT = 400


def generate(folder: Path, rows: int) -> None:
    """Write a log of one transaction, and the schema."""
    distribution = DISTRIBUTIONS["mysql"]
    distribution.get()
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="generate-", dir=folder) as work:
        options = ["--max-binlog-size=1G"]
        with distribution.start(Path(work), options) as server:
            prepare(server)
            with server.connect(autocommit=False) as connection, connection.cursor() as cursor:
                cursor.execute("set session sql_log_bin = 0")
                for first in range(1, rows, ROWS_OF_AN_INSERT):
                    count = min(ROWS_OF_AN_INSERT, rows + 1 - first)
                    cursor.execute(INSERT, {"first": first, "rows": count})
                connection.commit()
            log = server.flush()
            with server.connect(autocommit=False) as connection, connection.cursor() as cursor:
                cursor.execute(UPDATE, (1, rows))
                connection.commit()
            log = server.flush()
            shutil.move(log, folder / log.name)
            (folder / log.name).chmod(0o644)
            server.snapshot_dir(folder / "schema")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("/tmp/binloom-bench"))
    parser.add_argument("--rows", default="1M", help="rows that the transaction changes")
    arguments = parser.parse_args()
    rows = int(arguments.rows[:-1]) * UNITS[arguments.rows[-1]]
    folder = arguments.work / f"undo-{rows}"
    if not (folder / "schema").is_dir():
        shutil.rmtree(folder, ignore_errors=True)
        generate(folder, rows)
    (log,) = folder.glob("*.0*")
    output = folder / "undo.sql"
    output.unlink(missing_ok=True)
    origin = ["--files", str(log), "--snapshot-dir", str(folder / "schema")]
    measured = run([BINLOOM, "undo", "--table", "bench.orders", "--output", str(output), *origin])
    with output.open() as script:
        printed = sum(line.startswith("UPDATE ") for line in script)
    assert printed == rows, (printed, rows)
    print(
        f"undo of {rows:,} rows, {log.stat().st_size / 1e6:.0f} MB of binlog: {measured.seconds:.1f} s,"
        f" {measured.processor_seconds:.1f} s of processor time, {measured.peak_bytes / 1e6:.0f} MB;"
        f" {output.stat().st_size / 1e6:.0f} MB of SQL"
    )


if __name__ == "__main__":
    main()
