"""Checks of the folder that binloom keeps its data in."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from binloom.doctor.findings import Finding
from ingest.warehouse.home import HOME_VARIABLE, binloom_home, has_landed
from ingest.warehouse.locks import landing_processes
from ingest.warehouse.privacy import ENTRIES, private_umask
from ingest.warehouse.spark import metastore_holder

# A cache has compiled code only.
_WITH_ROWS = ENTRIES - {"cache", "conf"}


def check_home() -> Iterator[Finding]:
    """Check that the home can be written, that others cannot read it, and which processes use it."""
    home = binloom_home()
    if not home.is_dir():
        yield _to_be_created(home)
        return
    yield _rights(home)
    yield from _readers(home)
    yield from _processes(home)


def _to_be_created(home: Path) -> Finding:
    parent = next(path for path in home.parents if path.exists())
    if _is_shut(parent):
        remedy = f"Set {HOME_VARIABLE} to another folder."
        return Finding("home", "error", f"{home} does not exist, and this user cannot create it in {parent}. {remedy}")
    message = f"{home} does not exist; the first command that lands something creates it."
    return Finding("home", "good", message)


def _rights(home: Path) -> Finding:
    shut = [path for path in (home, home / "warehouse", home / "locks", home / "metastore") if _is_shut(path)]
    if shut:
        remedy = f"Run binloom as the owner of the folder, or set {HOME_VARIABLE} to another one."
        return Finding("home", "error", f"{_listed(shut)} cannot be written by this user. {remedy}")
    landed = "has landed data" if has_landed(home) else "has no landed data yet"
    return Finding("home", "good", f"{home} can be written, and {landed}.")


def _is_shut(path: Path) -> bool:
    return path.exists() and not os.access(path, os.R_OK | os.W_OK | os.X_OK)


def _readers(home: Path) -> Iterator[Finding]:
    """Look for folders that users can read who must not; see `ingest.warehouse.privacy`."""
    folders = [path for path in home.iterdir() if path.name in _WITH_ROWS and path.is_dir() and not path.is_symlink()]
    open_folders = [path for path in folders if stat.S_IMODE(path.stat().st_mode) & private_umask()]
    if open_folders:
        message = f"Other users of this machine can read {_listed(open_folders)}."
        yield Finding("privacy", "warning", f"{message} Run `chmod go-rwx` on them, or any command that lands.")
    elif folders:
        yield Finding("privacy", "good", "Other users of this machine cannot read the data.")


def _processes(home: Path) -> Iterator[Finding]:
    for name, pid in landing_processes(home):
        message = f"Process {pid} is landing a source ({name}); a second command for this source will be refused."
        yield Finding("in use", "good", message)
    holder = metastore_holder(home)
    if holder is not None:
        message = f"Process {holder} holds the metastore; ingest, quality, build and dbt wait or fail until it ends."
        yield Finding(
            "in use", "warning", f"{message} `follow`, `query`, `history`, `state` and `undo` work beside it."
        )


def _listed(paths: list[Path]) -> str:
    return ", ".join(map(str, paths))
