"""Binlog files as a log: decoded on the spot, nothing is landed."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ingest.errors import BinloomError, UsageError
from recover.index.opened import Index, Sidecars
from recover.selection.catalog import unknown_name
from recover.selection.filters import Filters
from recover.sources.files.decoding import Decoding
from recover.sources.files.document_types import DocumentsOfFiles
from recover.sources.files.indexed_files import IndexedFiles, SidecarFailedError
from recover.sources.files.missing_parts import add_missing_parts, assert_same_server
from recover.sources.files.needed_tables import needed_tables
from recover.sources.landed_snapshot import newest_snapshot

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from ingest.binlog import Binlog, Scan, SchemaHints
    from ingest.binlog.byte_files import LogPath
    from ingest.landing.schema_history import SchemaHistory
    from ingest.sources.files.directory import BinlogPath
    from ingest.sources.snapshots.snapshot import SchemaSnapshot
    from recover.sources.files.more_rows import RestOf

# A server writes its version, the time of the file and the GTIDs before it first.
_HEAD_BYTES: Final = 1 << 16
_ONE_LOG: Final = (
    "Give the files of one server's log. After a failover, land those of both servers as one source: `binloom ingest"
    " --source NAME --binlog-dir DIR`, first the files of the old server."
)
SOURCE: Final = "files"
"""Source of files for which no other name is given."""


@dataclass(frozen=True)
class DecodedFiles:
    """Decoded files.

    Attributes
    ----------
    connection
        Has the views of `recover.sources.log`.
    problems
        Damage and incomplete ends of files; rows behind them are missing.
    tables
        Schema and name of all tables in the files, also of those that the filters exclude.
    last_file
        Name of the last file.
    open_transaction
        `file:position` of the transaction inside which the last file ends, without a defect; None if there is none.
    goes_on
        Whether the server closed the last file, so that the log goes on in files that were not given.
    history
        Definitions of tables that the files and the snapshots give.
    documents
        Their JSON documents.
    scans
        The inventory of each file, in the order of the log.
    notes
        Sentences on the index of the files: which sidecars were not used, and how much was read.
    read_tables
        The only tables whose rows were read, `schema.table` or a name in any schema, in lower case; None: all tables.
    """

    connection: "DuckDBPyConnection"
    problems: tuple[BinloomError, ...]
    tables: frozenset[tuple[str, str]]
    last_file: str
    open_transaction: str | None
    goes_on: bool
    history: "SchemaHistory"
    documents: DocumentsOfFiles
    scans: "Mapping[BinlogPath, Scan]"
    notes: tuple[str, ...] = ()
    read_tables: frozenset[str] | None = None


def decode(
    paths: "Sequence[LogPath]",
    filters: Filters,
    *,
    source_id: str = SOURCE,
    snapshot: "SchemaSnapshot | None" = None,
    home: Path | None = None,
    tables: Collection[str] = (),
    with_facts: bool = False,
    spill: Path | None = None,
    index: Index | None = None,
    first: Filters | None = None,
    rest: "RestOf[DecodedFiles] | None" = None,
    counts_all_rows: bool = False,
) -> DecodedFiles:
    """Decode the row changes of files that filters select.

    Parameters
    ----------
    paths
        The files, in any order.
    filters
        Filters of the rows; those of threads and statements are left to the query.
    source_id
        Name of the source.
    snapshot
        Schema snapshot that names columns; None: the log itself and `home` do.
    home
        Home in which the source is landed, with its snapshots and statements; None: it is not landed.
    tables
        Only rows of these tables, each `schema.table` or a name in any schema, in any case, and of those whose changes
        may change them by foreign keys; none: those of all tables.
    with_facts
        Whether the connection gets the tables of `decoded_facts`, too.
    spill
        Folder for data that does not fit into memory (`engine.in_memory`). None: the memory of DuckDB has no limit.
    index
        Where the sidecars of files are. None: files are read whole.
    first, rest
        With an index and `with_facts`, only some parts of indexed files are read, but with all of their rows: first
        those with a row that the filters `first` select. `rest` gets what was read then, and tells which other rows
        are needed.
    counts_all_rows
        Whether a transaction counts with its rows of all tables, also of those that filters exclude. That takes longer.

    Raises
    ------
    BinlogError
        A file does not exist or is not a binlog.
    UsageError
        The files are not of one log, or filters name a file that is not one of them.
    """
    files = placed(paths)
    _assert_names(filters, files)
    with closing(Sidecars.of(files, index)) as sidecars:
        while True:
            try:
                return _decoded(
                    *(files, sidecars, filters, source_id, snapshot, home, tables, with_facts, spill, first, rest),
                    counts_all_rows=counts_all_rows,
                )
            except SidecarFailedError as failed:
                sidecars.drop(failed.file, failed.reason)


def _decoded(
    files: "Sequence[BinlogPath]",
    sidecars: Sidecars,
    filters: Filters,
    source_id: str,
    snapshot: "SchemaSnapshot | None",
    home: Path | None,
    tables: Collection[str],
    with_facts: bool,
    spill: Path | None,
    first: Filters | None,
    rest: "RestOf[DecodedFiles] | None",
    *,
    counts_all_rows: bool,
) -> DecodedFiles:
    scans = scans_of(files, sidecars)
    history = definitions_of_log(source_id, snapshot, home)
    for file in files:
        history.add_scan(0, file.name, scans[file])
    only = needed_tables(tables, history)
    last = scans[files[-1]]

    def found(work: Decoding, hints: "SchemaHints | None") -> DecodedFiles:
        return DecodedFiles(
            connection=work.connection,
            problems=tuple(work.problems),
            tables=frozenset(work.tables),
            last_file=files[-1].name,
            open_transaction=open_transaction(files[-1], last),
            goes_on=last.is_closed,
            history=history,
            documents=DocumentsOfFiles(work.connection, _opened(files, scans, work.indexed, hints), work.typed),
            scans=scans,
            notes=work.indexed.notes(files),
            read_tables=only,
        )

    def decoded() -> tuple[Decoding, "SchemaHints | None"]:
        indexed = IndexedFiles(sidecars)
        work = Decoding(filters, source_id, only, with_facts, spill, indexed, counts_all_rows=counts_all_rows)
        hints = history.hints(0)
        work.use(history, files)
        some = [file for file in files if not filters.files or file.name in filters.files]
        work.take_all(some, scans, hints, first)
        if rest is not None and sidecars.by_file:
            for one in rest(found(work, hints)):
                work.take_rest(some, hints, one)
        return work, hints

    work, hints = decoded()
    # Only the row events tell whether the server stores the names that statements spell with capitals in lower case.
    if history.note_names(work.tables):
        work.connection.close()
        work, hints = decoded()
    connection, facts = work.connection, work.facts
    if (filters.schemas or filters.tables or tables) and not counts_all_rows:
        # The decoder counts only rows of the tables that it decodes.
        connection.execute(
            "update decoded_transactions set row_events = null, inserts = null, updates = null, deletes = null"
        )
    if facts is not None:
        # Many queries follow, and each would look for the ends of prepared transactions again.
        connection.execute("create table found as select * from resolved")
        connection.execute("drop view resolved; alter table found rename to resolved")
        facts.add_foreign_keys(_foreign_keys(source_id, snapshot, home))
    started = [file for file, scan in scans.items() if scan.format.created_at and not scan.format.is_relay_log]
    # One statement for all of them: there may be thousands of files.
    connection.execute(
        "insert into binloom_staging.server_starts select ?, 0, unnest(?::bigint[]), unnest(?::varchar[])",
        [source_id, [file.sequence or 0 for file in started], [file.name for file in started]],
    )
    add_missing_parts(connection, source_id, [*scans.items()], work.failed, has_all_transactions=facts is not None)
    return found(work, hints)


def _opened(
    files: "Iterable[BinlogPath]",
    scans: "Mapping[BinlogPath, Scan]",
    indexed: IndexedFiles,
    hints: "SchemaHints | None",
) -> "list[tuple[str, Callable[..., Binlog]]]":
    """Return name and opening function of each part of the files that was read."""
    from ingest.binlog import open_binlog

    found: list[tuple[str, Callable[..., Binlog]]] = []
    for file in files:
        opening = partial(open_binlog, file.path, hints=hints)
        if file in indexed:
            found += [(file.name, partial(opening, start=start, end=end)) for start, end in indexed.read_ranges(file)]
        else:
            found.append((file.name, partial(opening, end=scans[file].complete_end)))
    return found


def open_transaction(file: "BinlogPath", scan: "Scan") -> str | None:
    """Return `file:position` of the transaction inside which a file ends, without a defect; None if there is none."""
    return None if scan.open_transaction is None else f"{file.name}:{scan.open_transaction}"


def placed(paths: "Sequence[LogPath]") -> "list[BinlogPath]":
    """Return the files in the order of the log; the names of one log differ."""
    from ingest.sources.files.directory import binlog_path

    files = sorted((binlog_path(path) for path in paths), key=lambda file: (file.base, file.sequence or 0))
    for one, other in pairwise(files):
        if one.name == other.name and _is_copy(one.path, other.path):
            both = (
                f"{one.path} is" if str(one.path) == str(other.path) else f"{one.path} and {other.path} are one file,"
            )
            raise UsageError(f"{both} given twice.", hint="Give it once.")
        if one.name == other.name:
            raise UsageError(f"{one.path} and {other.path} have the same name.", hint=_ONE_LOG)
        if one.base != other.base:
            raise UsageError(f"{one.path} and {other.path} are not files of one log.", hint=_ONE_LOG)
    return files


def with_only_file(chosen: "dict[str, Any]", files: Iterable[Path | str]) -> "dict[str, Any]":
    """Return filters with a position, and the one binlog file that is given as its file, if they name none.

    No file is added if there are others, or may be, as in an archive.
    """
    from ingest.sources.files.compressed import without_suffix
    from ingest.sources.files.directory import binlog_path

    if "files" in chosen:
        return chosen
    (one, *others) = [*files] or [""]
    if others or not isinstance(one, Path):
        return chosen
    name = without_suffix(one.name)
    return chosen if binlog_path(Path(name)).sequence is None else chosen | {"files": (name,)}


def _is_copy(one: "LogPath", other: "LogPath") -> bool:
    """Return whether two files have the same size and the same head, which tells server and time; also compressed."""
    from ingest.binlog.byte_files import size_of
    from ingest.sources.files.named import first_bytes

    try:
        return first_bytes(one, _HEAD_BYTES) == first_bytes(other, _HEAD_BYTES) and size_of(one) == size_of(other)
    except BinloomError:
        return False


def _assert_names(filters: Filters, files: "Sequence[BinlogPath]") -> None:
    """Refuse the name of a file that was not given; only the files of the filters are decoded."""
    names = [file.name for file in files]
    for name in filters.files:
        if name not in names:
            raise unknown_name(f"The file {name!r} is not one of --files.", name, names)


def scans_of(files: "Iterable[BinlogPath]", sidecars: Sidecars | None = None) -> "dict[BinlogPath, Scan]":
    """Return the inventory of each file; sidecars have it. Refuse files that different servers wrote."""
    from ingest.binlog import scan_binlog

    known = {} if sidecars is None else {file: one.contents.scan for file, one in sidecars.by_file.items()}
    found = {file: known[file] if file in known else scan_binlog(file.path) for file in files}
    for one, other in pairwise(found.values()):
        assert_same_server(one, other)
    return found


def definitions_of_log(source_id: str, snapshot: "SchemaSnapshot | None", home: Path | None) -> "SchemaHistory":
    """Return the definitions of the tables that a snapshot gives, or the home of a landed source."""
    from ingest.landing.schema_history import SchemaHistory
    from ingest.warehouse.record import SourceRecord

    if snapshot is not None or home is None:
        return SchemaHistory.of_snapshot(snapshot)
    return SchemaHistory.load(SourceRecord.load(source_id, home), home, with_keys=True)


def _foreign_keys(source_id: str, snapshot: "SchemaSnapshot | None", home: Path | None) -> Sequence[Mapping[str, Any]]:
    if snapshot is not None or home is None:
        return snapshot.foreign_keys if snapshot is not None else ()
    landed = newest_snapshot(source_id, home)
    return landed[0].foreign_keys if landed is not None else ()
