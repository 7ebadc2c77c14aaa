"""The first page: selected changes over time."""

from binloom.answers import lacks
from binloom.answers.timeline import Step, timeline_of
from binloom.pages.timeline_plot import classes, highest, plot, step_in_words, ticks
from binloom.ui.opened_log import OpenedLog
from binloom.ui.view import View, show
from binloom.ui.words import FILTERS, Words
from recover.selection.filters import Filters
from recover.sources.log import Log


def _page(log: Log, words: Words, opened: OpenedLog) -> str:
    filters = words.filters()
    found = timeline_of(log, filters)
    notes = lacks.of_selection(log, log.select(filters), is_explained=not found.changes)

    def zoomed(step: Step) -> str:
        """Return the address of a step; a second is not divided."""
        path = "/" if found.step.total_seconds() > 1 else "/transactions"
        return words.address(
            path, since=f"{step.at:%Y-%m-%d %H:%M:%S}", until=f"{step.at + found.step:%Y-%m-%d %H:%M:%S}"
        )

    return show(
        "timeline.html",
        words=words,
        filters=FILTERS,
        selecting=words.selecting(),
        timeline=found,
        tables=found.tables,
        classes=classes(found),
        plot=plot(found, zoomed),
        highest=highest(found),
        ticks=ticks(found),
        step=step_in_words(found.step),
        is_filtered=filters != Filters(),
        notes=(*opened.notes, *notes),
    )


VIEW = View(tuple(FILTERS), _page)
