"""Spark tables of schema `binlog_raw`: what they are, and how segments of binlog files get into them.

>>> from ingest.landing import IngestOptions, ingest, land_snapshot, status
>>> from ingest.sources.directory import find_binlogs
>>> result = ingest("shop", find_binlogs(Path("/var/lib/mysql")))  # doctest: +SKIP
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ingest.landing.land import IngestOptions, IngestResult, ingest
    from ingest.landing.overview import status
    from ingest.landing.snapshots import land_snapshot

__all__ = ["IngestOptions", "IngestResult", "ingest", "land_snapshot", "status"]

_HOMES = {
    "IngestOptions": "land",
    "IngestResult": "land",
    "ingest": "land",
    "land_snapshot": "snapshots",
    "status": "overview",
}


def __getattr__(name: str) -> Any:
    # Workers and `binloom status` load only the parts that they need.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
