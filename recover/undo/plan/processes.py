"""Chains of a table in several processes at once: most of an undo of many rows is work on single rows.

They are separate programs: a fork would share DuckDB's threads, and multiprocessing would run the main module of the
caller again. Each process ends when the connection to it ends.
"""

import gc
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from ingest.errors import EXIT_SOURCE, BinloomError
from recover.undo.plan.chains import ChainPlanner, Findings, Task
from recover.undo.select.changes import chains_of

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    import pyarrow as pa

    _Process = Connection[object, Findings | Exception]

# One process reads for the others, and cannot feed more of them.
_MOST: Final = 4
# Processes take as long to start as planning some ten thousand rows.
FEWEST_CHANGES: Final = 50_000
_PROJECT: Final = str(Path(__file__).resolve().parents[3])
_PROGRAM: Final = "import sys; from recover.undo.plan.processes import plan_batches; plan_batches(int(sys.argv[1]))"


def number_of_processes(changes: int) -> int:
    """Return how many processes plan a number of changes; 0: only this one."""
    cores = os.cpu_count() or 1
    return min(cores, _MOST) if cores > 1 and changes >= FEWEST_CHANGES else 0


class LostProcessError(BinloomError):
    """A process that planned rows ended before it was done."""

    exit_code = EXIT_SOURCE


class PlanningProcesses:
    """Processes that plan the chains of a table."""

    def __init__(self, task: Task, number: int) -> None:
        from multiprocessing import Pipe

        self._opened = ExitStack()
        self._free: deque[_Process] = deque()
        for _ in range(number):
            ours, theirs = Pipe()
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join([_PROJECT, *filter(None, sys.path)])},
            )
            theirs.close()
            self._opened.callback(process.wait)
            self._opened.callback(ours.close)
            ours.send(task)
            self._free.append(ours)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def findings(self, batches: "Iterable[tuple[int, pa.RecordBatch]]") -> Iterator[Findings]:
        """Yield the findings of each batch of rows, in their order; it also raises what planning raises.

        Parameters
        ----------
        batches
            Place of the first chain, and the rows of some chains.

        Raises
        ------
        LostProcessError
            A process ended early.
        """
        busy: deque[_Process] = deque()
        for first, rows in batches:
            # A process never has a second batch, so that neither side waits for the other to read.
            if not self._free:
                yield _received(busy[0])
                self._free.append(busy.popleft())
            process = self._free.popleft()
            with _kept(process):
                process.send((first, _written(rows)))
            busy.append(process)
        for process in busy:
            yield _received(process)


def _written(rows: "pa.RecordBatch") -> bytes:
    import pyarrow as pa

    # Pickle would send a part of a batch with the whole of it.
    written = pa.BufferOutputStream()
    with pa.ipc.new_stream(written, rows.schema) as stream:
        stream.write_batch(rows)
    return bytes(written.getvalue())


def _received(process: "_Process") -> Findings:
    with _kept(process):
        found = process.recv()
    if isinstance(found, Exception):
        raise found
    return found


@contextmanager
def _kept(process: "_Process") -> Iterator[None]:
    try:
        yield
    except (EOFError, OSError):
        raise LostProcessError(
            "A process that planned rows of the undo ended early.",
            hint="See whether the machine ran out of memory, and run the command again.",
        ) from None


def plan_batches(file: int) -> None:
    """Plan the batches that come through a connection until it ends; the first object in it is the task."""
    from multiprocessing.connection import Connection

    # The terminal interrupts all processes of a command; the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection: Connection[Any, Any] = Connection(file)
    with suppress(EOFError, OSError):
        planner = ChainPlanner(connection.recv())
        # Rows have no reference cycles. The collector now ignores the modules, so that its searches are short.
        gc.freeze()
        while True:
            first, written = connection.recv()
            connection.send(_outcome(planner, first, written))


def _outcome(planner: ChainPlanner, first: int, written: bytes) -> Findings | Exception:
    import pyarrow as pa

    try:
        with pa.ipc.open_stream(written) as stream:
            (rows,) = stream
        return planner.findings(first, chains_of(rows))
    except Exception as error:
        return error
