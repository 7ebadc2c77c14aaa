"""Land the received log of a live server piece by piece, without Spark."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from ingest.landing.executors import LocalExecutor
from ingest.landing.options import IngestOptions, IngestResult, Progress, silent
from ingest.landing.plan import FilePlan, IdentifiedFile, plan_file, plan_from_scan
from ingest.landing.published import publish_history
from ingest.landing.recorder import new_run_id
from ingest.landing.row_counts import Counts, SegmentKey
from ingest.landing.run import Run
from ingest.sources.files.directory import binlog_path
from ingest.warehouse.home import prepare_home
from ingest.warehouse.locks import SourceLock
from ingest.warehouse.names import require_source_name
from ingest.warehouse.record import Row, SourceRecord
from ingest.warehouse.segments import Segment, SegmentState

if TYPE_CHECKING:
    from ingest.binlog import Scan


@dataclass(frozen=True)
class SpoolFile:
    """A binlog file that may still grow, and the offset up to which it is landed.

    Attributes
    ----------
    path
        Path of the file; the name is the server's name.
    epoch
        Epoch that it belongs to.
    upto
        Offset of a transaction's end; nothing is landed beyond it.
    scan
        Scan of the file up to `upto`; if None, the file is scanned.
    is_closed
        Whether nothing follows after `upto`: the server's next file was already being received when this was created.
    """

    path: Path
    epoch: int
    upto: int
    scan: "Scan | None" = None
    is_closed: bool = False


class StreamLanding:
    """A landing of one source: holds the source's lock inside a `with` block, and its record in memory.

    At the end of the block it publishes the schema history.

    Parameters
    ----------
    source_id
        Name of the source.
    home
        Folder that binloom keeps everything under.
    options
        Filters and other options; `new_epoch` is ignored here, because the follower decides the epoch.

    Attributes
    ----------
    record
        Record of the source.
    source_id, home, run_id
        The source, the folder, and the identifier of this landing in `segments`.

    Raises
    ------
    UsageError
        The warehouse cannot keep the name of the source.
    IngestInProgressError
        On entry, another command is landing this source.
    """

    def __init__(self, source_id: str, home: Path, options: IngestOptions | None = None) -> None:
        require_source_name(source_id)
        self.source_id = source_id
        self.home = home.absolute()
        self._options = options or IngestOptions()
        self.run_id = new_run_id()
        self._shown_warnings: set[str] = set()
        prepare_home(self.home)
        self.lock = SourceLock(self.home, source_id, self.run_id)

    def __enter__(self) -> Self:
        self.lock.__enter__()
        try:
            self.record = SourceRecord.load(self.source_id, self.home)
            self._run = Run(self._new_result(), self.record, self._options, self.home, self.lock, silent)
        except BaseException:
            self.lock.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                publish_history(self.source_id, self.home)
        finally:
            self.lock.__exit__(kind, error, trace)

    @property
    def has_masks(self) -> bool:
        """Whether the source has masks. Raises `UsageError` if they have a mistake."""
        return self._run.masks is not None

    @property
    def masks_file(self) -> Path | None:
        """The file with the masks, if one was given."""
        return self._options.masks

    def open_epoch(self, row: Row) -> None:
        """Record a new epoch: `epoch`, the server, `start_file`, `start_pos` and `gtids_before`.

        Whoever was killed before the epoch began may open it again; opening it in the same way changes nothing.
        """
        opening = self.record.opening(row["epoch"])
        if opening is None or any(opening[name] != value for name, value in row.items()):
            self.record_identity({**row, "change": "epoch_opened"})

    def record_identity(self, row: Row) -> None:
        """Record a row of `sources`; by default it records a server change within an epoch (`change`)."""
        self._run.recorder.add_identity({"change": "server_changed", **row, "source_id": self.source_id})

    def record_states(self, states: Sequence[SegmentState], counts: Mapping[SegmentKey, Counts] | None = None) -> None:
        """Record states of segments atomically, those of completed segments with the counts of their rows."""
        self._run.recorder.add_states(states, counts)

    def reload_snapshots(self) -> None:
        """Reload the landed schema snapshots, and decode with them from now on."""
        self._run.history.reload_snapshots(self.home)
        self._shown_warnings.clear()

    def is_stale(self, epoch: int, binlog_file: str) -> bool:
        """Return whether a file was landed with schema hints that differ from the hints known now."""
        return any(self._run.stale_segments(epoch, binlog_file))

    def hints_used(self, whole: Segment, states: Sequence[SegmentState]) -> str | None:
        """Return `hints_used` of a compacted segment, from the states of the segments that it is made of."""
        return self._run.merged_hints(whole, states)

    def land(self, files: Sequence[SpoolFile], progress: Progress = silent) -> IngestResult:
        """Land the parts of files that are not landed yet, in their order. Without new data, nothing is written.

        Parameters
        ----------
        files
            Files and the offsets up to which to land them.
        progress
            As for `ingest`. An exception from it ends the landing; segments landed until then stay.

        Returns
        -------
        IngestResult
            As from `ingest`. Ranges that cannot be decoded are in `problems`, and have status failed in `segments`.

        Raises
        ------
        StoreError
            The warehouse cannot be written.
        """
        started = time.monotonic()
        result = self._run.count_into(self._new_result(), progress)
        result.files = len(files)
        identified = [(file, self._identified(file)) for file in files]
        todo = [(file, one) for file, one in identified if not self._is_done(one)]
        result.files_skipped = len(files) - len(todo)
        if todo:
            self._land(todo)
        # The landing may have revealed more of the schema: land stale segments again.
        stale = {file.file.path for file in self._run.reopen_stale(one for _, one in identified)}
        if stale:
            self._land([(file, self._identified(file)) for file in files if file.path in stale])
        result.warnings = [text for text in result.warnings if text not in self._shown_warnings]
        self._shown_warnings.update(result.warnings)
        result.seconds = time.monotonic() - started
        return result

    def _land(self, files: Sequence[tuple[SpoolFile, IdentifiedFile]]) -> None:
        for _, of_epoch in groupby(files, lambda file: file[0].epoch):
            executor = LocalExecutor()
            try:
                self._run.land_plans([self._plan(*file) for file in of_epoch], executor)
            finally:
                executor.close()
        self._run.warn_of_missing_names()

    def _identified(self, file: SpoolFile) -> IdentifiedFile:
        path = binlog_path(file.path)
        return IdentifiedFile(path, file.epoch, file.upto, self.record.is_landed(file.epoch, path.name, file.upto))

    def _is_done(self, file: IdentifiedFile) -> bool:
        from ingest.binlog import open_binlog

        row = self.record.files.get((file.epoch, file.file.name))
        if row is None or row["file_size"] != file.file_size or not file.is_landed:
            return False
        # When the server closes a file after its last event was landed, its row must be written again.
        return bool(row["is_in_use"]) == open_binlog(file.file.path).format.is_in_use

    def _plan(self, file: SpoolFile, identified: IdentifiedFile) -> FilePlan:
        options = self._options
        if file.scan is not None:
            return plan_from_scan(identified, file.scan, self.record, options.skip_bad_checksum)
        return plan_file(identified, self.record, options.segment_bytes, options.skip_bad_checksum, file.upto)

    def _new_result(self) -> IngestResult:
        return IngestResult(self.source_id, self.run_id)
