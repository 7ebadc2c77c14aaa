"""Planning of a landing: the epoch of each file, its landed ranges, and the segments still to land.

A source is one stream of changes. Within an epoch a file's name and its first bytes never change, and the file never
gets smaller. If they do, the user must confirm that the change is intended.
"""

import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ingest.binlog.byte_files import open_bytes
from ingest.errors import (
    BinlogError,
    BinloomError,
    CorruptBinlogError,
    EncryptedBinlogError,
    encrypted_binlog,
)
from ingest.landing.epochs import EpochBook
from ingest.landing.skips import EpochStart
from ingest.sources.files.directory import BinlogPath
from ingest.warehouse.record import Row, SourceRecord
from ingest.warehouse.segments import FIRST_EVENT, Segment, SegmentState, landed_end

if TYPE_CHECKING:
    from ingest.binlog import Scan

# One segment is about a second of work on one core, and a task that dies loses at most one segment. The size is
# constant and does not depend on the amount of work: the same bytes give the same segments on every machine.
SEGMENT_BYTES = 128 << 20

# Files are scanned and recorded in batches of this size: tasks start before a long series is fully scanned, and a
# thousand small files do not cause a thousand files of rows.
BATCH_BYTES = 4 << 30
BATCH_FILES = 256


@dataclass(frozen=True)
class IdentifiedFile:
    """A file whose epoch is known.

    Attributes
    ----------
    file
        Path of the file.
    epoch
        Epoch that it belongs to.
    file_size
        Size in bytes when the file was examined.
    is_landed
        Whether the whole file is already landed; such a file is not scanned.
    """

    file: BinlogPath
    epoch: int
    file_size: int
    is_landed: bool


@dataclass(frozen=True)
class FileProblem:
    """A file, or a part of a file, that could not be landed, with the reason.

    Attributes
    ----------
    binlog_file
        Name of the file.
    position
        Offset of the first byte that is not landed, None when nothing of the file is landed.
    end
        Offset just after the last byte that is not landed, None when unknown.
    error
        Reason.
    """

    binlog_file: str
    position: int | None
    end: int | None
    error: BinloomError


@dataclass(frozen=True)
class SkippedSegment:
    """A range that is skipped, with the reason, and its GTIDs as text (None when they were not read)."""

    segment: Segment
    reason: str
    gtids: str | None


@dataclass
class FilePlan:
    """Plan for one file, made from its scan.

    Attributes
    ----------
    file
        The file and its epoch.
    row
        Row for `binlog_files`, None when the same row is already recorded.
    segments
        Segments to land.
    skipped
        Segments to skip.
    problem
        Reason why a part of the file cannot be landed, None when there is none.
    bad
        Range that cannot be landed, None when there is none.
    is_recorded
        Whether `bad` is already recorded as failed with the same error.
    unfinished_bytes
        Bytes after the last complete transaction of a file that is still being written.
    passed_over
        Number of events in the file that are skipped because their checksums are wrong.
    scan
        The scan, None when the file could not be read.
    """

    file: IdentifiedFile
    row: dict[str, Any] | None = None
    segments: list[Segment] = field(default_factory=list)
    skipped: list[SkippedSegment] = field(default_factory=list)
    problem: FileProblem | None = None
    bad: Segment | None = None
    is_recorded: bool = False
    unfinished_bytes: int = 0
    passed_over: int = 0
    scan: "Scan | None" = None


@dataclass
class Identified:
    """Files with their epochs, and new facts about the source.

    Attributes
    ----------
    files
        Files that are binlogs, in the order in which they were written.
    problems
        Files that are not binlogs, or cannot be opened.
    encrypted
        Plans of files that are encrypted from their first byte on.
    new_identities
        Rows for `sources`, without `observed_at`.
    failovers
        Epochs that are opened because another server has taken over.
    """

    files: list[IdentifiedFile]
    problems: list[FileProblem]
    encrypted: list[FilePlan]
    new_identities: list[dict[str, Any]]
    failovers: set[int]


def identify(files: Sequence[BinlogPath], record: SourceRecord, new_epoch: bool = False) -> Identified:
    """Read the first event of every file and decide which epoch the file belongs to.

    Raises
    ------
    SourceIdentityError
        A file changed under its name, or two servers write to this source.
    """
    from ingest.binlog import open_binlog

    book = EpochBook(record, new_epoch)
    identified: list[IdentifiedFile] = []
    problems: list[FileProblem] = []
    encrypted: list[FilePlan] = []
    for file in files:
        try:
            with open_bytes(file.path) as source:
                file_size, is_damaged = source.size(), source.damage is not None
            log_format = open_binlog(file.path).format
        except EncryptedBinlogError as error:
            unread = IdentifiedFile(file, book.epoch_of_encrypted(file), file_size, is_landed=False)
            encrypted.append(_plan_of_encrypted(unread, error, record))
            continue
        except (BinloomError, OSError) as error:
            problems.append(FileProblem(file.name, None, None, _as_error(file, error)))
            continue
        epoch = book.epoch_of(file, log_format, file_size)
        # What a damaged archive lacks was not landed, and this is told again.
        is_landed = not is_damaged and record.is_landed(epoch, file.name, file_size)
        identified.append(IdentifiedFile(file, epoch, file_size, is_landed))
    return Identified(identified, problems, encrypted, book.new_rows, book.failovers)


