"""Everything about selected changes that a report shows: when, which transactions, which rows, and how to undo them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from binloom.answers.changes import RowChange, changes_of
from binloom.answers.schema_changes import SchemaChange
from binloom.answers.shown_undo import ShownUndo, shown_undo
from binloom.answers.timeline import Timeline, rest_of_timeline, timeline_of
from binloom.answers.transaction_list import ListedTransaction, transactions_listed
from ingest.words import counted
from recover.notes import Kind, Note, lacking
from recover.questions.listed_transactions import Sort
from recover.selection.filters import Filters
from recover.sources.files.more_rows import Rest
from recover.sources.log import Log, Parts
from recover.timeline.logged_statements import statements_of
from recover.undo.options import UndoOptions
from recover.undo.select.parts import rest_of_undo

_REMOVALS_SHOWN: Final = 5
_LISTED: Final = 500


@dataclass(frozen=True, slots=True)
class Cell:
    """A column of a changed row.

    Attributes
    ----------
    before, after
        Values as text; None is NULL.
    is_before, is_after
        Whether the image contains the column.
    is_changed
        Whether the change gave it another value, or a value at all.
    """

    name: str
    before: str | None
    after: str | None
    is_before: bool
    is_after: bool
    is_changed: bool


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A changed row and its columns, those with another value first."""

    change: RowChange
    cells: tuple[Cell, ...]

    @property
    def changed(self) -> list[Cell]:
        """The columns with another value."""
        return [cell for cell in self.cells if cell.is_changed]

    @property
    def unchanged(self) -> list[Cell]:
        """All other columns."""
        return [cell for cell in self.cells if not cell.is_changed]


@dataclass(frozen=True, slots=True)
class ShownTransaction:
    """A transaction with some of its selected rows.

    Attributes
    ----------
    statements
        The texts of its statements, if the server logged them.
    rows
        The selected rows that are shown, by table.
    """

    first: RowChange
    statements: tuple[str, ...]
    rows: dict[str, list[ShownRow]]


@dataclass(frozen=True, slots=True)
class Incident:
    """Selected changes, and what is known about them.

    Attributes
    ----------
    listed
        All transactions in commit order, without their rows; of a great many, the first.
    transactions
        Those of the first rows, in commit order.
    rows_shown
        Number of rows in them; `timeline.changes` are selected.
    notes
        What the report lacks.
    """

    timeline: Timeline
    listed: tuple[ListedTransaction, ...]
    transactions: tuple[ShownTransaction, ...]
    rows_shown: int
    undo: ShownUndo
    notes: tuple[Note, ...]

    @property
    def listed_changes(self) -> int:
        """Number of selected row changes in the listed transactions."""
        return sum(one.selected_changes for one in self.listed)

    @property
    def lacks(self) -> tuple[Note, ...]:
        """Why the report is not the whole truth; empty if it is."""
        return lacking(self.notes)


def parts_of_incident(filters: Filters, options: UndoOptions) -> Parts:
    """Return the parts of indexed files that a report about selected changes reads."""

    def rest(log: Log) -> list[Rest]:
        more = rest_of_undo(filters, options, log)
        # Without an undo, all rows are read, and tell why.
        return more if more == [Rest()] else [*more, *rest_of_timeline(log, filters)]

    return Parts(filters, rest)


def incident_of(log: Log, filters: Filters, rows: int, options: UndoOptions) -> Incident:
    """Return what is known about selected changes.

    Parameters
    ----------
    log
        It has all row changes and the marts of `table_log`.
    rows
        Number of rows that are shown.
    options
        Those of the undo in the report.

    Raises
    ------
    UsageError
        A name, place or time does not exist, or all rows are in quarantine.
    """
    found = changes_of(log, filters, rows + 1).first(rows)
    changes = [*found]
    timeline = timeline_of(log, filters)
    undo = shown_undo(log, filters, options)
    return Incident(
        timeline,
        transactions_listed(log, filters, Sort.TIME, _LISTED).transactions,
        tuple(shown_transactions(log, changes)),
        len(changes),
        undo,
        (*found.notes, *_removals(timeline, filters)),
    )


def _removals(timeline: Timeline, filters: Filters) -> Iterator[Note]:
    """Yield which statements took rows from the tables of a timeline without listing them."""
    if filters.gtids or filters.transactions or filters.change_ids or filters.threads or filters.has_statements:
        return
    tables = set(timeline.tables)
    found = [one for one in timeline.definitions if one.destroys_rows and _is_within(one, tables, filters)]
    for one in found[:_REMOVALS_SHOWN]:
        yield Note(
            f"{one.statement_type} at {one.position} removed rows that the log does not list:"
            f" {', '.join(sorted(tables & {*one.tables})) or one.schema_name}.",
            Kind.UNCERTAIN,
        )
    if len(found) > _REMOVALS_SHOWN:
        more = counted(len(found) - _REMOVALS_SHOWN, "more statement")
        yield Note(f"{more} removed rows that the log does not list.", Kind.UNCERTAIN)


def _is_within(statement: SchemaChange, tables: set[str], filters: Filters) -> bool:
    """Return whether a statement of the selected time is on one of some tables, or on the database of one."""
    at = statement.event_timestamp
    if filters.files and statement.binlog_file not in filters.files:
        return False
    if at is not None and ((filters.since and at < filters.since) or (filters.until and at >= filters.until)):
        return False
    if statement.tables:
        return not tables.isdisjoint(statement.tables)
    return any(table.startswith(f"{statement.schema_name}.") for table in tables)


def shown_transactions(log: Log, changes: Sequence[RowChange]) -> Iterator[ShownTransaction]:
    """Yield the transactions of changes, which are in commit order."""
    texts = statements_of(log, {change.change_id: change.transaction_id for change in changes})
    for _, of_transaction in groupby(changes, key=lambda change: change.transaction_id):
        own_changes = [*of_transaction]
        tables: dict[str, list[ShownRow]] = {}
        for change in own_changes:
            tables.setdefault(f"{change.schema_name}.{change.table_name}", []).append(_shown(change))
        told = dict.fromkeys(texts[change.change_id] for change in own_changes if change.change_id in texts)
        yield ShownTransaction(own_changes[0], tuple(told), tables)


def _shown(change: RowChange) -> ShownRow:
    before, after = change.row_before or {}, change.row_after or {}
    changed = set(change.changed_columns or ()) if change.event_type == "UPDATE" else {*before, *after}
    cells = [
        Cell(name, before.get(name), after.get(name), name in before, name in after, name in changed)
        for name in {**before, **after}
    ]
    # Documents of which the log has only the changes are in neither image.
    cells += [Cell(name, None, None, False, False, True) for name in changed - {*before, *after}]
    return ShownRow(change, tuple(cells))
