"""Transactions with selected row changes: big ones and long ones, or sums of tables."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from binloom.answers.answer import Answer, known_fields
from binloom.answers.changes import asked
from recover.questions.statistics import Least, Unit, tables_query, transactions_query
from recover.selection.filters import Filters
from recover.sources.log import Log


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """A transaction, with all of its row events, also those that the filters do not select.

    Attributes
    ----------
    seconds
        From its first event to its commit; None if the session has set its own time.
    bytes_in_file
        Length of its events in the binlog file.
    selected_changes, tables
        Row changes that the filters select, and the tables of these.
    """

    transaction_id: str
    gtid: str | None
    thread_id: int | None
    started_at: datetime | None
    committed_at: datetime | None
    outcome: str | None
    seconds: float | None
    is_plausible: bool | None
    bytes_in_file: int
    row_events: int
    inserts: int
    updates: int
    deletes: int
    selected_changes: int
    tables: list[str]
    rank_by_rows: int
    rank_by_seconds: int | None


def transactions_of(log: Log, filters: Filters, top: int = 10, least: Least | None = None) -> Answer[Transaction]:
    """Return the transactions with selected changes that are big or long.

    Parameters
    ----------
    log
        It has the row changes that the filters select.
    top
        Number of ranks by rows, and by seconds.
    least
        Thresholds. If there is one, ranks do not select.

    Raises
    ------
    UsageError
        A name, place or time does not exist, or all rows are in quarantine.
    """
    selection, least = log.select(filters), least or Least()
    query = transactions_query(selection, top, least)
    return asked(log, selection, query, known_fields(Transaction), explains_nothing=least == Least())


def table_sums_of(log: Log, filters: Filters, unit: Unit) -> Answer[dict[str, Any]]:
    """Return sums of the selected changes by table, or by hour and table."""
    selection = log.select(filters)
    return asked(log, selection, tables_query(selection, unit), dict, explains_nothing=True)
