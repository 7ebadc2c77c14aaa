"""Plots of the activity of tables, as SVG."""

import math
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from binloom.site.facts import Activity
from binloom.site.markup import text

_KINDS: Final = ("inserts", "updates", "deletes")
_MOST_BARS: Final = 168
# Bars of one to six hours, a day or a week; a longer log has bars of several weeks.
_STEPS: Final = (1, 2, 6, 24, 168)
_HEIGHT: Final = 100
_WIDTH: Final = 1000


def plots(activity: Sequence[Activity]) -> str:
    """Return a plot for each table. All plots have the same hours, so they can be compared."""
    hours = [hour for one in activity for hour, *_ in one.hours]
    first = min(hours).replace(hour=0)
    # Whole days: a log of three hours is not drawn as three broad bars.
    days = (max(hours).replace(hour=0) - first).days + 1
    step = _step(days * 24)
    count = math.ceil(days * 24 / step)
    return "\n".join(_plot(one, first, step, count) for one in activity)


def _step(hours: int) -> int:
    weeks = math.ceil(hours / _MOST_BARS / _STEPS[-1])
    return next((step for step in _STEPS if hours / step <= _MOST_BARS), weeks * _STEPS[-1])


def _plot(activity: Activity, first: datetime, step: int, count: int) -> str:
    sums = [[0, 0, 0] for _ in range(count)]
    for hour, *changes in activity.hours:
        slot = sums[int((hour - first).total_seconds() // 3600 // step)]
        for kind, number in enumerate(changes):
            slot[kind] += number
    highest = max(map(sum, sums))
    name = f"{activity.schema}.{activity.table}"
    last = first + timedelta(hours=step * count)
    label = f"{activity.row_events:,} row events of {name} from {first:%Y-%m-%d} to {last:%Y-%m-%d}"
    return f"""<figure class="plot">
<figcaption><strong>{text(name)}</strong> <span class="quiet">{text(activity.source)} ·
{activity.row_events:,} row events</span></figcaption>
<div class="scale quiet">{highest:,} in {_duration(step)}</div>
<svg class="bars" viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" role="img" aria-label="{text(label)}">
{"".join(_bars(sums, first, step, highest))}</svg>
<div class="axis quiet"><span>{first:%Y-%m-%d %H:%M}</span><span>{last:%Y-%m-%d %H:%M}</span></div>
</figure>"""


def _bars(sums: list[list[int]], first: datetime, step: int, highest: int) -> Iterable[str]:
    slot_width = _WIDTH / len(sums)
    for index, slot in enumerate(sums):
        if not any(slot):
            continue
        begin = first + timedelta(hours=index * step)
        counts = ", ".join(f"{number:,} {kind}" for kind, number in zip(_KINDS, slot, strict=True) if number)
        yield f"<g><title>{begin:%Y-%m-%d %H:%M} UTC: {counts}</title>"
        top = float(_HEIGHT)
        for kind, number in zip(_KINDS, slot, strict=True):
            height = number / highest * _HEIGHT
            top -= height
            if number:
                yield (
                    f'<rect class="{kind}" x="{(index + 0.1) * slot_width:.1f}" y="{top:.2f}"'
                    f' width="{slot_width * 0.8:.1f}" height="{height:.2f}"/>'
                )
        yield "</g>\n"


def _duration(step: int) -> str:
    if step == 1:
        return "an hour"
    if step < 24:
        return f"{step} hours"
    if step == 24:
        return "a day"
    return "a week" if step == 168 else f"{step // 168} weeks"
