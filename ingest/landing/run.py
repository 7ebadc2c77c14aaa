"""Land binlog files: plan, decode and write in tasks, commit.

The order of writing makes a crash harmless. First, a segment's task writes to a folder that is not registered with any
table. Then the driver registers the folder. Last, the driver writes the row of `segments` with status completed. A
segment without such a row is landed again and gives the same files. Readers of the models see only completed segments.
"""

import contextlib
import json
import logging
import os
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ingest.binlog.format import read_format
from ingest.binlog.hints import SchemaHints
from ingest.errors import BinloomError
from ingest.landing.executors import Executor, grouped
from ingest.landing.options import IngestOptions, IngestResult, Progress, filter_text
from ingest.landing.plan import (
    FilePlan,
    FileProblem,
    Identified,
    IdentifiedFile,
    content_name,
    plan_batches,
)
from ingest.landing.row_counts import Counts, SegmentKey
from ingest.landing.schema_history import SchemaHistory
from ingest.landing.task import SegmentResult, SegmentWork, TaskFailure
from ingest.masking.rows import KEY_LOST, NO_NAMES
from ingest.sources.directory import BinlogPath, find_binlogs
from ingest.warehouse.files import append_rows, append_table, delete_temporaries, read_table
from ingest.warehouse.locks import SourceLock, folders_locked
from ingest.warehouse.masks import masks_of
from ingest.warehouse.names import source_stem
from ingest.warehouse.record import Row, SourceRecord
from ingest.warehouse.segments import Segment, SegmentState, Status
from ingest.warehouse.tables import BINLOG_FILES, SEGMENTS, SOURCES, TABLE_MAPS, RawTable

if TYPE_CHECKING:
    from ingest.masking.rules import Masks

# A commit costs half a second: rare enough to be cheap, frequent enough that a crash loses little.
COMMIT_SECONDS = 10.0
COMMIT_SEGMENTS = 256

_MAP_NAMING = ["schema_name", "table_name", "columns"]

# Schema and table, and `_NAMES` if the values also depend on the names of the columns, because masks choose by name.
_Described = tuple[str, str] | tuple[str, str, str]
_NAMES = "names"

