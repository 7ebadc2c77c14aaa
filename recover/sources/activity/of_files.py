"""The activity in binlog files, for `top`: each file is walked, then decoded once; no row is kept."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ingest.binlog.filters import TableFilter
from ingest.errors import BinloomError
from ingest.landing.bindings import TableNames
from recover.index.needed import Needed
from recover.index.opened import Index, Sidecars
from recover.questions.activity import Activity, Key, KnownMap, Place
from recover.selection.filters import Filters
from recover.sources.files.decoding import damage, offsets
from recover.sources.files.file_log import SOURCE, definitions_of_log, open_transaction, placed, scans_of
from recover.sources.files.indexed_files import IndexedFiles, SidecarFailedError

if TYPE_CHECKING:
    from ingest.binlog import Scan, SchemaHints
    from ingest.binlog.byte_files import LogPath
    from ingest.sources.files.directory import BinlogPath
    from ingest.sources.snapshots.snapshot import SchemaSnapshot


@dataclass(frozen=True, slots=True)
class Counted:
    """What was counted in files.

    Attributes
    ----------
    problems
        The damage of files.
    lacks
        Sentences on what is missing.
    open_transaction
        `file:position` of the transaction inside which the last file ends; it does not count. None if there is none.
    scans
        The inventories of the files, in the order of the log.
    unread
        Names of the files that are not read as a whole, because they are damaged.
    notes
        Sentences on the index of the files: which sidecars were not used, and how much was read.
    """

    activity: Activity
    problems: Sequence[BinloomError]
    lacks: Sequence[str]
    open_transaction: str | None
    scans: "Mapping[BinlogPath, Scan]"
    unread: frozenset[str]
    notes: Sequence[str]


def count_files(
    begun: Callable[[], Activity],
    paths: "Sequence[LogPath]",
    filters: Filters,
    *,
    source_id: str | None = None,
    snapshot: "SchemaSnapshot | None" = None,
    home: Path | None = None,
    index: Index | None = None,
) -> Counted:
    """Count the whole transactions of files.

    Parameters
    ----------
    begun
        Returns sums of nothing yet. They count what the filters select.
    paths
        The files of one log, in any order.
    filters
        Of schemas, tables and times.
    source_id, snapshot, home, index
        As in `recover.sources.files.file_log.decode`.

    Raises
    ------
    BinlogError
        A file does not exist or is not a binlog.
    UsageError
        The files are not of one log.
    """
    files = placed(paths)
    # Without a filter, every row counts.
    is_narrow = filters.schemas or filters.tables or filters.since is not None or filters.until is not None
    with closing(Sidecars.of(files, index if is_narrow else None)) as sidecars:
        while True:
            indexed = IndexedFiles(sidecars)
            counting = _Counting(begun(), filters, indexed, source_id or SOURCE)
            try:
                return counting.counted(files, scans_of(files, sidecars), snapshot, home)
            except SidecarFailedError as failed:
                sidecars.drop(failed.file, failed.reason)


class _Counting:
    """Adds files to sums."""

    def __init__(self, activity: Activity, filters: Filters, indexed: IndexedFiles, source: str) -> None:
        self._activity = activity
        self._filters = filters
        self._indexed = indexed
        self._source = source

    def counted(
        self,
        files: "Sequence[BinlogPath]",
        scans: "Mapping[BinlogPath, Scan]",
        snapshot: "SchemaSnapshot | None",
        home: Path | None,
    ) -> Counted:
        history = definitions_of_log(self._source, snapshot, home)
        for file in files:
            history.add_scan(0, file.name, scans[file])
        names, hints = TableNames(self._source, history, history.named_versions()), history.hints(0)
        every = Needed(Filters(), TableFilter(), names, hints, with_facts=True)
        tables = TableFilter(self._filters.schemas, self._filters.tables)
        needed = Needed(self._filters, tables, names, hints, with_facts=True)
        problems: list[BinloomError] = []
        unread: set[str] = set()
        for file in files:
            statements = scans[file].ddl_statements
            self._activity.removals.add(self._source, file.name, statements, history.actions_in(0, file.name))
            if file in self._indexed:
                with self._indexed.using(file):
                    self._add_needed(file, needed, every, names, hints)
                continue
            try:
                self._add(file, scans[file], names, hints, None, scans[file].complete_end)
            except BinloomError as error:
                problems.append(error)
                unread.add(file.name)
            if scans[file].defect is not None:
                problems.append(damage(file, scans[file]))
                unread.add(file.name)
        last = scans[files[-1]]
        lacks = [f"The log goes on after {files[-1].name}, in files that were not given."] if last.is_closed else []
        lacks += [f"Rows are missing: {problem.message}" for problem in problems]
        return Counted(
            self._activity,
            problems,
            lacks,
            open_transaction(files[-1], last),
            scans,
            frozenset(unread),
            self._indexed.notes(files),
        )

    def _add_needed(
        self, file: "BinlogPath", needed: Needed, every: Needed, names: TableNames, hints: "SchemaHints | None"
    ) -> None:
        """Add the parts of an indexed file whose rows may count, and the tables of the others, in their order."""
        sidecar = self._indexed.sidecar(file)
        ranges = dict(self._indexed.ranges(file, needed))
        end = 0
        for segment in sidecar.contents.segments:
            if segment.start in ranges:
                end = ranges[segment.start]
                self._add(file, sidecar.contents.scan, names, hints, segment.start, end)
            if segment.start >= end:
                for table_map in every.table_maps_in(segment, file, sidecar, with_rows=True):
                    self._activity.add_table(self._source, known_map(table_map, names, 0, file.sequence or 0))

    def _add(
        self,
        file: "BinlogPath",
        scan: "Scan",
        names: TableNames,
        hints: "SchemaHints | None",
        start: int | None,
        end: int,
    ) -> None:
        from ingest.binlog import open_binlog
        from ingest.ddl.dml.dml_batches import TargetReader

        place, known = Place(self._source, 0, file.name), dict[str, KnownMap]()
        targets = TargetReader(scan.format.flavor, scan.format.server_version)
        for kind, batch in open_binlog(file.path, hints=hints, start=start, end=end).batches():
            match kind:
                case "table_maps":
                    for table_map in batch.to_pylist():
                        known[table_map["table_map_id"]] = known_map(table_map, names, 0, file.sequence or 0)
                case "row_events":
                    self._activity.add_rows(batch, place, known.__getitem__)
                case "transactions":
                    self._activity.add_transactions(batch, place)
                case "statements":
                    self._activity.add_statement_targets(targets.column(batch))
                case "unsupported_events":
                    self._activity.add_undecoded(batch)


def known_map(table_map: Mapping[str, Any], names: TableNames, epoch: int, sequence: int) -> KnownMap:
    """Return the table of a table map, and its keys in the file with this number.

    The key of a row is not known where the row would be in quarantine: its name or its value is uncertain.
    """
    found = []
    for binding in names.bindings(table_map):
        first, end = (offsets(one, sequence, epoch) for one in (binding.first, binding.end))
        if first >= end:
            continue
        is_certain = binding.version is not None and binding.reason is None and not table_map["unknown_hints"]
        found.append(Key(first, end, binding.version.primary_key_ordinals if binding.version and is_certain else None))
    return KnownMap(table_map["schema_name"], table_map["table_name"], found)
