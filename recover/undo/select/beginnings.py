"""Where the rows of a table are read from when the images of a selection lack values.

A partial image (`binlog_row_image=MINIMAL`, `NOBLOB`) has only some columns. Earlier full images of the row have the
others, and so has a baseline, as long as the log shows every change in between.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from recover.timeline.baselines import Baseline, baseline_of
from recover.timeline.events import Place
from recover.timeline.events import Table as LoggedTable
from recover.timeline.table_log import events_of, events_since, has_prepared_across
from recover.undo.select.obstacles import harms
from recover.undo.tables.table import ForeignKey, Table, TableName

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_RULES_WITHOUT_TRACE: Final = ("CASCADE", "SET NULL", "UNKNOWN")


@dataclass(frozen=True)
class Beginning:
    """The first images of a table that still show its rows.

    Attributes
    ----------
    since
        Place of the first change that is read; None: all changes of the log.
    baseline
        The rows before these changes; None if they are unknown.
    """

    since: Place | None = None
    baseline: Baseline | None = None


@dataclass(frozen=True)
class Beginnings:
    """Finds the beginnings of the tables of a source."""

    connection: "DuckDBPyConnection"
    source_id: str

    def before(self, table: TableName, place: Place) -> Beginning:
        """Return where to begin for changes of a table from a place on.

        After an event that changes rows without listing them, earlier images show other rows.
        """
        logged = LoggedTable(self.source_id, *table)
        events = events_of(self.connection, logged, place)
        baseline = baseline_of(self.connection, logged, place)
        if baseline is not None and not has_prepared_across(self.connection, logged, baseline.place):
            since = events_since(self.connection, logged, events, baseline, place)
            if not any(event.place >= baseline.place and harms(event) for event in since):
                return Beginning(baseline.place, baseline)
        last = max((event.place for event in events if harms(event)), default=None)
        return Beginning(None if last is None else last._replace(pos=last.pos + 1))


def columns_of_cascades(table: Table, foreign_keys: Iterable[ForeignKey]) -> frozenset[str]:
    """Return the columns of a table that foreign keys may change: many servers do not log that."""
    return frozenset(
        column
        for key in foreign_keys
        if key.table == table.name
        and (key.update_rule in _RULES_WITHOUT_TRACE or key.delete_rule in ("SET NULL", "UNKNOWN"))
        for column in key.columns
    )
