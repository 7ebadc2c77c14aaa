"""Runs a command and measures it: wall time, processor time, and the peak memory of all its processes together."""

import os
import resource
import subprocess
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

SAMPLE_SECONDS = 0.25


class CommandFailed(Exception):
    """A measured command ended with an error; the message contains the end of its output."""


@dataclass(frozen=True)
class Measured:
    """The measurements of a command that ran.

    Attributes
    ----------
    seconds
        Wall time from start to end.
    processor_seconds
        Processor time of the process and all its descendants, including ones that are never waited for, such as a JVM.
    peak_bytes
        Peak memory of the process and all its descendants at one time: the sum of their proportional set sizes, so
        that shared memory counts once.
    output
        Its stdout, when that was captured.
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
    """Run a command to its end, pinned to `cores` when given; its output is discarded unless captured."""
    used = _children_seconds()
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
    # Sampling misses the end of each process; the kernel's total misses processes that were not waited for.
    processor_seconds = max(_children_seconds() - used, sum(peak.processor_seconds.values()))
    return Measured(seconds, processor_seconds, peak.bytes, output or "")


def _children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class _Peak(threading.Thread):
    """Samples a process and its descendants repeatedly."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid = pid
        self.bytes = 0
        self.processor_seconds: dict[int, float] = {}
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            pids = tree(self.pid)
            self.bytes = max(self.bytes, sum(_memory(pid) for pid in pids))
            self.processor_seconds.update((pid, seconds) for pid in pids if (seconds := _own_seconds(pid)))

    def stop(self) -> None:
        self._ended.set()
        self.join()


def tree(root: int) -> list[int]:
    """Return the ids of a process and all its descendants."""
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


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process and all its descendants; shared memory counts once for each process."""
    return sum(_status(each, "VmRSS") for each in tree(pid))


def peak_bytes(pid: int) -> int:
    """Return the peak resident memory of a process since it started, or since `forget_peak`."""
    return _status(pid, "VmHWM")


def forget_peak(pid: int) -> None:
    """Reset `peak_bytes`. Source: Linux's Documentation/filesystems/proc.rst, /proc/PID/clear_refs."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def processor_seconds(pid: int) -> float:
    """Return the processor time of a process and all its descendants, in seconds."""
    return sum(_own_seconds(each) for each in tree(pid))


def _own_seconds(pid: int) -> float:
    """Return the processor time of a process in seconds; 0 when it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _status(pid: int, name: str) -> int:
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
