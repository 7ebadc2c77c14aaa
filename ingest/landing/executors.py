"""Executors of landing tasks: this process, processes of this machine, or the executors of a Spark cluster.

All write the same files. A session of a cluster registers their partitions at once; after the others, the next session
does it.
"""

import contextlib
import os
import re
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from ingest.binlog.byte_files import StoredFile, open_bytes
from ingest.errors import BinloomError, StoreError
from ingest.landing.task import SegmentResult, SegmentWork, TaskFailure, run_task
from ingest.landing.worker import Outcomes, Worker, WorkerDiedError
from ingest.warehouse.partitions import (
    confirm_registered,
    forget_lists_of_files,
    open_tables,
    register_partitions,
)
from ingest.warehouse.privacy import keep_private
from ingest.warehouse.segments import Segment
from ingest.warehouse.spark import SparkLaunch, spark_errors

if TYPE_CHECKING:
    from pyspark import Broadcast
    from pyspark.sql import SparkSession

    from ingest.binlog import SchemaHints

GROUP_SEGMENTS = 16
CLUSTER_JOBS = 64

# Loading the decoder takes a process as long as landing so many bytes.
BYTES_IN_THIS_PROCESS = 48 << 20


class Executor(Protocol):
    """The interface of an executor of landing tasks."""

    def use(self, hints: "SchemaHints | None") -> None:
        """Set the schema hints for the tasks that are submitted from now on."""

    def submit(self, works: Sequence[SegmentWork]) -> "Future[Outcomes]":
        """Land segments one after the other, in the background."""

    def prepare(self) -> None:
        """Get ready for commits while the first tasks run."""

    def register(self, results: Sequence[SegmentResult]) -> None:
        """Register the folders of landed segments with their tables, if a metastore is available."""

    def finish(self, run_id: str) -> None:
        """Record that the folders of a run are registered, if they are."""

    def close(self) -> None:
        """Wait for running tasks; cancel the others."""


class _WithoutSession:
    """An executor without a session: `register_pending` registers the partitions later."""

    _hints: "SchemaHints | None" = None

    def use(self, hints: "SchemaHints | None") -> None:
        self._hints = hints

    def prepare(self) -> None:
        pass

    def register(self, results: Sequence[SegmentResult]) -> None:
        pass

    def finish(self, run_id: str) -> None:
        pass


