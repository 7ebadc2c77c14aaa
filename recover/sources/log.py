"""The log that a command asks: the marts of a warehouse or of a cluster, or binlog files that are decoded on the spot.

Each is a connection of DuckDB with the same views and the same columns. The cluster runs the queries itself, and its
connection has only the rows that were copied.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ingest.errors import BinloomError, UsageError
from ingest.words import counted
from recover.selection.catalog import (
    NO_NAMES_IN_FILES,
    TableVersion,
    UnknownNameError,
    read_table_versions,
    unknown_table,
)
from recover.selection.condition import Selection, is_filtered_table, place_condition, select
from recover.selection.emptiness import names_what_may_be_skipped, why_nothing
from recover.selection.filters import Filters
from recover.sources.beginning import Beginning, beginnings_of
from recover.sources.cluster.copies import Copies
from recover.sources.cluster.thrift import Cluster
from recover.sources.engine import Answer, answer
from recover.sources.files.more_rows import Rest, RestOf
from recover.sources.home.kept_files import all_partitions, ignored
from recover.sources.home.key_parts import key_parts
from recover.sources.home.landed_marts import STATEMENTS
from recover.sources.home.marts import open_marts

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from sqlglot import exp

    from ingest.binlog.byte_files import LogPath
    from ingest.landing.schema_history import SchemaHistory
    from ingest.sources.snapshots.snapshot import SchemaSnapshot
    from recover.index.opened import Index
    from recover.sources.files.document_types import DocumentsOfFiles
    from recover.sources.files.file_log import DecodedFiles

VIEWS: Final = (
    ("binloom", "row_changes"),
    ("binloom", "transactions"),
    ("binloom", "table_versions"),
    ("binloom", "quarantined_row_events"),
    STATEMENTS,
)


_TABLES_SHOWN: Final = 5


@dataclass(frozen=True)
class Quarantined:
    """Rows of a table that a selection lacks, because they cannot be named or read with certainty.

    Attributes
    ----------
    detail
        The finding for one of the rows.
    """

    table: str
    reason: str
    rows: int
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.rows} of {self.table} ({self.reason.replace('_', ' ')})"


def listed(missing: Sequence[Quarantined]) -> str:
    """Return rows in quarantine in words; one missing definition may concern hundreds of tables."""
    shown, others = missing[:_TABLES_SHOWN], missing[_TABLES_SHOWN:]
    words = [*map(str, shown)]
    if others:
        tables = len({one.table for one in others})
        words.append(f"{sum(one.rows for one in others)} of {counted(tables, 'more table')}")
    return ", ".join(words)


@dataclass(frozen=True)
class Parts:
    """How the parts of indexed files are chosen.

    Attributes
    ----------
    filters
        The parts with a row that these select are read first.
    rest
        Tells by what was read then which other rows are needed.
    """

    filters: Filters
    rest: "RestOf[Log]"


NO_ROWS: Final = Parts(Filters(until=datetime.min.replace(tzinfo=UTC)), lambda log: ())
"""For a question about statements: of indexed files, only the parts with these are read."""


@dataclass(frozen=True)
class Log:
    """A log that can be asked.

    Attributes
    ----------
    connection
        Has `VIEWS`; of a cluster the rows in `copies`.
    versions
        Versions of all tables of the log.
    problems
        Errors because of which rows are missing.
    is_whole
        Whether it has all row changes, and not only those of the filters that it was made with.
    tables
        Schema and name of tables that exist in the log, though it may have none of their rows.
    goes_on_after
        Name of the last file, if the server went on in files that this log lacks.
    open_transaction
        `file:position` of the transaction inside which the last file ends; its rows are not there. None if there is
        none, or if `problems` tell of it.
    snapshot
        Schema snapshot that was given for files.
    home
        Home that has the snapshots of its sources; None if there is none.
    copies
        Rows of a cluster; None if the log is not one of a cluster.
    is_landed
        Whether its rows are those of a warehouse, in which columns may be masked.
    beginnings
        By source, for sources of a warehouse with expired files.
    history
        Statements that define tables, of files.
    documents
        The JSON documents of files; None if the log has only their texts.
    notes
        Sentences on the index of files: which sidecars were not used, and how much was read.
    unindexed
        Returns the same log, of the whole files; None if their index was not used.
    histories
        The landed evidence for the definitions of tables, by source, as far as it was read.
    read_tables
        The tables of which it has all rows, `schema.table` or a name in any schema, in lower case; None: all tables.
    logs_cascades
        Whether the server has said that it logs the rows that foreign keys change.
    """

    connection: "DuckDBPyConnection"
    versions: tuple[TableVersion, ...] = field(repr=False)
    problems: tuple[BinloomError, ...] = ()
    is_whole: bool = True
    tables: frozenset[tuple[str, str]] = frozenset()
    goes_on_after: str | None = None
    open_transaction: str | None = None
    snapshot: "SchemaSnapshot | None" = field(default=None, repr=False)
    home: Path | None = None
    copies: Copies | None = field(default=None, repr=False)
    is_landed: bool = False
    beginnings: Mapping[str, Beginning] = field(default_factory=dict, repr=False)
    history: "SchemaHistory | None" = field(default=None, repr=False)
    documents: "DocumentsOfFiles | None" = field(default=None, repr=False)
    notes: tuple[str, ...] = ()
    unindexed: "Callable[[], Log] | None" = field(default=None, repr=False)
    histories: "dict[str, SchemaHistory]" = field(default_factory=dict, repr=False, compare=False)
    read_tables: frozenset[str] | None = None
    logs_cascades: bool = False

    @classmethod
    def of_warehouse(
        cls,
        home: Path,
        views: Iterable[tuple[str, str]] = VIEWS,
        *,
        spill: Path | None = None,
        tell: Callable[[str], None] = ignored,
        filters: Filters | None = None,
        is_current: bool = False,
    ) -> "Log":
        """Return the log of a warehouse.

        Parameters
        ----------
        home
            Folder of all data of binloom.
        views
            The marts that the connection needs; `binloom.table_versions` is one of them.
        spill
            Folder for data that does not fit into memory (`engine.in_memory`). None: the memory of DuckDB has no limit.
        tell
            Is told when a build must be waited for.
        filters
            Its row changes are those in partitions that the filters may select from. None: all of them.
        is_current
            Whether it is known that the last build had all that has landed; see `open_marts`.

        Raises
        ------
        NoMartError
            A mart was not built yet.
        UnfinishedMartError
            A build was killed while it wrote a mart, or takes too long.
        """
        needs = all_partitions if filters is None else filters.may_select_from
        connection = open_marts(home, views, spill, tell, needs, is_current=is_current)
        beginnings = beginnings_of(connection, home)
        versions = read_table_versions(connection)
        return cls(connection, versions, is_whole=filters is None, home=home, is_landed=True, beginnings=beginnings)

    @classmethod
    def of_cluster(cls) -> "Log":
        """Return the log of the cluster that the environment names.

        Raises
        ------
        ClusterLostError
            No Thrift server answers there.
        NoClusterTableError
            The marts were not built there yet.
        """
        copies = Copies(Cluster.of_environment())
        copies.add("table_versions")
        return cls(copies.connection, read_table_versions(copies.connection), copies=copies, is_landed=True)

    @classmethod
    def of_files(
        cls,
        paths: "Sequence[LogPath]",
        filters: Filters,
        *,
        source_id: str | None = None,
        snapshot: "SchemaSnapshot | None" = None,
        home: Path | None = None,
        index: "Index | None" = None,
        counts_all_rows: bool = False,
    ) -> "Log":
        """Return the row changes of binlog files that filters select, decoded now; see `files.file_log.decode`.

        Only queries with these filters, or narrower ones, have an answer.
        """
        from recover.sources.files.file_log import SOURCE, decode

        found = decode(
            paths,
            filters,
            source_id=source_id or SOURCE,
            snapshot=snapshot,
            home=home,
            index=index,
            counts_all_rows=counts_all_rows,
        )
        whole = partial(cls.of_files, paths, filters, source_id=source_id, snapshot=snapshot, home=home)
        return cls(
            found.connection,
            read_table_versions(found.connection),
            found.problems,
            is_whole=False,
            tables=found.tables,
            goes_on_after=found.last_file if found.goes_on else None,
            open_transaction=found.open_transaction,
            snapshot=snapshot,
            notes=found.notes,
            unindexed=whole if found.notes else None,
        )

    @classmethod
    def of_whole_files(
        cls,
        paths: "Sequence[LogPath]",
        table: str | None = None,
        *,
        source_id: str | None = None,
        snapshot: "SchemaSnapshot | None" = None,
        home: Path | None = None,
        spill: Path | None = None,
        index: "Index | None" = None,
        parts: Parts | None = None,
    ) -> "Log":
        """Return all row changes of binlog files, or those of one table, and the facts of `decoded_facts`.

        An index helps only for one table, or with `parts` of the files.

        Raises
        ------
        UsageError
            The files are not of one log, or nothing tells to which epoch of a landed source they belong.
        """
        from recover.sources.files.file_log import SOURCE, decode

        source = source_id or SOURCE
        if home is not None:
            _assert_one_epoch(source, home)
        more: list[Rest] = []

        def rest(found: "DecodedFiles") -> list[Rest]:
            more[:] = () if parts is None else parts.rest(cls.of_decoded(found, snapshot, home))
            return more

        found = decode(
            paths,
            Filters(),
            source_id=source,
            snapshot=snapshot,
            home=home,
            tables=() if table is None else (table,),
            with_facts=True,
            spill=spill,
            index=None if table is None and parts is None else index,
            first=None if parts is None else parts.filters,
            rest=None if parts is None else rest,
        )
        read_tables = found.read_tables if parts is None else _all_rows_of(more)
        return replace(cls.of_decoded(found, snapshot, home), read_tables=read_tables)

    @classmethod
    def of_decoded(
        cls, found: "DecodedFiles", snapshot: "SchemaSnapshot | None" = None, home: Path | None = None
    ) -> "Log":
        """Return the log of files that were decoded with their facts; `snapshot` and `home` gave definitions."""
        return cls(
            found.connection,
            read_table_versions(found.connection),
            found.problems,
            tables=found.tables,
            goes_on_after=found.last_file if found.goes_on else None,
            open_transaction=found.open_transaction,
            snapshot=snapshot,
            home=home,
            history=found.history,
            documents=found.documents,
            notes=found.notes,
            logs_cascades=snapshot is not None and snapshot.logs_cascades is True,
        )

    def has_rows_of(self, schema: str, table: str) -> bool:
        """Return whether it has all row changes of a table."""
        if not self.is_whole or self.copies is not None:
            return False
        return self.read_tables is None or not self.read_tables.isdisjoint({table.lower(), f"{schema}.{table}".lower()})

    def select(self, filters: Filters) -> Selection:
        """Return what filters select.

        Raises
        ------
        UsageError
            See `recover.selection.condition.select`; or all rows of the tables are in quarantine.
        """
        try:
            found = select(filters, self.versions)
        except UnknownNameError as error:
            self.assert_not_quarantined(filters)
            raise self.unknown(self._unknown_table(filters) or error) from None
        return self._narrowed(found) if found.keys else found

    def unknown(self, error: UnknownNameError) -> UnknownNameError:
        """Return the error for a name that is not in the log: of a part that could not be read, nobody knows."""
        if not self.problems:
            is_of_files = not error.has_others and not self.is_landed
            return UnknownNameError(error.message, hint=NO_NAMES_IN_FILES) if is_of_files else error
        near = error.hint if error.has_others else None
        finding = f"{error.message.removesuffix('.')} in what could be read of the log."
        return UnknownNameError(finding, hint=near or self.problems[0].hint)

    def _narrowed(self, selection: Selection) -> Selection:
        """Return the same selection, of the files of a warehouse that may have its keys."""
        import sqlglot
        from sqlglot import exp

        parts = key_parts(self.connection, selection.keys)
        queries = (parts.by_old_key, parts.by_new_key)
        sources = (sqlglot.parse_one(query, read="duckdb", into=exp.Select) for query in queries)
        return replace(selection, sources=tuple(source.subquery("row_changes") for source in sources))

    def assert_not_quarantined(self, filters: Filters) -> None:
        """Report the rows in quarantine that filters would select, which select no other rows."""
        if (error := self._only_quarantined(filters)) is not None:
            raise error

    def _only_quarantined(self, filters: Filters) -> UsageError | None:
        missing = self.quarantined(filters)
        if not missing:
            return None
        return UsageError(
            f"All selected row events are in quarantine: {listed(missing)}.",
            hint=self.way_out_of_quarantine(missing),
        )

    def way_out_of_quarantine(self, missing: Sequence[Quarantined]) -> str:
        """Return what gives the names and values of rows in quarantine, as sentences."""
        if self.snapshot is None and self.is_landed:
            return "Run `binloom snapshot`, which lands the names of their columns, and `binloom build`."
        if self.snapshot is None:
            return (
                "Give the definitions of the tables: --ddl FILE, --snapshot-dir DIR, or a server that has them with"
                " --schema-from HOST; with --against HOST for undo and redo. `binloom top` shows tables and the biggest"
                " transactions without them."
            )
        uncertain = [one for one in missing if one.reason == "value_uncertain"]
        if uncertain == missing:
            return (
                f"The definitions that were given do not tell how to read values of {missing[0].table}:"
                f" {missing[0].detail}. Those of a server do: --schema-from HOST."
            )
        given = {f"{row['schema_name']}.{row['table_name']}" for row in self.snapshot.columns}
        if not any(one.table in given for one in missing):
            return "The definitions that were given do not have these tables: give those of a server that has them."
        return (
            "The definitions that were given do not fit them. If the table was altered after these files, give the"
            " later files, too. Otherwise give definitions of the time at which the rows changed, for example an old"
            " CREATE TABLE with --ddl."
        )

    def _unknown_table(self, filters: Filters) -> UnknownNameError | None:
        """Return the error for an unknown table, with the names of all tables in the files: only some were decoded."""
        for pattern in filters.tables:
            only = Filters(schemas=filters.schemas, tables=(pattern,))
            if self.tables and not any(is_filtered_table(only, *table) for table in self.tables):
                return unknown_table(pattern, self.tables)
        return None

    def quarantined(self, filters: Filters) -> list[Quarantined]:
        """Return the rows in quarantine that filters of place, time, transaction and table would select."""
        from sqlglot import exp

        query = (
            exp.select("source_id", "schema_name", "table_name", "reason", "count(*)", "min(detail)")
            .from_("binloom.quarantined_row_events")
            .where(place_condition(filters))
            .group_by("source_id", "schema_name", "table_name", "reason")
            .order_by("schema_name", "table_name", "reason")
        )
        return [
            Quarantined(f"{schema}.{table}" if table else "unknown tables", reason, rows, detail or "")
            for _, schema, table, reason, rows, detail in self.rows(query)
            if is_filtered_table(filters, schema or "", table or "")
        ]

    def why_nothing(self, selection: Selection) -> UsageError:
        """Return the error for a selection without row changes; of a warehouse, all partitions are asked."""
        if selection.filters.is_without_values and (error := self._only_quarantined(selection.filters)) is not None:
            return error
        is_part_of_warehouse = self.is_landed and not self.is_whole
        log = Log.of_warehouse(self.home) if is_part_of_warehouse and self.home is not None else self
        if self.unindexed is not None and names_what_may_be_skipped(selection.filters):
            log = self.unindexed()
        return why_nothing(log.rows, selection, log.is_whole, is_damaged=bool(log.problems))

    def answer(self, query: "exp.Query") -> Answer:
        """Return the answer to a query on the views; a cluster gives it from all of its rows."""
        if self.copies is not None:
            cluster = self.copies.cluster
            return cluster.answer(cluster.without_digests(query))
        return answer(self.connection, query.sql("duckdb"))

    def rows(self, query: "exp.Query") -> Iterator[tuple[Any, ...]]:
        """Yield the rows of the answer, read while they are used."""
        return self.answer(query).rows


def _all_rows_of(more: Iterable[Rest]) -> frozenset[str] | None:
    """Return the tables of which all rows were read; None: all tables."""
    tables = [one.tables for one in more if one.since is None and one.until is None]
    known = [names for names in tables if names is not None]
    return frozenset[str]().union(*known) if len(known) == len(tables) > 0 else None


def _assert_one_epoch(source_id: str, home: Path) -> None:
    """Refuse to take names from a source with several epochs: the names of files occur in each of them."""
    from ingest.warehouse.record import SourceRecord

    epochs = {epoch for epoch, _ in SourceRecord.load(source_id, home).states}
    if epochs - {0}:
        raise UsageError(
            f"Source {source_id} has {len(epochs)} epochs in the warehouse, and files do not tell theirs.",
            hint="Define the tables with --ddl or --snapshot-dir; or ask the warehouse, without --files.",
        )
