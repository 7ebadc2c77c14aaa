"""`binloom snapshot` and `ingest`: what landed, in words."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ingest.commands.output import human_bytes, print_line, progress, say
from ingest.errors import EXIT_DONE

if TYPE_CHECKING:
    from ingest.binlog import TableFilter
    from ingest.landing import IngestResult
    from ingest.landing.snapshots import SnapshotResult
    from ingest.sources.server import ServerAddress
    from ingest.sources.snapshot import SchemaSnapshot


def snapshot_from_server(source: str, address: "ServerAddress") -> int:
    """Land the schema of a live server, after checking that its binlog says what binloom needs."""
    from ingest.landing import land_snapshot
    from ingest.sources.information_schema import take_snapshot
    from ingest.sources.server import Server, check_server, require_usable

    address = replace(address, warn=lambda sentence: say(f"warning: {sentence}"))
    with progress(f"reading the schema of {address}"), Server(address) as server:
        findings = check_server(server)
        require_usable(server, findings)
        snapshot = take_snapshot(server)
        landed = land_snapshot(source, snapshot)
    for finding in findings:
        say(f"{finding.level}: {finding.message}")
    _print_snapshot(source, snapshot, landed)
    return EXIT_DONE


def snapshot_from_files(source: str, directory: Path) -> int:
    """Land the schema that files in a folder hold."""
    from ingest.landing import land_snapshot
    from ingest.sources.snapshot_files import read_snapshot_dir

    snapshot = read_snapshot_dir(directory)
    _print_snapshot(source, snapshot, land_snapshot(source, snapshot))
    return EXIT_DONE


def snapshot_from_ddl(
    source: str, path: Path, schema: str | None, binlog_file: str | None, binlog_pos: int | None
) -> int:
    """Land the schema that a file of DDL statements comes to."""
    from ingest.landing import land_snapshot
    from ingest.sources.snapshot_ddl import read_snapshot_ddl

    snapshot = read_snapshot_ddl(path, schema, binlog_file, binlog_pos)
    landed = land_snapshot(source, snapshot)
    _print_snapshot(source, snapshot, landed)
    return EXIT_DONE


def _print_snapshot(source: str, snapshot: "SchemaSnapshot", landed: "SnapshotResult") -> None:
    verb = "landed" if landed.is_new else "already landed"
    where = f", true at {snapshot.binlog_file}:{snapshot.binlog_pos}" if snapshot.binlog_file else ""
    print_line(
        f"{source}: {verb} a schema snapshot of {landed.tables} tables with {landed.columns} columns"
        f" and {landed.foreign_keys} foreign key columns{where}"
    )


def ingest_files(
    source: str,
    directory: Path,
    files: Sequence[str] | None,
    tables: "TableFilter | None",
    new_epoch: bool,
    skip_bad_checksum: bool,
    again: bool = False,
) -> int:
    """Land binlog files of a folder; print what came of it, and each problem on stderr."""
    result = land_files(source, directory, files, tables, new_epoch, skip_bad_checksum, again)
    nothing = "nothing is to be landed again: segments_to_land_again lists no segment of these files"
    print_line(f"{source}: {nothing if again and not result.files else summary(result)}")
    sys.stdout.flush()
    for warning in result.warnings:
        say(warning)
    for problem in result.problems:
        say(str(problem.error))
    return result.exit_code


def land_files(
    source: str,
    directory: Path,
    files: Sequence[str] | None = None,
    tables: "TableFilter | None" = None,
    new_epoch: bool = False,
    skip_bad_checksum: bool = False,
    again: bool = False,
) -> "IngestResult":
    """Land binlog files of a folder under a bar that shows how far it is."""
    from ingest.landing import IngestOptions, ingest
    from ingest.sources.directory import find_binlogs

    found = find_binlogs(directory, files)
    with progress(f"landing {source}") as advance:
        return ingest(
            source,
            found,
            IngestOptions(tables=tables, new_epoch=new_epoch, skip_bad_checksum=skip_bad_checksum, again=again),
            progress=lambda done, total, what: advance(done, total),
        )


def summary(result: "IngestResult") -> str:
    """Say what an ingest came to, in a line."""
    if not result.segments and not result.problems:
        return f"nothing new, all {result.files} files are landed ({result.seconds:.1f} s)"
    skipped = f", {result.files_skipped} skipped as landed before" if result.files_skipped else ""
    broken = f", {len(result.problems)} with problems" if result.problems else ""
    return (
        f"{result.row_events} row changes in {result.transactions} transactions landed,"
        f" {human_bytes(result.bytes)} of {result.files} files{skipped}{broken} ({result.seconds:.1f} s)"
    )


def compact_source(source: str, keep_seconds: float) -> int:
    """Put the small segments and files of a source together; print what came of it."""
    from ingest.landing import status
    from ingest.landing.compact import compact_closed_files, merge_logs, remove_replaced
    from ingest.landing.session import binloom_home
    from ingest.landing.stream import StreamLanding

    home = binloom_home()
    status(source, home)  # A name that nothing was landed under is a mistake.
    with progress(f"compacting {source}"), StreamLanding(source, home) as landing:
        compacted = compact_closed_files(landing)
        removed = remove_replaced(landing, keep_seconds)
        merged = merge_logs(landing)
        kept = len(landing.record.replaced)
    later = f"; the files of {kept} are kept until later" if kept else ""
    print_line(
        f"{source}: {len(compacted)} files compacted, {removed} small segments removed{later}, "
        f"{merged} files of states merged"
    )
    return EXIT_DONE
