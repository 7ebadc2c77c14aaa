"""The log that a command asks: the warehouse or the cluster, or the files on its command line."""

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict

from binloom.commands.build_record import has_built_everything
from binloom.commands.given_definitions import GivenDefinitions
from binloom.commands.named_files import binlogs
from binloom.commands.output import say
from binloom.commands.running import hide_pandas_from_arrow
from ingest.errors import EXIT_DONE, UsageError, unknown_source
from ingest.warehouse.home import binloom_home
from ingest.warehouse.spark import metastore_holder
from recover.selection.condition import Selection
from recover.selection.emptiness import NothingSelectedError, OutsideTheLogError
from recover.selection.filters import Filters
from recover.sources.cluster import is_cluster_target
from recover.sources.landed_marts import is_built_in_parts, is_unbuilt
from recover.sources.log import VIEWS, Log, listed
from recover.timeline.baselines import VIEWS as BASELINE_VIEWS
from recover.timeline.masked_columns import masks_in_filters
from recover.timeline.table_log import MARTS

if TYPE_CHECKING:
    from ingest.binlog.byte_files import LogPath
    from ingest.sources.snapshot import SchemaSnapshot

_NOTHING_GIVEN: Final = GivenDefinitions()


def open_log(
    filters: Filters, files: Sequence[Path] | None, more: Sequence[Path] | None, given: GivenDefinitions
) -> Log:
    """Return the log of the warehouse, or of files that are decoded now.

    Parameters
    ----------
    filters
        Filters of the row changes; only these rows of files are decoded, and only these partitions of the warehouse
        are read.
    files, more
        Files of `--files`, and the words after it that are not options: a shell puts them there for a pattern.
    given
        Definitions that the files do not contain.

    Raises
    ------
    UsageError
        Options that do not fit each other.
    """
    if not files:
        assert_files(more, given)
        return Log.of_cluster() if is_cluster_target() else _warehouse(VIEWS, filters=filters)
    hide_pandas_from_arrow()
    named = binlogs([*files, *(more or ())])
    return Log.of_files(named, filters, **origin(filters.sources, given, named))


def open_full_log(
    sources: Sequence[str],
    files: Sequence[Path] | None,
    more: Sequence[Path] | None,
    given: GivenDefinitions,
    *,
    table: str | None = None,
    spill: Path | None = None,
) -> Log:
    """Return the log of the warehouse with the marts of `table_log`, of the cluster, or of everything in files.

    Parameters
    ----------
    sources
        Names of sources that were given.
    files, more, given
        As in `open_log`.
    table
        The only table of the files whose rows are needed.
    spill
        Folder for what does not fit into memory.

    Raises
    ------
    UsageError
        Options that do not fit each other.
    """
    if not files:
        assert_files(more, given)
        if is_cluster_target():
            return Log.of_cluster()
        return _warehouse((*VIEWS, *MARTS, *BASELINE_VIEWS), spill)
    if table is not None and Path(table).is_file():
        raise UsageError(f"{table} is a file, not a table.", hint="Give the table before --files.")
    hide_pandas_from_arrow()
    named = binlogs([*files, *(more or ())])
    return Log.of_whole_files(named, table, spill=spill, **origin(sources, given, named))


@contextmanager
def spilling_log(
    sources: Sequence[str],
    files: Sequence[Path] | None = None,
    more: Sequence[Path] | None = None,
    given: GivenDefinitions = _NOTHING_GIVEN,
) -> Iterator[Log]:
    """Give the log of `open_full_log` with all that an undo needs. What does not fit into memory goes to files."""
    with tempfile.TemporaryDirectory(prefix="binloom-undo-") as spill:
        yield open_full_log(sources, files, more, given, spill=Path(spill))


def report_problems(log: Log) -> int:
    """Tell why rows of damaged files are missing; return the exit code."""
    for problem in log.problems:
        say(str(problem))
    return max((problem.exit_code for problem in log.problems), default=EXIT_DONE)


def report_notes(selection: Selection) -> None:
    """Tell what comparisons of a condition mean for rows whose column has another type."""
    for note in selection.notes:
        say(note)


@contextmanager
def problems_first(log: Log) -> Iterator[None]:
    """Report damaged files before an error is printed: the rows that they lack may be the reason for it."""
    try:
        yield
    except UsageError as error:
        error.exit_code = max(error.exit_code, report_problems(log))
        raise


