"""Fingerprint of the raw tables: it changes when anything lands, and is found without Java."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from ingest.warehouse.home import raw_table_dir
from ingest.warehouse.tables import RAW_TABLES


def raw_state(home: Path) -> str:
    """Return a hash of the files of all raw tables.

    The folders of segments are not read: a segment lands, changes and goes only with a row of the table `segments`.
    """
    found = hashlib.sha256()
    for table in RAW_TABLES.values():
        if not table.partition:
            for name, size, modified in sorted(_files(raw_table_dir(table.name, home))):
                found.update(f"{table.name}/{name} {size} {modified}\n".encode())
    return found.hexdigest()


def _files(folder: Path) -> Iterator[tuple[str, int, int]]:
    try:
        entries = os.scandir(folder)
    except FileNotFoundError:
        return
    with entries:
        for entry in entries:
            if not entry.name.startswith((".", "_")):
                status = entry.stat()
                yield entry.name, status.st_size, status.st_mtime_ns
