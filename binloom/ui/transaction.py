"""One transaction: its rows before and after, and what changed the same rows later."""

from itertools import islice
from typing import Final

from binloom.answers import lacks
from binloom.answers.changes import changes_of, sums_of
from binloom.answers.incident import shown_transactions
from binloom.answers.transaction_list import later_changes, transactions_listed
from binloom.answers.unlogged_cascades import unlogged_cascades
from binloom.ui.opened_log import OpenedLog
from binloom.ui.view import PAGE, View, show
from binloom.ui.words import Words
from ingest.errors import UsageError
from recover.questions.listed_transactions import Sort
from recover.selection.filters import By, Filters
from recover.sources.log import Log

_MOST: Final = 5


def _page(log: Log, words: Words, opened: OpenedLog) -> str:
    number = words.number("page", 1)
    whole = _filters(words)
    of_table = Filters.of(transactions=whole.transactions, tables=words.several("table"))
    listed = transactions_listed(log, whole, Sort.TIME, _MOST)
    if len(listed.transactions) > 1:
        names = ", ".join(one.transaction_id for one in listed.transactions)
        raise UsageError("Several transactions have this name.", hint=f"Give one of {names}.")
    rows = changes_of(log, of_table, PAGE + 1, (number - 1) * PAGE)
    changes = list(rows)
    shown = list(shown_transactions(log, changes[:PAGE]))
    return show(
        "transaction.html",
        words=words,
        selecting={"transaction": list(whole.transactions)},
        transaction=words.needed("id"),
        facts=listed.transactions[0] if listed.transactions else None,
        tables=list(sums_of(log, whole, By.TABLE)),
        table=words.one("table"),
        shown=shown,
        page=number,
        has_more=len(changes) > PAGE,
        notes=(*opened.notes, *rows.notes, *unlogged_cascades(log, whole)),
    )


def _later(log: Log, words: Words, opened: OpenedLog) -> str:
    whole = _filters(words)
    later = list(islice(later_changes(log, whole, PAGE + 1), PAGE + 1))
    notes = [*lacks.of_selection(log, log.select(whole), is_explained=False), *lacks.missing(log, Filters())]
    return show(
        "later.html",
        selecting={"transaction": list(whole.transactions)},
        transaction=words.needed("id"),
        later=later[:PAGE],
        has_more=len(later) > PAGE,
        most=PAGE,
        notes=(*opened.notes, *notes),
    )


def _filters(words: Words) -> Filters:
    return Filters.of(transactions=[words.needed("id")])


VIEW = View(("id", "table", "page"), _page)
LATER = View(("id",), _later)
