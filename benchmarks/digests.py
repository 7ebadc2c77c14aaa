"""Measures what digests and tags of statements cost beside the rest of landing: `python -m benchmarks.digests LOG ...`.

The log should be one whose server logs the statements, with few rows in each: that is where they cost most. The
figures are processor time of one process that decodes a file and writes Parquet to memory, the best of some rounds.
"""

import argparse
import io
import time
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

from ingest.binlog import open_binlog
from ingest.ddl.digests.digest_batches import DigestColumns
from ingest.warehouse.landed import landed_batches

MOST: Final = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", type=Path, nargs="+")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    for log in given.logs:
        whole = min(_landing(log) for _ in range(given.rounds))
        digests = min(_digests(log) for _ in range(given.rounds))
        print(
            f"| digests and tags, {log.stat().st_size / 1e6:,.0f} MB | {digests:.2f} s,"
            f" landing with them takes {whole / (whole - digests):.2f} times as long as without | {MOST} |"
        )


def _landing(log: Path) -> float:
    writers: dict[str, pq.ParquetWriter] = {}
    begin = time.process_time()
    for kind, batch in landed_batches(open_binlog(log)):
        if kind not in writers:
            writers[kind] = pq.ParquetWriter(io.BytesIO(), batch.schema, compression="zstd")
        writers[kind].write_batch(batch)
    for writer in writers.values():
        writer.close()
    return time.process_time() - begin


def _digests(log: Path) -> float:
    statements = [batch for kind, batch in open_binlog(log).batches() if kind == "statements"]
    begin = time.process_time()
    columns = DigestColumns()
    for batch in statements:
        columns.of(batch)
    return time.process_time() - begin


if __name__ == "__main__":
    main()
