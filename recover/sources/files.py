"""Binlog files as a log: decoded on the spot, nothing is landed."""

import contextlib
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ingest.errors import BinloomError, UsageError
from ingest.landing.bindings import FIRST, TableNames
from recover.selection.catalog import TableVersion, table_version, unknown_name
from recover.selection.condition import is_filtered_table, select
from recover.selection.filters import Filters
from recover.sources.decoded_facts import Facts, events_without_rows
from recover.sources.decoded_rows import add_tables, quarantine_query, rows_query
from recover.sources.document_types import DocumentTypes, document_types
from recover.sources.engine import in_memory, registered
from recover.sources.landed_snapshot import newest_snapshot
from recover.sources.row_filter import KeyTexts, rows_of_map, rows_with_keys, texts_of_keys

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from ingest.binlog import Scan, SchemaHints, TableFilter
    from ingest.binlog.byte_files import LogPath
    from ingest.landing.schema_history import SchemaHistory
    from ingest.sources.directory import BinlogPath
    from ingest.sources.snapshot import SchemaSnapshot

SOURCE: Final = "files"
"""Source of files for which no other name is given."""

_PLACE: Final = "$source as source_id, $epoch as epoch, $file as binlog_file"
_SEQUENCE: Final = "$sequence as file_sequence"
_WORDS: Final = {"sign": "sign", "charset": "character set", "labels": "labels", "type": "type"}


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
    goes_on
        Whether the server closed the last file, so that the log goes on in files that were not given.
    history
        Definitions of tables that the files and the snapshots give.
    documents
        Gives the types in the documents of tables.
    """

    connection: "DuckDBPyConnection"
    problems: tuple[BinloomError, ...]
    tables: frozenset[tuple[str, str]]
    last_file: str
    goes_on: bool
    history: "SchemaHistory"
    documents: Callable[[Collection[tuple[str, str]]], DocumentTypes]


def decode(
    paths: "Sequence[LogPath]",
    filters: Filters,
    *,
    source_id: str = SOURCE,
    snapshot: "SchemaSnapshot | None" = None,
    home: Path | None = None,
    table: str | None = None,
    with_facts: bool = False,
    spill: Path | None = None,
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
    table
        Only rows of this table, `schema.table` or a name in any schema, in any case; None: those of all tables.
    with_facts
        Whether the connection gets the tables of `decoded_facts`, too.
    spill
        Folder for data that does not fit into memory (`engine.in_memory`). None: the memory of DuckDB has no limit.

    Raises
    ------
    BinlogError
        A file does not exist or is not a binlog.
    UsageError
        The files are not of one log, or filters name a file that is not one of them.
    """
    from ingest.binlog import open_binlog

    files = placed(paths)
    _assert_names(filters, files)
    scans = scans_of(files)
    history = definitions_of_log(source_id, snapshot, home)
    for file in files:
        history.add_scan(0, file.name, scans[file])
    only = _with_former_names(table, scans.values())

    def decoded() -> tuple[_Decoding, "SchemaHints | None"]:
        work, hints = _Decoding(filters, source_id, only, with_facts, spill), history.hints(0)
        work.use(history, files)
        for file in files:
            if not filters.files or file.name in filters.files:
                work.take(file, scans[file], hints)
        return work, hints

    work, hints = decoded()
    # Only the row events tell whether the server stores the names that statements spell with capitals in lower case.
    if history.note_names(work.tables):
        work.connection.close()
        work, hints = decoded()
    connection, facts = work.connection, work.facts
    if filters.schemas or filters.tables or table is not None:
        # The decoder counts only rows of the tables that it decodes.
        connection.execute(
            "update decoded_transactions set row_events = null, inserts = null, updates = null, deletes = null"
        )
    if facts is not None:
        # Many queries follow, and each would look for the ends of prepared transactions again.
        connection.execute("create table found as select * from resolved")
        connection.execute("drop view resolved; alter table found rename to resolved")
        facts.add_missing_parts([*scans.items()], work.failed)
        facts.add_foreign_keys(_foreign_keys(source_id, snapshot, home))
    last = scans[files[-1]]
    tables = frozenset(work.tables)
    again = [(file.name, partial(open_binlog, file.path, hints=hints, end=scans[file].complete_end)) for file in files]
    documents = partial(document_types, connection, again)
    return DecodedFiles(connection, tuple(work.problems), tables, files[-1].name, last.is_closed, history, documents)


