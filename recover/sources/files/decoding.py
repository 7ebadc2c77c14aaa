"""Binlog files that are decoded into the tables of `decoded_rows`, one after the other."""

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ingest.ahead import ahead
from ingest.errors import BinloomError, UsageError
from ingest.landing.bindings import FIRST, Binding, TableNames
from recover.index.needed import Needed
from recover.selection.catalog import TableVersion, table_version
from recover.selection.condition import is_filtered_table, select
from recover.selection.filters import Filters
from recover.sources.engine import in_memory, registered
from recover.sources.files.decoded_facts import Facts, events_without_rows
from recover.sources.files.decoded_rows import add_tables, quarantine_query, rows_query
from recover.sources.files.indexed_files import IndexedFiles
from recover.sources.files.row_filter import KeyTexts, rows_of_map, rows_with_keys, texts_of_keys

if TYPE_CHECKING:
    from ingest.binlog import Scan, SchemaHints, TableFilter
    from ingest.landing.schema_history import SchemaHistory
    from ingest.sources.files.directory import BinlogPath
    from recover.sources.files.more_rows import Rest

_PLACE: Final = "$source as source_id, $epoch as epoch, $file as binlog_file"
_SEQUENCE: Final = "$sequence as file_sequence"
_WORDS: Final = {"sign": "sign", "charset": "character set", "labels": "labels", "type": "type"}


