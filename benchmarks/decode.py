"""Decodes a file in this process and prints the processor time it took, as JSON: `python -m benchmarks.decode FILE`.

With `--peer` mysql-replication decodes it instead, and stops after some seconds: a whole file would take it minutes.
"""

import argparse
import json
from pathlib import Path
from time import perf_counter, process_time


def by_binloom(path: Path) -> dict[str, float]:
    """Decode a whole file to record batches, after decoding a small file that loads the compiled kernel."""
    from ingest.binlog import open_binlog

    warm = Path(__file__).resolve().parents[1] / "samples" / "shop-mysql" / "binlog.000001"
    for _ in open_binlog(warm).row_batches():
        pass
    started = process_time()
    rows = sum(batch.num_rows for batch in open_binlog(path).row_batches())
    return {"rows": rows, "seconds": process_time() - started}


def by_mysql_replication(path: Path, flavor: str, limit: float) -> dict[str, float]:
    """Decode until the time is up; the file's metadata is at most MINIMAL, the server's default."""
    from tests.support.binlog.mysql_replication import row_events

    started, used = perf_counter(), process_time()
    rows = 0
    for event in row_events(path, flavor, has_checksums=True, full_metadata=False):
        rows += len(event.rows)
        if perf_counter() - started > limit:
            break
    return {"rows": rows, "seconds": process_time() - used}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--peer", action="store_true", help="decode by mysql-replication")
    parser.add_argument("--flavor", choices=["mysql", "mariadb"], default="mysql")
    parser.add_argument("--seconds", type=float, default=15, help="how long the peer may take")
    arguments = parser.parse_args()
    if arguments.peer:
        print(json.dumps(by_mysql_replication(arguments.file, arguments.flavor, arguments.seconds)))
    else:
        print(json.dumps(by_binloom(arguments.file)))


if __name__ == "__main__":
    main()
