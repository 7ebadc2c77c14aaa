"""Landing: read binlog files and write their content as segments of the raw tables.

>>> from ingest.landing import IngestOptions, ingest, land_snapshot
>>> from ingest.sources.directory import find_binlogs
>>> result = ingest("shop", find_binlogs(Path("/var/lib/mysql")))  # doctest: +SKIP
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ingest.landing.ingest_files import ingest
    from ingest.landing.options import IngestOptions, IngestResult
    from ingest.landing.snapshots import land_snapshot

__all__ = ["IngestOptions", "IngestResult", "ingest", "land_snapshot"]

_HOMES = {
    "IngestOptions": "options",
    "IngestResult": "options",
    "ingest": "ingest_files",
    "land_snapshot": "snapshots",
}


def __getattr__(name: str) -> Any:
    # Lazy, so that workers load only the modules that they need.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
