"""Row changes that filters select, and their sums."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

from binloom.answers import lacks
from binloom.answers.answer import Answer, Cells, known_fields, table_of
from recover.questions.summaries import summary
from recover.selection.condition import Selection
from recover.selection.filters import By, Filters
from recover.sources.engine import arrow_table
from recover.sources.log import Log

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlglot import exp


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """A changed row, as the mart `row_changes` has it: docs/questions.md describes each column.

    Times are in UTC. The values of images are texts, as the server prints them; None is NULL, and a column that an
    image does not contain has no entry.
    """

    change_id: str
    source_id: str
    epoch: int
    binlog_file: str
    start_pos: int
    end_pos: int
    transaction_pos: int
    gtid: str | None
    event_timestamp: datetime | None
    committed_at: datetime | None
    outcome: str | None
    event_type: str
    schema_name: str
    table_name: str
    pk_values: str | None
    pk_values_after: str | None
    changed_columns: list[str] | None
    row_before: dict[str, str | None] | None
    row_after: dict[str, str | None] | None
    undecoded_columns: list[str] | None
    json_changes: list[dict[str, str | None]] | None
    table_version_id: str | None
    binding_confidence: str | None
    thread_id: int | None
    server_id: int | None

    @property
    def transaction_id(self) -> str:
        """The transaction, as the mart `transactions` has it."""
        return f"{self.source_id}/{self.epoch}/{self.binlog_file}/{self.transaction_pos}"


def changes_of(log: Log, filters: Filters, limit: int | None = None, offset: int = 0) -> Answer[RowChange]:
    """Return the row changes that filters select, in commit order.

    Parameters
    ----------
    log
        It has the row changes that the filters select.
    limit
        At most this number of rows; None: all.
    offset
        Number of rows before the first one.

    Raises
    ------
    UsageError
        A name, place or time does not exist, or all rows are in quarantine.
    """
    return _answer(log, filters, By.CHANGE, limit, known_fields(RowChange), offset)


def sums_of(log: Log, filters: Filters, by: By, limit: int | None = None) -> Answer[dict[str, Any]]:
    """Return sums of the selected row changes by a unit, or with `By.CHANGE` the changes themselves, as mappings."""
    return _answer(log, filters, by, limit, dict)


def _answer(log: Log, filters: Filters, by: By, limit: int | None, as_row: Any, offset: int = 0) -> Answer[Any]:
    selection = log.select(filters)
    query = summary(selection, by, limit, offset)
    return asked(log, selection, query, as_row, explains_nothing=limit != 0 and not offset)


def asked(log: Log, selection: Selection, query: "exp.Query", as_row: Any, *, explains_nothing: bool) -> Answer[Any]:
    """Return the answer to a query of selected row changes.

    Parameters
    ----------
    as_row
        Makes a row of its values by column.
    explains_nothing
        Whether an answer without rows needs a reason.

    Raises
    ------
    UsageError
        There are no rows because of a mistake, such as a name that does not exist.
    """
    found = log.answer(query)
    columns = tuple(found.columns)
    first = next(found.rows, None)
    notes = lacks.of_selection(log, selection, is_explained=first is None and explains_nothing)
    begun = [chain([first] if first is not None else [], found.rows)]

    def read() -> Iterator[Cells]:
        return begun.pop() if begun else log.rows(query)

    def table() -> "pa.Table":
        if log.copies is not None:
            return table_of(columns, log.rows(query))
        return arrow_table(log.connection, query.sql("duckdb"))

    return Answer(columns, tuple(notes), read, as_row, table)
