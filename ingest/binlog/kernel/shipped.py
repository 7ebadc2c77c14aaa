"""The kernel's machine code in a wheel: a shared library for each entry point, which needs neither numba nor LLVM.

A wheel of a platform has the folder `shipped` (`tools.wheel` makes it); a clone has not. A library is used only if it
is whole, was compiled from the source beside it, and if this machine has the features of `processor.BASELINE`.
"""

import ctypes
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from ingest.binlog.kernel import guard
from ingest.binlog.kernel.processor import fits_baseline

FOLDER: Final = Path(__file__).parent / "shipped"
MANIFEST: Final = "manifest.json"
SYMBOL: Final = "entry_point"


def shipped_address(module: str, name: str) -> int | None:
    """Return the address of an entry point in its library; None if there is no library that may be used here."""
    library = FOLDER / library_name(module, name)
    if guard.IS_ON or not _fits() or _sha256(library) != _manifest()["libraries"].get(library.name):
        return None
    return ctypes.cast(ctypes.CDLL(str(library))[SYMBOL], ctypes.c_void_p).value


def library_name(module: str, name: str) -> str:
    """Return the name of the library of an entry point."""
    return f"{module}.{name}.so"


def manifest(libraries: list[Path]) -> dict[str, Any]:
    """Return what is written beside libraries: the source that they were compiled from, and their checksums."""
    return {"source": source_digest(), "libraries": {path.name: _sha256(path) for path in libraries}}


@cache
def source_digest() -> str:
    """Return a hash of the kernel's source."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@cache
def _fits() -> bool:
    return _manifest().get("source") == source_digest() and fits_baseline()


@cache
def _manifest() -> Mapping[str, Any]:
    try:
        found: Mapping[str, Any] = json.loads((FOLDER / MANIFEST).read_text())
    except (OSError, ValueError):
        return {}
    return found


def _sha256(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""
