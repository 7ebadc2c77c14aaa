"""Registration of the partitions of the segment tables in the metastore.

A follower lands without Spark; its folders are registered when the next session opens. A property of one table
records up to which time of `segments` all partitions are registered. Macro register_landed_segments does the same
for a plain dbt run.
"""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ingest.warehouse.catalog import Statements, ensure_tables, sql_literal
from ingest.warehouse.files import read_rows
from ingest.warehouse.home import warehouse_dir
from ingest.warehouse.landed import LandedKind
from ingest.warehouse.segments import Segment
from ingest.warehouse.tables import BINLOG_FILES, RAW_TABLES, ROW_EVENTS, SEGMENT_TABLES, SEGMENTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS_A_STATEMENT = 500

# Property with the completion time of the latest registered segment; macro register_landed_segments uses it too.
REGISTERED_UNTIL = "binloom.registered_until"


def open_tables(session: Statements, home: Path) -> None:
    """Prepare the raw tables in a session: create missing tables, and register segments landed without Spark."""
    created = ensure_tables(session, warehouse_dir(home))
    if any(table.name in created for table in SEGMENT_TABLES.values()):
        # The metastore was lost, but the landed files are still there: register all of them again.
        _forget_registered(session)
    register_pending(session, home)


def register_pending(session: Statements, home: Path) -> bool:
    """Register the folders of segments that were landed without Spark; return whether there were any.

    Runs one statement when there are none. Otherwise it also drops partitions whose folders are gone. All segments that
    the session reads from `segments` after this call are registered, even while another process goes on landing.
    """
    _fix_lists_of_files(session)
    latest = _latest(_completed(home))
    if latest <= _registered_until(session):
        return False
    for table in SEGMENT_TABLES.values():
        session.sql(f"msck repair table {table.qualified_name} sync partitions")
    _set_registered_until(session, latest)
    return True


def _fix_lists_of_files(session: Statements) -> None:
    # A session lists the files of an unpartitioned table once. List `binlog_files` first: a file is recorded before
    # its segments, so that a file listed here cannot lack a segment that was landed just now.
    for table in (BINLOG_FILES, SEGMENTS):
        session.sql(f"refresh table {table.qualified_name}")
        session.sql(f"select 1 from {table.qualified_name} limit 0")


def forget_lists_of_files(session: "SparkSession", *, with_partitions: bool) -> None:
    """Let an open session list the files of unpartitioned raw tables again; with `with_partitions`, of all."""
    for table in RAW_TABLES.values():
        if with_partitions or not table.partition:
            session.catalog.refreshTable(table.qualified_name)


def confirm_registered(session: Statements, home: Path, run_id: str) -> None:
    """Record that all partitions are registered, after a run that registered its own partitions.

    Does nothing when another process landed segments in the meantime: only `register_pending` would find them.
    """
    known = _registered_until(session)
    news = [row for row in _completed(home) if _text(row["recorded_at"]) > known]
    if news and all(row["run_id"] == run_id for row in news):
        _set_registered_until(session, _latest(news))


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
        specs = [_partition_spec(segment) for segment, kinds in landed if kind in kinds]
        for first in range(0, len(specs), PARTITIONS_A_STATEMENT):
            chunk = " ".join(specs[first : first + PARTITIONS_A_STATEMENT])
            session.sql(f"alter table {table.qualified_name} add if not exists {chunk}")


def _partition_spec(segment: Segment) -> str:
    values = ", ".join(
        f"{name}={sql_literal(value) if isinstance(value, str) else value}" for name, value in segment.partition.items()
    )
    return f"partition ({values})"


def _completed(home: Path) -> list[dict[str, Any]]:
    """Return the states with which the folders of segments came or went."""
    rows = read_rows(SEGMENTS, home, ["run_id", "recorded_at", "status"])
    return [row for row in rows if row["status"] in ("completed", "expired")]


def _latest(rows: Sequence[dict[str, Any]]) -> str:
    return max((_text(row["recorded_at"]) for row in rows), default="")


def _text(moment: datetime) -> str:
    # Fixed width, so that the texts sort like the times.
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


def _registered_until(session: Statements) -> str:
    properties = session.sql(f"show tblproperties {ROW_EVENTS.qualified_name}").collect()
    return next((value for name, value in properties if name == REGISTERED_UNTIL), "")


def _forget_registered(session: Statements) -> None:
    session.sql(f"alter table {ROW_EVENTS.qualified_name} unset tblproperties if exists ('{REGISTERED_UNTIL}')")


def _set_registered_until(session: Statements, moment: str) -> None:
    session.sql(f"alter table {ROW_EVENTS.qualified_name} set tblproperties ('{REGISTERED_UNTIL}' = '{moment}')")
