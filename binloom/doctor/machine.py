"""Checks of this machine: Python's packages, the decoder, Java, memory and space."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Final

from binloom.doctor.findings import Finding, Level
from ingest.errors import BinloomError
from ingest.extras import installs
from ingest.warehouse.home import HOME_VARIABLE, binloom_home
from ingest.warehouse.jvm import CLASS_ARCHIVE, find_java
from ingest.warehouse.project import is_installed, own_project
from ingest.warehouse.spark import DEFAULT_MEMORY, MEMORY_VARIABLE

SPACE_NEEDED: Final = 2 << 30
"""Bytes that are free in each folder that commands write to."""
_REPAIR: Final = "Install binloom again." if is_installed() else "Run `make setup`."
_ARCHIVES_CLASSES: Final = (
    f"Run `{sys.executable} -m ingest.landing.class_archive {own_project() / 'samples' / 'shop-mysql'}`."
    if is_installed()
    else _REPAIR
)
_MISSING: Final = "is missing"
_UNITS: Final = {"k": 10, "m": 20, "g": 30, "t": 40}


def check_machine() -> Iterator[Finding]:
    """Check what every command needs on this machine."""
    yield _packages()
    yield _decoder()
    yield from _space()


def check_java() -> Iterator[Finding]:
    """Check what a session of Spark needs on this machine."""
    yield _java()
    yield from _memory()


def spark_packages() -> Finding:
    """Return whether the packages are there that build and check tables."""
    unfit = _unfit_packages("spark")
    if not unfit:
        return Finding(
            "packages of Spark", "good", "Spark, dbt and Great Expectations have versions that binloom knows."
        )
    level: Level = "advice" if set(unfit.values()) == {_MISSING} else "error"
    message = f"build, quality, docs and demo do not work here: {_listed(unfit)}. {installs('spark')}"
    return Finding("packages of Spark", level, message)


def _packages() -> Finding:
    unfit = _unfit_packages("")
    if unfit:
        return Finding("packages", "error", f"In {sys.prefix}, {_listed(unfit)}. {_REPAIR}")
    python = ".".join(map(str, sys.version_info[:3]))
    return Finding("packages", "good", f"Python {python} has every package in a version that binloom knows.")


def _unfit_packages(extra: str) -> dict[str, str]:
    """Compare the installed packages with what binloom's own metadata asks for: of an extra, or "" of all others."""
    from packaging.requirements import Requirement

    unfit = {}
    for requirement in map(Requirement, requires("binloom") or []):
        is_general = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        is_of_extra = requirement.marker is not None and requirement.marker.evaluate({"extra": extra})
        if not (is_general if not extra else is_of_extra and not is_general):
            continue
        try:
            installed = version(requirement.name)
        except PackageNotFoundError:
            unfit[requirement.name] = _MISSING
            continue
        if not requirement.specifier.contains(installed, prereleases=True):
            unfit[requirement.name] = f"is {installed} and not {requirement.specifier}"
    return unfit


def _listed(unfit: dict[str, str]) -> str:
    return "; ".join(f"{name} {problem}" for name, problem in unfit.items())


def _decoder() -> Finding:
    from ingest.binlog import kernel

    try:
        kernel.prepare()
    except BinloomError as error:
        return Finding.of_error("decoder", error)
    except Exception as error:
        message = f"The decoder cannot be compiled here: {_first_line(error)}. {_REPAIR}"
        return Finding("decoder", "error", message)
    return Finding("decoder", "good", "The decoder is compiled for this processor.")


def decoder_error() -> str:
    """Return the reason why the decoder cannot be compiled in this process; empty if it can."""
    from ingest.binlog import kernel

    try:
        kernel.prepare()
    except Exception as error:
        return _first_line(error)
    return ""


def _first_line(error: Exception) -> str:
    # Compiling can fail in any way of numba, LLVM and the machine.
    return str(error).partition("\n")[0] or type(error).__name__


def _java() -> Finding:
    try:
        java = find_java()
    except BinloomError as error:
        return Finding.of_error("java", error)
    if not CLASS_ARCHIVE.is_file():
        message = f"{java} fits, but {CLASS_ARCHIVE} is missing: Spark starts slowly. {_ARCHIVES_CLASSES}"
        return Finding("java", "advice", message)
    return Finding("java", "good", f"{java} fits, and Spark's classes are archived.")


def _memory() -> Iterator[Finding]:
    """Compare the memory that Spark may take with the memory that this machine has."""
    text = (os.environ.get(MEMORY_VARIABLE) or DEFAULT_MEMORY).strip().lower()
    number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "")
    if not number.isdigit() or not unit:
        yield Finding("memory", "error", f"{MEMORY_VARIABLE} is {text!r}. Give a number with a unit, such as 2g.")
        return
    wanted = int(number) << _UNITS[unit]
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return  # an operating system that does not tell
    if wanted > whole:
        message = f"Spark may take {text} ({MEMORY_VARIABLE}), but the machine has {gib(whole)}. Give it less."
        yield Finding("memory", "error", message)
    else:
        yield Finding("memory", "good", f"Spark may take {text} of {gib(whole)}; {gib(free)} are unused now.")


def _space() -> Iterator[Finding]:
    places = {"home": _existing(binloom_home()), "temporary files": Path(tempfile.gettempdir())}
    for name, folder in places.items():
        free = shutil.disk_usage(folder).free
        if free < SPACE_NEEDED:
            remedy = f"Free some, or set {HOME_VARIABLE if name == 'home' else 'TMPDIR'} to a folder on another disk."
            yield Finding(f"space for {name}", "warning", f"{folder} has {gib(free)} free. {remedy}")
        else:
            yield Finding(f"space for {name}", "good", f"{folder} has {gib(free)} free.")


def _existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.is_dir())


def gib(size: int) -> str:
    """Return a number of bytes as a person reads it."""
    return f"{size / (1 << 30):.1f} GiB"
