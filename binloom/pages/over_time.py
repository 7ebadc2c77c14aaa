"""Selected changes over time as an object, which a notebook shows as a picture."""

from base64 import b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING

from binloom.answers.answer import html_of
from binloom.answers.timeline import Timeline
from recover.notes import Note, lacking

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class OverTime:
    """Row changes over time, those that filters select beside all others.

    Attributes
    ----------
    timeline
        The steps with their changes by table, statements that changed definitions, and gaps of the log.
    notes
        What the answer lacks, and what else there is to say.
    """

    timeline: Timeline
    notes: tuple[Note, ...]

    @property
    def lacks(self) -> tuple[Note, ...]:
        """Why the answer is not the whole truth; empty if it is."""
        return lacking(self.notes)

    def arrow(self) -> "pa.Table":
        """Return a row for each step and table: its begin (UTC), the table, the number of selected changes."""
        import pyarrow as pa

        rows = [(step.at, table, count) for step in self.timeline.steps for table, count in step.selected.items()]
        at, table, changes = ([row[place] for row in rows] for place in range(3))
        types = (pa.timestamp("us", "UTC"), pa.string(), pa.int64())
        columns = zip((at, table, changes), types, strict=True)
        return pa.table([pa.array(values, kind) for values, kind in columns], names=["at", "table_name", "changes"])

    def _repr_html_(self) -> str:
        """Return the plot and all notes as HTML, for a notebook."""
        from binloom.pages.timeline_plot import picture

        # An image has style sheets of its own, which do not reach the rest of a notebook.
        image = b64encode(picture(self.timeline).encode("utf-8", "replace")).decode()
        told = f"{self.timeline.changes:,} row changes over time"
        return f'<img alt="{told}" src="data:image/svg+xml;base64,{image}">{html_of(self.notes)}'
