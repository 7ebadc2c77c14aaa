"""Land binlog files: plan, decode and write in tasks, commit.

The order of writing makes a crash harmless. First, a segment's task writes to a folder that is not registered with any
table. Then the driver registers the folder. Last, the driver writes the row of `segments` with status completed. A
segment without such a row is landed again and gives the same files. Readers of the models see only completed segments.
"""

import contextlib
import logging
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ingest.binlog.byte_files import folder_of, size_of
from ingest.binlog.events.format import read_format
from ingest.binlog.events.hints import SchemaHints
from ingest.errors import BinloomError
from ingest.landing.executors import Executor, grouped
from ingest.landing.nameless import Nameless
from ingest.landing.options import IngestOptions, IngestResult, Progress, filter_text
from ingest.landing.plan import (
    FilePlan,
    FileProblem,
    Identified,
    IdentifiedFile,
    plan_batches,
)
from ingest.landing.recorder import Recorder, now
from ingest.landing.schema_history import SchemaHistory
from ingest.landing.task import SegmentResult, SegmentWork, TaskFailure
from ingest.landing.used_hints import MAP_NAMING, merged_hints, stale_segments, used_hints
from ingest.sources.files.directory import BinlogPath, find_binlogs
from ingest.warehouse.locks import SourceLock
from ingest.warehouse.masks import masks_of
from ingest.warehouse.record import SourceRecord
from ingest.warehouse.segments import Segment, SegmentState, Status

if TYPE_CHECKING:
    from ingest.masking.rules import Masks

# A commit costs half a second: rare enough to be cheap, frequent enough that a crash loses little.
COMMIT_SECONDS = 10.0
COMMIT_SEGMENTS = 256


log = logging.getLogger(__name__)


def _passed_over(plan: FilePlan) -> str:
    return (
        f"{plan.file.file.path}: events skipped because of a wrong checksum: {plan.passed_over}. "
        "Table unsupported_events lists them; their changes are missing."
    )


