"""Fingerprints of the raw tables: they change when anything lands, and are found without Java."""

import contextlib
import hashlib
from collections.abc import Iterable
from pathlib import Path

from ingest.warehouse.files import data_files
from ingest.warehouse.home import raw_table_dir
from ingest.warehouse.tables import RAW_TABLES, RawTable

PLAIN_TABLES = tuple(table for table in RAW_TABLES.values() if not table.partition)
"""Tables without partitions. A segment lands, changes and goes only with a row of one of them, `segments`."""


def raw_states(home: Path, tables: Iterable[RawTable] = PLAIN_TABLES) -> dict[str, str]:
    """Return a hash of the files of each table, by the table's name."""
    return {table.name: _state(raw_table_dir(table.name, home)) for table in tables}


def _state(folder: Path) -> str:
    while True:
        # Compaction merges files: when a listed file is gone, list the folder again.
        with contextlib.suppress(FileNotFoundError):
            statuses = [(path.name, path.stat()) for path in data_files(folder)]
            facts = [(name, status.st_size, status.st_mtime_ns) for name, status in statuses]
            return hashlib.sha256(repr(facts).encode()).hexdigest()[:32]
