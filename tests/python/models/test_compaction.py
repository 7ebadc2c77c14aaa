"""Models of a followed source before, during and after its compaction."""

from pathlib import Path
from typing import Any

import pytest

from ingest.landing import IngestOptions, land_snapshot
from ingest.landing.compact import clean_up_held, compact_closed_files, remove_replaced
from ingest.landing.held import SpoolFile, StreamLanding
from ingest.landing.recorder import now
from ingest.sources.snapshots.snapshot_files import read_snapshot_dir
from ingest.warehouse.catalog import ensure_tables
from ingest.warehouse.home import warehouse_dir
from ingest.warehouse.partitions import forget_lists_of_files
from ingest.warehouse.segments import Segment
from ingest.warehouse.spark import SparkLaunch
from tests.support.landing.binlogs import SHOP
from tests.support.models.invoke import run_dbt

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FILES = [SpoolFile(SHOP / name, 0, (SHOP / name).stat().st_size) for name in ("binlog.000001", "binlog.000002")]
NODES = ["+row_changes", "+transactions", "binlog_files", "failed_segments", "+uncovered_bytes"]


def marts(spark: Any) -> dict[str, list[str]]:
    """The marts that users query, without columns that name the segment of a row."""
    return {
        name: sorted(map(str, spark.table(f"binloom.{name}").drop(*left_out).collect()))
        for name, left_out in (
            ("row_changes", ()),
            ("transactions", ("segment_start", "landed_at")),
            ("binlog_files", ("landed_at", "completed_segments")),
        )
    }


def build(home: Path, spark: Any) -> dict[str, list[str]]:
    """Build the models in a session; assert that no segment is failed or uncovered."""
    assert set(run_dbt(home, "run", "--select", *NODES).values()) == {"success"}
    for name in ("failed_segments", "uncovered_bytes"):
        assert spark.table(f"binloom_quality.{name}").collect() == []
    return marts(spark)


def rows_of_a_run(home: Path, spark: Any) -> list[str]:
    """Return the row events that a dbt run sees that begins now."""
    run_dbt(home, "run", "--select", "stg_binlog__row_events")
    return row_events(spark)


def row_events(spark: Any) -> list[str]:
    """Return the row events that the models of the latest run read."""
    return sorted(map(str, spark.table("binloom_staging.stg_binlog__row_events").drop("segment_start").collect()))


def test_marts_are_the_same_before_compaction_in_it_and_after(home: Path) -> None:
    land_snapshot("shop", read_snapshot_dir(SHOP / "schema"), home)
    with StreamLanding("shop", home, IngestOptions(segment_bytes=6_000)) as landing:
        landing.open_epoch({"epoch": 0, "server_id": 1, "flavor": "mysql"})
        with SparkLaunch(home, short_lived=True) as launch:
            spark = launch.session()
            ensure_tables(spark, warehouse_dir(home))
            run_dbt(home, "seed")
            # Only dbt registers this.
            landing.land(FILES)
            before, rows = build(home, spark), row_events(spark)
            assert len(before["row_changes"]) == len(rows) > 300
            whole = Segment("shop", 0, "binlog.000001", 0, FILES[0].upto)
            landing.record_states([whole.state("in_progress", landing.run_id, now())])
            assert rows_of_a_run(home, spark) == rows
            compact_closed_files(landing)
            assert rows_of_a_run(home, spark) == rows
            # This process holds the metastore: it may still read the old files.
            assert remove_replaced(landing) == 0
            # It can delete them itself, between two builds.
            assert clean_up_held(home) > 5
            forget_lists_of_files(spark)
            assert build(home, spark) == before
            assert row_events(spark) == rows
    with SparkLaunch(home, short_lived=True) as launch:
        assert build(home, launch.session()) == before
        assert row_events(launch.session()) == rows
