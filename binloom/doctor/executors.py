"""Checks of the executors of a Spark cluster: a session is started, and each executor tells what it has."""

import os
import platform
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from binloom.doctor.clocks import clock_finding
from binloom.doctor.findings import Finding
from binloom.doctor.machine import SPACE_NEEDED, decoder_error, gib
from ingest.errors import BinloomError
from ingest.warehouse.fingerprint import code_fingerprint
from ingest.warehouse.home import binloom_home
from ingest.warehouse.masters import is_local, reason_of
from ingest.warehouse.spark import SparkLaunch, spark_settings

if TYPE_CHECKING:
    from pyspark import SparkContext

_PACKAGES: Final = ("pyarrow", "numpy", "numba", "llvmlite")
_ROUNDS: Final = 5
_TASKS_OF_AN_EXECUTOR: Final = 4


@dataclass(frozen=True)
class Facts:
    """Facts about a process that lands.

    Attributes
    ----------
    place
        Host and folder of the executor.
    code
        Fingerprint of binloom's code.
    versions
        Versions of Python and the packages of the decoder.
    decoder_error
        Reason why the decoder cannot be compiled; empty if it can.
    home_inode
        Number of the home in its file system; None if it does not exist.
    can_write
        Whether files of the home can be written.
    free
        Bytes that are free, by folder.
    clock
        Seconds since 1970.
    """

    place: str
    code: str
    versions: tuple[tuple[str, str], ...]
    decoder_error: str
    home_inode: int | None
    can_write: bool
    free: tuple[tuple[str, int], ...]
    clock: float


def check_executors() -> Iterator[Finding]:
    """Start a session on the cluster that the settings name, and check its executors. Without a cluster, do nothing."""
    from py4j.protocol import Py4JError

    home = binloom_home()
    if is_local(spark_settings(home)["spark.master"]):
        return
    if not home.is_dir():
        message = f"{home} does not exist, so the executors were not checked. Create it, and run this command again."
        yield Finding("executors", "advice", message)
        return
    try:
        with SparkLaunch(home, short_lived=True) as launch:
            yield from checked(launch.context(), home, facts(home))
    except BinloomError as error:
        yield Finding.of_error("executors", error)
    except Py4JError as error:
        remedy = "Install the same version of binloom on each machine, and set PYSPARK_PYTHON to its Python there."
        yield Finding("executors", "error", f"The executors cannot run binloom: {reason_of(error)}. {remedy}")


def checked(context: "SparkContext", home: Path, here: Facts) -> Iterator[Finding]:
    """Compare the executors of a session with the facts about this process."""
    before, known = time.time(), _number_of_executors(context)
    there: dict[str, Facts] = {}
    for _ in range(_ROUNDS):
        tasks = known * _TASKS_OF_AN_EXECUTOR
        told = context.parallelize(range(tasks), tasks).map(lambda _: facts(home)).collect()
        there |= {one.place: one for one in told}
        if len(there) >= known:
            break
    if len(there) < known:
        message = f"{len(there)} of {known} executors answered; the others were not checked."
        yield Finding("executors", "advice", f"{message} Run `binloom doctor` again when they are idle.")
    problems = [finding for one in there.values() for finding in _differences(one, here, home)]
    yield from problems
    if not problems:
        message = f"{len(there)} executors have the code, the packages, the decoder and the home of this process."
        yield Finding("executors", "good", message)
    # Each clock was read at some moment since.
    yield from (
        clock
        for one in there.values()
        if (clock := clock_finding("executor clock", one.place, one.clock, before)).level != "good"
    )


def facts(home: Path) -> Facts:
    """Return the facts about this process."""
    return Facts(
        place=f"{socket.gethostname()}:{os.getcwd()}",
        code=code_fingerprint(),
        versions=(("Python", platform.python_version()), *((name, _version(name)) for name in _PACKAGES)),
        decoder_error=decoder_error(),
        home_inode=home.stat().st_ino if home.is_dir() else None,
        can_write=os.access(home / "warehouse", os.R_OK | os.W_OK | os.X_OK),
        free=tuple(
            (str(folder), shutil.disk_usage(folder).free)
            for folder in (home, Path(tempfile.gettempdir()), Path.cwd())
            if folder.is_dir()
        ),
        clock=time.time(),
    )


def _version(package: str) -> str:
    """Return the version of a package; numba is not there if the decoder came compiled."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


def _differences(there: Facts, here: Facts, home: Path) -> Iterator[Finding]:
    def finding(level: Any, fact: str, remedy: str) -> Finding:
        return Finding("executors", level, f"The executor at {there.place} {fact}. {remedy}")

    if there.code != here.code:
        fact = f"has another version of binloom (code {there.code}) than this process ({here.code})"
        yield finding("error", fact, "Install the same version on each machine, and restart the workers.")
    others = [
        f"{name} {found} and not {wanted}"
        for (name, wanted), (_, found) in zip(here.versions, there.versions, strict=True)
        if found != wanted
    ]
    if others:
        yield finding("warning", f"has {', '.join(others)}", "Run `make setup` there.")
    if there.decoder_error:
        yield finding("error", f"cannot compile the decoder: {there.decoder_error}", "Run `make setup` there.")
    if there.home_inode is None:
        yield finding("error", f"has no folder {home}", "Mount it under the same path.")
    elif there.home_inode != here.home_inode:
        yield finding("error", f"has another folder at {home}", "Mount the same file system under the same path.")
    elif not there.can_write:
        yield finding("error", f"cannot write to {home / 'warehouse'}", "Start the worker as the owner of the home.")
    for folder, free in there.free:
        if free < SPACE_NEEDED:
            yield finding("warning", f"has {gib(free)} free in {folder}", "Free some.")


def _number_of_executors(context: Any) -> int:
    # The driver is in this list too.
    return max(1, int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1)
