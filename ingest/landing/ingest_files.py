"""`ingest`: land binlog files in the raw tables of a source, in one call."""

import contextlib
import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from ingest.binlog.byte_files import StoredFile, size_of
from ingest.errors import BinloomError, UsageError
from ingest.landing.executors import (
    BYTES_IN_THIS_PROCESS,
    Executor,
    LocalExecutor,
    ProcessExecutor,
    SparkExecutor,
)
from ingest.landing.options import IngestOptions, IngestResult, Progress, filter_text, filter_words, silent
from ingest.landing.plan import IdentifiedFile, identify
from ingest.landing.published import open_home, publish_history
from ingest.landing.recorder import new_run_id
from ingest.landing.run import Run
from ingest.sources.files.directory import BinlogPath
from ingest.warehouse.home import binloom_home, prepare_home
from ingest.warehouse.locks import SourceLock
from ingest.warehouse.masters import is_local
from ingest.warehouse.names import require_file_name, require_source_name
from ingest.warehouse.partitions import forget_lists_of_files
from ingest.warehouse.record import SourceRecord
from ingest.warehouse.segments import FIRST_EVENT
from ingest.warehouse.spark import SparkLaunch, active_session, spark_errors, spark_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def ingest(
    source_id: str,
    files: Sequence[BinlogPath],
    options: IngestOptions | None = None,
    session: "SparkSession | None" = None,
    progress: Progress | None = None,
    home: Path | None = None,
) -> IngestResult:
    """Land binlog files under a source; skip everything that is already landed.

    Parameters
    ----------
    source_id
        Name of the source.
    files
        Files in the order in which they were written, as `ingest.sources.files.directory.find_binlogs` gives them.
    options
        Filters and other options.
    session
        Session that shall know what is landed; None: the active session, if there is one. Where the settings name a
        cluster, a session on it lands the files: this one, or one that is started for this call.
    progress
        Called repeatedly with the bytes done, the bytes to do as far as known, and a word for the current step.
    home
        Folder that binloom keeps everything under; default `$BINLOOM_HOME`, else `.binloom`.

    Returns
    -------
    IngestResult
        Result with the `exit_code` for the command, and `problems` and `warnings` to print.

    Raises
    ------
    UsageError
        The warehouse cannot keep the name of the source or of a file, or the masks have a mistake.
    BinlogError
        The only given file is not a binlog or cannot be read.
    SourceIdentityError
        A file changed under its name or shrank, or another server writes to this source too.
    IngestInProgressError
        Another command is landing this source.
    JavaMissingError, MetastoreLockedError
        Spark cannot be used, where the settings name a cluster.
    StoreError
        The warehouse cannot be used.
    """
    require_source_name(source_id)
    for file in files:
        require_file_name(file.path)
    started = time.monotonic()
    options = options or IngestOptions()
    home = (home or binloom_home()).absolute()
    prepare_home(home)
    run_id = new_run_id()
    result = IngestResult(source_id, run_id)
    with SourceLock(home, source_id, run_id) as lock, contextlib.ExitStack() as stack:
        record = SourceRecord.load(source_id, home)
        run = Run(result, record, options, home, lock, progress or silent)
        # A mistake in the masks ends the command before anything is written.
        _ = run.masks
        if options.again:
            files = run.open_again(files)
        tasks = _Tasks(stack, home, session, options.processes)
        tasks.require_reach(files)
        if not _seem_landed(files, record):
            tasks.prepare(progress or silent)
        identified = identify(files, record, options.new_epoch)
        if len(files) == 1 and identified.problems:
            raise identified.problems[0].error
        result.files = len(identified.files) + len(identified.encrypted)
        result.problems.extend(identified.problems)
        result.files_skipped = sum(file.is_landed for file in identified.files)
        result.warnings.extend(_filter_warnings(record, options))
        run.record_encrypted(identified)
        # One epoch after the other: a replica's epoch skips the transactions that the epoch before it has landed.
        for epoch in sorted({file.epoch for file in identified.files}):
            run.recorder.add_identities(identified, epoch)
            todo = [file for file in identified.files if file.epoch == epoch and not file.is_landed]
            if todo:
                run.land(todo, tasks.executor(todo))
        # The landing may have revealed more of the schema: land stale segments again.
        for _, stale in groupby(run.reopen_stale(identified.files), lambda file: file.epoch):
            again = list(stale)
            run.land(again, tasks.executor(again))
        run.warn_of_missing_names()
        publish_history(source_id, home)
        tasks.show()
    result.seconds = time.monotonic() - started
    return result


class _Tasks:
    """Chooses who lands files: processes of this machine, or a cluster if the settings name one."""

    def __init__(
        self, stack: contextlib.ExitStack, home: Path, session: "SparkSession | None", processes: int | None
    ) -> None:
        self._stack = stack
        self._processes = processes
        self._home = home
        self._session = session or active_session()
        self._launch: SparkLaunch | None = None
        self._has_landed = False

    def require_reach(self, files: Sequence[BinlogPath]) -> None:
        """Refuse files that only this machine can read, where others land them."""
        for file in files:
            if isinstance(file.path, StoredFile) and file.path.is_here and not self._is_local:
                raise UsageError(
                    f"{file.path} must be unpacked for the machines of the cluster that BINLOOM_SPARK_MASTER names.",
                    hint="Unpack it into a folder that all of them see, or land it without the cluster.",
                )

    def prepare(self, progress: Progress) -> None:
        """Let the JVM of a cluster's session start while the decoder is loaded and the files are scanned."""
        if not self._is_local and self._launch is None:
            progress(0, 0, "starting Spark")
            self._launch = self._stack.enter_context(SparkLaunch(self._home, short_lived=True, session=self._session))

    @cached_property
    def _is_local(self) -> bool:
        if self._session is not None:
            return is_local(str(self._session.sparkContext.master))
        return is_local(spark_settings(self._home)["spark.master"])

    def executor(self, files: Sequence[IdentifiedFile]) -> Executor:
        """Return a new executor for files."""
        self._has_landed = True
        self.prepare(silent)
        if self._launch is not None:
            return SparkExecutor(self._launch)
        is_small = sum(file.file_size for file in files) <= BYTES_IN_THIS_PROCESS
        return LocalExecutor() if self._processes is None and is_small else ProcessExecutor(self._processes)

    def show(self) -> None:
        """Let the session that was there before know what is landed."""
        if self._has_landed and self._is_local and self._session is not None:
            with spark_errors(self._home):
                open_home(self._session, self._home)
                forget_lists_of_files(self._session)


def _seem_landed(files: Sequence[BinlogPath], record: SourceRecord) -> bool:
    """Return whether every file is landed, judging by names and sizes only."""
    epochs = {epoch for epoch, _ in record.files}
    with contextlib.suppress(OSError, BinloomError):
        for file in files:
            size = size_of(file.path)
            if size > FIRST_EVENT and not any(record.is_landed(epoch, file.name, size) for epoch in epochs):
                return False
    return True


def _filter_warnings(record: SourceRecord, options: IngestOptions) -> Iterator[str]:
    wanted = filter_text(options.tables)
    others = {
        state.table_filter
        for states in record.states.values()
        for state in states
        if state.status == "completed" and state.table_filter != wanted
    }
    if others:
        what = " and ".join(sorted(map(filter_words, others)))
        yield (
            f"Files of source {record.source_id!r} were landed before with {what}; they are not landed again. "
            "To land them with other filters, use another --source."
        )
