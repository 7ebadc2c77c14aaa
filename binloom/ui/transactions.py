"""The transactions with selected changes, page by page."""

from binloom.answers.transaction_list import transactions_listed
from binloom.ui.opened_log import OpenedLog
from binloom.ui.schema import WORDS as OF_SCHEMA
from binloom.ui.view import PAGE, View, show
from binloom.ui.words import FILTERS, Words
from ingest.errors import UsageError
from recover.questions.listed_transactions import Sort
from recover.sources.log import Log


def _page(log: Log, words: Words, opened: OpenedLog) -> str:
    number = words.number("page", 1)
    sort = _sort(words.one("sort"))
    found = transactions_listed(log, words.filters(), sort, PAGE, (number - 1) * PAGE)
    return show(
        "transactions.html",
        words=words,
        filters=FILTERS,
        selecting=words.selecting(),
        found=found,
        has_statements=any(one.statements for one in found.transactions),
        of_schema={word: values for word, values in words.selecting().items() if word in OF_SCHEMA},
        sort=sort.value,
        sorts=[one.value for one in Sort],
        page=number,
        notes=(*opened.notes, *found.notes),
    )


def _sort(text: str | None) -> Sort:
    try:
        return Sort(text or Sort.TIME)
    except ValueError:
        raise UsageError(f"Transactions cannot be sorted by {text!r}.", hint=f"Give {', '.join(Sort)}.") from None


VIEW = View((*FILTERS, "sort", "page"), _page)
