"""Registration of the partitions of the segment tables in the metastore.

A follower lands without Spark; its folders are registered when the next session opens. A property of one table
records which states of `segments` are registered, so that the cost is that of the new ones. Macro
register_landed_segments reads and sets it too, for a plain dbt run.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pyarrow as pa
from pyarrow import compute

from ingest.warehouse.catalog import Statements, ensure_tables, sql_literal
from ingest.warehouse.files import read_table, segment_folder
from ingest.warehouse.home import warehouse_dir
from ingest.warehouse.landed import LandedKind
from ingest.warehouse.segments import Segment, SegmentState
from ingest.warehouse.tables import BINLOG_FILES, RAW_TABLES, ROW_EVENTS, SEGMENT_TABLES, SEGMENTS, RawTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS_A_STATEMENT = 500

# A file is recorded before its segments: a file that a session lists cannot lack a segment that was landed just now.
LISTED_FIRST = (BINLOG_FILES, SEGMENTS)

# Property with the states that are registered; macro register_landed_segments uses it too.
REGISTERED_UNTIL = "binloom.registered_until"

# Setting of a session whose tables are open: the next dbt run in it need not register anything.
TABLES_ARE_OPEN = "binloom.tables_are_open"

# Fixed width, so that the texts sort like the times.
_FORMAT = "%Y-%m-%d %H:%M:%S.%f"
_STATE_KEY = ("source_id", "epoch", "binlog_file", "segment_start", "segment_end")
_STATE_COLUMNS = (*_STATE_KEY, "status", "run_id", "recorded_at")


@dataclass(frozen=True)
class _Registered:
    """The states of `segments` that are registered: the time of the latest one, and their number.

    The number shows that a state was published after a later one was registered: two processes record states, and
    each takes the time before it writes.
    """

    until: str = ""
    number: int = 0

    @classmethod
    def of(cls, states: pa.Table) -> Self:
        latest = compute.max(states["recorded_at"]).as_py()
        return cls("" if latest is None else latest.astimezone(UTC).strftime(_FORMAT), states.num_rows)

    @classmethod
    def of_property(cls, value: str) -> Self:
        until, _, number = value.partition(", ")
        # Older versions wrote no number.
        return cls(until, int(number.split()[0])) if number else cls()

    @property
    def text(self) -> str:
        return f"{self.until}, {self.number} states"

    def news(self, states: pa.Table) -> pa.Table | None:
        """Return the states that are not registered; None if this cannot be known."""
        if not self.number:
            return states
        until = datetime.strptime(self.until, _FORMAT).replace(tzinfo=UTC)
        news = states.filter(compute.greater(states["recorded_at"], pa.scalar(until, states["recorded_at"].type)))
        return news if states.num_rows - news.num_rows == self.number else None


def open_tables(session: Statements, home: Path) -> None:
    """Prepare the raw tables in a session: create missing tables, and register segments landed without Spark."""
    created = ensure_tables(session, warehouse_dir(home))
    if any(table.name in created for table in SEGMENT_TABLES.values()):
        # The metastore was lost, but the landed files are still there: register all of them again.
        _forget_registered(session)
    register_pending(session, home)


def register_pending(session: Statements, home: Path) -> bool:
    """Register the folders of segments that were landed without Spark; return whether there were any.

    Runs a few statements when there are none. Otherwise it also drops partitions whose folders were deleted. All
    segments that the session reads from `segments` after this call are registered, even while another process goes on
    landing, until a change of the table's properties lets the session list its files again.
    """
    _fix_lists_of_files(session)
    states = _states(home)
    known = _registered(session)
    if known == _Registered.of(states):
        return False
    # At first, Spark finds all folders in one pass.
    news = known.news(states) if known.number else None
    if news is None:
        for table in SEGMENT_TABLES.values():
            session.sql(f"msck repair table {table.qualified_name} sync partitions")
    else:
        _register_as_found(session, {SegmentState.of_row(row).segment for row in news.to_pylist()}, home)
    _set_registered(session, _Registered.of(states))
    return True


def _register_as_found(session: Statements, segments: Collection[Segment], home: Path) -> None:
    """Add the partitions of segments that have a folder, and drop those of the others. Files are left alone."""
    for table in SEGMENT_TABLES.values():
        found = {segment for segment in segments if segment_folder(table, segment, home).is_dir()}
        _alter_partitions(session, table, "add if not exists", sorted(found), " ")
        _alter_partitions(session, table, "drop if exists", sorted(set(segments) - found), ", ")


def _fix_lists_of_files(session: Statements) -> None:
    # A session lists the files of an unpartitioned table once.
    for table in LISTED_FIRST:
        session.sql(f"refresh table {table.qualified_name}")
        session.sql(f"select 1 from {table.qualified_name} limit 0")


def forget_lists_of_files(session: "SparkSession") -> None:
    """Let an open session list the files of all raw tables again."""
    for table in RAW_TABLES.values():
        session.catalog.refreshTable(table.qualified_name)


def confirm_registered(session: Statements, home: Path, run_id: str) -> None:
    """Record that all partitions are registered, after a run that registered its own partitions.

    Does nothing when another process landed segments in the meantime: only `register_pending` would find them.
    """
    states = _states(home)
    news = _registered(session).news(states)
    if news is not None and news["run_id"].unique().to_pylist() == [run_id]:
        _set_registered(session, _Registered.of(states))


def register_partitions(session: Statements, landed: Sequence[tuple[Segment, Collection[LandedKind]]]) -> None:
    """Register the folders of landed segments with their tables, one statement for each table.

    Parameters
    ----------
    session
        A session.
    landed
        Segments, each with the tables that contain rows of it.
    """
    for kind, table in SEGMENT_TABLES.items():
        segments = [segment for segment, kinds in landed if kind in kinds]
        _alter_partitions(session, table, "add if not exists", segments, " ")


def _alter_partitions(
    session: Statements, table: RawTable, action: str, segments: Sequence[Segment], separator: str
) -> None:
    for first in range(0, len(segments), PARTITIONS_A_STATEMENT):
        chunk = separator.join(map(_partition_spec, segments[first : first + PARTITIONS_A_STATEMENT]))
        session.sql(f"alter table {table.qualified_name} {action} {chunk}")


def _partition_spec(segment: Segment) -> str:
    values = ", ".join(
        f"{name}={sql_literal(value) if isinstance(value, str) else value}" for name, value in segment.partition.items()
    )
    return f"partition ({values})"


def _states(home: Path) -> pa.Table:
    """Return the states with which the folders of segments came or went."""
    rows = read_table(SEGMENTS, home, _STATE_COLUMNS)
    rows = rows.filter(compute.is_in(rows["status"], pa.array(["completed", "removed", "expired"])))
    # Compaction duplicates rows for a moment.
    return rows.group_by(list(_STATE_COLUMNS)).aggregate([])


def _registered(session: Statements) -> _Registered:
    properties = session.sql(f"show tblproperties {ROW_EVENTS.qualified_name}").collect()
    return _Registered.of_property(next((value for name, value in properties if name == REGISTERED_UNTIL), ""))


def _forget_registered(session: Statements) -> None:
    session.sql(f"alter table {ROW_EVENTS.qualified_name} unset tblproperties if exists ('{REGISTERED_UNTIL}')")


def _set_registered(session: Statements, registered: _Registered) -> None:
    session.sql(
        f"alter table {ROW_EVENTS.qualified_name} set tblproperties ('{REGISTERED_UNTIL}' = '{registered.text}')"
    )