def report_quarantine(log: Log, filters: Filters) -> None:
    """Tell how many rows in quarantine an answer lacks."""
    if missing := log.quarantined(filters):
        say(
            f"row events that are in quarantine are not shown: {listed(missing)}."
            " docs/questions.md tells how to see them."
        )


def report_doubts(log: Log, selection: Selection) -> None:
    """Tell which of the filtered columns are masked or have other types, and which sources have lost older files."""
    filters = selection.filters
    if (sentence := masks_in_filters(log, filters)) is not None:
        say(sentence)
    report_notes(selection)
    report_beginning(log, filters.sources, filters.since)


def report_nothing(log: Log, selection: Selection) -> int:
    """Tell why nothing is selected; return the exit code.

    Raises
    ------
    UsageError
        A name, place or time does not exist, or all rows are in quarantine: that is a mistake. Filters that fit
        nothing are an answer.
    """
    reason = log.why_nothing(selection)
    if not isinstance(reason, NothingSelectedError) or isinstance(reason, OutsideTheLogError):
        raise reason
    report_quarantine(log, selection.filters)
    say(str(reason))
    return report_problems(log)


def report_beginning(log: Log, sources: Sequence[str], since: datetime | None = None) -> None:
    """Print where the log of each source begins if older files expired and the answer may need them.

    Without `sources`, check all sources.
    """
    for source, beginning in log.beginnings.items():
        is_later = since is not None and beginning.last_event_at is not None and since > beginning.last_event_at
        if source in (sources or (source,)) and not is_later:
            say(str(beginning))


def report_end(log: Log) -> None:
    """Report that the log continues after the given files, so that the answer lacks later changes."""
    if log.goes_on_after is not None:
        say(f"the log goes on after {log.goes_on_after}, in files that were not given: later changes are not known.")


def report_writer(home: Path) -> None:
    """Tell if a build of another process may be running: it replaces one mart after the other.

    That matters to who reads the marts alone, without what has landed since the last build.
    """
    holder = metastore_holder(home)
    if holder is not None and not _is_own_java(holder):
        say(
            f"another process (pid {holder}) uses the warehouse. If it is a build, each table is read as it was before"
            " or as it is now, and tables may lack rows that others have."
        )


def _is_own_java(process: int) -> bool:
    """Return whether a process is the Java process of our own session, as in the demo."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    parent = stat.rpartition(")")[2].split()[1]
    return int(parent) == os.getpid()


def _warehouse(views: Iterable[tuple[str, str]], spill: Path | None = None, filters: Filters | None = None) -> Log:
    home = binloom_home()
    log = Log.of_warehouse(
        home,
        dict.fromkeys(views),
        spill=spill,
        tell=say,
        filters=filters,
        is_current=has_built_everything(home),
    )
    if not (is_unbuilt(home) or is_built_in_parts(home)):
        report_writer(home)
    return log


def assert_files(more: Sequence[Path] | None, given: GivenDefinitions) -> None:
    """Refuse options that belong to --files, and words that are no options."""
    if more:
        raise UsageError(f"{more[0]} is not an option of this command.", hint="Give binlog files with --files.")
    if given.options:
        raise UsageError(f"{given.options[0]} is for the tables of files.", hint="Give it with --files.")


class Origin(TypedDict):
    """The source of files, and what defines its tables, as the readers of files take them."""

    source_id: str | None
    snapshot: "SchemaSnapshot | None"
    home: Path | None


def origin(sources: Sequence[str], given: GivenDefinitions, files: "Sequence[LogPath]") -> Origin:
    """Return the source of files, and what defines their tables: what is given, or else the landed source."""
    if len(sources) > 1:
        raise UsageError("Files belong to one source.", hint="Give --source once, or not at all.")
    snapshot = given.snapshot(files)
    source = sources[0] if sources else None
    home = binloom_home() if source is not None and snapshot is None else None
    if source is not None and home is not None and not is_cluster_target():
        _assert_landed(source, home)
    return {"source_id": source, "snapshot": snapshot, "home": home}


def _assert_landed(source: str, home: Path) -> None:
    """Refuse a source that is not among the landed ones. In a home without any, it is only a name for the files."""
    from ingest.warehouse.files import read_rows
    from ingest.warehouse.tables import SCHEMA_SNAPSHOTS, SOURCES

    known = {row["source_id"] for table in (SOURCES, SCHEMA_SNAPSHOTS) for row in read_rows(table, home, ["source_id"])}
    if known and source not in known:
        raise unknown_source(source, known, home)