_MOST_NAMED = 5
_UNMASKABLE = {
    NO_NAMES: "masks may concern them and their column names are not known. Land a snapshot with `binloom snapshot`, "
    "then run ingest again for the same files.",
    KEY_LOST: "masks give a column of their primary key the method drop, null or partial. Give it the method hash, and "
    "land the files under another --source.",
}

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
        self._stem = f"{source_stem(result.source_id)}-{result.run_id}"
        self._files_written = 0
        for table in (SOURCES, BINLOG_FILES, SEGMENTS, TABLE_MAPS):
            delete_temporaries(table, f"{source_stem(result.source_id)}-", home)
        self._unmaskable: set[tuple[str, str, str]] = set()
        self.history = SchemaHistory.load(record, home)
        self.hints: SchemaHints | None = None
        self._filter = filter_text(options.tables)
        self._known_maps: set[str] | None = None
        self._has_nameless_maps = False
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
        self._has_nameless_maps = False
        return result

    def open_again(self, files: Sequence[BinlogPath]) -> list[BinlogPath]:
        """Reopen the segments of these files that dbt lists; return the files that have such segments."""
        from ingest.landing.again import listed_segments, reopened

        segments = listed_segments(self._record, [file.name for file in files], self._filter, self._home)
        self.record_states(reopened(segments, self.result.run_id, now(), self._filter))
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
                self.record_states(reopened(stale, self.result.run_id, now(), self._filter))
                reopened_files.append(replace(file, is_landed=False))
        return reopened_files

    def stale_segments(self, epoch: int, binlog_file: str) -> Iterator[Segment]:
        """Yield the segments of a file that were decoded with hints that differ from the hints known now."""
        if (epoch, binlog_file) in self._record.erased:
            return
        hints = self.history.hints(epoch) or SchemaHints()
        for state in self._record.states.get((epoch, binlog_file), []):
            # Segments that earlier versions of binloom landed do not record their hints.
            if state.status != "completed" or state.table_filter != self._filter or not state.hints_used:
                continue
            if json.loads(state.hints_used) != _hints_used(hints, state.segment, _tables_of(state)):
                yield state.segment

    def merged_hints(self, whole: Segment, states: Iterable[SegmentState]) -> str | None:
        """Return `hints_used` of a segment that is merged from others, none of which is stale."""
        hints = self.history.hints(whole.epoch) or SchemaHints()
        used = _hints_used(hints, whole, {table for state in states for table in _tables_of(state)})
        return json.dumps(used, sort_keys=True) if used else None

    def record_identities(self, identified: Identified, epoch: int) -> None:
        """Record the new identities of the servers of an epoch."""
        for row in identified.new_identities:
            if row["epoch"] != epoch:
                continue
            if epoch in identified.failovers and row["change"] == "epoch_opened":
                row = {**row, "gtids_before": str(self._record.gtids_done()) or None}
            name = f"{source_stem(self.result.source_id)}-{epoch}-{content_name([row])}"
            self.record_identity(row, name)

    def record_identity(self, row: Row, name: str | None = None) -> None:
        """Record a row of `sources` as a file of this name; recording it again under this name replaces the file."""
        (observed,) = self._append(SOURCES, [{**row, "observed_at": now()}], name)
        self._record.add_identity(observed)

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
        if not snapshots:
            return
        known = [*snapshots, *(file.file.sequence for file in files if file.file.sequence is not None)]
        writer = read_format(first.path).server_id
        named = {file.file.name for file in files}
        for beside in find_binlogs(first.path.parent):
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
        with contextlib.suppress(OSError):
            return self._record.is_landed(epoch, file.name, file.path.stat().st_size)
        return True

    def _begin(self, plans: Sequence[FilePlan]) -> list[Segment]:
        """Record the scanned files, the segments to land, and the ranges that are skipped or failed."""
        # Record the files before any of their segments, because an epoch is known by its files.
        scanned = [{**plan.row, "scanned_at": now()} for plan in plans if plan.row is not None]
        self._record.add_files(self._append(BINLOG_FILES, scanned))
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
        self.record_states(states)
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
            path.absolute(),
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
        self._append_table_maps(results)
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
                        hints_used=self._hints_used(outcome),
                    )
                )
                self.result.segments += 1
                self.result.bytes += segment.size
                self.result.row_events += outcome.row_events
                self.result.transactions += outcome.transactions
                self._unmaskable |= outcome.unmaskable
            if outcome.bad is not None and outcome.error is not None:
                states.append(self._state(outcome.bad, "failed", error=str(outcome.error)))
                self.result.problems.append(
                    FileProblem(outcome.bad.binlog_file, outcome.bad.start, outcome.bad.end, outcome.error)
                )
        self.record_states(states, {outcome.segment.key: outcome.row_counts for outcome in results})
        log.debug("%d segments are committed", len(results))

    def _hints_used(self, outcome: SegmentResult) -> str | None:
        """Return `hints_used` of a decoded segment; None if no value depends on hints."""
        tables: set[_Described] = set()
        for batch in outcome.table_maps:
            for table_map in batch.select([*_MAP_NAMING, "hint", "unknown_hints"]).to_pylist():
                table = table_map["schema_name"], table_map["table_name"]
                if table_map["hint"] != "metadata" or table_map["unknown_hints"]:
                    tables.add(table)
                has_names = bool(table_map["columns"]) and table_map["columns"][0]["name"] is not None
                if not has_names and self.masks is not None and self.masks.concerns(*table):
                    tables.add((*table, _NAMES))
        used = _hints_used(self.hints or SchemaHints(), outcome.segment, tables)
        return json.dumps(used, sort_keys=True) if used else None

    def record_states(self, states: Sequence[SegmentState], counts: Mapping[SegmentKey, Counts] | None = None) -> None:
        """Record states of segments atomically, later than all earlier states: the clock may have been set back.

        Those of completed segments have the counts of their rows.
        """
        if not states:
            return
        first, until = min(state.recorded_at for state in states), self._record.recorded_until
        if until is not None and first <= until:
            ahead = until - first + timedelta(microseconds=1)
            states = [replace(state, recorded_at=state.recorded_at + ahead) for state in states]
        with folders_locked(self._home, self.result.source_id):
            rows = [{**state.row, "row_event_counts": (counts or {}).get(state.key)} for state in states]
            self._append(SEGMENTS, rows)
        self._record.add_states(states)

    def _append(self, table: RawTable, rows: Sequence[Row], name: str | None = None) -> list[Row]:
        """Write rows as one file, if there are any; return them with all columns, as a reader gets them."""
        if rows:
            append_rows(table, rows, name or self._next_name(), self._home)
        return [{column: row.get(column) for column in table.columns.names} for row in rows]

    def _append_table_maps(self, results: Sequence[SegmentResult]) -> None:
        batches = [batch for outcome in results for batch in outcome.table_maps]
        if not batches:
            return
        if self._known_maps is None:
            known = read_table(TABLE_MAPS, self._home, ["table_map_id"], source_id=self.result.source_id)
            self._known_maps = set(known["table_map_id"].to_pylist())
        maps = pa.Table.from_batches(batches)
        fresh: dict[str, int] = {}
        for index, map_id in enumerate(maps["table_map_id"].to_pylist()):
            if map_id not in self._known_maps:
                fresh.setdefault(map_id, index)
        self._has_nameless_maps |= any(map(self._is_nameless, maps.select(_MAP_NAMING).to_pylist()))
        if fresh:
            new = maps.take(list(fresh.values()))
            source = pa.array([self.result.source_id] * new.num_rows, pa.string())
            append_table(TABLE_MAPS, new.append_column("source_id", source), self._next_name(), self._home)
            self._known_maps.update(fresh)

    def _is_nameless(self, table_map: dict[str, Any]) -> bool:
        if not table_map["columns"] or table_map["columns"][0]["name"] is not None:
            return False
        return self.hints is None or not self.hints.is_known(table_map["schema_name"], table_map["table_name"])

    def _state(self, segment: Segment, status: Status, **facts: Any) -> SegmentState:
        return segment.state(status, self.result.run_id, now(), table_filter=self._filter, **facts)

    def _next_name(self) -> str:
        self._files_written += 1
        return f"{self._stem}-{self._files_written:05d}"

    def _report(self, word: str) -> None:
        self._progress(self._bytes_done, self._bytes_known, word)

    def warn_of_missing_names(self) -> None:
        """Add a warning if tables were found whose columns have no names, or that cannot be masked."""
        self._warn_of_unmaskable()
        if self._has_nameless_maps:
            source = self.result.source_id
            self.result.warnings.append(
                f"The server does not log column names, and source {source!r} has no schema snapshot for some tables: "
                "their rows are landed, but cannot be named yet. Land a snapshot with "
                f"`binloom snapshot --source {source} --server HOST` (or `--from-dir DIR`), then run ingest for new "
                "files or `dbt run`."
            )

    def _warn_of_unmaskable(self) -> None:
        source = self.result.source_id
        for reason, advice in _UNMASKABLE.items():
            tables = sorted(f"{schema}.{table}" for why, schema, table in self._unmaskable if why == reason)
            if tables:
                self.result.warnings.append(
                    f"Rows of {_listed(tables)} of source {source!r} are not landed, because {advice}"
                )
        self._unmaskable.clear()


def _listed(tables: Sequence[str]) -> str:
    more = f" and {len(tables) - _MOST_NAMED} more" if len(tables) > _MOST_NAMED else ""
    return ", ".join(tables[:_MOST_NAMED]) + more


def _tables_of(state: SegmentState) -> list[_Described]:
    """Return the tables of a segment whose values depend on hints, from its latest state."""
    return [tuple(described) for described in map(json.loads, json.loads(state.hints_used or "{}"))]


def _hints_used(hints: SchemaHints, segment: Segment, tables: Iterable[_Described]) -> dict[str, str]:
    """Return a hash of the schema hints of each table in a segment, by the table's schema and name as JSON."""
    return {
        json.dumps(described): hints.digest(
            described[:2],
            segment.binlog_file,
            segment.first_byte,
            segment.end,
            with_names=described[2:] == (_NAMES,),
        )
        for described in tables
    }


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def new_run_id() -> str:
    """Return an identifier for a run of landing: the current time, and a random part."""
    return f"{now():%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}"