class LocalExecutor(_WithoutSession):
    """Runs tasks in this process, one after the other, without Spark; `register_pending` registers partitions later."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="land")

    def submit(self, works: Sequence[SegmentWork]) -> "Future[Outcomes]":
        return self._pool.submit(self._run, works, self._hints)

    def _run(self, works: Sequence[SegmentWork], hints: "SchemaHints | None") -> Outcomes:
        try:
            return [run_task(work, hints) for work in works]
        finally:
            # This process runs for weeks: release the memory that Arrow keeps for the next batch.
            pa.default_memory_pool().release_unused()

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


class ProcessExecutor(_WithoutSession):
    """Runs tasks in as many processes as there are cores; `register_pending` registers partitions later.

    Each thread has a process of its own, so that a process that dies takes no other tasks with it.
    """

    def __init__(self, processes: int | None = None) -> None:
        self._pool = ThreadPoolExecutor(processes or os.cpu_count() or 1, thread_name_prefix="land")
        self._own = threading.local()
        self._workers: list[Worker] = []
        self._is_closing = False

    def submit(self, works: Sequence[SegmentWork]) -> "Future[Outcomes]":
        return self._pool.submit(self._run, works, self._hints)

    def _run(self, works: Sequence[SegmentWork], hints: "SchemaHints | None") -> Outcomes:
        worker: Worker | None = getattr(self._own, "worker", None)
        if worker is None:
            worker = self._own.worker = Worker()
            self._workers.append(worker)
        try:
            return worker.run(works, hints) if not any(map(_is_unpacked, works)) else _run_held(worker, works, hints)
        except WorkerDiedError as error:
            self._own.worker = None
            if self._is_closing:
                raise
            if len(works) > 1:  # run the segments one by one to find the cause
                return [outcome for work in works for outcome in self._run([work], hints)]
            return [TaskFailure(works[0].segment, _lost_worker(works[0].segment, str(error)), str(error))]

    def close(self) -> None:
        self._is_closing = True
        self._pool.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers:
            worker.end()
        self._pool.shutdown(wait=True)


def _is_unpacked(work: SegmentWork) -> bool:
    return isinstance(work.path, StoredFile) and work.path.is_here


def _run_held(worker: Worker, works: Sequence[SegmentWork], hints: "SchemaHints | None") -> Outcomes:
    """Land segments of unpacked files one after the other; the bytes of each stay while the worker reads them."""
    outcomes: Outcomes = []
    for work in works:
        with open_bytes(work.path):
            outcomes += worker.run([work], hints)
    return outcomes


class SparkExecutor:
    """Runs tasks on a Spark cluster: one job for each group of segments, and a session for the tables."""

    def __init__(self, launch: SparkLaunch) -> None:
        self._launch = launch
        self._context = launch.context()
        self.use(None)
        # A cluster may give more executors while the landing runs; jobs that it has no core for wait there.
        self._pool = ThreadPoolExecutor(CLUSTER_JOBS, thread_name_prefix="land")
        self._session: SparkSession | None = None

    def use(self, hints: "SchemaHints | None") -> None:
        # The hints of ten thousand tables are megabytes: send them once to each worker, not with each task.
        self._hints = self._context.broadcast(hints)

    @property
    def session(self) -> "SparkSession":
        """The session; waits for its start."""
        if self._session is None:
            self._session = self._launch.session()
        return self._session

    def prepare(self) -> None:
        """Start the session and prepare the tables."""
        if self._session is None:
            with spark_errors(self._launch.home):
                open_tables(self.session, self._launch.home)

    def submit(self, works: Sequence[SegmentWork]) -> "Future[Outcomes]":
        """Land segments one after the other in a Spark job; as many jobs as there are cores run in parallel."""
        return self._pool.submit(self._run, works, self._hints)

    def _run(self, works: Sequence[SegmentWork], hints: "Broadcast[SchemaHints | None]") -> Outcomes:
        from py4j.protocol import Py4JJavaError

        def land_privately(group: Sequence[SegmentWork]) -> Outcomes:
            # The user's settings may replace binloom's daemon, whose umask a worker has.
            keep_private()
            return [run_task(one, hints.value) for one in group]

        try:
            job = self._context.parallelize([works], 1).map(land_privately)
            outcomes: Outcomes = job.collect()[0]
        except Py4JJavaError as error:
            if len(works) > 1:  # a worker died: run the segments one by one to find the cause
                return [outcome for work in works for outcome in self._run([work], hints)]
            return [TaskFailure(works[0].segment, _lost_executor(works[0].segment, error), str(error))]
        return outcomes

    def register(self, results: Sequence[SegmentResult]) -> None:
        with spark_errors(self._launch.home):
            register_partitions(self.session, [(outcome.segment, outcome.kinds) for outcome in results])

    def finish(self, run_id: str) -> None:
        """Record that the run's partitions are registered, and refresh the tables of a shared session."""
        with spark_errors(self._launch.home):
            confirm_registered(self.session, self._launch.home, run_id)
        # A session that was already open caches stale file lists.
        if self._launch.is_shared:
            forget_lists_of_files(self.session)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        with contextlib.suppress(Exception):
            self._context.cancelAllJobs()
        self._pool.shutdown(wait=True)


def grouped(works: Sequence[SegmentWork], bytes_together: int) -> Iterator[list[SegmentWork]]:
    """Group short segments, because every job has a fixed cost."""
    group: list[SegmentWork] = []
    for work in works:
        size = sum(one.segment.size for one in group) + work.segment.size
        if group and (size > bytes_together or len(group) >= GROUP_SEGMENTS):
            yield group
            group = []
        group.append(work)
    if group:
        yield group


def _lost_executor(segment: Segment, error: Exception) -> BinloomError:
    text = str(error)
    if (python := re.search(r"^Error from python worker:\n(.*?)\n\s*PYTHONPATH was:", text, re.S | re.M)) is not None:
        return StoreError(
            f"The Python of Spark's executors cannot run binloom: {python[1].splitlines()[-1].strip()}.",
            hint="Install the same version of binloom on each worker, and set PYSPARK_PYTHON to its Python there.",
        )
    is_crash = "Python worker exited unexpectedly" in text or "Connection reset" in text
    reason = next((line.strip() for line in text.splitlines() if "Exception: " in line), text.splitlines()[0])
    return _lost_worker(segment, reason, is_crash=is_crash)


def _lost_worker(segment: Segment, reason: str, *, is_crash: bool = True) -> StoreError:
    return StoreError(
        f"The task that decoded {segment.binlog_file} from position {segment.start} to {segment.end} died: {reason}",
        hint="The rest is landed. Run the same command again to try it once more; see the log under logs/.",
        is_crash=is_crash,
        position=segment.start,
    )
