"""What is to be done: which epoch a file belongs to, what of it is landed, and the segments that are not.

A source is one stream of changes. Within an epoch a file's name and the bytes at its beginning never
change and the file never gets smaller; when they do, somebody has to say that it is meant.
"""

import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ingest.errors import (
    BinlogError,
    BinloomError,
    CorruptBinlogError,
    EncryptedBinlogError,
    encrypted_binlog,
)
from ingest.landing.epochs import EpochBook
from ingest.landing.skips import EpochStart
from ingest.sources.directory import BinlogPath
from ingest.warehouse.record import Row, SourceRecord
from ingest.warehouse.segments import FIRST_EVENT, Segment, first_byte, is_done

if TYPE_CHECKING:
    from ingest.binlog import Scan

# One segment is about a second of work on one core, and what is lost at most when a task dies. It is a
# constant, not a share of the work at hand: the same bytes give the same segments on every machine.
SEGMENT_BYTES = 128 << 20

# Files are scanned and begun together up to this many bytes or files, so that tasks start before a
# long series is scanned whole, and a thousand small files do not make a thousand rows' files.
BATCH_BYTES = 4 << 30
BATCH_FILES = 256


@dataclass(frozen=True)
class IdentifiedFile:
    """A file whose epoch is known.

    Attributes
    ----------
    file
        Where it lies.
    epoch
        Epoch that it belongs to.
    file_size
        Size in bytes when it was looked at.
    is_landed
        Whether all of it is landed already; such a file is not scanned.
    """

    file: BinlogPath
    epoch: int
    file_size: int
    is_landed: bool


@dataclass(frozen=True)
class FileProblem:
    """A file, or a part of one, that could not be landed, and why.

    Attributes
    ----------
    binlog_file
        Name of the file.
    position
        Offset of the first byte that is not landed, None when nothing of the file is.
    end
        Offset just after the last byte that is not landed, None when unknown.
    error
        Why not.
    """

    binlog_file: str
    position: int | None
    end: int | None
    error: BinloomError


@dataclass(frozen=True)
class SkippedSegment:
    """A range that is left out on purpose: why, and the GTIDs in it as text, None when nobody looked."""

    segment: Segment
    reason: str
    gtids: str | None


