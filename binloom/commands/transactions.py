"""`binloom transactions`: print big and long transactions, or sums of tables."""

from binloom.commands.open_log import report_doubts, report_nothing, report_problems, report_quarantine
from binloom.commands.output import Format, print_rows, say
from recover.questions.statistics import Least, Unit, tables_query, transactions_query
from recover.selection.filters import Filters
from recover.sources.log import Log


def print_transactions(log: Log, filters: Filters, by: Unit, top: int, least: Least, format: Format) -> int:
    """Print the transactions that are big or long, or sums of tables; return the exit code."""
    selection = log.select(filters)
    is_listed = by is Unit.TRANSACTION
    query = transactions_query(selection, top, least) if is_listed else tables_query(selection, by)
    found = log.answer(query)
    columns, rows = found.columns, list(found.rows)
    has_threshold = is_listed and least != Least()
    report_doubts(log, selection)
    if not rows and not has_threshold:
        return report_nothing(log, selection)
    report_quarantine(log, filters)
    if rows:
        print_rows(columns, rows, format)
    else:
        say("no transaction with selected changes reaches a threshold.")
    if is_listed and (absurd := sum(row[columns.index("is_plausible")] is False for row in rows)):
        say(f"the times of {absurd} of these transactions are not plausible: their sessions have set their own time.")
    return report_problems(log)
