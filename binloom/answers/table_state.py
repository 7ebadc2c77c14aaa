"""The rows of a table as they were at a moment."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from binloom.answers import lacks
from binloom.answers.answer import Answer, Cells
from ingest.words import counted, subject
from recover.notes import Kind, Note
from recover.sources.log import Log
from recover.timeline.as_of import moment_of
from recover.timeline.cascades import CascadeFinder, Cascades
from recover.timeline.copied import copy_table
from recover.timeline.events import Image, Place, Table
from recover.timeline.masked_columns import masked_in_words
from recover.timeline.named_table import find_table
from recover.timeline.sorted_rows import sorted_rows
from recover.timeline.state import Row, State, state_of
from recover.undo.tables.definitions import keys_in_time

UNKNOWN, UNCERTAIN = "_unknown_columns", "_uncertain_since"
"""Columns beside those of the table: which of these are not known, and since when a row is uncertain."""


@dataclass(frozen=True, slots=True)
class StateRow:
    """A row at a moment.

    Attributes
    ----------
    values
        The known values as text; None is NULL.
    unknown_columns
        Columns whose values the log does not contain.
    uncertain_since
        Events before the moment that may have changed or deleted the row.
    """

    values: Image
    unknown_columns: tuple[str, ...]
    uncertain_since: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class TableState(Answer[StateRow]):
    """The rows of a table at a moment, in the order of their key.

    Attributes
    ----------
    state
        Table, moment, and counts.
    """

    state: State


def table_state_of(log: Log, table_name: str, as_of: str | None = None, source_id: str | None = None) -> TableState:
    """Return the rows of a table at a moment.

    Parameters
    ----------
    log
        It has the marts of `table_log`.
    as_of
        A time in UTC, `file:position` or a GTID. None: the end of the log.

    Raises
    ------
    UsageError
        There is no such table or moment.
    """
    state = state_at(log, table_name, as_of, source_id)
    # All rows are read before the first one is there, so the counts are final.
    rows = sorted_rows(log.connection, state, log.versions)
    first = next(rows, None)
    notes = (
        *lacks.beginning(log, (state.table.source_id,)),
        *notes_on(log, state, as_of),
        *lacks.damage(log),
    )
    begun = [chain([first] if first is not None else [], rows)]

    def read() -> Iterator[Cells]:
        again = begun.pop() if begun else sorted_rows(log.connection, state, log.versions)
        return (_cells(state.columns, row) for row in again)

    return TableState(
        columns=(*state.columns, UNKNOWN, UNCERTAIN), notes=notes, read=read, as_row=_row_of(state.columns), state=state
    )


def state_at(log: Log, table_name: str, as_of: str | None, source_id: str | None) -> State:
    """Return the state of a table at a moment; its rows are read while they are used."""
    table = find_table(log, table_name, source_id)
    if log.copies is not None:
        copy_table(log.copies, table, as_of)
    moment = moment_of(log.connection, table.source_id, as_of)
    return state_of(log.connection, table, moment, cascades_in(log, table, moment.place))


def cascades_in(log: Log, table: Table, until: Place | None = None) -> Cascades:
    """Return what foreign keys may have done to the rows of a table before a place."""
    return CascadeFinder(
        log.connection,
        table.source_id,
        keys_in_time(log, table.source_id),
        until,
        lambda one: log.has_rows_of(one.schema_name, one.table_name),
    ).of(table)


def notes_on(log: Log, state: State, as_of: str | None) -> Iterator[Note]:
    """Yield whether the rows that were read are all rows, and what is not known of them and of the log behind them."""
    yield from _notes_on_rows(state)
    if (sentence := masked_in_words(log, state.table)) is not None:
        yield Note(sentence, Kind.MASKED)
    yield from lacks.end(log) if as_of is None else lacks.end_at(log, state.moment)
    yield from lacks.behind(log, state.table.source_id, state.moment)


def _notes_on_rows(state: State) -> Iterator[Note]:
    kind = "complete" if state.is_complete else "changed rows only"
    yield Note(f"{state.table} as of {state.moment}: {counted(state.rows_read, 'row')}, {kind}.")
    yield from (Note(remark, Kind.END) for remark in state.moment.remarks)
    yield from (Note(sentence, Kind.BEGINNING) for sentence in state.gaps_in_knowledge)
    if state.chain_breaks:
        yield Note(
            f"{subject(state.chain_breaks, 'change', 'does', 'do')} not begin with the values of the previous change"
            " of the row: the log lacks writes.",
            Kind.UNCERTAIN,
        )
    if state.rows_unknown:
        yield Note(
            f"{subject(state.rows_unknown, 'row', 'has', 'have')} values that the log does not contain; they are listed"
            " as unknown.",
            Kind.UNCERTAIN,
        )
    if state.rows_doubtful:
        yield Note(
            f"{counted(state.rows_doubtful, 'row')} may have other values, or may not exist;"
            " the reason is beside each.",
            Kind.UNCERTAIN,
        )


def marks(row: Row) -> tuple[list[str], list[str]]:
    """Return the columns of a row that are not known, and since when it is uncertain."""
    return list(row.unknown_columns), [str(doubt) for doubt in row.doubts]


def _cells(columns: Sequence[str], row: Row) -> Cells:
    return (*(row.values.get(name) for name in columns), *marks(row))


def _row_of(columns: Sequence[str]) -> Any:
    def row(cells: Mapping[str, Any]) -> StateRow:
        unknown = tuple(cells[UNKNOWN])
        values = {name: cells[name] for name in columns if name not in unknown}
        return StateRow(values, unknown, tuple(cells[UNCERTAIN]))

    return row
