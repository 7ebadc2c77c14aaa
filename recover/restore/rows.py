"""The rows of a table at a moment: those of a dump, with the changes since.

Most rows have not changed since the dump. They go from the dump to the answer as they are, in columns; only rows with
a key that a change of the log has are followed through time. If a statement has altered the table since the dump, all
rows are.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, Final

from ingest.sources.baselines.baseline_tables import BaselineTable
from ingest.sources.dumps.dump_values import column_of
from ingest.words import counted, subject
from recover.restore.cascades import LostKeys, lost_keys
from recover.restore.dumped_log import BASELINE, DumpedLog
from recover.restore.linked import keep_documents, last_images, note_plain_keys
from recover.restore.refusal import RestoreRefusedError
from recover.sources.engine import has_rows, insert_row, literal, quoted, registered
from recover.sources.files.file_log import SOURCE
from recover.timeline.as_of import Moment
from recover.timeline.events import Effect
from recover.timeline.events import Table as LoggedTable
from recover.timeline.state import Row, State, defined_at, state_of
from recover.timeline.table_log import events_of, note_changed_keys
from recover.undo.print.inserts import difference
from recover.undo.tables.definitions import Definitions, former_keys, keys_in_time
from recover.undo.tables.table import ForeignKey, Table, TableName, foreign_keys_of_snapshot

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS_AT_ONCE: Final = 10_000
_TEXT_AT_ONCE: Final = 1 << 26
_OTHER_WAY: Final = "Restore the dump and the log on a scratch server."


@dataclass
class RestoredTable:
    """A table at a moment. The counts are final when all rows were read.

    Attributes
    ----------
    table
        Its definition at the moment.
    foreign_keys
        All foreign keys that are known at the moment.
    origin
        Where its definition comes from, in words.
    rows
        Number of rows.
    followed
        Those of them that were followed through the log.
    """

    source: DumpedLog
    moment: Moment
    table: Table
    foreign_keys: tuple[ForeignKey, ...]
    origin: str
    _needs_documents: bool
    _changed: str
    _dumped: BaselineTable | None
    _rounded: tuple[str, ...]
    _state: State
    _is_altered: bool
    _lost: Sequence[LostKeys]
    rows: int = field(default=0, init=False)
    followed: int = field(default=0, init=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns whose values are restored: all that no expression gives."""
        return self.table.stored_names

    @property
    def has_rounded(self) -> bool:
        """Whether values of the dump may have fewer digits than the server had."""
        return not {*self._rounded}.isdisjoint(self.columns)

    def batches(self) -> Iterator[tuple["pa.Table", bool]]:
        """Yield the rows, each column as texts, and whether documents may have types that their texts do not tell.

        Raises
        ------
        RestoreRefusedError
            It turns out that the log lacks something.
        SnapshotInputError
            The dump is damaged.
        """
        for rows in self._unchanged():
            yield self._checked(rows), False
        for rows in self._followed():
            for part in _parts(self._checked(rows)):
                yield part, self._has_typed_documents

    def _checked(self, rows: "pa.Table") -> "pa.Table":
        for lost in self._lost:
            lost.assert_unused(rows)
        self.rows += rows.num_rows
        return rows

    def _unchanged(self) -> "Iterator[pa.Table]":
        """Keep digests of the rows of the dump that must be followed, or their values; yield the others."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if self._dumped is None:
            return
        dumped = self._dumped
        # Those of another table.
        self.source.log.connection.execute("truncate dump_rows").fetchall()
        size = len(dumped.column_names)
        names = dumped.column_names
        places = {name: names.index(name) for name in self.columns if name in names}
        has_changes = self._follows_all or has_rows(self.source.log.connection, self._changed)
        first = 0
        for rows in self.source.dump.rows(dumped):
            unchanged = rows
            if has_changes:
                is_followed = self._is_followed(rows)
                self._keep(rows, is_followed, first, with_values=self._follows_all)
                unchanged = rows.filter(pc.invert(is_followed))
            first += len(rows)
            if len(unchanged):
                yield pa.table({name: column_of(unchanged, place, size) for name, place in places.items()})

    def _is_followed(self, rows: "pa.ListArray") -> "pa.BooleanArray":
        """Return which rows of the dump must be followed."""
        import numpy as np
        import pyarrow as pa

        if self._follows_all or self._dumped is None:
            return pa.array(np.ones(len(rows), dtype=bool))
        ordinals = self._dumped.primary_key_ordinals or ()
        keys = {f"part_{place}": column_of(rows, place, len(self._dumped.column_names)) for place in ordinals}
        numbers = np.arange(len(rows))
        found = np.zeros(len(rows), dtype=bool)
        connection = self.source.log.connection
        with registered(connection, "batch", pa.table({**keys, "number": numbers})):
            # DuckDB builds its hash table of the fewer keys, which are those of the batch.
            query = f"select number from batch inner join {self._changed} as changed on {_joined(keys)} = changed.key"
            found[connection.execute(query).fetchnumpy()["number"]] = True
        return pa.array(found)

    def _keep_values(self) -> None:
        """Keep the values of the rows of the dump that must be followed, and of which there are only digests."""
        assert self._dumped is not None
        self.source.log.connection.execute("truncate dump_rows").fetchall()
        first = 0
        for rows in self.source.dump.rows(self._dumped):
            self._keep(rows, self._is_followed(rows), first, with_values=True)
            first += len(rows)

    def _keep(self, rows: "pa.ListArray", is_followed: "pa.BooleanArray", first: int, *, with_values: bool) -> None:
        """Keep some rows of the dump, or only their digests. The first of all has the number `first`."""
        import numpy as np
        import pyarrow as pa

        assert self._dumped is not None
        connection = self.source.log.connection
        name = ", ".join(map(literal, self.table.name))
        numbers = pa.array(np.arange(first, first + len(rows)))
        columns = enumerate(self._dumped.column_names, 1)
        exact = ", ".join(f"row_values[{place}]" for place, column in columns if column not in self._rounded)
        values = f"[{exact}]" if self._rounded else "row_values"
        key = _joined([f"row_values[{place + 1}]" for place in self._dumped.primary_key_ordinals or ()])
        kept = pa.table([rows, numbers], ["row_values", "row_number"]).filter(is_followed)
        with registered(connection, "batch", kept):
            kept_values = values if with_values else "null"
            query = f"select {name}, row_number, {key}, hash({values}), {kept_values} from batch"
            connection.execute(f"insert into dump_rows {query}").fetchall()

    @property
    def _has_typed_documents(self) -> bool:
        documents = self.source.log.documents
        return self._needs_documents and self.table.has_documents and documents is not None and bool(documents.typed)

    @property
    def _follows_all(self) -> bool:
        """Whether each row must be followed: a statement may have changed it, or no key tells which rows changed."""
        has_key = self._dumped is not None and self._dumped.primary_key_ordinals is not None
        return self._is_altered or (not has_key and has_rows(self.source.log.connection, self._changed))

    def _followed(self) -> "Iterator[pa.Table]":
        connection = self.source.log.connection
        if not (self._follows_all or has_rows(connection, self._changed)):
            return
        linked = None
        if not self._follows_all and self._dumped is not None:
            exact = [name for name in self._dumped.column_names if name not in self._rounded]
            linked = last_images(
                connection, self._state.table, self.source.place, self.moment.place, exact, self.columns
            )
            if linked is None:
                self._keep_values()
        if self._has_typed_documents:
            self._add_documents(is_linked=linked is not None)
        for rows in linked if linked is not None else self._followed_one_by_one():
            self.followed += rows.num_rows
            yield rows

    def _add_documents(self, *, is_linked: bool) -> None:
        """Add the types in the documents of the log: those of the last images, if these are known, or all."""
        documents = self.source.log.documents
        assert documents is not None
        only = None
        if is_linked:
            only = "restored_documents"
            names = [column.name for column in self.table.stored if column.data_type == "json"]
            keep_documents(self.source.log.connection, names, only)
        types = documents.types({self.table.name}, only)
        types.otherwise = {}
        self.table = self.table.with_documents(types)

    def _followed_one_by_one(self) -> "Iterator[pa.Table]":
        import pyarrow as pa

        rows = self._state.rows()
        schema = pa.schema([(name, pa.string()) for name in self.columns])
        while part := _some(rows):
            for row in part:
                self._assert_known(row)
            yield pa.table({name: [row.values[name] for row in part] for name in self.columns}, schema=schema)
        if self._state.chain_breaks:
            raise RestoreRefusedError(
                f"{subject(self._state.chain_breaks, 'change', 'does', 'do')} not link to the values of the row before,"
                f" in {self.table.text}: the dump is not of this log, or the log lacks writes.",
                hint=_OTHER_WAY,
            )

    def _assert_known(self, row: Row) -> None:
        unknown = [name for name in self.columns if name not in row.values]
        if not (unknown or row.doubts):
            return
        key = ", ".join(f"{name} {row.values.get(name)}" for name in self.table.row_key or self.columns[:3])
        reason = (
            f"the log may lack a change of it: {'; '.join(map(str, row.doubts))}"
            if row.doubts
            else f"neither the dump nor the log has its {', '.join(unknown)}"
        )
        raise RestoreRefusedError(
            f"The row {key} of {self.table.text} is not known exactly: {reason}.", hint=_OTHER_WAY
        )


def _some(rows: Iterator[Row]) -> list[Row]:
    """Take the next rows, none at the end."""
    found, size = list[Row](), 0
    for row in islice(rows, _ROWS_AT_ONCE):
        found.append(row)
        size += sum(len(value) for value in row.values.values() if value is not None)
        if size >= _TEXT_AT_ONCE:
            break
    return found


def _parts(rows: "pa.Table") -> "Iterator[pa.Table]":
    """Yield rows in parts that fit into small arrays, also as the literals of SQL, which are twice as long."""
    import numpy as np
    import pyarrow.compute as pc

    sizes = np.zeros(rows.num_rows, dtype=np.int64)
    for column in rows.columns:
        sizes += np.asarray(pc.fill_null(pc.binary_length(column), 0))
    ends = np.flatnonzero(np.diff(np.cumsum(sizes) // _TEXT_AT_ONCE)) + 1
    for first, end in pairwise([0, *ends.tolist(), rows.num_rows]):
        yield rows.slice(first, end - first)


def restored_table(
    source: DumpedLog,
    name: TableName,
    moment: Moment,
    dumped: BaselineTable | None,
    *,
    is_optional: bool = False,
    needs_documents: bool = True,
) -> RestoredTable | None:
    """Return a table at a moment; its rows are read when they are asked for.

    Parameters
    ----------
    dumped
        The table in the dump; None if it was created since.
    is_optional
        Whether to return None if the table was dropped, or not created yet.
    needs_documents
        Whether the types in JSON documents are needed, which SQL has and texts have not.

    Raises
    ------
    RestoreRefusedError
        The dump and the log do not tell its rows exactly.
    """
    connection = source.log.connection
    logged = LoggedTable(SOURCE, *name)
    definitions = Definitions.at(source.log, SOURCE, name, moment.place)
    table = definitions.tables.get(name)
    if table is None and is_optional and _is_absent(source, logged, moment):
        return None
    if table is None:
        raise RestoreRefusedError(
            f"{'.'.join(name)} has no known definition at {moment}: it did not exist then, or a statement of the log"
            " that changes it is not understood.",
            hint="Choose another moment; `binloom top` lists the statements that dropped tables.",
        )
    if table.is_versioned:
        raise RestoreRefusedError(
            f"{table.text} is system-versioned: the server itself writes the rows of its history.", hint=_OTHER_WAY
        )
    rounded: tuple[str, ...] = ()
    if dumped is not None:
        rounded = source.dump.rounded_columns(dumped)
        _add_baseline(source, logged, dumped, rounded)
    changed = quoted(f"changed keys of {table.text}")
    if not (table.primary_key and note_plain_keys(connection, logged, source.place, moment.place, changed)):
        note_changed_keys(connection, logged, source.place, moment.place, changed)
    # A foreign key may have been dropped since.
    dumped_keys = foreign_keys_of_snapshot(source.dump.snapshot.foreign_keys)
    former = former_keys(keys_in_time(source.log, SOURCE), source.place, {*source.log.tables, name}, moment.place)
    keys = dict.fromkeys((*definitions.foreign_keys, *dumped_keys, *former))
    lost = [*lost_keys(source, table, keys, moment)]
    # The rows themselves show whether a foreign key has changed them.
    state = state_of(connection, logged, moment)
    if state.gaps_in_knowledge:
        raise RestoreRefusedError(
            f"The rows of {table.text} at {moment} are not all known. {' '.join(state.gaps_in_knowledge)}",
            hint=_OTHER_WAY,
        )
    if reason := difference(source.log, state, table, definitions):
        raise RestoreRefusedError(
            f"The definition of {table.text} at {moment} is not certain: {reason}.", hint=_OTHER_WAY
        )
    is_altered = state.baseline is None or len(state.events(moment.place)) > 1
    has_key = dumped is not None and dumped.primary_key_ordinals is not None and not {*rounded} & {*table.primary_key}
    if dumped is not None and table.primary_key and not has_key:
        raise RestoreRefusedError(
            f"The dump does not have the exact values of the primary key of {table.text}.", hint=_OTHER_WAY
        )
    has_generated = any(column.is_generated for column in table.columns)
    if not table.primary_key and (rounded or has_generated) and has_rows(connection, changed):
        raise RestoreRefusedError(
            f"{table.text} has no primary key, and changed since the dump. Its rows cannot be told apart, because the"
            " dump lacks the exact values of generated columns, FLOAT and DOUBLE(M,D).",
            hint=_OTHER_WAY,
        )
    return RestoredTable(
        source,
        moment,
        table,
        definitions.foreign_keys,
        definitions.origins.get(name, ""),
        needs_documents,
        changed,
        dumped if state.baseline is not None else None,
        rounded,
        state,
        is_altered,
        lost,
    )


def _is_absent(source: DumpedLog, table: LoggedTable, moment: Moment) -> bool:
    """Return whether a statement dropped a table before a moment, or only one after it creates it."""
    events = [event for event in events_of(source.log.connection, table) if event.effect is not Effect.OBSCURES]
    before = [event for event in events if event.place < moment.place]
    if before:
        return any(action.startswith(("drop_table", "drop_database")) for action in before[-1].actions)
    return any(action.startswith("create") for event in events[:1] for action in event.actions)


def _add_baseline(source: DumpedLog, logged: LoggedTable, dumped: BaselineTable, rounded: Sequence[str]) -> None:
    """Tell the engine of `state` of the rows of the dump, which follow."""
    connection = source.log.connection
    version = defined_at(connection, logged, source.place)
    values: list[Any] = [BASELINE, SOURCE, source.place.epoch, source.binlog_file, source.place.file_sequence]
    values += [source.place.pos, dumped.schema_name, dumped.table_name, source.dump.snapshot.taken_at, True]
    values += [[name for name in dumped.column_names if name not in rounded], version[0] if version else None]
    insert_row(connection, "binloom.baselines", *values)


def _joined(parts: Iterable[str]) -> str:
    """Return the expression of a row's key from those of its parts, as the log has it; NULL without a primary key."""
    escaped = [f"replace(replace({part}, '\\', '\\\\'), '|', '\\|')" for part in parts]
    return " || '|' || ".join(escaped) if escaped else "null"


def described(table: RestoredTable) -> str:
    """Return what was restored, in words."""
    return (
        f"{table.table.text} as of {table.moment}: {counted(table.rows, 'row')},"
        f" {table.followed:,} of them followed through the log since the dump."
    )
