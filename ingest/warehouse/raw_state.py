"""Fingerprint of the raw tables: it changes when anything lands, and is found without Java."""

import contextlib
import hashlib
from pathlib import Path

from ingest.warehouse.files import data_files
from ingest.warehouse.home import raw_table_dir
from ingest.warehouse.tables import DERIVED_TABLES, RAW_TABLES


def raw_state(home: Path) -> str:
    """Return a hash of the files of all raw tables.

    Tables that follow from others do not count. The folders of segments are not read: a segment lands, changes and goes
    only with a row of the table `segments`.
    """
    while True:
        # Compaction merges files: when a listed file is gone, list the folders again.
        with contextlib.suppress(FileNotFoundError):
            return _raw_state(home)


def _raw_state(home: Path) -> str:
    found = hashlib.sha256()
    for table in RAW_TABLES.values():
        if not table.partition and table not in DERIVED_TABLES:
            for path in data_files(raw_table_dir(table.name, home)):
                status = path.stat()
                found.update(f"{table.name}/{path.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return found.hexdigest()
