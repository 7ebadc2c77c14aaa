"""Selected row changes over time: sums by step of time and table."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from recover.selection.condition import Selection

if TYPE_CHECKING:
    from sqlglot import exp

STEPS: Final = (1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 86400, 7 * 86400)
"""Lengths of a step in seconds."""

_QUERY: Final = """
    select
        cast(floor(unix_micros(event_timestamp) / {length}) as bigint) as step,
        schema_name,
        table_name,
        count(*) as changes
    from selected
    where event_timestamp is not null
    group by cast(floor(unix_micros(event_timestamp) / {length}) as bigint), schema_name, table_name
    order by step, changes desc, schema_name, table_name"""

_SPAN: Final = """
    select min(event_timestamp) as first_change_at, max(event_timestamp) as last_change_at, count(*) as changes
    from selected"""


def step_of(first: datetime, last: datetime, most: int) -> timedelta:
    """Return the shortest step of `STEPS` of which a time has no more than a number, or the longest."""
    seconds = (last - first).total_seconds()
    return timedelta(seconds=next((step for step in STEPS if seconds / step < most), STEPS[-1]))


def timeline_query(selection: Selection, step: timedelta) -> "exp.Query":
    """Return the query of the selected changes by step and table; steps are counted from the Unix epoch."""
    return selection.among_selected(_QUERY.format(length=int(step.total_seconds()) * 1_000_000))


def span_query(selection: Selection) -> "exp.Query":
    """Return the query of the time of the first and the last selected change, and of their number."""
    return selection.among_selected(_SPAN)