class Run:
    """A landing run: the state that planning, tasks and commits share.

    Parameters
    ----------
    result
        Result that the run adds its counts to.
    record
        Record of the source; the run adds everything that it records.
    options, home, lock, progress
        As for `ingest`; the lock is held.
    """

    def __init__(
        self,
        result: IngestResult,
        record: SourceRecord,
        options: IngestOptions,
        home: Path,
        lock: SourceLock,
        progress: Progress,
    ) -> None:
        self.result = result
        self._record = record
        self._options = options
        self._home = home
        self._lock = lock
        self._progress = progress
        self.recorder = Recorder(record, result.run_id, home)
        self._nameless = Nameless()
        self.history = SchemaHistory.load(record, home)
        self.hints: SchemaHints | None = None
        self._filter = filter_text(options.tables)
        self._bytes_known = 0
        self._bytes_done = 0

    @cached_property
    def masks(self) -> "Masks | None":
        """Masks of the source. They are read only by a run that lands something."""
        return masks_of(self.result.source_id, self._home, self._options.masks)

    def count_into(self, result: IngestResult, progress: Progress) -> IngestResult:
        """Add all further counts to another result."""
        self.result = result
        self._progress = progress
        self._bytes_known = self._bytes_done = 0
        self._nameless = Nameless()
        return result

    def open_again(self, files: Sequence[BinlogPath]) -> list[BinlogPath]:
        """Reopen the segments of these files that dbt lists; return the files that have such segments."""
        from ingest.landing.again import listed_segments, reopened

        segments = listed_segments(self._record, [file.name for file in files], self._filter, self._home)
        self.recorder.add_states(reopened(segments, self.result.run_id, now(), self._filter))
        names = {segment.binlog_file for segment in segments}
        return [file for file in files if file.name in names]

    def reopen_stale(self, files: Iterable[IdentifiedFile]) -> list[IdentifiedFile]:
        """Reopen the segments of these files that were decoded with hints that differ from the hints known now.

        Returns
        -------
        list of IdentifiedFile
            The files that have such segments.
        """
        from ingest.landing.again import reopened

        reopened_files = []
        for file in files:
            stale = list(self.stale_segments(file.epoch, file.file.name))
            if stale:
                self.recorder.add_states(reopened(stale, self.result.run_id, now(), self._filter))
                reopened_files.append(replace(file, is_landed=False))
        return reopened_files

    def stale_segments(self, epoch: int, binlog_file: str) -> Iterator[Segment]:
        """Yield the segments of a file that were decoded with hints that differ from the hints known now."""
        if (epoch, binlog_file) not in self._record.erased:
            states = self._record.states.get((epoch, binlog_file), [])
            yield from stale_segments(self._hints(epoch), states, self._filter)

    def merged_hints(self, whole: Segment, states: Iterable[SegmentState]) -> str | None:
        """Return `hints_used` of a segment that is merged from others, none of which is stale."""
        return merged_hints(self._hints(whole.epoch), whole, states)

    def _hints(self, epoch: int) -> SchemaHints:
        return self.history.hints(epoch) or SchemaHints()

    def record_encrypted(self, identified: Identified) -> None:
        """Record files that cannot be landed at all, with the reason."""
        self._begin(identified.encrypted)

    def land(self, files: Sequence[IdentifiedFile], tasks: Executor) -> None:
        """Scan, decode and commit the unlanded parts of files of one epoch; close the executor at the end."""
        options = self._options
        batches = plan_batches(
            files, self._record, options.segment_bytes, os.cpu_count() or 1, options.skip_bad_checksum
        )
        self._read_neighbours(files)
        if self.history.looks_ahead(files[0].epoch, files[0].file.name):
            # A later snapshot also describes earlier files, if all statements between are known: scan all files first.
            everything = list(batches)
            self._take_scans(plan for plans in everything for plan in plans)
            batches = iter(everything)
        with ThreadPoolExecutor(1, thread_name_prefix="plan") as planner:
            # The next batch is scanned while tasks work on this one.
            upcoming: Future[list[FilePlan] | None] = planner.submit(next, batches, None)
            try:
                while (plans := upcoming.result()) is not None:
                    upcoming = planner.submit(next, batches, None)
                    self.land_plans(plans, tasks)
            finally:
                tasks.close()
        tasks.finish(self.result.run_id)

    def land_plans(self, plans: Sequence[FilePlan], tasks: Executor) -> None:
        """Record the scans of files of one epoch, then decode and commit their planned segments."""
        segments = self._begin(plans)
        self._take_scans(plans)
        self.hints = self.history.hints(plans[0].file.epoch) if plans else None
        tasks.use(self.hints)
        works = [self._work(segment, plans) for segment in segments]
        pending = {tasks.submit(group) for group in grouped(works, self._options.segment_bytes)}
        finished: list[SegmentResult] = []
        committed_at = time.monotonic()
        # The session starts while the first tasks are running.
        tasks.prepare()
        log.debug("raw tables are ready")
        while pending:
            done, pending = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
            for future in done:
                finished.extend(map(self._accept, future.result()))
                log.debug("a job is done")
            self._report("landing")
            is_due = time.monotonic() - committed_at > COMMIT_SECONDS
            if finished and pending and (is_due or len(finished) >= COMMIT_SEGMENTS):
                self._commit(tasks, finished[:COMMIT_SEGMENTS])
                finished, committed_at = finished[COMMIT_SEGMENTS:], time.monotonic()
        self._report("committing")
        for first in range(0, len(finished), COMMIT_SEGMENTS):
            self._commit(tasks, finished[first : first + COMMIT_SEGMENTS])

    def _take_scans(self, plans: Iterable[FilePlan]) -> None:
        for plan in plans:
            if plan.scan is not None:
                self.history.add_scan(plan.file.epoch, plan.file.file.name, plan.scan)

    def _read_neighbours(self, files: Sequence[IdentifiedFile]) -> None:
        """Scan other files of the folder for statements, if they are between the given files and a snapshot."""
        from ingest.binlog import scan_binlog

        first, epoch = files[0].file, files[0].epoch
        snapshots = self.history.sequences_of_snapshots(epoch)
        folder = folder_of(first.path)
        if not snapshots or folder is None:
            return
        known = [*snapshots, *(file.file.sequence for file in files if file.file.sequence is not None)]
        writer = read_format(first.path).server_id
        named = {file.file.name for file in files}
        for beside in find_binlogs(folder):
            if beside.name in named or beside.base != first.base or beside.sequence is None:
                continue
            if not min(known) <= beside.sequence <= max(known) or self._is_recorded(epoch, beside):
                continue
            with contextlib.suppress(BinloomError, OSError):
                recorded = self._record.files.get((epoch, beside.name))
                found = read_format(beside.path)
                is_of_series = recorded is None or recorded["fingerprint"] == found.fingerprint
                if found.server_id == writer and is_of_series:
                    self.history.add_scan(epoch, beside.name, scan_binlog(beside.path))

    def _is_recorded(self, epoch: int, file: BinlogPath) -> bool:
        """Return whether a file is fully landed, judging by its name and size."""
        with contextlib.suppress(OSError, BinloomError):
            return self._record.is_landed(epoch, file.name, size_of(file.path))
        return True

    def _begin(self, plans: Sequence[FilePlan]) -> list[Segment]:
        """Record the scanned files, the segments to land, and the ranges that are skipped or failed."""
        self.recorder.add_files([{**plan.row, "scanned_at": now()} for plan in plans if plan.row is not None])
        states: list[SegmentState] = []
        segments: list[Segment] = []
        for plan in plans:
            for segment in plan.segments:
                segments.append(segment)
                states.append(self._state(segment, "in_progress"))
            for skipped in plan.skipped:
                states.append(self._state(skipped.segment, "skipped", error=skipped.reason, gtids=skipped.gtids))
            if plan.passed_over:
                self.result.warnings.append(_passed_over(plan))
            if plan.problem is not None:
                self.result.problems.append(plan.problem)
                if plan.bad is not None and not plan.is_recorded:
                    states.append(self._state(plan.bad, "failed", error=str(plan.problem.error)))
        self.recorder.add_states(states)
        self._bytes_known += sum(segment.size for segment in segments)
        return segments

    def _work(self, segment: Segment, plans: Sequence[FilePlan]) -> SegmentWork:
        path = next(
            plan.file.file.path
            for plan in plans
            if plan.file.file.name == segment.binlog_file and plan.file.epoch == segment.epoch
        )
        return SegmentWork(
            segment,
            path.absolute() if isinstance(path, Path) else path,
            self._home,
            self.result.run_id,
            self._lock.run_path,
            self._options.tables,
            self._options.skip_bad_checksum,
            self.masks,
        )

    def _accept(self, outcome: SegmentResult | TaskFailure) -> SegmentResult:
        if isinstance(outcome, TaskFailure):
            if outcome.error is None:
                raise RuntimeError(f"A task failed on {outcome.segment}:\n{outcome.trace}")
            if not outcome.error.context.get("is_crash"):
                raise outcome.error
            # A worker died on these bytes: report this segment as failed, and keep landing the others.
            nothing = Segment(
                outcome.segment.source_id,
                outcome.segment.epoch,
                outcome.segment.binlog_file,
                outcome.segment.start,
                outcome.segment.start,
            )
            outcome = SegmentResult(nothing, bad=outcome.segment, error=outcome.error)
        self._bytes_done += outcome.segment.size + (outcome.bad.size if outcome.bad else 0)
        return outcome

    def _commit(self, tasks: Executor, results: Sequence[SegmentResult]) -> None:
        tasks.register(results)
        batches = [batch for outcome in results for batch in outcome.table_maps]
        self.recorder.add_table_maps(batches)
        for batch in batches:
            self._nameless.add_maps(batch.select([*MAP_NAMING]).to_pylist(), self.hints)
        states: list[SegmentState] = []
        for outcome in results:
            segment = outcome.segment
            if segment.size:
                states.append(
                    self._state(
                        segment,
                        "completed",
                        row_events=outcome.row_events,
                        transactions=outcome.transactions,
                        min_event_at=outcome.min_event_at,
                        max_event_at=outcome.max_event_at,
                        gtids=str(outcome.gtids) or None,
                        hints_used=used_hints(self.hints or SchemaHints(), outcome, self.masks),
                    )
                )
                self.result.segments += 1
                self.result.bytes += segment.size
                self.result.row_events += outcome.row_events
                self.result.transactions += outcome.transactions
                self._nameless.add_unmaskable(outcome.unmaskable)
            if outcome.bad is not None and outcome.error is not None:
                states.append(self._state(outcome.bad, "failed", error=str(outcome.error)))
                self.result.problems.append(
                    FileProblem(outcome.bad.binlog_file, outcome.bad.start, outcome.bad.end, outcome.error)
                )
        self.recorder.add_states(states, {outcome.segment.key: outcome.row_counts for outcome in results})
        log.debug("%d segments are committed", len(results))

    def _state(self, segment: Segment, status: Status, **facts: Any) -> SegmentState:
        return segment.state(status, self.result.run_id, now(), table_filter=self._filter, **facts)

    def _report(self, word: str) -> None:
        self._progress(self._bytes_done, self._bytes_known, word)

    def warn_of_missing_names(self) -> None:
        """Add a warning if tables were found whose columns have no names, or that cannot be masked."""
        self.result.warnings += self._nameless.warnings(self.result.source_id)
