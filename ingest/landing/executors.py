"""Who runs the tasks of a landing: Spark, or this process itself.

Both give the same files. Spark has workers and a session in which the partitions are registered at once; in
this process nothing has to start, and the partitions wait for the next session of Spark.
"""

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from ingest.errors import BinloomError, StoreError
from ingest.landing.task import SegmentResult, SegmentWork, TaskFailure, run_task
from ingest.warehouse.partitions import confirm_registered, open_tables, register_partitions
from ingest.warehouse.segments import Segment
from ingest.warehouse.spark import SparkLaunch, spark_errors
from ingest.warehouse.tables import BINLOG_FILES, SEGMENT_TABLES, SEGMENTS, SOURCES, TABLE_MAPS

if TYPE_CHECKING:
    from pyspark import Broadcast
    from pyspark.sql import SparkSession

    from ingest.binlog import SchemaHints

GROUP_SEGMENTS = 16

Outcomes = list[SegmentResult | TaskFailure]


class Executor(Protocol):
    """What a landing needs of whoever runs its tasks."""

    def use(self, hints: "SchemaHints | None") -> None:
        """Tell the tasks that are submitted from now on what is known of the schema."""

    def submit(self, works: Sequence[SegmentWork]) -> "Future[Outcomes]":
        """Land segments, one after the other, in the background."""

    def prepare(self) -> None:
        """Make ready what a commit needs, while the first tasks are at work."""

    def register(self, results: Sequence[SegmentResult]) -> None:
        """Make the folders of landed segments known to their tables, as far as there is a metastore to hand."""

    def close(self) -> None:
        """Wait for tasks that are running; take back those that are not."""


class LocalExecutor:
    """Tasks in this process, one after the other, without Spark. Partitions are left for `register_pending`."""

    def __init__(self) -> None:
        self._hints: SchemaHints | None = None
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="land")

    def use(self, hints: "SchemaHints | None") -> None:
        self._hints = hints

    def submit(self, works: Sequence[SegmentWork]) -> "Future[Outcomes]":
        return self._pool.submit(self._run, works, self._hints)

    def _run(self, works: Sequence[SegmentWork], hints: "SchemaHints | None") -> Outcomes:
        try:
            return [run_task(work, hints) for work in works]
        finally:
            # This process lives for weeks: what Arrow keeps for the next batch would stay with it.
            pa.default_memory_pool().release_unused()

    def prepare(self) -> None:
        pass

    def register(self, results: Sequence[SegmentResult]) -> None:
        pass

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


class SparkExecutor:
    """Spark, as far as landing needs it: one job for each group of segments, and a session for the tables."""

    def __init__(self, launch: SparkLaunch) -> None:
        self._launch = launch
        self._context = launch.context()
        self.use(None)
        self._pool = ThreadPoolExecutor(max(1, self._context.defaultParallelism), thread_name_prefix="land")
        self._session: SparkSession | None = None

    def use(self, hints: "SchemaHints | None") -> None:
        # Those of ten thousand tables are megabytes: once for each worker, not for each task.
        self._hints = self._context.broadcast(hints)

    @property
    def session(self) -> "SparkSession":
        """The session; its start is waited for."""
        if self._session is None:
            self._session = self._launch.session()
        return self._session

    def prepare(self) -> None:
        """Start the session and make the tables ready."""
        if self._session is None:
            with spark_errors(self._launch.home):
                open_tables(self.session, self._launch.home)

    def submit(self, works: Sequence[SegmentWork]) -> "Future[Outcomes]":
        """Let Spark land segments, one after the other; jobs run side by side, as many as there are cores."""
        return self._pool.submit(self._run, works, self._hints)

    def _run(self, works: Sequence[SegmentWork], hints: "Broadcast[SchemaHints | None]") -> Outcomes:
        from py4j.protocol import Py4JJavaError

        try:
            job = self._context.parallelize([works], 1).map(lambda group: [run_task(one, hints.value) for one in group])
            outcomes: Outcomes = job.collect()[0]
        except Py4JJavaError as error:
            if len(works) > 1:  # a worker died: on which of them?
                return [outcome for work in works for outcome in self._run([work], hints)]
            return [TaskFailure(works[0].segment, _lost_worker(works[0].segment, error), str(error))]
        return outcomes

    def register(self, results: Sequence[SegmentResult]) -> None:
        with spark_errors(self._launch.home):
            register_partitions(self.session, [(outcome.segment, outcome.kinds) for outcome in results])

    def finish(self, run_id: str) -> None:
        """Say that what the run landed is registered, and let who goes on in the session see it."""
        with spark_errors(self._launch.home):
            confirm_registered(self.session, self._launch.home, run_id)
        # Of a session that was there before, lists of files are older.
        if self._launch.is_shared:
            for table in (SOURCES, BINLOG_FILES, SEGMENTS, TABLE_MAPS, *SEGMENT_TABLES.values()):
                self.session.catalog.refreshTable(table.qualified_name)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        with contextlib.suppress(Exception):
            self._context.cancelAllJobs()
        self._pool.shutdown(wait=True)


def grouped(works: Sequence[SegmentWork], bytes_together: int) -> Iterator[list[SegmentWork]]:
    """Put short segments together: a job has its price, whatever it does."""
    group: list[SegmentWork] = []
    for work in works:
        size = sum(one.segment.size for one in group) + work.segment.size
        if group and (size > bytes_together or len(group) >= GROUP_SEGMENTS):
            yield group
            group = []
        group.append(work)
    if group:
        yield group


def _lost_worker(segment: Segment, error: Exception) -> BinloomError:
    text = str(error)
    is_crash = "Python worker exited unexpectedly" in text or "Connection reset" in text
    reason = next((line.strip() for line in text.splitlines() if "Exception: " in line), text.splitlines()[0])
    return StoreError(
        f"The task that decoded {segment.binlog_file} from position {segment.start} to {segment.end} died: {reason}",
        hint="The rest is landed. Run the same command again to try it once more; see the log under logs/.",
        is_crash=is_crash,
        position=segment.start,
    )