class Decoding:
    """The tables that decoded files become.

    `failed` has, by the name of a file, the position from which on it could not be decoded. `typed` has the names of
    files with a JSON document in which a member has a type that the text does not tell.
    """

    def __init__(
        self,
        filters: Filters,
        source_id: str,
        only: frozenset[str] | None,
        with_facts: bool,
        spill: Path | None,
        indexed: IndexedFiles,
        *,
        counts_all_rows: bool = False,
    ) -> None:
        self.indexed = indexed
        self.connection = in_memory(spill)
        add_tables(self.connection)
        self.facts = Facts(self.connection, source_id) if with_facts else None
        self.problems: list[BinloomError] = []
        self.tables: set[tuple[str, str]] = set()
        self.failed: dict[str, int] = {}
        self.typed: set[str] = set()
        self._filters = filters
        self._counts_all_rows = counts_all_rows
        self._source_id = source_id
        self._only = only
        self._names = TableNames(source_id)
        self._versions: dict[str, TableVersion] = {}
        self._bound: set[tuple[str, str, bool]] = set()
        self._bindings: dict[str, Sequence[Binding]] = {}
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

    def take_all(
        self,
        files: "Sequence[BinlogPath]",
        scans: "Mapping[BinlogPath, Scan]",
        hints: "SchemaHints | None",
        first: Filters | None = None,
    ) -> None:
        """Decode files: those without an index up to the end of their last complete transaction.

        Parameters
        ----------
        first
            Of files with an index, only the parts that may have a row that these filters select; see `take_rest`.
        """
        needed = self._needed(self._filters, hints, self._only)
        chosen = needed if first is None else self._needed(first, hints, None)
        for file in files:
            if file in self.indexed:
                with self.indexed.using(file):
                    self._take_needed(file, needed, chosen, hints)
                continue
            scan = scans[file]
            with self._reported(file):
                self._take(file, self._start(scan), scan.complete_end, hints)
            if scan.defect is not None:
                self.problems.append(damage(file, scan))
                # In a file in use, the server may be about to write the rest of its last event.
                if not (scan.format.is_in_use and scan.defect.is_cut):
                    self.failed.setdefault(file.name, scan.complete_end)
        if self.facts is not None:
            self.facts.add_logged_tables(self.tables)
        else:
            self.indexed.add_ends(self.connection, needed, hints, self._add_transactions)
            self._add_known_transactions()

    def take_rest(self, files: "Iterable[BinlogPath]", hints: "SchemaHints | None", rest: "Rest") -> None:
        """Decode the other parts of indexed files that may have rows which are needed."""
        needed = self._needed(replace(self._filters, since=rest.since, until=rest.until), hints, rest.tables)
        for file in files:
            if file in self.indexed:
                with self.indexed.using(file):
                    self._take_ranges(file, needed, hints)

    def _needed(self, filters: Filters, hints: "SchemaHints | None", only: frozenset[str] | None) -> Needed:
        tables = self._table_filter(filters, only)
        return Needed(filters, tables, self._names, hints, with_facts=self.facts is not None)

    def _take_needed(self, file: "BinlogPath", needed: Needed, chosen: Needed, hints: "SchemaHints | None") -> None:
        """Decode the chosen parts of an indexed file, and note what the question needs of all others."""
        for table_map in needed.table_maps(file, self.indexed.sidecar(file)):
            self._bind(file, table_map, has_rows=False)
        self._take_ranges(file, chosen, hints)
        if self.facts is not None:
            # The parts that are skipped have transactions, too.
            sidecar = self.indexed.sidecar(file)
            for batch in sidecar.transactions():
                self._add_transactions(file, batch)
            sidecar.close()

    def _take_ranges(self, file: "BinlogPath", needed: Needed, hints: "SchemaHints | None") -> None:
        for start, end in self.indexed.ranges(file, needed):
            self._take(file, start, end, hints)

    def _take(self, file: "BinlogPath", start: int | None, end: int, hints: "SchemaHints | None") -> None:
        from ingest.binlog import open_binlog
        from ingest.warehouse.landed import landed_batches

        tables = self._table_filter(self._filters, self._only)
        # The decoder counts only rows of the tables that it decodes.
        log = open_binlog(
            file.path, hints=hints, tables=None if self._counts_all_rows else tables, start=start, end=end
        )
        place = self._place(file)
        try:
            for kind, batch in ahead(log.batches() if self.facts is None else landed_batches(log)):
                match kind:
                    case "table_maps":
                        for table_map in batch.to_pylist():
                            # Rows without a binding are left out.
                            if tables.takes(table_map["schema_name"], table_map["table_name"]):
                                self._bind(file, table_map)
                    case "row_events":
                        self._add_rows(batch, place)
                    case "transactions" if self.facts is None or file not in self.indexed:
                        self._add_transactions(file, batch)
                    case "statements":
                        self._add(batch, "decoded_statements", _PLACE, place)
                    case "ddl_actions":
                        self._add(batch, "decoded_ddl_actions", f"{_PLACE}, {_SEQUENCE}", place)
                    case "unsupported_events":
                        self._add_undecoded(batch, place)
        finally:
            if log.has_typed_documents:
                self.typed.add(file.name)

    def _place(self, file: "BinlogPath") -> dict[str, Any]:
        return {"source": self._source_id, "epoch": 0, "file": file.name, "sequence": file.sequence or 0}

    def _add_transactions(self, file: "BinlogPath", batch: Any) -> None:
        self._add(batch, "decoded_transactions", f"{_PLACE}, {_SEQUENCE}", self._place(file))

    def _add_known_transactions(self) -> None:
        known = self.indexed.known()
        if known is not None:
            with registered(self.connection, "batch", known):
                self.connection.execute(
                    "insert into decoded_transactions by name select *, $source as source_id, 0 as epoch from batch",
                    {"source": self._source_id},
                )

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

    def _table_filter(self, filters: Filters, only: frozenset[str] | None) -> "TableFilter":
        from ingest.binlog import TableFilter

        seen = self.tables

        class Seen(TableFilter):
            def takes(self, schema: str, table: str) -> bool:
                seen.add((schema, table))
                if only is not None and only.isdisjoint({f"{schema}.{table}".lower(), table.lower()}):
                    return False
                return TableFilter.takes(self, schema, table)

        return Seen(filters.schemas, filters.tables)

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

    def _bindings_of(self, table_map: Mapping[str, Any]) -> Sequence[Binding]:
        """Return the bindings of a table map in all files."""
        found = self._bindings.get(table_map["table_map_id"])
        if found is None:
            found = self._bindings[table_map["table_map_id"]] = self._names.bindings(table_map)
        return found

    def _bind(self, file: "BinlogPath", table_map: Mapping[str, Any], *, has_rows: bool = True) -> None:
        """Bind a table map to the versions of its table, for the rows of a file; or only note the versions."""
        if (file.name, table_map["table_map_id"], has_rows) in self._bound:
            return
        self._bound.add((file.name, table_map["table_map_id"], has_rows))
        unknown = table_map["unknown_hints"] or []
        for binding in self._bindings_of(table_map):
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
            if not has_rows:
                continue
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
    from ingest.errors import CorruptBinlogError, encrypted_binlog

    defect = scan.defect
    position = defect.position if defect is not None else scan.complete_end
    if scan.is_encrypted:
        return encrypted_binlog(file.path, position)
    reason = defect.reason if defect is not None else "it is cut"
    return CorruptBinlogError(
        f"{file.path}: {reason}, at position {position}; rows from position {scan.complete_end} on are missing.",
        hint="Copy the file again from the server.",
        path=str(file.path),
        position=position,
    )
