"""Transactions with selected row changes, page by page, and those that changed the same rows later."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from itertools import islice
from typing import Any

from binloom.answers import lacks
from recover.notes import Note
from recover.questions.later_transactions import later_query
from recover.questions.listed_transactions import Sort, list_query, statements_query, tables_query
from recover.selection.filters import Filters
from recover.sources.log import Log


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTransaction:
    """A transaction, with all of its row events, also those that the filters do not select.

    Attributes
    ----------
    seconds
        From its first event to its commit; None if the session has set its own time.
    bytes_in_file
        Length of its events in the binlog file.
    selected_changes
        Row changes that the filters select.
    tables
        Number of these by table.
    statement, statements
        The first logged statement without its literals, and how many there are; None and 0 if the server logged none.
    application
        The application that a statement names in its comment.
    """

    transaction_id: str
    source_id: str
    binlog_file: str
    start_pos: int
    gtid: str | None
    thread_id: int | None
    started_at: datetime | None
    committed_at: datetime | None
    outcome: str | None
    seconds: float | None
    bytes_in_file: int
    row_events: int
    inserts: int
    updates: int
    deletes: int
    selected_changes: int
    tables: dict[str, int] = field(default_factory=dict)
    statement: str | None = None
    statements: int = 0
    application: str | None = None


@dataclass(frozen=True, slots=True)
class TransactionPage:
    """Some of the transactions with selected changes.

    Attributes
    ----------
    has_more
        Whether there are others after these.
    notes
        What the answer lacks.
    """

    transactions: tuple[ListedTransaction, ...]
    has_more: bool
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaterChange:
    """Changes that a later transaction made to rows of one table.

    Attributes
    ----------
    changes, deletes
        Its changes of these rows, and how many of them are a DELETE.
    first_key
        The least of their keys, as text.
    columns
        Columns that its updates of these rows changed, by name; None or empty without an update.
    """

    transaction_id: str
    source_id: str
    gtid: str | None
    thread_id: int | None
    committed_at: datetime | None
    outcome: str | None
    schema_name: str
    table_name: str
    changes: int
    deletes: int
    first_key: str
    columns: list[str] | None


_STATEMENTS = ("statement", "statements", "application")
_COLUMNS = tuple(one.name for one in fields(ListedTransaction) if one.name not in ("tables", *_STATEMENTS))
_LATER = tuple(one.name for one in fields(LaterChange))


def transactions_listed(log: Log, filters: Filters, sort: Sort, limit: int, offset: int = 0) -> TransactionPage:
    """Return some of the transactions with selected changes.

    Parameters
    ----------
    log
        It has the row changes that the filters select.
    limit, offset
        At most this number of transactions, after another number of them.

    Raises
    ------
    UsageError
        A name, place or time does not exist, or all rows are in quarantine.
    """
    selection = log.select(filters)
    rows = list(islice(log.rows(list_query(selection, sort, limit + 1, offset)), limit + 1))
    found = [ListedTransaction(**dict(zip(_COLUMNS, row, strict=True))) for row in rows[:limit]]
    tables: dict[str, dict[str, int]] = {}
    statements: dict[str, dict[str, Any]] = {}
    if found:
        names = [one.transaction_id for one in found]
        for transaction_id, schema, table, changes in log.rows(tables_query(selection, names)):
            tables.setdefault(transaction_id, {})[f"{schema}.{table}"] = changes
        for transaction_id, *told in log.rows(statements_query(names)):
            statements[transaction_id] = dict(zip(_STATEMENTS, told, strict=True))
    notes = lacks.of_selection(log, selection, is_explained=not found and not offset)
    listed = (
        replace(one, tables=tables.get(one.transaction_id, {}), **statements.get(one.transaction_id, {}))
        for one in found
    )
    return TransactionPage(tuple(listed), len(rows) > limit, tuple(notes))


def later_changes(log: Log, filters: Filters, limit: int) -> Iterator[LaterChange]:
    """Yield what later transactions changed in the rows of one transaction, in the order of the log.

    Rows without a primary key are not followed.

    Parameters
    ----------
    log
        It has all row changes.
    filters
        They select the row changes of one transaction.
    """
    for row in log.rows(later_query(log.select(filters), limit)):
        yield LaterChange(**dict(zip(_LATER, row, strict=True)))
