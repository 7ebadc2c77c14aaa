"""The statements that changed definitions, and the definitions of a table through the log."""

from itertools import islice

from binloom.answers.definitions import definitions_of
from binloom.answers.schema_changes import schema_changes_of
from binloom.ui.opened_log import OpenedLog
from binloom.ui.view import PAGE, View, around, show
from binloom.ui.words import Words
from recover.sources.log import Log
from recover.timeline.events import Table

WORDS = ("table", "schema", "since", "until", "source")


def _page(log: Log, words: Words, opened: OpenedLog) -> str:
    number = words.number("page", 1)
    filters = words.filters()
    found = schema_changes_of(log, filters)
    changes = list(islice(found, (number - 1) * PAGE, number * PAGE + 1))
    tables = _named(log, words)
    return show(
        "schema.html",
        words=words,
        selecting=words.selecting(),
        fields=WORDS,
        changes=changes[:PAGE],
        has_more=len(changes) > PAGE,
        page=number,
        around=around,
        tables=[(table, definitions_of(log, table)) for table in tables],
        notes=(*opened.notes, *found.notes),
    )


def _named(log: Log, words: Words) -> list[Table]:
    """Return the tables that are named, not those that a pattern fits: their definitions are shown."""
    names, sources = words.several("table"), words.several("source")
    known = {Table(one.source_id, one.schema_name, one.table_name) for one in log.versions}
    found = [one for one in known if str(one) in names and one.source_id in (sources or [one.source_id])]
    return sorted(found, key=lambda one: (str(one), one.source_id))


VIEW = View((*WORDS, "page"), _page)
