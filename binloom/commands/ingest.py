"""`binloom ingest`: land binlog files, and print a summary."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from binloom.commands.output import human_bytes, print_line, progress, say
from ingest.words import counted

if TYPE_CHECKING:
    from ingest.binlog import TableFilter
    from ingest.landing import IngestResult


def ingest_files(
    source: str,
    directory: Path | str,
    files: Sequence[str] | None,
    tables: "TableFilter | None",
    new_epoch: bool,
    skip_bad_checksum: bool,
    again: bool = False,
    masks: Path | None = None,
) -> int:
    """Land binlog files of a folder; print a summary, and each problem to stderr."""
    result = land_files(source, directory, files, tables, new_epoch, skip_bad_checksum, again, masks)
    nothing = "nothing to land again: segments_to_land_again lists no segment of these files"
    print_line(f"{source}: {nothing if again and not result.files else summary(result)}")
    sys.stdout.flush()
    for warning in result.warnings:
        say(warning)
    for problem in result.problems:
        say(str(problem.error))
    return result.exit_code


def land_files(
    source: str,
    directory: Path | str,
    files: Sequence[str] | None = None,
    tables: "TableFilter | None" = None,
    new_epoch: bool = False,
    skip_bad_checksum: bool = False,
    again: bool = False,
    masks: Path | None = None,
) -> "IngestResult":
    """Land binlog files of a folder with a progress bar."""
    from ingest.landing import IngestOptions, ingest
    from ingest.sources.files.directory import find_binlogs

    found = find_binlogs(directory, files)
    options = IngestOptions(
        tables=tables, new_epoch=new_epoch, skip_bad_checksum=skip_bad_checksum, again=again, masks=masks
    )
    with progress(f"landing {source}") as advance:
        return ingest(
            source,
            found,
            options,
            progress=lambda done, total, what: advance(done, total),
        )


def summary(result: "IngestResult") -> str:
    """Return the result of an ingest in one line."""
    if not result.segments and not result.problems:
        landed_files = "its file is" if result.files == 1 else f"all {result.files:,} files are"
        return f"nothing new, {landed_files} landed ({result.seconds:.1f} s)"
    skipped = f", {result.files_skipped} skipped as landed before" if result.files_skipped else ""
    broken = f", {len(result.problems)} with problems" if result.problems else ""
    return (
        f"{counted(result.row_events, 'row change')} in {counted(result.transactions, 'transaction')} landed,"
        f" {human_bytes(result.bytes)} of {counted(result.files, 'file')}{skipped}{broken} ({result.seconds:.1f} s)"
    )
