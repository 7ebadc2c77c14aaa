"""A timeline as SVG: a bar for each step, stacked by table, and the changes around the selected ones in grey."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Final

from markupsafe import Markup, escape

from binloom.answers.timeline import Step, Timeline
from binloom.pages.rendering import style
from ingest.escapes import visible
from ingest.words import counted

COLORS: Final = 5
"""Number of tables that have a colour of their own; style sheets name them `table-0` and so on."""
_WIDTH: Final = 1000
_HEIGHT: Final = 160
_PARTS: Final = 4
# The colours of the page that are not in the style sheet of reports are those of its light scheme.
_PICTURE: Final = Markup(
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="-10 -5 1020 {2}" width="1020" height="{2}"><style>{0}'
    "\n:root {{ --line: #d5dce3; --bad: #a3201c; }} text {{ font: 13px system-ui, sans-serif; fill: #5b6875; }}"
    "\n.back {{ fill: #ffffff; }}</style>"
    '<rect class="back" x="-10" y="-5" width="1020" height="{2}"/>{1}</svg>'
)


def classes(timeline: Timeline) -> dict[str, str]:
    """Return the class of each table of a timeline; those with few changes share one."""
    return {table: f"table-{min(number, COLORS)}" for number, table in enumerate(timeline.tables)}


def plot(timeline: Timeline, address_of: Callable[[Step], str] | None = None) -> Markup:
    """Return the timeline as SVG without text, which stretches to the width of the page.

    Parameters
    ----------
    address_of
        Where the bar of a step leads to; None: bars are no links.
    """
    if not timeline.steps:
        return Markup("")
    label = f"{counted(timeline.changes, 'row change')} over time"
    role = "img" if address_of is None else "group"
    return Markup(
        '<svg class="bars timeline" viewBox="0 0 {} {}" preserveAspectRatio="none" role="{}" aria-label="{}">{}</svg>'
    ).format(
        _WIDTH, _HEIGHT, role, label, Markup("").join((*_lines(), *_bars(timeline, address_of), *_marks(timeline)))
    )


def picture(timeline: Timeline) -> Markup:
    """Return the timeline as an SVG document with times, names of tables and a style sheet."""
    if not timeline.steps:
        return _PICTURE.format(style("report.css"), Markup('<text x="10" y="30">No row change fits.</text>'), 50)
    parts = [*_lines(), *_bars(timeline, None), *_marks(timeline)]
    for place, at in enumerate(ticks(timeline)):
        anchor = ("start", *["middle"] * (_PARTS - 1), "end")[place]
        parts.append(
            Markup('<text x="{}" y="{}" text-anchor="{}">{}</text>').format(
                _WIDTH * place // _PARTS, _HEIGHT + 18, anchor, f"{at:%Y-%m-%d %H:%M:%S}"
            )
        )
    shown = [(visible(table)[:60], name) for table, name in classes(timeline).items()][:COLORS]
    more = [("more tables", f"table-{COLORS}")] if len(timeline.tables) > COLORS else []
    others = [("other changes", "others")] if any(step.others for step in timeline.steps) else []
    for line, (text, name) in enumerate([*shown, *more, *others]):
        y = _HEIGHT + 42 + 20 * line
        parts.append(
            Markup('<rect class="{}" x="0" y="{}" width="12" height="12"/><text x="18" y="{}">{}</text>').format(
                name, y - 11, y, text
            )
        )
    height = _HEIGHT + 32 + 20 * len([*shown, *more, *others])
    return _PICTURE.format(style("report.css"), Markup("").join(parts), height)


def highest(timeline: Timeline) -> int:
    """Return the number of changes of the highest bar."""
    return max((sum(step.selected.values()) + step.others for step in timeline.steps), default=0)


def ticks(timeline: Timeline) -> list[datetime]:
    """Return the times at the ends of the plot and at its lines."""
    if not timeline.steps:
        return []
    begin, end = _ends(timeline)
    return [(begin + (end - begin) * place / _PARTS).replace(microsecond=0) for place in range(_PARTS + 1)]


def step_in_words(step: timedelta) -> str:
    """Return the length of a step in words."""
    seconds = int(step.total_seconds())
    for length, name in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds % length == 0:
            return counted(seconds // length, name)
    return counted(seconds, "second")


def _ends(timeline: Timeline) -> tuple[datetime, datetime]:
    return timeline.steps[0].at, timeline.steps[-1].at + timeline.step


def _lines() -> Iterator[Markup]:
    """Yield a line at each time that the axis names, without those at the ends."""
    for part in range(1, _PARTS):
        place = _WIDTH * part // _PARTS
        yield Markup(f'<line class="tick" x1="{place}" x2="{place}" y1="0" y2="{_HEIGHT}"/>')


def _marks(timeline: Timeline) -> Iterator[Markup]:
    """Yield a line for each statement that changes definitions, and for each gap of the log."""
    begin, end = _ends(timeline)
    told = [(one.event_timestamp, "definition", (one.sql_text or "")[:200]) for one in timeline.definitions]
    told += [(one.at, "gap", f"gap at {one.gap}") for one in timeline.gaps]
    for at, kind, text in told:
        # Its time selected it.
        assert at is not None
        place = (at - begin) / (end - begin) * _WIDTH
        title = f"{at:%Y-%m-%d %H:%M:%S} UTC: {visible(text)}"
        yield Markup('<g><title>{}</title><line class="{}" x1="{}" x2="{}" y1="0" y2="{}"/></g>').format(
            title, kind, f"{place:.2f}", f"{place:.2f}", _HEIGHT
        )


def _bars(timeline: Timeline, address_of: Callable[[Step], str] | None) -> Iterator[Markup]:
    top, width = highest(timeline), _WIDTH / len(timeline.steps)
    names = classes(timeline)
    for place, step in enumerate(timeline.steps):
        parts = [(visible(table), names[table], count) for table, count in step.selected.items()]
        parts += [("other changes", "others", step.others)] if step.others else []
        if not parts:
            continue
        told = ", ".join(f"{name} {count:,}" for name, _, count in parts)
        title = f"{step.at:%Y-%m-%d %H:%M:%S} UTC: {told}"
        if address_of is not None:
            yield Markup('<a href="{}" aria-label="{}">').format(address_of(step), title)
            # A low bar is hard to hit.
            yield Markup(f'<rect class="target" x="{place * width:.2f}" y="0" width="{width:.2f}" height="{_HEIGHT}"/>')
        yield Markup("<g><title>{}</title>").format(title)
        bottom = float(_HEIGHT)
        for _, name, count in parts:
            height = max(1.0, count / top * _HEIGHT)
            bottom -= height
            yield Markup(
                f'<rect class="{escape(name)}" x="{place * width:.2f}" y="{bottom:.2f}" width="{width * 0.86:.2f}"'
                f' height="{height:.2f}"/>'
            )
        yield Markup("</g>") if address_of is None else Markup("</g></a>")
