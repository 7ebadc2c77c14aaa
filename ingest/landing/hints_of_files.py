"""The decoder's hints for files that are not landed: from a snapshot and from the files' own statements."""

import contextlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ingest.binlog.byte_files import LogPath, folder_of
from ingest.binlog.events.hints import SchemaHints
from ingest.errors import BinloomError
from ingest.landing.schema_history import SchemaHistory
from ingest.sources.files.directory import BinlogPath, binlog_path
from ingest.sources.snapshots.snapshot import SchemaSnapshot

if TYPE_CHECKING:
    from ingest.binlog.scan import Scan


def hints_by_file(
    snapshot: SchemaSnapshot | None, paths: Iterable[LogPath], skip_bad_checksum: bool = False
) -> dict[LogPath, SchemaHints | None]:
    """Return the hints from a snapshot and the files' own statements, for files that are decoded but not landed.

    Unreadable files give no hints.
    """
    from ingest.binlog.scan import scan_binlog

    paths, scans = list(paths), {}
    for path in paths:
        with contextlib.suppress(BinloomError, OSError):
            scans[path] = scan_binlog(path, skip_bad_checksum=skip_bad_checksum)
    return dict.fromkeys(paths) | hints_of_scans(snapshot, scans)


def hints_of_scans(
    snapshot: SchemaSnapshot | None, scans: Mapping[LogPath, "Scan"]
) -> dict[LogPath, SchemaHints | None]:
    """Return the hints for each file from a snapshot and the statements that scans found.

    Files with the same folder and base name belong to one log.
    """
    logs: dict[tuple[Path | None, str], list[BinlogPath]] = {}
    for path in scans:
        file = binlog_path(path)
        logs.setdefault((folder_of(path), file.base), []).append(file)
    found: dict[LogPath, SchemaHints | None] = {}
    for files in logs.values():
        history = SchemaHistory.of_snapshot(snapshot)
        for file in files:
            history.add_scan(0, file.name, scans[file.path])
        found |= dict.fromkeys((file.path for file in files), history.hints(0))
    return found