def placed(paths: "Sequence[LogPath]") -> "list[BinlogPath]":
    """Return the files in the order of the log; the names of one log differ."""
    from ingest.sources.directory import binlog_path

    files = sorted((binlog_path(path) for path in paths), key=lambda file: (file.base, file.sequence or 0))
    for one, other in pairwise(files):
        if one.name == other.name:
            raise UsageError(
                f"{one.path} and {other.path} have the same name.", hint="Give the files of one server's log."
            )
        if one.base != other.base:
            raise UsageError(
                f"{one.path} and {other.path} are not files of one log.", hint="Give the files of one server's log."
            )
    return files


def _assert_names(filters: Filters, files: "Sequence[BinlogPath]") -> None:
    """Refuse the name of a file that was not given; only the files of the filters are decoded."""
    names = [file.name for file in files]
    for name in filters.files:
        if name not in names:
            raise unknown_name(f"The file {name!r} is not one of --files.", name, names)


def scans_of(files: "Iterable[BinlogPath]") -> "dict[BinlogPath, Scan]":
    """Return the inventory of each file."""
    from ingest.binlog import scan_binlog

    return {file: scan_binlog(file.path) for file in files}


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


def _with_former_names(table: str | None, scans: "Iterable[Scan]") -> frozenset[str] | None:
    """Return a table's name and those that it had before a RENAME TABLE, in lower case; None for all tables."""
    from ingest.ddl.batches import ddl_batch

    if table is None:
        return None
    renames: list[tuple[str, str]] = []
    for scan in scans:
        for statements in scan.ddl_statements:
            batch = ddl_batch(statements, scan.format.flavor, scan.format.server_version)
            for row in batch.to_pylist() if batch is not None else ():
                if row["action"] == "rename_table":
                    former = f"{row['schema_name']}.{row['table_name']}".lower()
                    renames.append((former, f"{row['other_schema_name']}.{row['other_table_name']}".lower()))
    names = {table.lower()}
    for former, name in reversed(renames):
        if names & {name, name.partition(".")[2]}:
            names.add(former)
    return frozenset(names)


