"""Locks: one ingest of a source at a time, without tasks of an earlier, dead ingest beside it."""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from ingest.errors import IngestInProgressError, StoreError
from ingest.warehouse.files import store_errors
from ingest.warehouse.names import source_stem

ORPHAN_SECONDS = 60.0


class SourceLock:
    """Lock for landing one source, held until the `with` block or the process ends.

    There are two files under `locks/`. The command holds `.lock` for as long as it runs. `.run` contains the
    identifier of the run; tasks hold a shared lock on it while they write. When a command is killed, its tasks may
    live on for a moment: the next command waits for them. A task that starts later finds that its run has ended.

    Parameters
    ----------
    home, source_id, run_id
        Folder of all data of binloom, the source, and the identifier of the run.
    work
        Name of work that may be done beside the landing of the source's log, but not twice at once.

    Raises
    ------
    IngestInProgressError
        When another command lands this source.
    """

    def __init__(self, home: Path, source_id: str, run_id: str, work: str | None = None) -> None:
        folder = home / "locks"
        self._source_id = source_id
        self._run_id = run_id
        self._held: IO[bytes] | None = None
        self._work = f"a {work} of " if work is not None else ""
        stem = source_stem(source_id)
        self.path = folder / (f"{stem}.lock" if work is None else f"{stem}.{work}.lock")
        self.run_path = self.path.with_suffix(".run")

    def __enter__(self) -> Self:
        with store_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Unbuffered: on a full disk, closing the file would try again to write a buffer that could not be written.
            held = open(self.path, "ab+", buffering=0)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held.seek(0)
            holder = held.read().decode().strip()
            held.close()
            who = f" (pid {holder})" if holder else ""
            raise IngestInProgressError(
                f"Another command{who} is landing {self._work}source {self._source_id!r}.",
                hint="Wait until it has ended and try again.",
                source_id=self._source_id,
            ) from None
        self._held = held
        try:
            with store_errors(self.path):
                held.seek(0)
                held.truncate()
                held.write(str(os.getpid()).encode())
            self._begin_run()
        except BaseException:
            held.close()
            raise
        return self

    def _begin_run(self) -> None:
        with store_errors(self.run_path), open(self.run_path, "a+") as run:
            until = time.monotonic() + ORPHAN_SECONDS
            while True:
                try:
                    fcntl.flock(run, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > until:
                        raise IngestInProgressError(
                            f"Tasks of an earlier command still write to source {self._source_id!r}.",
                            hint="Wait until they have ended, or end them, and try again.",
                            source_id=self._source_id,
                        ) from None
                    time.sleep(0.05)
            run.truncate(0)
            run.write(self._run_id)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None


def landing_processes(home: Path) -> list[tuple[str, int]]:
    """Return the name of each lock that a command holds to land a source, and the command's process id."""
    found = []
    for path in sorted((home / "locks").glob("*.lock")):
        with contextlib.suppress(OSError), open(path, "rb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = lock.read().decode(errors="replace").strip()
                found += [(path.stem, int(holder))] if holder.isdigit() else []
    return found


def folders_locked(home: Path, source_id: str) -> contextlib.AbstractContextManager[None]:
    """Wait until no other process decides which folders of a source's segments are in use, and keep it so.

    `binloom build` deletes the folders of replaced segments while a follower lands. A landing may begin to write into
    one of these folders again: it records that under this lock, and the build reads the record and deletes under it.
    """
    return _locked(home / "locks" / f"{source_stem(source_id)}.folders")


def history_locked(home: Path, source_id: str) -> contextlib.AbstractContextManager[None]:
    """Wait until no other process publishes the schema history of a source, and keep it so.

    Who reads the evidence under this lock has all that an earlier publisher had.
    """
    return _locked(home / "locks" / f"{source_stem(source_id)}.history")


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with store_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    with open(path, "ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


class TaskLock:
    """A lock that a task holds while it writes; refused when the task's run is no longer the current run."""

    def __init__(self, run_path: Path, run_id: str) -> None:
        self._run_path = run_path
        self._run_id = run_id
        self._held: IO[str] | None = None

    def __enter__(self) -> Self:
        held = open(self._run_path)
        fcntl.flock(held, fcntl.LOCK_SH)
        if held.read() != self._run_id:
            held.close()
            raise StoreError("The command that this task belongs to has ended.", hint="Run it again.")
        self._held = held
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None
