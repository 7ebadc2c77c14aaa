"""A process that lands segments for another one: `python -m ingest.landing.worker`.

It reads tasks from its standard input, and answers on its standard output: pickled objects, one after the other. It
ends when its input does, also when the process that gives the tasks is killed.
"""

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any

from ingest.landing.task import SegmentResult, SegmentWork, TaskFailure, run_task
from ingest.warehouse.privacy import keep_private

if TYPE_CHECKING:
    from ingest.binlog import SchemaHints

Outcomes = list[SegmentResult | TaskFailure]


class WorkerDiedError(Exception):
    """The process ended before it answered."""

    def __init__(self, code: int) -> None:
        super().__init__(f"its process ended with {_reason(code)}")


class Worker:
    """A process that lands segments one after the other; only one thread may use it at a time."""

    def __init__(self) -> None:
        # The path of modules may not be that of a new process, as in a notebook.
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        self._process = subprocess.Popen(
            # Without the current folder, whose files may have the names of modules.
            [sys.executable, "-P", "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
            # An interrupt of a terminal reaches only the process that gives the tasks; it ends this one.
            process_group=0,
        )
        self._hints: SchemaHints | None = None

    def run(self, works: Sequence[SegmentWork], hints: "SchemaHints | None") -> Outcomes:
        """Land segments.

        Raises
        ------
        WorkerDiedError
            The process ended, because of one of the segments or by a signal.
        """
        # The hints of ten thousand tables are megabytes: they are sent once.
        are_new = hints is not self._hints
        self._hints = hints
        try:
            assert self._process.stdin is not None and self._process.stdout is not None
            _send(self._process.stdin, (works, are_new, hints if are_new else None))
            outcomes: Outcomes = pickle.load(self._process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            raise WorkerDiedError(self._process.wait()) from error
        return outcomes

    def end(self) -> None:
        """End the process at once; a segment that it was landing stays unfinished."""
        self._process.kill()
        self._process.communicate()


def _reason(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _send(stream: IO[bytes], message: Any) -> None:
    pickle.dump(message, stream, pickle.HIGHEST_PROTOCOL)
    stream.flush()


def _main() -> None:
    keep_private()
    # Nothing that a library prints may get among the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    hints: SchemaHints | None = None
    while True:
        try:
            works, are_new, sent = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        hints = sent if are_new else hints
        outcomes = [run_task(work, hints) for work in works]
        try:
            _send(answers, outcomes)
        except BrokenPipeError:
            # The process that gave the task was killed.
            os._exit(1)


if __name__ == "__main__":
    _main()
