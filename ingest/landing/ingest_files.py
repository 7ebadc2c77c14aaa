"""`ingest`: land binlog files in the raw tables of a source, in one call."""

import contextlib
import logging
import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from ingest.landing.options import IngestOptions, IngestResult, Progress, filter_text, filter_words, silent
from ingest.landing.plan import identify
from ingest.landing.run import Run, new_run_id
from ingest.sources.directory import BinlogPath
from ingest.warehouse.home import binloom_home, prepare_home
from ingest.warehouse.locks import SourceLock
from ingest.warehouse.names import require_file_name, require_source_name
from ingest.warehouse.record import SourceRecord
from ingest.warehouse.segments import FIRST_EVENT
from ingest.warehouse.spark import SparkLaunch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)


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
        Files in the order in which they were written, as `ingest.sources.directory.find_binlogs` gives them.
    options
        Filters and other options.
    session
        Session to use. If None, use the active session, or start a session for this call. Without anything to
        land, no session is started.
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
    JavaMissingError, MetastoreLockedError, StoreError
        Spark or the warehouse cannot be used.
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
        launch: SparkLaunch | None = None
        if not _seem_landed(files, record):
            # Start the JVM now, so that it starts while the decoder is loaded and the files are scanned.
            (progress or silent)(0, 0, "starting Spark")
            launch = stack.enter_context(SparkLaunch(home, short_lived=True, session=session))
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
            run.record_identities(identified, epoch)
            todo = [file for file in identified.files if file.epoch == epoch and not file.is_landed]
            if todo:
                launch = launch or stack.enter_context(SparkLaunch(home, short_lived=True, session=session))
                run.land(todo, launch)
        # The landing may have revealed more of the schema: land stale segments again.
        for _, stale in groupby(run.reopen_stale(identified.files), lambda file: file.epoch):
            launch = launch or stack.enter_context(SparkLaunch(home, short_lived=True, session=session))
            run.land(list(stale), launch)
        run.warn_of_missing_names()
    log.debug("Spark has ended")
    result.seconds = time.monotonic() - started
    return result


def _seem_landed(files: Sequence[BinlogPath], record: SourceRecord) -> bool:
    """Return whether every file is landed, judging by names and sizes only."""
    epochs = {epoch for epoch, _ in record.files}
    with contextlib.suppress(OSError):
        for file in files:
            size = file.path.stat().st_size
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