class _Decoding:
    """The tables that decoded files become.

    `failed` has, by the name of a file, the position from which on it could not be decoded.
    """

    def __init__(
        self,
        filters: Filters,
        source_id: str,
        only: frozenset[str] | None,
        with_facts: bool,
        spill: Path | None,
    ) -> None:
        self.connection = in_memory(spill)
        add_tables(self.connection)
        self.facts = Facts(self.connection, source_id) if with_facts else None
        self.problems: list[BinloomError] = []
        self.tables: set[tuple[str, str]] = set()
        self.failed: dict[str, int] = {}
        self._filters = filters
        self._source_id = source_id
        self._only = only
        self._names = TableNames(source_id)
        self._versions: dict[str, TableVersion] = {}
        self._bound: set[tuple[str, str]] = set()
        # Numbers of bindings.
        self._numbers = itertools.count()
        self._query: str | None = None
        # By file and table map, the range in which its rows may be in quarantine.
        self._suspects: dict[tuple[str, str], tuple[int, int]] = {}
        self._key_texts: dict[str, list[KeyTexts]] = {}

    def use(self, history: "SchemaHistory", files: "Sequence[BinlogPath]") -> None:
        """Take the definitions of tables from snapshots and statements."""
        self._names = TableNames(self._source_id, history, history.named_versions())
        names = {file.sequence or 0: file.name for file in files}
        for version in self._names.versions():
            epoch, sequence, pos = version.valid_from or FIRST
            file = names.get(sequence, f"{files[0].base}.{sequence:06}")
            self._add_version(
                table_version(version),
                "statement" if version.evidence == "ddl" else "snapshot",
                (epoch, file, pos) if epoch >= 0 and pos >= 0 else (None, None, None),
            )

    def take(self, file: "BinlogPath", scan: "Scan", hints: "SchemaHints | None") -> None:
        """Decode a file up to the end of its last complete transaction."""
        from ingest.binlog import open_binlog
        from ingest.warehouse.landed import landed_batches

        log = open_binlog(
            file.path, hints=hints, tables=self._table_filter(), start=self._start(scan), end=scan.complete_end
        )
        place = {"source": self._source_id, "epoch": 0, "file": file.name, "sequence": file.sequence or 0}
        with self._reported(file):
            for kind, batch in log.batches() if self.facts is None else landed_batches(log):
                match kind:
                    case "table_maps":
                        for table_map in batch.to_pylist():
                            self._bind(file, table_map)
                    case "row_events":
                        self._add_rows(batch, place)
                    case "transactions":
                        self._add(batch, "decoded_transactions", f"{_PLACE}, {_SEQUENCE}", place)
                    case "statements":
                        self._add(batch, "decoded_statements", _PLACE, place)
                    case "ddl_actions":
                        self._add(batch, "decoded_ddl_actions", f"{_PLACE}, {_SEQUENCE}", place)
                    case "unsupported_events":
                        self._add_undecoded(batch, place)
        if scan.defect is not None:
            self.problems.append(damage(file, scan))
            # In a file in use, the server may be about to write the rest of its last event.
            if not (scan.format.is_in_use and scan.defect.is_cut):
                self.failed.setdefault(file.name, scan.complete_end)

    @contextlib.contextmanager
    def _reported(self, file: "BinlogPath") -> Iterator[None]:
        try:
            yield
        except BinloomError as error:
            self.problems.append(error)
            decoded = self.connection.execute(
                "select coalesce(max(end_pos), 4) from decoded_transactions where binlog_file = ?", [file.name]
            ).fetchone()
            self.failed[file.name] = decoded[0] if decoded is not None else 4

    def _table_filter(self) -> "TableFilter":
        from ingest.binlog import TableFilter

        seen, only = self.tables, self._only

        class Seen(TableFilter):
            def takes(self, schema: str, table: str) -> bool:
                seen.add((schema, table))
                if only is not None and only.isdisjoint({f"{schema}.{table}".lower(), table.lower()}):
                    return False
                return TableFilter.takes(self, schema, table)

        return Seen(self._filters.schemas, self._filters.tables)

    def _start(self, scan: "Scan") -> int | None:
        """Return the start of the segment that the first position of the filters is in: rows need its table maps."""
        first = self._filters.from_pos
        return max((one.start for one in scan.segments if first is not None and one.start <= first), default=None)

    def _add_version(
        self, version: TableVersion, evidence: str, valid_from: tuple[int | None, str | None, int | None]
    ) -> None:
        if version.table_version_id in self._versions:
            return
        self._versions[version.table_version_id] = version
        self._query = None
        columns = [{name: getattr(column, name) for name in column.__slots__} for column in version.columns]
        self.connection.execute(
            "insert into binloom.table_versions values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                *(version.table_version_id, version.source_id, version.schema_name, version.table_name),
                *(columns, [column.name for column in version.columns], list(version.primary_key)),
                *(evidence, *valid_from),
            ],
        )

    def _bind(self, file: "BinlogPath", table_map: Mapping[str, Any]) -> None:
        """Bind a table map to the versions of its table, for the rows of a file."""
        if (file.name, table_map["table_map_id"]) in self._bound:
            return
        self._bound.add((file.name, table_map["table_map_id"]))
        unknown = table_map["unknown_hints"] or []
        for binding in self._names.bindings(table_map):
            low, high = offsets(binding.first, file.sequence or 0), offsets(binding.end, file.sequence or 0)
            if low >= high:
                continue
            version = table_version(binding.version) if binding.version is not None else None
            if version is not None:
                self._add_version(version, "table_map", (None, None, None))
            if unknown or binding.reason is not None:
                start, stop = self._suspects.get((file.name, table_map["table_map_id"]), (low, high))
                self._suspects[file.name, table_map["table_map_id"]] = min(start, low), max(stop, high)
                self._query = None
            if version is not None and self._filters.keys:
                texts = texts_of_keys(self._filters.keys, version)
                known = self._key_texts.setdefault(table_map["table_map_id"], [])
                # Each file has the table map again.
                if texts not in known:
                    known.append(texts)
            columns = version.columns if version is not None else ()
            self.connection.execute(
                f"insert into bindings values ({', '.join('?' * 20)})",
                [
                    *(next(self._numbers), self._source_id, 0, file.name, file.sequence or 0),
                    *(table_map["schema_name"], table_map["table_name"], table_map["table_map_id"], low, high),
                    version.table_version_id if version is not None else None,
                    [column.name for column in columns],
                    "\0".join(column.name for column in columns),
                    [column.ordinal + 1 for column in columns if column.is_primary_key],
                    *(binding.confidence, binding.reason, binding.detail),
                    [one["ordinal"] + 1 for one in unknown if one["hint"] == "sign"],
                    [one["ordinal"] + 1 for one in unknown if one["hint"] != "sign"],
                    _in_words(unknown, [column.name for column in columns]),
                ],
            )

    def _add_rows(self, batch: Any, place: Mapping[str, Any]) -> None:
        for (file, table_map_id), (first, end) in self._suspects.items():
            if file == place["file"] and (suspect := rows_of_map(batch, table_map_id, first, end)).num_rows:
                self._run(quarantine_query(), suspect, place)
        if self._filters.keys:
            batch = rows_with_keys(batch, self._key_texts)
        if not batch.num_rows:
            return
        if self._query is None:
            self._query = rows_query(self._condition(), may_be_quarantined=bool(self._suspects))
        self._run(self._query, batch, place)

    def _run(self, query: str, batch: Any, place: Mapping[str, Any]) -> None:
        """Run a query on a batch, which has the name `batch` in it."""
        import pyarrow as pa

        with registered(self.connection, "batch", pa.Table.from_batches([batch])):
            self.connection.execute(query, place)

    def _condition(self) -> str:
        """Return the condition on rows of the versions that are known by now, without that on transactions.

        This is only a prefilter: the condition on the whole log checks the rows again.
        """
        # The decoder chooses the tables. Some of them may come later in the files, and would have no version yet.
        any_table = ("*",) if self._filters.tables else ()
        own = replace(self._filters, schemas=(), tables=any_table, threads=(), statement=None, digests=(), tags=())
        known = [one for one in self._versions.values() if self._is_decoded(one)]
        try:
            return select(own, known).condition.sql("duckdb")
        except UsageError:
            # A name or value that no version has by now, but one that comes later may have it.
            return "true"

    def _is_decoded(self, version: TableVersion) -> bool:
        """Return whether the filters allow the table of a version; a snapshot has others, too."""
        return is_filtered_table(self._filters, version.schema_name, version.table_name)

    def _add(self, batch: Any, table: str, more: str, place: Mapping[str, Any]) -> None:
        used = {name: value for name, value in place.items() if f"${name} " in f"{more} "}
        self._run(f"insert into {table} by name select *, {more} from batch", batch, used)

    def _add_undecoded(self, batch: Any, place: Mapping[str, Any]) -> None:
        self._run(
            """insert into binloom.quarantined_row_events by name
            select
                $source as source_id, $epoch as epoch, $file as binlog_file, $sequence as file_sequence, start_pos,
                end_pos, event_type, schema_name, table_name, 'decode_error' as reason,
                concat_ws(': ', reason, detail) as detail
            from batch where table_name is not null or not list_contains($without_rows, event_type)""",
            batch,
            {**place, "without_rows": list(events_without_rows())},
        )
        if self.facts is not None:
            self._run(
                """insert into binloom_quality.lost_events
                select $source, $epoch, $file, start_pos, end_pos, detail from batch where reason = 'incident'""",
                batch,
                {name: place[name] for name in ("source", "epoch", "file")},
            )


