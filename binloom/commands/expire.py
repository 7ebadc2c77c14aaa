"""`binloom expire`: drop the rows of the oldest binlog files of a source."""

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from binloom.commands.changed_source import changed_source, delete_leftovers, home_of, whole_log
from binloom.commands.output import human, print_line, print_table, progress, say
from ingest.errors import EXIT_DONE, UsageError
from ingest.warehouse.record import SourceRecord
from recover.retention.carried import CarriedTable, land_carried, read_all, tables_at
from recover.retention.needed import assert_built, expiring, keep_needed

if TYPE_CHECKING:
    from ingest.ddl.shapes import Shapes
    from ingest.landing.expiry import OldFile


@dataclass(frozen=True)
class Limit:
    """The place before which files expire.

    Attributes
    ----------
    time
        Files whose last event is older expire; None: no such limit.
    file
        Files before this one expire, `EPOCH/FILE` if several epochs have it; None: no such limit.
    """

    time: datetime | None = None
    file: str | None = None


def expire_files(source: str, limit: Limit, *, apply: bool, drop_uncertain: bool) -> int:
    """Print which files of a source expire, which stay and why; with `apply`, drop their rows.

    Parameters
    ----------
    source
        Name of the source.
    limit
        Files before it expire.
    apply
        Whether to drop them.
    drop_uncertain
        Whether to continue although the last values of some rows are uncertain.
    """
    from ingest.landing.expiry import expire

    home = home_of(source, "Files of a cluster's warehouse do not expire with this command.")
    with ExitStack() as stack:
        changed = stack.enter_context(changed_source(source, home, apply=apply))
        record, landing = changed.record, changed.landing
        files = _files_before(limit, record)
        if expiring(files):
            spill = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="binloom-expire-")))
            with progress("reading the log"):
                log = whole_log(home, spill)
                keep_needed(log.connection, source, files, home)
                assert_built(log.connection, source, expiring(files), home)
        _print_files(source, files)
        if going := expiring(files):
            first_kept = files[len(going)]
            shapes = _shapes(record, home, first_kept)
            tables = tables_at(log.connection, record, home, first_kept, shapes)
            with progress(f"reading the rows at the beginning of {first_kept.binlog_file}") as advance:
                if landing is None:
                    read_all(tables)
                else:
                    land_carried(
                        landing,
                        tables,
                        going,
                        first_kept,
                        shapes,
                        may_lose_uncertain=drop_uncertain,
                        progress=lambda table, rows: advance(rows, rows),
                    )
                    expire(landing, going)
            _print_tables(tables, first_kept)
        if landing is None:
            say("nothing was dropped: --apply drops it." if going else "nothing expires.")
        else:
            delete_leftovers(landing)
            say("`binloom build` removes the rows from the marts." if going else "nothing expires.")
    return EXIT_DONE


def _shapes(record: SourceRecord, home: Path, first_kept: "OldFile") -> "Shapes":
    from ingest.landing.schema_history import SchemaHistory

    history = SchemaHistory.load(record, home)
    return history.shapes_before(first_kept.epoch, first_kept.binlog_file)


def _print_files(source: str, files: Sequence["OldFile"]) -> None:
    if not files:
        print_line(f"{source} has no landed files.")
        return
    rows = [
        (
            file.binlog_file if file.epoch == 0 else f"{file.epoch}/{file.binlog_file}",
            human(file.last_event_at),
            file.transactions,
            file.row_events,
            "expires" if file.why_kept is None else f"stays: {file.why_kept}",
        )
        for file in files
    ]
    print_table(("file", "last event", "transactions", "row events", "decision"), rows)


def _print_tables(tables: Sequence[CarriedTable], first_kept: "OldFile") -> None:
    print_line()
    print_line(f"rows at the beginning of {first_kept.binlog_file}, which a baseline keeps:")
    rows = [
        (str(table.table), table.rows, "all rows" if table.is_complete else "known rows", table.uncertain or "")
        for table in tables
    ]
    print_table(("table", "rows", "these are", "uncertain"), rows)


def _files_before(limit: Limit, record: SourceRecord) -> "list[OldFile]":
    from ingest.landing.expiry import files_by_age, keep_from

    files = files_by_age(record, limit.time or datetime.max.replace(tzinfo=UTC))
    if limit.file is None:
        return files
    epoch, _, name = limit.file.rpartition("/")
    found = [file for file in files if file.binlog_file == name and epoch in ("", str(file.epoch))]
    if len(found) != 1:
        listed = ", ".join(f"{file.epoch}/{file.binlog_file}" for file in found or files[-3:])
        finding = "has several files" if found else "has no landed file"
        raise UsageError(
            f"Source {record.source_id!r} {finding} {limit.file!r}.",
            hint=f"Give one with its epoch: {listed}." if listed else "Its files are not landed, or have expired.",
        )
    keep_from(files, found[0], found[0].why_kept or "it is the file of --before-file")
    return files


def limit_of(older_than: str | None, before: str | None, before_file: str | None) -> Limit:
    """Return the limit of the options `--older-than`, `--before` and `--before-file`, one of which must be given.

    Raises
    ------
    UsageError
        None or several of them are given, or one is not a duration or time.
    """
    from datetime import timedelta

    from binloom.commands.units import seconds
    from recover.selection.filters import moment

    given = [one for one in (older_than, before, before_file) if one is not None]
    if len(given) != 1:
        raise UsageError(
            f"{'Several' if given else 'None'} of --older-than, --before and --before-file are given.",
            hint="Give one of them, such as --older-than 30d.",
        )
    if older_than is not None:
        return Limit(datetime.now(UTC) - timedelta(seconds=seconds(older_than, "--older-than")))
    return Limit(file=before_file) if before is None else Limit(moment(before, "--before"))
