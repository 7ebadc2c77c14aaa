"""What is known of the log, and what is not."""

from itertools import islice

from binloom.answers.coverage import coverage_of
from binloom.ui.opened_log import OpenedLog
from binloom.ui.view import PAGE, View, show
from binloom.ui.words import Words
from recover.sources.log import Log


def _page(log: Log, words: Words, opened: OpenedLog) -> str:
    number = words.number("page", 1)
    found = coverage_of(log, words.several("source"))
    files = list(islice(found, (number - 1) * PAGE, number * PAGE + 1))
    return show(
        "coverage.html",
        words=words,
        selecting={},
        found=found,
        is_landed=log.is_landed,
        files=files[:PAGE],
        has_more=len(files) > PAGE,
        page=number,
        notes=(*opened.notes, *found.notes),
    )


VIEW = View(("source", "page"), _page)
