"""Ranges of a file that are skipped: those before the requested start, and those that were landed before.

A replica logs the transactions of its source again, with their original GTIDs. When the replica takes over, the
transactions that were landed from the source's files are not landed again from the replica's files. They are compared
one by one, because the replica may have written them in another order.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from ingest.binlog.byte_files import LogPath
from ingest.binlog.gtid_sets import GtidSet
from ingest.errors import UsageError
from ingest.landing.transactions import transactions
from ingest.sources.files.directory import BinlogPath, binlog_path
from ingest.warehouse.record import SourceRecord
from ingest.warehouse.segments import FIRST_EVENT

BEFORE_THE_START = "before the start that was asked for"
LANDED_EARLIER = "landed in an earlier epoch"


@dataclass(frozen=True)
class Part:
    """A part of a range that is not landed yet.

    Attributes
    ----------
    start, end
        Physical offsets, in bytes, of a transaction's start and of a transaction's end.
    reason
        Reason why the part is skipped, None when it is to be landed.
    gtids
        GTIDs of the skipped part as text, None when there are none or they were not read.
    """

    start: int
    end: int
    reason: str | None = None
    gtids: str | None = None


class EpochStart:
    """Start of an epoch's landing, from the row of `sources` that opened the epoch."""

    def __init__(self, record: SourceRecord, epoch: int) -> None:
        opened = record.opening(epoch)
        self._reason = LANDED_EARLIER if epoch else BEFORE_THE_START
        self._file: str | None = opened["start_file"] if opened else None
        self._position: int = (opened["start_pos"] if opened else None) or FIRST_EVENT
        self._before = GtidSet.parse(opened["gtids_before"] if opened else None)

    def parts(
        self, file: BinlogPath, start: int, end: int, previous_gtids: str | None, skip_bad_checksum: bool = False
    ) -> Iterator[Part]:
        """Divide a range of a file into parts to land and parts to skip.

        Parameters
        ----------
        file
            The file.
        start, end
            Physical offsets, in bytes, of a transaction's start and of a transaction's end.
        previous_gtids
            GTID set that precedes the file, as recorded in the file.
        skip_bad_checksum
            Whether events with a wrong checksum are skipped.

        Raises
        ------
        UsageError
            The requested start is inside a transaction.
        """
        if self._is_before(file):
            yield Part(start, end, BEFORE_THE_START)
            return
        first = self._first_position(file)
        if first > start:
            cut = min(first, end)
            left_out = GtidSet()
            for batch in transactions(file.path, start, cut, ("gtid",), skip_bad_checksum):
                left_out.add_all(batch["gtid"])
            yield Part(start, cut, BEFORE_THE_START, str(left_out) or None)
            if cut == end:
                return
            self._require_transaction_start(file, cut)
            start = cut
        # Transactions that precede a file are not in this or any later file: nothing is left to skip.
        if self._before <= GtidSet.parse(previous_gtids):
            yield Part(start, end)
        else:
            yield from self._by_gtids(file.path, start, end, skip_bad_checksum)

    def _is_before(self, file: BinlogPath) -> bool:
        if self._file is None or self._file == file.name:
            return False
        first = binlog_path(Path(self._file)).sequence
        return None not in (first, file.sequence) and (file.sequence or 0) < (first or 0)

    def _first_position(self, file: BinlogPath) -> int:
        return self._position if file.name == self._file else FIRST_EVENT

    def _require_transaction_start(self, file: BinlogPath, position: int) -> None:
        from ingest.binlog import scan_binlog

        complete_end = scan_binlog(file.path, end=position).complete_end
        if complete_end != position:
            raise UsageError(
                f"Position {position} of {file.name} is not the start of a transaction.",
                hint=f"The position is inside the transaction that starts at {complete_end}.",
                position=position,
            )

    def _by_gtids(self, path: LogPath, start: int, end: int, skip_bad_checksum: bool) -> Iterator[Part]:
        batches = list(transactions(path, start, end, ("gtid", "start_pos"), skip_bad_checksum))
        if not batches:
            yield Part(start, end)
            return
        table = pa.Table.from_batches(batches).combine_chunks()
        gtids = table["gtid"].combine_chunks()
        is_landed = self._before.contains_all(gtids)
        changes = (np.flatnonzero(np.diff(is_landed)) + 1).tolist()
        runs = pairwise([0, *changes, len(gtids)])
        cuts = [start, *table["start_pos"].take(pa.array(changes, pa.int64())).to_pylist(), end]
        for (first, last), (low, high) in zip(runs, pairwise(cuts), strict=True):
            if is_landed[first]:
                run = GtidSet()
                run.add_all(gtids[first:last])
                yield Part(low, high, self._reason, str(run))
            else:
                yield Part(low, high)
