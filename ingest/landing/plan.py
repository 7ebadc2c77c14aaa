"""What is to be done: which epoch a file belongs to, what of it is landed, and the segments that are not.

A source is one stream of changes. Within an epoch a file's name and the bytes at its beginning never
change and the file never gets smaller; when they do, somebody has to say that it is meant.
"""

import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ingest.errors import (
    BinlogError,
    BinloomError,
    CorruptBinlogError,
    EncryptedBinlogError,
    SourceIdentityError,
    encrypted_binlog,
)
from ingest.landing.record import Row, SourceRecord
from ingest.landing.segments import FIRST_EVENT, Segment, first_byte, is_done
from ingest.landing.skips import EpochStart
from ingest.sources.directory import BinlogPath, binlog_path

if TYPE_CHECKING:
    from ingest.binlog import FormatDescription, Scan

# One segment is about a second of work on one core, and what is lost at most when a task dies. It is a
# constant, not a share of the work at hand: the same bytes give the same segments on every machine.
SEGMENT_BYTES = 128 << 20

# Files are scanned and begun together up to this many bytes or files, so that tasks start before a
# long series is scanned whole, and a thousand small files do not make a thousand rows' files.
BATCH_BYTES = 4 << 30
BATCH_FILES = 256

_NEW_EPOCH_HINT = (
    "If the server was reset, restored, or replaced on purpose, run again with --new-epoch; "
    "if it is another server, give it a --source of its own."
)


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


