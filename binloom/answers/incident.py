"""Everything about selected changes that a report shows: when, which transactions, which rows, and how to undo them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Final

from binloom.answers import lacks
from binloom.answers.changes import RowChange, changes_of
from binloom.answers.timeline import Timeline, timeline_of
from binloom.answers.undo import planned_undo
from ingest.errors import UsageError
from recover.notes import Kind, Note
from recover.selection.filters import Filters
from recover.sources.log import Log
from recover.timeline.logged_statements import statements_of
from recover.undo.options import UndoOptions
from recover.undo.rows.operations import Verb

_LINES: Final = 2_000


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
class ShownUndo:
    """What an undo of whole transactions would do; nothing is executed.

    Attributes
    ----------
    is_possible
        Whether there is a script; it is proved.
    statements
        Number of statements by table and verb.
    script
        Its first lines.
    lines
        Number of all lines.
    """

    is_possible: bool
    statements: Mapping[tuple[str, Verb], int]
    notes: tuple[Note, ...]
    script: tuple[str, ...] = ()
    lines: int = 0


@dataclass(frozen=True, slots=True)
class Incident:
    """Selected changes, and what is known about them.

    Attributes
    ----------
    transactions
        Those of the first rows, in commit order.
    rows_shown
        Number of rows in them; `timeline.changes` are selected.
    notes
        What the report lacks.
    """

    timeline: Timeline
    transactions: tuple[ShownTransaction, ...]
    rows_shown: int
    undo: ShownUndo
    notes: tuple[Note, ...]

    @property
    def lacks(self) -> tuple[Note, ...]:
        """Why the report is not the whole truth; empty if it is."""
        return tuple(note for note in self.notes if note.is_lack)


def incident_of(log: Log, filters: Filters, rows: int) -> Incident:
    """Return what is known about selected changes.

    Parameters
    ----------
    log
        It has all row changes and the marts of `table_log`.
    rows
        Number of rows that are shown.

    Raises
    ------
    UsageError
        A name, place or time does not exist, or all rows are in quarantine.
    """
    found = changes_of(log, filters, rows + 1).first(rows)
    changes = [*found]
    notes = (*found.notes, *lacks.end(log))
    return Incident(
        timeline_of(log, filters), tuple(_transactions(log, changes)), len(changes), _undo(log, filters), notes
    )


def _transactions(log: Log, changes: Sequence[RowChange]) -> Iterator[ShownTransaction]:
    texts = dict[str, str]()
    if log.copies is None:
        for source, own in groupby(sorted(changes, key=_source), key=_source):
            texts |= statements_of(log.connection, source, own)
    for _, of_transaction in groupby(changes, key=lambda change: change.transaction_id):
        own_changes = [*of_transaction]
        tables: dict[str, list[ShownRow]] = {}
        for change in own_changes:
            tables.setdefault(f"{change.schema_name}.{change.table_name}", []).append(_shown(change))
        told = dict.fromkeys(texts[change.change_id] for change in own_changes if change.change_id in texts)
        yield ShownTransaction(own_changes[0], tuple(told), tables)


def _source(change: RowChange) -> str:
    return change.source_id


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


def _undo(log: Log, filters: Filters) -> ShownUndo:
    try:
        with planned_undo(log, filters, UndoOptions()) as planned:
            lines = planned.lines() if planned.is_possible else iter(())
            script = tuple(islice(lines, _LINES))
            rest = sum(1 for _ in lines)
            counts = dict(sorted(planned.plan.counts.items()))
            return ShownUndo(planned.is_possible, counts, planned.notes, script, len(script) + rest)
    except UsageError as error:
        refusal = Note(f"{error.message} {error.hint}".strip(), Kind.REFUSED)
        return ShownUndo(False, {}, (refusal,))
