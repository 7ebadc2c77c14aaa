"""The transactions of a range of a binlog file, without their rows."""

import contextlib
from collections.abc import Iterator, Sequence

import pyarrow as pa

from ingest.binlog.byte_files import LogPath
from ingest.errors import CorruptBinlogError


def transactions(
    path: LogPath, start: int, end: int, columns: Sequence[str], skip_bad_checksum: bool = False
) -> Iterator[pa.RecordBatch]:
    """Yield columns of the transactions between two physical offsets of a file.

    A broken event ends the iteration without an error: the task that lands this part of the file reports it.
    """
    from ingest.binlog import TableFilter, open_binlog

    log = open_binlog(
        path, tables=TableFilter(exclude_tables=("*",)), start=start, end=end, skip_bad_checksum=skip_bad_checksum
    )
    with contextlib.suppress(CorruptBinlogError):
        for kind, batch in log.batches():
            if kind == "transactions":
                yield batch.select(list(columns))
