"""The rows of a table at a moment as a script of INSERT statements, each read back before it is printed."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from ingest.errors import UsageError
from ingest.landing.bindings import wire_metadata
from ingest.warehouse.tokens import TOKEN
from ingest.words import counted
from recover.selection.catalog import Column as LoggedColumn
from recover.sources.log import Log
from recover.timeline.events import Effect, TableEvent
from recover.timeline.masked_columns import in_words, masked_tables
from recover.timeline.sorted_rows import sorted_rows
from recover.timeline.state import Row, State
from recover.timeline.table_log import events_of
from recover.undo.print.script import block, closing, comment, opening
from recover.undo.prove.reading import StatementReader
from recover.undo.prove.writing import statement
from recover.undo.rows.literals import UnprintableValueError, quoted
from recover.undo.rows.operations import Operation
from recover.undo.select.obstacles import plain_type
from recover.undo.tables.definitions import Definitions
from recover.undo.tables.table import Column, Table

# Rows of one transaction: few enough for the undo log of a server, many enough for its speed.
_ROWS_AT_ONCE: Final = 1000


class DefinitionError(UsageError):
    """The definition of a table at a moment is not known well enough for SQL."""


@dataclass
class Inserts:
    """The script for a state. The counts are final when all lines were read.

    Attributes
    ----------
    rows
        The rows of the state, in the order of the script; None: in no particular order.
    has_document_types
        Whether the types in JSON documents are known.
    written, left_out
        Rows with a statement, and rows that cannot have one.
    """

    state: State
    table: Table
    refers_to_itself: bool = False
    rows: Iterator[Row] | None = None
    origin: str = ""
    has_document_types: bool = True
    written: int = field(default=0, init=False)
    left_out: int = field(default=0, init=False)

    def lines(self) -> Iterator[str]:
        """Yield the lines of the script.

        Raises
        ------
        UnprovedStatementError
            A statement, read back, is another one.
        """
        yield from map(comment, self._head())
        yield ""
        # A row may be inserted before the row of the same table that it refers to.
        yield from opening({"foreign_key_checks": "0"} if self.refers_to_itself else {})
        reader, rows = StatementReader(), self.rows or self.state.rows()
        while part := list(itertools.islice(rows, _ROWS_AT_ONCE)):
            statements: list[str] = []
            for row in part:
                try:
                    statements.append(self._statement(row, reader))
                except _UnwritableError as error:
                    self.left_out += 1
                    yield comment(f"left out: {error}")
                    continue
                if row.doubts:
                    yield comment(f"uncertain: {self._name(row)}, since {'; '.join(map(str, row.doubts))}")
            self.written += len(statements)
            if statements:
                yield ""
                yield from block(iter([statements]), "commit")
        yield ""
        yield from closing()
        yield comment(f"{counted(self.written, 'row')}, {self.left_out:,} left out")

    def _head(self) -> Iterator[str]:
        yield f"binloom state: rows of {self.table.text} as of {self.state.moment}"
        yield f"source: {self.state.table.source_id}"
        if self.origin:
            yield f"definition of the table: from {self.origin}"
        if self.state.gaps_in_knowledge:
            yield "changed rows only:"
        for sentence in self.state.gaps_in_knowledge:
            yield f"  {sentence}"
        if self.refers_to_itself:
            yield "foreign keys are not checked, because the table refers to itself"
        else:
            yield "foreign keys are checked: the rows that these rows refer to must exist"
        if not self.has_document_types:
            yield "dates, times and bytes in JSON documents are written as texts: only --files has their types"
        yield "triggers of the table run"
        yield from map("not in this script: {}".format, self.table.zone_warnings)
        yield "run it with the mysql or mariadb client, without that client's option --force"
        yield "the table must exist without these rows; this statement creates one that can take them:"
        yield f"{definition(self.table)};"

    def _statement(self, row: Row, reader: StatementReader) -> str:
        """Return the proved statement that inserts a row."""
        if missing := [name for name in self.table.stored_names if name not in row.values]:
            raise _UnwritableError(f"{self._name(row)}: the log does not contain {', '.join(missing)}")
        values = {name: row.values[name] for name in self.table.stored_names}
        if any(TOKEN.fullmatch(values.get(name) or "") for name in self.table.row_key or ()):
            raise _UnwritableError(f"{self._name(row)}: the values of the row were erased")
        operation = Operation(self.table, "INSERT", {}, {}, values)
        try:
            text = statement(operation)
        except UnprintableValueError as error:
            raise _UnwritableError(f"{self._name(row)}: {error}") from None
        reader.prove(text, operation)
        return text

    def _name(self, row: Row) -> str:
        names = self.table.row_key or self.table.stored_names
        return ", ".join(f"{name} {row.values.get(name)}" for name in names)


def definition(table: Table) -> str:
    """Return a CREATE TABLE, without a schema, of a table that can take the rows of another one."""
    parts = [f"{quoted(column.name)} {_type_of(column)}" for column in table.stored]
    key = [table.by_name[name] for name in table.primary_key]
    # A key on a part of a column would need its length.
    if key and not any(column.is_generated or column.data_type.endswith(("blob", "text")) for column in key):
        parts.append(f"PRIMARY KEY ({', '.join(map(quoted, table.primary_key))})")
    return f"CREATE TABLE {quoted(table.name[1])} ({', '.join(parts)})"


def _type_of(column: Column) -> str:
    character_set = f" CHARACTER SET {column.character_set}" if column.character_set else ""
    collation = f" COLLATE {column.collation}" if column.collation and column.character_set else ""
    return f"{column.column_type}{character_set}{collation} {'NULL' if column.is_nullable else 'NOT NULL'}"


class _UnwritableError(Exception):
    """A row cannot be written as SQL."""


def inserts_of(log: Log, state: State) -> Inserts:
    """Return the script for a state; its rows are read while its lines are.

    Raises
    ------
    DefinitionError
        No schema snapshot describes the table as it was at the moment.
    """
    name = (state.table.schema_name, state.table.table_name)
    if log.copies is not None:
        definitions = Definitions.of_log(log, state.table.source_id)
    else:
        definitions = Definitions.at(log, state.table.source_id, name, state.moment.place)
    table = definitions.with_documents(log, {name}, json_as_text=True).tables.get(name)
    if table is None and name in definitions.unread:
        columns = ", ".join(definitions.unread[name])
        raise DefinitionError(
            f"Nothing tells the character set of {columns} in {state.table}, so texts cannot be written as SQL.",
            hint="Use --format json or parquet. Or give --schema-from HOST; or write the character set into the"
            " file of --ddl, such as CREATE DATABASE … CHARACTER SET utf8mb4.",
        )
    if table is None:
        raise DefinitionError(
            f"Nothing describes {state.table} as it was at that moment, so its generated columns are unknown: neither"
            " the statements of the log since its CREATE TABLE, nor a schema snapshot.",
            hint="Use --format json or parquet, which need none. Or give the CREATE TABLE of that time: `binloom"
            f" snapshot --from-ddl FILE --at-file {state.moment.binlog_file} --at-pos {state.moment.place.pos}`,"
            " or the definition from that time with --files and --ddl or --snapshot-dir.",
        )
    if table.is_versioned:
        raise DefinitionError(
            f"{table.text} is system-versioned: the server itself writes the rows of its history.",
            hint="Use --format json or parquet.",
        )
    if reason := difference(log, state, table, definitions):
        raise DefinitionError(
            f"The definition may not be that of {table.text} at that moment: {reason}.",
            hint="Use --format json or parquet, or give the definition from that time: --files with --ddl.",
        )
    masked = masked_tables(log, state.table.source_id).get(table.name)
    if masked:
        raise UsageError(
            f"{table.text} has masked columns, whose values INSERT statements would write: {in_words(masked)}.",
            hint="Use --format json or parquet, or give the original binlog files with --files.",
        )
    itself = any(key.table == key.parent == table.name for key in definitions.foreign_keys)
    rows = sorted_rows(log.connection, state, log.versions)
    has_types = log.documents is not None or not table.has_documents
    return Inserts(state, table, itself, rows, definitions.origins.get(name, ""), has_types)


def difference(log: Log, state: State, table: Table, definitions: Definitions) -> str | None:
    """Return why a definition may differ from that of the moment."""
    # To the snapshot of a cluster, the statements since are not applied.
    for event in events_of(log.connection, state.table) if log.copies is not None else ():
        if _redefines(event) and (event.place < state.moment.place) != definitions.shows(event):
            return f"there is {event} between the two"
    version = next((one for one in log.versions if one.table_version_id == state.table_version_id), None)
    columns = version.columns if version is not None else ()
    names = {column.name for column in columns} ^ {*table.by_name}
    if names:
        return f"only one of them has {', '.join(sorted(names))}"
    for column in columns:
        if not _is_same_type(column, table.by_name[column.name]):
            return f"column {column.name} was {column.shown_type} and is {table.by_name[column.name].column_type}"
    return None


def _redefines(event: TableEvent) -> bool:
    """Return whether the table may have other columns after an event."""
    if event.effect is Effect.EMPTIES:
        return "TRUNCATE" not in event.reason.upper()
    return event.effect in (Effect.ALTERS, Effect.REPLACES)


def _is_same_type(logged: LoggedColumn, column: Column) -> bool:
    """Return whether literals of a type are right for what was logged; a table map has types of the wire format."""
    data_type, column_type = (logged.data_type or "").lower(), logged.column_type or ""
    if data_type == column.data_type and plain_type(column_type) == plain_type(column.column_type):
        return True
    is_unsigned = ["unsigned" in text.lower() for text in (column_type, column.column_type)]
    return (data_type.upper(), column.data_type) in wire_metadata() and is_unsigned[0] == is_unsigned[1]