def _plan_of_encrypted(file: IdentifiedFile, error: EncryptedBinlogError, record: SourceRecord) -> FilePlan:
    row = {
        "source_id": record.source_id,
        "epoch": file.epoch,
        "binlog_file": file.file.name,
        "file_sequence": file.file.sequence,
        "file_size": file.file_size,
        # Only MySQL encrypts from the first byte on; MariaDB leaves the beginning of an encrypted file readable.
        "flavor": "mysql",
        "is_encrypted": True,
    }
    return _with_bad(_plan_with(file, row, record), FIRST_EVENT, file.file_size, error, record)


def _as_error(file: BinlogPath, error: BinloomError | OSError) -> BinloomError:
    from ingest.errors import BinlogNotReadableError

    if isinstance(error, BinloomError):
        return error
    return BinlogNotReadableError(
        f"{file.path} cannot be read: {error.strerror or error}.",
        hint="Run binloom as a user who may read it, such as the one that the server runs as.",
        path=str(file.path),
    )


def plan_file(
    file: IdentifiedFile,
    record: SourceRecord,
    segment_bytes: int = SEGMENT_BYTES,
    skip_bad_checksum: bool = False,
    upto: int | None = None,
) -> FilePlan:
    """Scan a file, or only its part before the offset `upto`, and plan the segments to land."""
    from ingest.binlog import scan_binlog

    try:
        scan = scan_binlog(file.file.path, segment_bytes=segment_bytes, end=upto, skip_bad_checksum=skip_bad_checksum)
    except (BinloomError, OSError) as error:
        return FilePlan(file, problem=FileProblem(file.file.name, None, None, _as_error(file.file, error)))
    return plan_from_scan(file, scan, record, skip_bad_checksum)


def plan_from_scan(
    file: IdentifiedFile, scan: "Scan", record: SourceRecord, skip_bad_checksum: bool = False
) -> FilePlan:
    """Compare a scan with the record of the source, and plan the segments to land."""
    key = (file.epoch, file.file.name)
    states = record.states.get(key, [])
    plan = _plan_with(file, _file_row(file, scan, record.source_id), record)
    plan.scan = scan
    plan.passed_over = scan.checksum_failures if skip_bad_checksum else 0
    good_end = max(scan.complete_end, landed_end(states))
    error = damage(scan, skip_bad_checksum, f"Everything before position {good_end} is landed. ")
    if isinstance(error, EncryptedBinlogError):
        # A decrypted copy will have its events at other offsets: land nothing of the encrypted file.
        return _with_bad(plan, FIRST_EVENT, scan.file_size, error, record)
    boundaries = [segment.end for segment in scan.segments]
    epoch_start = EpochStart(record, file.epoch)
    for start, end in _open_ranges(states, boundaries, scan.complete_end):
        for part in epoch_start.parts(file.file, start, end, scan.previous_gtids, skip_bad_checksum):
            segment = Segment(record.source_id, *key, part.start, part.end)
            if part.reason is None:
                plan.segments.append(segment)
            else:
                plan.skipped.append(SkippedSegment(segment, part.reason, part.gtids))
    if error is not None and good_end < scan.file_size:
        return _with_bad(plan, good_end, scan.file_size, error, record)
    plan.unfinished_bytes = scan.file_size - good_end
    return plan


def _plan_with(file: IdentifiedFile, row: dict[str, Any], record: SourceRecord) -> FilePlan:
    """Return a plan with the row for `binlog_files`, or without it if the same row is already recorded."""
    recorded = record.files.get((file.epoch, file.file.name))
    is_news = recorded is None or any(recorded[name] != value for name, value in row.items() if name != "event_counts")
    return FilePlan(file, row if is_news else None)


def _with_bad(plan: FilePlan, start: int, end: int, error: BinlogError, record: SourceRecord) -> FilePlan:
    """Add to a plan the range that cannot be landed, with the reason."""
    file = plan.file
    plan.bad = Segment(record.source_id, file.epoch, file.file.name, start, end)
    plan.problem = FileProblem(file.file.name, start, end, error)
    states = record.states.get((file.epoch, file.file.name), [])
    plan.is_recorded = any(_is_same_failure(state, plan.bad, error) for state in states)
    return plan


