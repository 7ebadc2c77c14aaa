"""The differences between a table at a moment and a live table, found by DuckDB."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ingest.sources.dumps.dump_values import column_of
from ingest.sources.dumps.live_read import LiveRead
from recover.restore.cascades import comparable
from recover.restore.refusal import RestoreRefusedError
from recover.restore.rows import RestoredTable
from recover.sources.engine import fetched, literal, quoted, registered
from recover.sources.files.document_types import DocumentTypes
from recover.undo.rows.fold import Row
from recover.undo.select.obstacles import plain_type
from recover.undo.tables.table import Table, TableName, UniqueKey

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

_OTHER_WAY: Final = "Restore the table without --compare-with."


@dataclass
class ComparedTable:
    """A table, and the rows in which a live server differs from a moment.

    Attributes
    ----------
    table
        The table as the server has it.
    counts
        Number of rows by what must be done with them: INSERT, UPDATE, DELETE, and REPLACE for an UPDATE that must be a
        DELETE and an INSERT, because another row takes its unique value.
    has_crossed
        Whether a row takes a unique value that another row must give up first.
    """

    restored: RestoredTable
    table: Table
    counts: dict[str, int] = field(default_factory=dict, init=False)
    has_crossed: bool = field(default=False, init=False)

    @property
    def _name(self) -> str:
        return quoted(f"differences of {self.table.text}")

    @property
    def _columns(self) -> tuple[str, ...]:
        return self.table.stored_names

    def find(self, live: LiveRead) -> None:
        """Compare all rows of the two.

        Raises
        ------
        RestoreRefusedError
            The dump and the log do not tell all rows.
        SourceError
            The connection broke.
        """
        self._keep("moment", (rows for rows, _ in self.restored.batches()))
        self._keep("live", map(self._in_columns, live.rows(self.table.name)))
        if self.restored.table.has_documents:
            found = (one.documents for one in self.restored.table.columns if one.documents is not None)
            self.table = self.table.with_documents(next(found, DocumentTypes(otherwise={})))
        connection = self._connection
        sides = [f"[{', '.join(f'{side}.{quoted(name)}' for name in self._columns)}]" for side in ("live", "moment")]
        key = quoted(self.table.row_key[0])
        connection.execute(
            f"""create or replace table {self._name} as
            select
                case when live.{key} is null then 'INSERT' when moment.{key} is null then 'DELETE' else 'UPDATE' end
                    as verb,
                case when live.{key} is not null then {sides[0]} end as now,
                case when moment.{key} is not null then {sides[1]} end as wanted
            from live full join moment using ({", ".join(map(quoted, self.table.row_key))})
            where live.{key} is null or moment.{key} is null or {sides[0]} is distinct from {sides[1]}"""
        ).fetchall()
        connection.execute("drop table live; drop table moment").fetchall()
        for unique in self.table.all_keys:
            self._replace_crossed(unique)
        self.counts = dict(
            connection.execute(f"select verb, count(*) from {self._name} group by verb order by verb").fetchall()
        )

    def differences(self, *verbs: str) -> Iterator[tuple[Row | None, Row | None]]:
        """Yield the rows of some verbs, as they are and as they must become, in the order of the key."""
        places = [f"coalesce(now, wanted)[{self._columns.index(name) + 1}]" for name in self.table.row_key]
        cursor = self._connection.cursor()
        cursor.execute(
            f"select now, wanted from {self._name} where verb in ({', '.join(map(literal, verbs))})"
            f" order by {', '.join(f'try_cast({place} as double), {place}' for place in places)}"
        )
        for now, wanted in fetched(cursor, self._connection):
            yield self._row(now), self._row(wanted)

    def moves(self, columns: Sequence[str]) -> bool:
        """Return whether rows come or go, or get another value in some columns."""
        return bool(self.counts.keys() - {"UPDATE"}) or self.changes(columns)

    def changes(self, columns: Sequence[str]) -> bool:
        """Return whether a row that stays gets another value in some columns."""
        places = [self._columns.index(name) + 1 for name in columns if name in self._columns]
        changed = " or ".join(f"now[{place}] is distinct from wanted[{place}]" for place in places) or "false"
        query = f"select 1 from {self._name} where verb in ('UPDATE', 'REPLACE') and ({changed}) limit 1"
        return bool(self._connection.execute(query).fetchall())

    def _row(self, values: list[str | None] | None) -> Row | None:
        return None if values is None else dict(zip(self._columns, values, strict=True))

    @property
    def _connection(self) -> "DuckDBPyConnection":
        return self.restored.source.log.connection

    def _keep(self, name: str, batches: "Iterator[pa.Table]") -> None:
        """Keep rows in a table of the connection."""
        columns = ", ".join(f"{quoted(column)} varchar" for column in self._columns)
        self._connection.execute(f"create or replace table {name} ({columns})").fetchall()
        wanted = ", ".join(map(quoted, self._columns))
        for rows in batches:
            with registered(self._connection, "batch", rows):
                self._connection.execute(f"insert into {name} select {wanted} from batch").fetchall()

    def _in_columns(self, rows: "pa.ListArray") -> "pa.Table":
        import pyarrow as pa

        size = len(self._columns)
        return pa.table([column_of(rows, at, size) for at in range(size)], names=list(self._columns))

    def _replace_crossed(self, key: UniqueKey) -> None:
        """Mark updates of rows that give up a unique value which another row takes."""
        connection, name = self._connection, self._name
        if any(part.column not in self._columns for part in key.parts):
            # Nothing here computes an expression.
            (counts,) = connection.execute(
                f"select count(*) filter (now is not null), count(*) filter (wanted is not null) from {name}"
            ).fetchall()
            self.has_crossed |= all(counts)
            connection.execute(f"update {name} set verb = 'REPLACE' where verb = 'UPDATE'").fetchall()
            return
        now, wanted = self._value("now", key), self._value("wanted", key)
        connection.execute(
            f"""create or replace table crossed as
            with changed as (
                select rowid as place, {now} as given, {wanted} as taken
                from {name} where {now} is distinct from {wanted}
            )
            select distinct one.place
            from changed as one inner join changed as other on one.given = other.taken and one.place != other.place"""
        ).fetchall()
        ((count,),) = connection.execute("select count(*) from crossed").fetchall()
        if count:
            self.has_crossed = True
            connection.execute(
                f"update {name} set verb = 'REPLACE' where verb = 'UPDATE' and rowid in (select place from crossed)"
            ).fetchall()
        connection.execute("drop table crossed").fetchall()

    def _value(self, side: str, key: UniqueKey) -> str:
        """Return an expression that is equal for values that the server may take for equal; NULL is none."""
        texts = []
        for part in key.parts:
            assert part.column is not None
            text = f"{side}[{self._columns.index(part.column) + 1}]"
            # A prefix of a binary column has bytes, of which each has two digits behind `0x`.
            texts.append(comparable(text if part.length is None else f"left({text}, {part.length})"))
        return " || chr(0) || ".join(texts)


def compared_table(restored: RestoredTable, live: LiveRead, tables: Mapping[TableName, Table]) -> ComparedTable:
    """Return a table with its differences.

    Raises
    ------
    RestoreRefusedError
        The server has other columns, the table has no primary key, or the dump and the log do not tell all rows.
    SourceError
        The connection broke.
    """
    name, there = restored.table.text, tables[restored.table.name]
    if reason := _difference(restored.table, there):
        raise RestoreRefusedError(f"{name} has another definition on the server at {live}: {reason}.", hint=_OTHER_WAY)
    if not there.row_key or not {*there.row_key} <= {*there.stored_names}:
        raise RestoreRefusedError(
            f"{name} has neither a primary key nor a unique key without NULL (generated columns do not count), so its"
            " rows cannot be matched with those on the server.",
            hint=_OTHER_WAY,
        )
    if restored.has_rounded:
        raise RestoreRefusedError(
            f"The dump has only rounded values of a FLOAT or DOUBLE(M,D) of {name}, so that each row would differ.",
            hint=_OTHER_WAY,
        )
    found = ComparedTable(restored, there)
    found.find(live)
    return found


def _difference(restored: Table, live: Table) -> str:
    """Return in which way two definitions differ, empty if statements mean the same for both."""
    here, there = ({column.name: column for column in table.stored} for table in (restored, live))
    if odd := sorted(here.keys() ^ there.keys()):
        return f"only one of them has {', '.join(odd)}"
    for name, column in here.items():
        other = there[name]
        if plain_type(column.column_type) != plain_type(other.column_type):
            return f"column {name} was {column.column_type} and is {other.column_type}"
        if column.character_set != other.character_set:
            return f"column {name} was in {column.character_set} and is in {other.character_set}"
    if restored.row_key != live.row_key:
        return "it has another primary key"
    return ""
