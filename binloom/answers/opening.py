"""The log that a question is asked of: the warehouse or the cluster, or binlog files that are decoded now."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, TypedDict

from binloom.answers.given_definitions import GivenDefinitions
from binloom.answers.named_files import binlogs
from ingest.errors import UsageError, unknown_source
from ingest.warehouse.home import binloom_home
from ingest.warehouse.spark import metastore_holder
from recover.index.opened import Index
from recover.notes import Kind, Note
from recover.selection.filters import Filters
from recover.sources.cluster.thrift import is_cluster_target
from recover.sources.files import missing_parts
from recover.sources.home.kept_files import UnfinishedMartError, ignored
from recover.sources.home.landed_marts import is_built_in_parts, is_unbuilt
from recover.sources.home.marts import NoMartError
from recover.sources.log import VIEWS, Log, Parts
from recover.timeline.baselines import VIEWS as BASELINE_VIEWS
from recover.timeline.table_log import MARTS

if TYPE_CHECKING:
    from ingest.binlog.byte_files import LogPath
    from ingest.sources.servers.address import ServerAddress
    from ingest.sources.snapshots.snapshot import SchemaSnapshot

Tell = Callable[[str], None]
"""Is told sentences about an answer, many of them `Note`."""

NOTHING_GIVEN: Final = GivenDefinitions()


def _not_known(home: Path) -> bool:
    return False


@dataclass(frozen=True)
class Inputs:
    """What a question is asked of.

    Attributes
    ----------
    files
        Binlog files, archives of them, or addresses in an object store. None: what has landed.
    given
        What defines the tables of files, as far as the files themselves do not.
    home
        Folder of all data of binloom. None: that of the environment.
    has_built_everything
        Whether the last build of a home had all that has landed: then marts are read as they are.
    index
        Where the sidecars of files are. None: files are read whole.
    """

    files: Sequence[Path | str] = ()
    given: GivenDefinitions = NOTHING_GIVEN
    home: Path | None = None
    has_built_everything: Callable[[Path], bool] = _not_known
    index: Index | None = None

    @property
    def folder(self) -> Path:
        """The home."""
        return self.home or binloom_home()

    def or_of_server(self, server: "ServerAddress | None") -> Self:
        """Return the same, and the server for definitions if nothing else gives them."""
        return replace(self, given=self.given.or_of_server(server))


class Origin(TypedDict):
    """The source of files, and what defines its tables, as the readers of files take them."""

    source_id: str | None
    snapshot: "SchemaSnapshot | None"
    home: Path | None


def open_log(inputs: Inputs, filters: Filters, tell: Tell = ignored, *, counts_all_rows: bool = False) -> Log:
    """Return a log with the row changes that filters select, and perhaps others.

    Only these rows of files are decoded, and only these partitions of the warehouse are read. `counts_all_rows` is
    whether the answer has the numbers of rows of whole transactions.

    Raises
    ------
    BinloomError
        The log cannot be read, or inputs do not fit each other.
    """
    if inputs.files:
        named = binlogs(inputs.files, tell)
        found = origin(inputs, filters.sources, named, tell)
        log = Log.of_files(named, filters, **found, index=inputs.index, counts_all_rows=counts_all_rows)
        return _told(log, tell)
    if is_cluster_target():
        return Log.of_cluster()
    try:
        return _warehouse(inputs, (*VIEWS, *missing_parts.MARTS), tell, filters=filters)
    except (NoMartError, UnfinishedMartError):
        # An older build had others, or one that runs has not come to them. The answer says that gaps are not known.
        return _warehouse(inputs, VIEWS, tell, filters=filters)


def open_full_log(
    inputs: Inputs,
    sources: Sequence[str] = (),
    *,
    table: str | None = None,
    parts: Parts | None = None,
    spill: Path | None = None,
    tell: Tell = ignored,
) -> Log:
    """Return a log with all row changes and the marts of `table_log`.

    Parameters
    ----------
    sources
        Names of sources that were given.
    table
        The only table of files whose rows are needed.
    parts
        The only parts of indexed files that are needed.
    spill
        Folder for what does not fit into memory.

    Raises
    ------
    BinloomError
        The log cannot be read, or inputs do not fit each other.
    """
    if inputs.files:
        named = binlogs(inputs.files, tell)
        found = origin(inputs, sources, named, tell)
        log = Log.of_whole_files(named, table, spill=spill, **found, index=inputs.index, parts=parts)
        return _told(log, tell)
    if is_cluster_target():
        return Log.of_cluster()
    return _warehouse(inputs, (*VIEWS, *MARTS, *BASELINE_VIEWS), tell, spill=spill)


def _told(log: Log, tell: Tell) -> Log:
    """Tell how the index of files was used."""
    for note in log.notes:
        tell(Note(note))
    return log


def origin(inputs: Inputs, sources: Sequence[str], files: "Sequence[LogPath]", tell: Tell) -> Origin:
    """Return the source of files, and what defines their tables: what is given, or else the landed source."""
    if len(sources) > 1:
        raise UsageError("Files belong to one source.", hint="Give --source once, or not at all.")
    snapshot = inputs.given.snapshot(files, tell)
    source = sources[0] if sources else None
    home = inputs.folder if source is not None and snapshot is None else None
    if source is not None and home is not None and not is_cluster_target():
        _assert_landed(source, home)
    return {"source_id": source, "snapshot": snapshot, "home": home}


def writer_of(home: Path) -> Note | None:
    """Return a sentence on another process that may be building: it replaces one mart after the other.

    That matters to who reads the marts alone, without what has landed since the last build.
    """
    holder = metastore_holder(home)
    if holder is None or _is_own_java(holder):
        return None
    return Note(
        f"another process (pid {holder}) uses the warehouse. If it is a build, each table has"
        " its rows from before the build or its new rows, so one table may lack rows that another table has.",
        Kind.UNCERTAIN,
    )


def _is_own_java(process: int) -> bool:
    """Return whether a process is the Java process of our own session, as in the demo."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    parent = stat.rpartition(")")[2].split()[1]
    return int(parent) == os.getpid()


def _warehouse(
    inputs: Inputs,
    views: Iterable[tuple[str, str]],
    tell: Tell,
    *,
    spill: Path | None = None,
    filters: Filters | None = None,
) -> Log:
    home = inputs.folder
    log = Log.of_warehouse(
        home,
        dict.fromkeys(views),
        spill=spill,
        tell=tell,
        filters=filters,
        is_current=inputs.has_built_everything(home),
    )
    if not (is_unbuilt(home) or is_built_in_parts(home)) and (note := writer_of(home)) is not None:
        tell(note)
    return log


def _assert_landed(source: str, home: Path) -> None:
    """Refuse a source that is not among the landed ones. In a home without any, it is only a name for the files."""
    from ingest.warehouse.files import read_rows
    from ingest.warehouse.tables import SCHEMA_SNAPSHOTS, SOURCES

    known = {row["source_id"] for table in (SOURCES, SCHEMA_SNAPSHOTS) for row in read_rows(table, home, ["source_id"])}
    if known and source not in known:
        raise unknown_source(source, known, home)
