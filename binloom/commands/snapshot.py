"""`binloom snapshot`: land a schema snapshot of a source."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from binloom.commands.output import print_line, progress, say
from ingest.errors import EXIT_DONE
from ingest.words import counted

if TYPE_CHECKING:
    from ingest.landing.snapshots import SnapshotResult
    from ingest.sources.servers.address import ServerAddress
    from ingest.sources.snapshots.snapshot import SchemaSnapshot


def snapshot_from_server(source: str, address: "ServerAddress", masks: Path | None = None) -> int:
    """Land the schema of a live server, after checking that its binlog settings are sufficient for binloom."""
    from ingest.landing import land_snapshot
    from ingest.sources.servers.information_schema import take_snapshot
    from ingest.sources.servers.server import Server
    from ingest.sources.servers.server_check import require_usable

    address = replace(address, warn=lambda sentence: say(f"warning: {sentence}"))
    with progress(f"reading the schema of {address}"), Server(address) as server:
        findings = require_usable(server)
        snapshot = take_snapshot(server)
        landed = land_snapshot(source, snapshot, masks=masks)
    for finding in findings:
        say(f"{finding.level}: {finding.message}")
    _print_snapshot(source, snapshot, landed)
    return EXIT_DONE


def snapshot_from_files(source: str, directory: Path, masks: Path | None = None) -> int:
    """Land the schema from files in a folder."""
    from ingest.landing import land_snapshot
    from ingest.sources.snapshots.snapshot_files import read_snapshot_dir

    snapshot = read_snapshot_dir(directory)
    _print_snapshot(source, snapshot, land_snapshot(source, snapshot, masks=masks))
    return EXIT_DONE


def snapshot_from_ddl(
    source: str,
    path: Path,
    schema: str | None,
    binlog_file: str | None,
    binlog_pos: int | None,
    masks: Path | None = None,
) -> int:
    """Land the schema that results from a file of DDL statements."""
    from ingest.landing import land_snapshot
    from ingest.sources.snapshots.snapshot_ddl import read_snapshot_ddl

    snapshot = read_snapshot_ddl(path, schema, binlog_file, binlog_pos)
    landed = land_snapshot(source, snapshot, masks=masks)
    _print_snapshot(source, snapshot, landed)
    return EXIT_DONE


def _print_snapshot(source: str, snapshot: "SchemaSnapshot", landed: "SnapshotResult") -> None:
    verb = "landed" if landed.is_new else "already landed"
    where = f", true at {snapshot.binlog_file}:{snapshot.binlog_pos}" if snapshot.binlog_file else ""
    print_line(
        f"{source}: {verb} a schema snapshot of {counted(landed.tables, 'table')} with"
        f" {counted(landed.columns, 'column')} and {counted(landed.foreign_keys, 'foreign key column')}{where}"
    )
    if snapshot.doubt is not None:
        say(snapshot.doubt)
    if landed.renamed_rows:
        rows = "1 landed row has" if landed.renamed_rows == 1 else f"{landed.renamed_rows:,} landed rows have"
        print_line(f"{source}: {rows} other names now; the next build writes them")
