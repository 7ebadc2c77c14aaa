"""Landing what is received of a live server, piece by piece, without Spark."""

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from ingest.landing.executors import LocalExecutor
from ingest.landing.options import IngestOptions, IngestResult, Progress, silent
from ingest.landing.plan import FilePlan, IdentifiedFile, plan_file, plan_from_scan
from ingest.landing.run import Run
from ingest.sources.directory import binlog_path
from ingest.warehouse.home import prepare_home
from ingest.warehouse.locks import SourceLock
from ingest.warehouse.names import require_source_name
from ingest.warehouse.record import Row, SourceRecord
from ingest.warehouse.segments import Segment

if TYPE_CHECKING:
    from ingest.binlog import Scan


@dataclass(frozen=True)
class SpoolFile:
    """A binlog file that may still grow, as far as it is to be landed.

    Attributes
    ----------
    path
        Where it lies; its name is the server's.
    epoch
        Epoch that it belongs to.
    upto
        Offset of the transaction end that nothing is landed beyond.
    scan
        What a scan up to there found; without it the file is scanned.
    is_closed
        Whether nothing comes behind `upto`: when this was made, the server's next file was being received already.
    """

    path: Path
    epoch: int
    upto: int
    scan: "Scan | None" = None
    is_closed: bool = False


class StreamLanding:
    """The right to land one source, held for as long as the block, and what is recorded of it, held in memory.

    Parameters
    ----------
    source_id
        Name of the source.
    home
        Folder that binloom keeps everything under.
    options
        Filters and intentions; `new_epoch` means nothing here, since whoever follows a server says the epoch.

    Attributes
    ----------
    record
        What is recorded of the source.
    source_id, home, run_id
        The source, the folder, and the identifier of this landing in `segments`.

    Raises
    ------
    UsageError
        The warehouse cannot keep the name of the source.
    IngestInProgressError
        On entry, when another command lands this source.
    """

    def __init__(self, source_id: str, home: Path, options: IngestOptions | None = None) -> None:
        require_source_name(source_id)
        self.source_id = source_id
        self.home = home.absolute()
        self._options = options or IngestOptions()
        self.run_id = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}"
        self._said: set[str] = set()
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
        self.lock.__exit__(kind, error, trace)

    def open_epoch(self, row: Row) -> None:
        """Record that an epoch is opened: `epoch`, the server, `start_file`, `start_pos` and `gtids_before`."""
        self.record_identity({**row, "change": "epoch_opened"})

    def record_identity(self, row: Row) -> None:
        """Record a row of `sources`: another server in an epoch, unless `change` says something else."""
        self._run.record_identity({"change": "server_changed", **row, "source_id": self.source_id})

    def record_states(self, rows: Sequence[Row]) -> None:
        """Record rows of `segments`, all of them or none."""
        self._run.record_states(rows)

    def reload_snapshots(self) -> None:
        """Decode with the schema snapshots that are landed by now."""
        self._run.history.reload_snapshots(self.home)
        self._said.clear()

    def is_stale(self, epoch: int, binlog_file: str) -> bool:
        """Whether a file was landed with less than is known now of the tables in it, or with something else."""
        return any(self._run.stale_segments(epoch, binlog_file))

    def hints_used(self, whole: Segment, states: Sequence[Row]) -> str | None:
        """What `segments` says of the hints of a compacted segment, from the rows of the segments it is made of."""
        return self._run.merged_hints(whole, states)

    def land(self, files: Sequence[SpoolFile], progress: Progress = silent) -> IngestResult:
        """Land what is not landed yet of files, in their order. With nothing new, nothing is written.

        Parameters
        ----------
        files
            Files and how far they are to be landed.
        progress
            As for `ingest`; what it raises ends the landing, and what is landed by then stays.

        Returns
        -------
        IngestResult
            As of `ingest`: events that cannot be decoded are in `problems`, and failed in `segments`.

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
        # More is known now of what was landed before.
        stale = {file.file.path for file in self._run.reopen_stale(one for _, one in identified)}
        if stale:
            self._land([(file, self._identified(file)) for file in files if file.path in stale])
        result.warnings = [text for text in result.warnings if text not in self._said]
        self._said.update(result.warnings)
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
        # A file that is closed after its last event was landed is recorded as closed.
        return bool(row["is_in_use"]) == open_binlog(file.file.path).format.is_in_use

    def _plan(self, file: SpoolFile, identified: IdentifiedFile) -> FilePlan:
        options = self._options
        if file.scan is not None:
            return plan_from_scan(identified, file.scan, self.record, options.skip_bad_checksum)
        return plan_file(identified, self.record, options.segment_bytes, options.skip_bad_checksum, file.upto)

    def _new_result(self) -> IngestResult:
        return IngestResult(self.source_id, self.run_id)
