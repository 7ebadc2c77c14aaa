"""A script that makes the tables of a live server as they were at a moment, by the fewest changes of rows.

The statements are those of an undo: each finds its row by the key, changes nothing if the row differs from what was
read, and all of them are committed together or not at all.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ingest.sources.dumps.live_read import LiveRead
from ingest.words import counted
from recover.restore.cascades import is_cascading
from recover.restore.compared import ComparedTable, compared_table
from recover.restore.refusal import RestoreRefusedError
from recover.restore.rows import RestoredTable
from recover.undo.print.script import block, closing, comment, opening
from recover.undo.prove.writing import StatementWriter
from recover.undo.rows.literals import UnprintableValueError, quoted
from recover.undo.rows.operations import operation_between
from recover.undo.tables.ranks import table_ranks
from recover.undo.tables.table import ForeignKey, TableName, foreign_keys_of_snapshot, tables_of_snapshot

_FREED_FIRST: Final = ("DELETE", "UPDATE", "INSERT")
_PARENTS_FIRST: Final = ("INSERT", "UPDATE", "DELETE")


@dataclass(frozen=True)
class Comparison:
    """Tables of a server that were compared with a moment, parents first.

    Attributes
    ----------
    foreign_keys
        Those that refer from these tables or to them, on the server.
    """

    tables: tuple[ComparedTable, ...]
    foreign_keys: tuple[ForeignKey, ...]

    @property
    def is_empty(self) -> bool:
        """Whether the rows on the server are those of the moment."""
        return not any(table.counts for table in self.tables)

    @property
    def has_crossed(self) -> bool:
        """Whether rows must give up unique values before others take them."""
        return any(table.has_crossed for table in self.tables)

    @property
    def is_unchecked(self) -> bool:
        """Whether no order of the statements is right for a foreign key, so that all are checked at the end."""
        return any(map(self._is_out_of_order, self.foreign_keys))

    def _is_out_of_order(self, key: ForeignKey) -> bool:
        names = [table.table.name for table in self.tables]
        changed = {table.table.name: table for table in self.tables if table.counts}
        child, parent = changed.get(key.table), changed.get(key.parent)
        if self.has_crossed and (child or parent):
            return True
        # Rows of the same table, or of tables that refer to each other, have no order.
        if child is not None and key.parent in names[names.index(key.table) :] and child.moves(key.columns):
            return True
        if parent is None:
            return False
        would_cascade = key.table not in names and is_cascading(key) and "DELETE" in parent.counts
        return would_cascade or parent.changes(key.parent_columns)

    @property
    def counts(self) -> Iterator[str]:
        """How many rows of each table get which statement, in words."""
        for table in self.tables:
            for verb, count in table.counts.items():
                shown = "DELETE and INSERT" if verb == "REPLACE" else verb
                yield f"{shown} {table.table.text}: {counted(count, 'row')}"

    def lines(self, notes: Sequence[str]) -> Iterator[str]:
        """Yield the lines of the script.

        Raises
        ------
        RestoreRefusedError
            A value cannot be written as SQL.
        """
        yield from map(comment, [*notes, *self._head()])
        if self.is_empty:
            return
        yield ""
        yield from opening({"foreign_key_checks": "0"} if self.is_unchecked else {})
        yield ""
        yield from block(([text] for text in self._statements()), "commit")
        yield ""
        yield from closing()

    def _head(self) -> Iterator[str]:
        yield from self.counts
        if self.is_empty:
            yield "nothing to do: all rows are as they were at the moment"
            return
        if self.is_unchecked:
            yield (
                "foreign keys are checked at the end and not while it runs, because rows refer to each other, or give"
                " up unique values that others take"
            )
        yield "if a row changes before the script runs, the client stops with ERROR 1064, and nothing is committed"

    def _statements(self) -> Iterator[str]:
        writer = StatementWriter()
        for verb in _FREED_FIRST if self.has_crossed else _PARENTS_FIRST:
            for table in reversed(self.tables) if verb == "DELETE" else self.tables:
                for now, wanted in table.differences(verb, *(() if verb == "UPDATE" else ("REPLACE",))):
                    operation = operation_between(
                        table.table, None if verb == "INSERT" else now, None if verb == "DELETE" else wanted
                    )
                    assert operation is not None
                    try:
                        yield writer.text(operation)
                    except UnprintableValueError as error:
                        raise RestoreRefusedError(
                            error.message, hint="Restore the table to --format csv or parquet, as texts."
                        ) from None
        if self.is_unchecked:
            yield from map(_is_whole, self.foreign_keys)


def compared(tables: Sequence[RestoredTable], live: LiveRead) -> Comparison:
    """Return tables, parents first, compared with a server. Raises like `compared_table`."""
    there = tables_of_snapshot(live.snapshot.columns, live.snapshot.keys)
    names = {table.table.name for table in tables}
    keys = tuple(
        key for key in foreign_keys_of_snapshot(live.snapshot.foreign_keys) if key.table in names or key.parent in names
    )
    ranks: dict[TableName, int] = table_ranks(names, keys)
    found = [compared_table(table, live, there) for table in tables]
    return Comparison(tuple(sorted(found, key=lambda one: ranks[one.table.name])), keys)


def _is_whole(key: ForeignKey) -> str:
    """Return a query that gives 1 if each row has the row that a foreign key of it refers to."""
    child, parent = (".".join(map(quoted, name)) for name in (key.table, key.parent))
    pairs = [*zip(map(quoted, key.columns), map(quoted, key.parent_columns), strict=True)]
    joined = " AND ".join(f"p.{there} = c.{here}" for here, there in pairs)
    referring = " AND ".join(f"c.{here} IS NOT NULL" for here, _ in pairs)
    return (
        f"SELECT COUNT(*) = 0 FROM {child} AS c LEFT JOIN {parent} AS p ON {joined}"
        f" WHERE {referring} AND p.{pairs[0][1]} IS NULL"
    )
