"""The durable parts of spool files, which a follower lands."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ingest.binlog.scan import Scanner
from ingest.follow.spool import Spool
from ingest.landing.held import SpoolFile
from ingest.landing.plan import SEGMENT_BYTES
from ingest.warehouse.segments import FIRST_EVENT, log_place


class DurableFiles:
    """The durable parts of the files of a spool; each scan of a file continues at the end of the last scan.

    Attributes
    ----------
    left_out
        Closed and landed files, oldest first.
    """

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._scanners: dict[Path, Scanner] = {}
        self.left_out: list[Path] = []

    def close(self) -> None:
        """Close the files."""
        for scanner in self._scanners.values():
            scanner.close()

    def files(self) -> Sequence[SpoolFile]:
        """Return the files that are not in `left_out`, in the order in which they were written."""
        # The receiver writes at the same time: take all positions from this one checkpoint.
        checkpoint = self._spool.checkpoint
        assert checkpoint is not None
        current = self._spool.path(checkpoint.epoch, checkpoint.binlog_file)
        found = []
        for epoch in range(checkpoint.epoch + 1):
            for file in self._spool.files(epoch):
                is_later = epoch == checkpoint.epoch and log_place(file.name, 0) > log_place(checkpoint.binlog_file, 0)
                is_current = file.path == current
                upto = checkpoint.position if is_current else file.path.stat().st_size
                if file.path in self.left_out or is_later or upto <= FIRST_EVENT:
                    continue
                if file.path not in self._scanners:
                    self._scanners[file.path] = Scanner(file.path, segment_bytes=SEGMENT_BYTES)
                scan = self._scanners[file.path].scan(upto)
                found.append(SpoolFile(file.path, epoch, upto, scan, is_closed=not is_current))
        return found

    def left_out_files(self) -> Iterator[SpoolFile]:
        """Yield the files in `left_out` that still exist."""
        checkpoint = self._spool.checkpoint
        assert checkpoint is not None
        for epoch in range(checkpoint.epoch + 1):
            for file in self._spool.files(epoch):
                if file.path in self.left_out:
                    yield SpoolFile(file.path, epoch, file.path.stat().st_size, is_closed=True)

    def leave_out(self, path: Path) -> None:
        """Move a closed and landed file to `left_out`."""
        self._scanners.pop(path).close()
        self.left_out.append(path)
