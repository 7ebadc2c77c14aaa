"""The report of an incident: one HTML document that loads nothing."""

from datetime import datetime

from binloom.answers.incident import Incident
from binloom.pages.rendering import render
from binloom.pages.timeline_plot import classes, highest, plot, step_in_words, ticks


def report(incident: Incident, *, title: str, selection: str, command: str, version: str, written_at: datetime) -> str:
    """Return the report as HTML.

    Parameters
    ----------
    selection
        The filters in words; empty if there are none.
    command
        The command that writes the undo.
    """
    timeline = incident.timeline
    return render(
        "incident.html",
        incident=incident,
        title=title,
        selection=selection,
        command=command,
        version=version,
        written_at=written_at,
        tables=timeline.tables,
        classes=classes(timeline),
        plot=plot(timeline),
        ticks=ticks(timeline),
        highest=highest(timeline),
        step=step_in_words(timeline.step),
    )
