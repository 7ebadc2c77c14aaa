"""Expiry: drop the rows of the oldest binlog files of a source. Needs no Spark.

The files that expire are the oldest ones in commit order, so that the log begins later, as after a purge on the server.
One write to `segments` records that their segments expired; from then on no reader follows them. Their folders are
deleted afterwards. A command that is killed at any time and started again gives the same result.
"""

import contextlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from ingest.landing.baselines import delete_unfinished
from ingest.landing.compact import remove_replaced
from ingest.landing.held import StreamLanding
from ingest.landing.recorder import now
from ingest.warehouse.files import data_files, read_rows, segment_folder, store_errors
from ingest.warehouse.home import raw_table_dir
from ingest.warehouse.locks import SourceLock
from ingest.warehouse.record import Row, SourceRecord
from ingest.warehouse.segments import SegmentState, log_place
from ingest.warehouse.spark import assert_no_reader, metastore_holder
from ingest.warehouse.tables import BASELINES, SEGMENT_TABLES

FilePlace = tuple[int, int]
"""Epoch and sequence number of a file; later files of a source are greater."""


@dataclass
class OldFile:
    """A landed binlog file and what happens to it.

    Attributes
    ----------
    last_event_at
        Time of its last event; None if no event has one.
    why_kept
        Sentence on why it stays; None if it expires.
    """

    epoch: int
    binlog_file: str
    row: Row = field(repr=False)
    states: list[SegmentState] = field(repr=False)
    last_event_at: datetime | None
    why_kept: str | None = None

    @property
    def place(self) -> FilePlace:
        """Place of the file in commit order."""
        return self.epoch, log_place(self.binlog_file, 0)[0]

    @property
    def row_events(self) -> int:
        """Number of landed row events."""
        return sum(state.row_events or 0 for state in self.states)

    @property
    def transactions(self) -> int:
        """Number of landed transactions."""
        return sum(state.transactions or 0 for state in self.states)


def files_by_age(record: SourceRecord, before: datetime) -> list[OldFile]:
    """Return the files of a source that have not expired, oldest first, with the decision that their record allows.

    Only whole files expire: those before the first one that must stay. The newest file always stays.

    Parameters
    ----------
    record
        The record of the source.
    before
        Files whose last event is older expire.
    """
    files = sorted(
        (
            OldFile(epoch, name, row, states, _last_event_at(row, states))
            for (epoch, name), row in record.files.items()
            if not is_expired(states := record.states.get((epoch, name), []))
        ),
        key=lambda file: file.place,
    )
    for number, file in enumerate(files):
        if number == len(files) - 1:
            file.why_kept = "it is the newest file"
        elif not all(state.is_done for state in file.states) or not record.is_landed(
            file.epoch, file.binlog_file, file.row["file_size"]
        ):
            file.why_kept = "it is not landed as a whole"
        elif file.last_event_at is not None and file.last_event_at >= before:
            file.why_kept = "its last event is not old enough"
    keep_from(files, next((file for file in files if file.why_kept), None))
    return files


def keep_from(files: Iterable[OldFile], first: OldFile | None, why: str | None = None) -> None:
    """Keep a file and all later ones; the reason is `why`, or the reason that the file already has."""
    if first is None:
        return
    first.why_kept = why or first.why_kept
    for file in files:
        if file.place > first.place and file.why_kept is None:
            file.why_kept = f"{first.binlog_file} before it is kept"


def is_expired(states: Sequence[SegmentState]) -> bool:
    """Return whether a file has expired."""
    return any(state.status == "expired" for state in states)


def _last_event_at(row: Row, states: Iterable[SegmentState]) -> datetime | None:
    times = [row["last_event_at"], *(state.max_event_at for state in states)]
    return max((time for time in times if time is not None), default=None)


def expire(landing: StreamLanding, files: Sequence[OldFile]) -> None:
    """Record that files expired; the rows of their segments are no longer read.

    Raises
    ------
    StoreError
        A build or another process that may read the rows holds the metastore, or the warehouse cannot be written.
    """
    assert_no_reader(landing.home, "Nothing was dropped.")
    moment = now()
    states = [
        replace(state, status="expired", run_id=landing.run_id, recorded_at=moment)
        for file in files
        for state in file.states
    ]
    if states:
        landing.record_states(states)


def delete_expired(landing: StreamLanding) -> int:
    """Delete the folders of expired segments, of this and of earlier runs; return the number of segments.

    Deletes nothing while a process holds the metastore: it may still read the files.
    """
    if metastore_holder(landing.home) is not None:
        return 0
    remove_replaced(landing)
    deleted = 0
    for states in landing.record.states.values():
        for state in states:
            if state.status == "expired":
                deleted += _delete_folders(state, landing.home)
    return deleted


def _delete_folders(state: SegmentState, home: Path) -> bool:
    folders = [segment_folder(table, state.segment, home) for table in SEGMENT_TABLES.values()]
    found = [folder for folder in folders if folder.exists()]
    for folder in found:
        with store_errors(folder):
            shutil.rmtree(folder)
        with contextlib.suppress(OSError):
            folder.parent.rmdir()
    return bool(found)


def delete_baselines(landing: StreamLanding, is_unused: Callable[[str], bool]) -> int:
    """Delete baselines of a source, and rows of baselines that were not completed; return their number.

    Parameters
    ----------
    landing
        Landing of the source, which holds its lock.
    is_unused
        Tells of the identifier of a baseline whether it can go.

    Raises
    ------
    IngestInProgressError
        Another command lands a baseline of this source.
    """
    if metastore_holder(landing.home) is not None:
        return 0
    with SourceLock(landing.home, landing.source_id, landing.run_id, work="baseline"):
        return _delete_baselines(landing, is_unused)


def _delete_baselines(landing: StreamLanding, is_unused: Callable[[str], bool]) -> int:
    known = {row["baseline_id"] for row in read_rows(BASELINES, landing.home, source_id=landing.source_id)}
    unused = {baseline_id for baseline_id in known if is_unused(baseline_id)}
    # The record goes first: without it, the rows count as those of a baseline that was not completed.
    for path in _files_of(unused, landing.home):
        with store_errors(path):
            path.unlink()
    delete_unfinished(landing.source_id, known - unused, landing.home)
    return len(unused)


def _files_of(baselines: Iterable[str], home: Path) -> Iterator[Path]:
    folder = raw_table_dir(BASELINES.name, home)
    wanted = {f"{baseline_id}.parquet" for baseline_id in baselines}
    yield from (path for path in data_files(folder) if path.name in wanted)
