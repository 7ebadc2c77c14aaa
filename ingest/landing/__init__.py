"""Landing: read binlog files and write their content as segments of the raw tables.

>>> from ingest.landing import IngestOptions, ingest, land_snapshot
>>> from ingest.sources.files.directory import find_binlogs
>>> result = ingest("shop", find_binlogs(Path("/var/lib/mysql")))  # doctest: +SKIP
"""

from typing import TYPE_CHECKING

from ingest.lazy import lazy_names

if TYPE_CHECKING:
    from ingest.landing.ingest_files import ingest
    from ingest.landing.options import IngestOptions, IngestResult
    from ingest.landing.snapshots import land_snapshot

__all__ = ["IngestOptions", "IngestResult", "ingest", "land_snapshot"]

# Workers load only the modules that they need.
__getattr__ = lazy_names(
    __name__,
    {
        "IngestOptions": "ingest.landing.options",
        "IngestResult": "ingest.landing.options",
        "ingest": "ingest.landing.ingest_files",
        "land_snapshot": "ingest.landing.snapshots",
    },
)