@dataclass
class FilePlan:
    """What a scan of a file came to.

    Attributes
    ----------
    file
        The file and its epoch.
    row
        Row for `binlog_files`, None when the same is recorded already.
    segments
        Segments to land.
    skipped
        Segments to leave out.
    problem
        What stands in the way of landing all of it, None when nothing does.
    bad
        Range that cannot be landed, None when there is none.
    is_recorded
        Whether `bad` is recorded as failed already, with the same error.
    unfinished_bytes
        Bytes after the last complete transaction of a file that is still being written.
    passed_over
        Number of events in the file that are passed over because their checksums are wrong.
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
    """Files with their epochs, and what that says about the source.

    Attributes
    ----------
    files
        Files that are binlogs, in the order in which they were written.
    problems
        Files that are none, or cannot be opened.
    encrypted
        What is recorded of files that are encrypted from their first byte on.
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
    """Read the first event of every file and say which epoch it belongs to.

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
            file_size = file.path.stat().st_size
            log_format = open_binlog(file.path).format
        except EncryptedBinlogError as error:
            unread = IdentifiedFile(file, book.epoch_of_encrypted(file), file_size, is_landed=False)
            encrypted.append(_plan_of_encrypted(unread, error, record))
            continue
        except (BinloomError, OSError) as error:
            problems.append(FileProblem(file.name, None, None, _as_error(file, error)))
            continue
        epoch = book.epoch_of(file, log_format, file_size)
        identified.append(IdentifiedFile(file, epoch, file_size, record.is_landed(epoch, file.name, file_size)))
    return Identified(identified, problems, encrypted, book.new_rows, book.failovers)


def _plan_of_encrypted(file: IdentifiedFile, error: EncryptedBinlogError, record: SourceRecord) -> FilePlan:
    row = {
        "source_id": record.source_id,
        "epoch": file.epoch,
        "binlog_file": file.file.name,
        "file_sequence": file.file.sequence,
        "file_size": file.file_size,
        # MariaDB leaves the beginning of a file that it encrypts readable.
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
    """Scan a file, or what stands before an offset in it, and say which segments of it are to be landed."""
    from ingest.binlog import scan_binlog

    try:
        scan = scan_binlog(file.file.path, segment_bytes=segment_bytes, end=upto, skip_bad_checksum=skip_bad_checksum)
    except (BinloomError, OSError) as error:
        return FilePlan(file, problem=FileProblem(file.file.name, None, None, _as_error(file.file, error)))
    return plan_from_scan(file, scan, record, skip_bad_checksum)


def plan_from_scan(
    file: IdentifiedFile, scan: "Scan", record: SourceRecord, skip_bad_checksum: bool = False
) -> FilePlan:
    """Compare what a scan found with what is recorded."""
    key = (file.epoch, file.file.name)
    states = record.states.get(key, [])
    plan = _plan_with(file, _file_row(file, scan, record.source_id), record)
    plan.scan = scan
    plan.passed_over = scan.checksum_failures if skip_bad_checksum else 0
    good_end = max(scan.complete_end, _landed_end(states))
    error = damage(scan, skip_bad_checksum, f"What stands before position {good_end} is landed. ")
    if isinstance(error, EncryptedBinlogError):
        # A readable copy will have its events at other offsets: nothing of this one is kept.
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
    """Return a plan with the row for `binlog_files`, unless the same is recorded already."""
    recorded = record.files.get((file.epoch, file.file.name))
    is_news = recorded is None or any(recorded[name] != value for name, value in row.items() if name != "event_counts")
    return FilePlan(file, row if is_news else None)


def _with_bad(plan: FilePlan, start: int, end: int, error: BinlogError, record: SourceRecord) -> FilePlan:
    """Add to a plan what of the file cannot be landed, and why."""
    file = plan.file
    plan.bad = Segment(record.source_id, file.epoch, file.file.name, start, end)
    plan.problem = FileProblem(file.file.name, start, end, error)
    states = record.states.get((file.epoch, file.file.name), [])
    plan.is_recorded = any(_is_same_failure(state, plan.bad, error) for state in states)
    return plan


def damage(scan: "Scan", skip_bad_checksum: bool = False, good: str = "") -> BinlogError | None:
    """Return the error for the defect that a scan found; None without one, and for one that is no damage.

    Parameters
    ----------
    scan
        From `ingest.binlog.scan_binlog`.
    skip_bad_checksum
        Whether the scan passed over wrong checksums.
    good
        A sentence on what is good of the file, for the hint.
    """
    # The last event of a file in use is just being written.
    if scan.defect is None or (scan.format.is_in_use and scan.defect.is_cut):
        return None
    if scan.is_encrypted:
        return encrypted_binlog(scan.path, scan.defect.position)
    advice = "Replace the file by a whole copy and run again."
    if scan.checksum_failures and not skip_bad_checksum:
        advice += " Where there is none, --skip-bad-checksum passes over such events."
    return CorruptBinlogError(
        f"{scan.path} is broken at position {scan.defect.position}: {scan.defect.reason}.",
        hint=good + advice,
        path=str(scan.path),
        position=scan.defect.position,
        reason=scan.defect.reason,
    )


def _is_same_failure(state: Row, bad: Segment, error: BinloomError) -> bool:
    return (state["status"], state["segment_start"], state["segment_end"], state["error"]) == (
        "failed",
        bad.start,
        bad.end,
        str(error),
    )


def _landed_end(states: Sequence[Row]) -> int:
    """Return where the segments end that are done and stand at the beginning of a file."""
    end = FIRST_EVENT
    for state in states:
        if not is_done(state) or first_byte(state) != end:
            break
        end = state["segment_end"]
    return end


def _open_ranges(states: Sequence[Row], boundaries: Sequence[int], complete_end: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges that are not landed, up to the end of the last complete transaction.

    What is landed stays so, even where bad checksums were passed over that would now end the scan. A range that
    an earlier run began or failed on is taken up as it was recorded: its folder is named by its start. What
    follows the recorded ones is cut where the scan says. The end of the last failed one may have been the end
    of a file that was cut: that is cut anew, too.
    """
    position = FIRST_EVENT
    for index, state in enumerate(states):
        start, end = first_byte(state), state["segment_end"]
        is_last = index == len(states) - 1
        if start != position:
            break
        if not is_done(state):
            if end > complete_end or (is_last and state["status"] == "failed"):
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
    """Scan files, several at once, and yield their plans in batches in the order of the files."""
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
    """Return a short hash of rows, for the name of the file that holds them."""
    text = repr([sorted((key, value) for key, value in row.items() if key not in leave_out) for row in rows])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