def offsets(position: tuple[int, int, int], sequence: int, epoch: int = 0) -> int:
    """Return the offset of a position in a file: 0 if it is before the file, a large number if it is after it."""
    if position[:2] == (epoch, sequence):
        return max(position[2], 0)
    return 0 if position[:2] < (epoch, sequence) else 2**62


def _in_words(unknown: Iterable[Mapping[str, Any]], names: Sequence[str]) -> str | None:
    by_hint: dict[str, list[str]] = {}
    for one in unknown:
        name = names[one["ordinal"]] if one["ordinal"] < len(names) else str(one["ordinal"] + 1)
        by_hint.setdefault(one["hint"], []).append(name)
    if not by_hint:
        return None
    told = (f"the {word} of {', '.join(by_hint[hint])}" for hint, word in _WORDS.items() if hint in by_hint)
    return f"nothing tells {' and '.join(told)} at this position"


def damage(file: "BinlogPath", scan: "Scan") -> BinloomError:
    """Return the error for the defect of a file."""
    from ingest.errors import CorruptBinlogError

    defect = scan.defect
    position = defect.position if defect is not None else scan.complete_end
    reason = defect.reason if defect is not None else "it is cut"
    return CorruptBinlogError(
        f"{file.path}: {reason}, at position {position}; rows from position {scan.complete_end} on are missing.",
        hint="Copy the file again from the server.",
        path=str(file.path),
        position=position,
    )
