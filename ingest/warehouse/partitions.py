"""The partitions of the segment tables, as the metastore knows them.

A follower lands without Spark, and its folders wait until somebody opens a session. A property of one table says up
to which moment of `segments` all are known; macro register_landed_segments does the same for a plain dbt run.
"""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ingest.warehouse.catalog import ensure_tables, sql_literal
from ingest.warehouse.files import read_rows
from ingest.warehouse.home import warehouse_dir
from ingest.warehouse.landed import LandedKind
from ingest.warehouse.segments import Segment
from ingest.warehouse.tables import BINLOG_FILES, ROW_EVENTS, SEGMENT_TABLES, SEGMENTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS_A_STATEMENT = 500

# When the latest segment was completed whose partitions are known; macro register_landed_segments has the same name.
REGISTERED_UNTIL = "binloom.registered_until"


def open_tables(session: "SparkSession", home: Path) -> None:
    """Make the raw tables ready in a session: create what is missing, and register what was landed without Spark."""
    created = ensure_tables(session, warehouse_dir(home))
    if any(table.name in created for table in SEGMENT_TABLES.values()):
        # A metastore that was lost: what had been landed is still landed.
        _forget_registered(session)
    register_pending(session, home)


def register_pending(session: "SparkSession", home: Path) -> bool:
    """Make the folders known of segments that were landed without Spark; return whether there were any.

    It costs one statement when there are none. Otherwise partitions whose folders are gone are taken away, too.
    Whatever the session reads of `segments` from here on is registered, even while somebody goes on landing.
    """
    _fix_lists_of_files(session)
    latest = _latest(_completed(home))
    if latest <= _registered_until(session):
        return False
    for table in SEGMENT_TABLES.values():
        session.sql(f"msck repair table {table.qualified_name} sync partitions")
    _set_registered_until(session, latest)
    return True


def _fix_lists_of_files(session: "SparkSession") -> None:
    # A session lists the files of an unpartitioned table once. Those of `binlog_files` first: a file is recorded before
    # its segments are, so that none is missing a segment that has only just come.
    for table in (BINLOG_FILES, SEGMENTS):
        session.catalog.refreshTable(table.qualified_name)
        session.table(table.qualified_name)


def confirm_registered(session: "SparkSession", home: Path, run_id: str) -> None:
    """Say that all partitions are known, after a run that registered its own.

    Not when somebody else has landed segments in the meantime, which only `register_pending` would find.
    """
    known = _registered_until(session)
    news = [row for row in _completed(home) if _text(row["recorded_at"]) > known]
    if news and all(row["run_id"] == run_id for row in news):
        _set_registered_until(session, _latest(news))


def register_partitions(session: "SparkSession", landed: Sequence[tuple[Segment, Collection[LandedKind]]]) -> None:
    """Make the folders of landed segments known to their tables, one statement for each table.

    Parameters
    ----------
    session
        A session.
    landed
        Segments, each with the tables that have rows of it.
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
    return read_rows(SEGMENTS, home, ["run_id", "recorded_at"], status="completed")


def _latest(rows: Sequence[dict[str, Any]]) -> str:
    return max((_text(row["recorded_at"]) for row in rows), default="")


def _text(moment: datetime) -> str:
    # Texts of one length compare as what they say.
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


def _registered_until(session: "SparkSession") -> str:
    properties = session.sql(f"show tblproperties {ROW_EVENTS.qualified_name}").collect()
    return next((row["value"] for row in properties if row["key"] == REGISTERED_UNTIL), "")


def _forget_registered(session: "SparkSession") -> None:
    session.sql(f"alter table {ROW_EVENTS.qualified_name} unset tblproperties if exists ('{REGISTERED_UNTIL}')")


def _set_registered_until(session: "SparkSession", moment: str) -> None:
    session.sql(f"alter table {ROW_EVENTS.qualified_name} set tblproperties ('{REGISTERED_UNTIL}' = '{moment}')")
