"""Runs a command and measures it: wall time, processor time, and the most memory that its processes had at once."""

import os
import resource
import subprocess
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

SAMPLE_SECONDS = 0.1


class CommandFailed(Exception):
    """A measured command ended with an error; the message holds the end of what it said."""


@dataclass(frozen=True)
class Measured:
    """A command that ran.

    Attributes
    ----------
    seconds
        From start to end by the clock.
    processor_seconds
        What it and all its children that ended used of the processors.
    peak_bytes
        Most memory of the process and all below it at one time: their proportional set sizes, so that what they
        share counts once.
    output
        What it wrote to stdout, when that was captured.
    """

    seconds: float
    processor_seconds: float
    peak_bytes: int
    output: str


def run(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    cores: Collection[int] | None = None,
    capture: bool = False,
) -> Measured:
    """Run a command to its end, on some cores only when `cores` says so; its output goes nowhere unless captured."""
    used = _processor_seconds()
    started = perf_counter()
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if capture else subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, **(environment or {})},
        preexec_fn=(lambda: os.sched_setaffinity(0, cores)) if cores else None,
        text=True,
    )
    peak = _Peak(process.pid)
    peak.start()
    output, errors = process.communicate()
    seconds = perf_counter() - started
    peak.stop()
    if process.returncode:
        raise CommandFailed(
            f"{' '.join(command)} ended with {process.returncode}:\n{(output or '')[-1500:]}{errors[-1500:]}"
        )
    return Measured(seconds, _processor_seconds() - used, peak.bytes, output or "")


def _processor_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class _Peak(threading.Thread):
    """Looks at a process and its descendants again and again."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid = pid
        self.bytes = 0
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            self.bytes = max(self.bytes, sum(_memory(pid) for pid in _tree(self.pid)))

    def stop(self) -> None:
        self._ended.set()
        self.join()


def _tree(root: int) -> list[int]:
    """Return a process and all below it."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        waiting += children.get(pid, [])
    return found


def _memory(pid: int) -> int:
    """Return the proportional set size of a process; 0 when it has ended."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
