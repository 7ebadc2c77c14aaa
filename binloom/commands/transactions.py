"""`binloom transactions`: print big and long transactions, or sums of tables."""

from binloom.answers.transactions import table_sums_of, transactions_of
from binloom.commands.open_log import report_notes, report_problems
from binloom.commands.output import Format, print_rows, say
from recover.questions.statistics import Least, Unit
from recover.selection.filters import Filters
from recover.sources.log import Log


def print_transactions(log: Log, filters: Filters, by: Unit, top: int, least: Least, format: Format) -> int:
    """Print the transactions that are big or long, or sums of tables; return the exit code."""
    is_listed = by is Unit.TRANSACTION
    found = transactions_of(log, filters, top, least) if is_listed else table_sums_of(log, filters, by)
    report_notes(found.notes)
    rows = list(found.read())
    if rows:
        print_rows(found.columns, rows, format)
    elif is_listed and least != Least():
        say("no transaction with selected changes reaches a threshold.")
    if is_listed and least == Least() and len(rows) > top:
        say(f"these are the {top:,} transactions with the most rows, and the {top:,} that lasted longest.")
    if is_listed and (absurd := sum(row[found.columns.index("is_plausible")] is False for row in rows)):
        say(f"the times of {absurd} of these transactions are not plausible: their sessions have set their own time.")
    return report_problems(log)
