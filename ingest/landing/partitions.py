"""The partitions of the segment tables, as the metastore knows them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ingest.landing.segments import Segment
from ingest.landing.tables import SEGMENT_TABLES, sql_literal
from ingest.landing.task import SegmentResult

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS_A_STATEMENT = 500


def register_partitions(session: "SparkSession", results: Sequence[SegmentResult]) -> None:
    """Make the folders of landed segments known to their tables, one statement for each table."""
    for kind, table in SEGMENT_TABLES.items():
        specs = [_partition_spec(outcome.segment) for outcome in results if kind in outcome.kinds]
        for first in range(0, len(specs), PARTITIONS_A_STATEMENT):
            chunk = " ".join(specs[first : first + PARTITIONS_A_STATEMENT])
            session.sql(f"alter table {table.qualified_name} add if not exists {chunk}")


def _partition_spec(segment: Segment) -> str:
    values = ", ".join(
        f"{name}={sql_literal(value) if isinstance(value, str) else value}" for name, value in segment.partition.items()
    )
    return f"partition ({values})"