class EpochBook:
    """Decides which epoch a file belongs to, and notes what is new about the source.

    Parameters
    ----------
    record
        What is recorded of the source.
    new_epoch
        Whether a series that starts over is meant: the next epoch is opened instead of an error. It
        changes nothing where there would be no error, so that a command may be run again as it was.
    """

    def __init__(self, record: SourceRecord, new_epoch: bool = False) -> None:
        self._record = record
        self._is_meant = new_epoch
        self._server_ids: dict[int, int | None] = {}
        self._known: set[tuple[Any, ...]] = set()
        for row in record.identities:
            self._server_ids.setdefault(row["epoch"], row["server_id"])
            self._known.add((row["epoch"], row["server_id"], row["flavor"], row["server_version"]))
        # An epoch whose files were recorded just before a crash, and itself not yet.
        for epoch, _ in record.files:
            self._server_ids.setdefault(epoch, None)
        self._current = max(self._server_ids, default=None)
        self.new_rows: list[dict[str, Any]] = []
        self.failovers: set[int] = set()

    def epoch_of(self, file: BinlogPath, log_format: "FormatDescription", file_size: int) -> int:
        """Return the epoch of a file; open the next one where that is due.

        Raises
        ------
        SourceIdentityError
            The file changed under its name, or another server writes to this source too.
        """
        epoch = self._recorded_epoch(file, log_format, file_size)
        if epoch is None:
            epoch = self._epoch_of_new(file, log_format)
        if self._server_ids.get(epoch) is None:
            self._server_ids[epoch] = _writer(log_format)
        self._note(epoch, log_format)
        return epoch

    def epoch_of_encrypted(self, file: BinlogPath) -> int:
        """Return the epoch of a file that does not say who wrote it: the one it was found in, else the current one."""
        found = [
            epoch for (epoch, name), row in self._record.files.items() if name == file.name and row["is_encrypted"]
        ]
        return max(found, default=self._current or 0)

    def _recorded_epoch(self, file: BinlogPath, log_format: "FormatDescription", file_size: int) -> int | None:
        same = [
            (epoch, row)
            for (epoch, name), row in self._record.files.items()
            if name == file.name and row["fingerprint"] == log_format.fingerprint
        ]
        if not same:
            return None
        epoch, row = max(same, key=lambda item: item[0])
        # A copy without the encryption is shorter.
        if file_size < row["file_size"] and not row["is_encrypted"]:
            if self._is_meant:
                return None
            raise SourceIdentityError(
                f"{file.path} is {file_size:,} bytes, but was {row['file_size']:,} when it was last scanned: "
                "a binlog never gets smaller.",
                hint="Restore the whole file and run again. " + _NEW_EPOCH_HINT,
                path=str(file.path),
            )
        return epoch

    def _epoch_of_new(self, file: BinlogPath, log_format: "FormatDescription") -> int:
        if self._current is None:
            self._current = 0
            return self._current
        current_id, writer = self._server_ids[self._current], _writer(log_format)
        is_failover = None not in (current_id, writer) and writer != current_id
        conflict = self._returned(file, log_format) if is_failover else self._started_over(file, log_format)
        if conflict is not None and not self._is_meant:
            raise SourceIdentityError(conflict, hint=_NEW_EPOCH_HINT, path=str(file.path))
        if is_failover or conflict is not None:
            self._current += 1
        if is_failover:
            self.failovers.add(self._current)
        return self._current

    def _returned(self, file: BinlogPath, log_format: "FormatDescription") -> str | None:
        """Say when the server of a file that is not the current epoch's wrote an earlier one."""
        earlier = [epoch for epoch, server_id in self._server_ids.items() if server_id == log_format.server_id]
        if not earlier:
            return None
        return (
            f"{file.path} was written by the server with server_id {log_format.server_id}, which wrote epoch "
            f"{max(earlier)} of source {self._record.source_id!r}; since then the server with server_id "
            f"{self._server_ids[self._current or 0]} took over: two servers are writing under one source."
        )

    def _started_over(self, file: BinlogPath, log_format: "FormatDescription") -> str | None:
        """Say when a file of the current epoch's server belongs to another series of files."""
        assert self._current is not None
        taken = self._record.files.get((self._current, file.name))
        if taken is not None and taken["fingerprint"] is not None:
            return (
                f"{file.path} is not the file that was landed under this name: its format description event differs "
                f"(server {log_format.server_version}, created {_when(log_format.created_at)}; landed was "
                f"{taken['server_version']}, created {_when(taken['created_at'])})."
            )
        if file.sequence is None:
            return None
        written_at = _first_timestamp(file)
        for (epoch, name), row in self._record.files.items():
            other = binlog_path(file.path.with_name(name))
            if epoch != self._current or other.base != file.base or other.sequence is None:
                continue
            if other.sequence > file.sequence and row["first_event_at"] and row["first_event_at"] < written_at:
                return (
                    f"{file.path} was begun on {_when(written_at)}, after {name}, which has a higher number and is "
                    "landed: the server's files have started over."
                )
        return None

    def _note(self, epoch: int, log_format: "FormatDescription") -> None:
        identity = (epoch, _writer(log_format), log_format.flavor, log_format.server_version)
        is_first = not any(known[0] == epoch for known in self._known)
        if identity in self._known or (log_format.server_version is None and not is_first):
            return
        self._known.add(identity)
        self.new_rows.append(
            {
                "source_id": self._record.source_id,
                "epoch": epoch,
                "server_id": _writer(log_format),
                "flavor": log_format.flavor,
                "server_version": log_format.server_version,
                "change": "epoch_opened" if is_first else "server_changed",
            }
        )


def _writer(log_format: "FormatDescription") -> int | None:
    """Return the server_id of the server that wrote a file; None where no start event says it.

    4.0 and 4.1 write one only to the first file, and the first event of another may be a replicated one.
    """
    return None if log_format.server_version is None else log_format.server_id


def _first_timestamp(file: BinlogPath) -> datetime:
    # Every event begins with its timestamp, and the first stands behind the magic number.
    with file.path.open("rb") as handle:
        head = handle.read(FIRST_EVENT + 4)
    return datetime.fromtimestamp(int.from_bytes(head[FIRST_EVENT:], "little"), UTC)


def _when(moment: datetime | None) -> str:
    return "at a time it does not say" if moment is None else moment.strftime("%Y-%m-%d %H:%M:%S UTC")


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