def damage(scan: "Scan", skip_bad_checksum: bool = False, good: str = "") -> BinlogError | None:
    """Return the error for the defect that a scan found; None without a defect, or if it is not damage.

    Parameters
    ----------
    scan
        From `ingest.binlog.scan_binlog`.
    skip_bad_checksum
        Whether the scan skipped events with wrong checksums.
    good
        A sentence on the readable part of the file, for the hint.
    """
    # In a file in use, a truncated last event is still being written.
    if scan.defect is None or (scan.format.is_in_use and scan.defect.is_cut):
        return None
    if scan.is_encrypted:
        return encrypted_binlog(scan.path, scan.defect.position)
    advice = "Replace the file with a complete copy and run the command again."
    if scan.checksum_failures and not skip_bad_checksum:
        advice += " If there is no complete copy, --skip-bad-checksum skips these events."
    return CorruptBinlogError(
        f"{scan.path} is broken at position {scan.defect.position}: {scan.defect.reason}.",
        hint=good + advice,
        path=str(scan.path),
        position=scan.defect.position,
        reason=scan.defect.reason,
    )


def _is_same_failure(state: SegmentState, bad: Segment, error: BinloomError) -> bool:
    return (state.status, state.segment_start, state.segment_end, state.error) == (
        "failed",
        bad.start,
        bad.end,
        str(error),
    )


def _open_ranges(
    states: Sequence[SegmentState], boundaries: Sequence[int], complete_end: int
) -> Iterator[tuple[int, int]]:
    """Yield the ranges that are not landed, up to the end of the last complete transaction.

    A landed range stays landed, even if skipped bad checksums in it would now end the scan. A range that an earlier run
    began or failed on keeps its recorded bounds, because its folder is named by its start. After the recorded ranges,
    the boundaries of the scan apply. They also apply to the last range if it failed: its end may have been the end of a
    truncated file.
    """
    position = FIRST_EVENT
    for index, state in enumerate(states):
        start, end = state.first_byte, state.segment_end
        is_last = index == len(states) - 1
        if start != position:
            break
        if not state.is_done:
            if end > complete_end or (is_last and state.status == "failed"):
                break
            yield start, end
        position = end
    for boundary in boundaries:
        if boundary > position:
            yield position, boundary
            position = boundary


def _file_row(file: IdentifiedFile, scan: "Scan", source_id: str) -> dict[str, Any]:
    return {
        "source_id": source_id,
        "epoch": file.epoch,
        "binlog_file": file.file.name,
        "file_sequence": file.file.sequence,
        "file_size": scan.file_size,
        "fingerprint": scan.format.fingerprint,
        "format_version": scan.format.format_version,
        "server_version": scan.format.server_version,
        "flavor": scan.format.flavor,
        "checksum_algorithm": scan.format.checksum_algorithm,
        "is_in_use": scan.format.is_in_use,
        "is_relay_log": scan.format.is_relay_log,
        "is_encrypted": scan.is_encrypted,
        "created_at": scan.format.created_at,
        "first_event_at": scan.first_event_at,
        "last_event_at": scan.last_event_at,
        "events": scan.events,
        "event_counts": dict(sorted(scan.event_counts.items())),
        "bytes_covered": scan.bytes_covered,
        "checksum_failures": scan.checksum_failures,
        "previous_gtids": scan.previous_gtids,
        "next_binlog_file": scan.next_binlog_file,
        "first_misplaced_pos": scan.first_misplaced_pos,
    }


def plan_batches(
    files: Sequence[IdentifiedFile],
    record: SourceRecord,
    segment_bytes: int = SEGMENT_BYTES,
    threads: int = 2,
    skip_bad_checksum: bool = False,
) -> Iterator[list[FilePlan]]:
    """Scan files in parallel, and yield their plans in batches, in the order of the files."""
    batch: list[IdentifiedFile] = []
    size = 0
    with ThreadPoolExecutor(threads, thread_name_prefix="scan") as pool:

        def plans() -> list[FilePlan]:
            return list(pool.map(lambda file: plan_file(file, record, segment_bytes, skip_bad_checksum), batch))

        for file in files:
            if batch and (size + file.file_size > BATCH_BYTES or len(batch) >= BATCH_FILES):
                yield plans()
                batch, size = [], 0
            batch.append(file)
            size += file.file_size
        if batch:
            yield plans()


def content_name(rows: Sequence[Row], leave_out: Sequence[str] = ()) -> str:
    """Return a short hash of rows, for the name of the file that contains them."""
    text = repr([sorted((key, value) for key, value in row.items() if key not in leave_out) for row in rows])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
