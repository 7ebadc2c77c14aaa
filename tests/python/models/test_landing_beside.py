"""A follower lands while a run of dbt goes on: no segment may count as landed whose rows the run cannot see."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ingest.landing import IngestOptions, land_snapshot
from ingest.landing.held import SpoolFile, StreamLanding
from ingest.sources.snapshots.snapshot_files import read_snapshot_dir
from ingest.warehouse.catalog import ensure_tables
from ingest.warehouse.home import warehouse_dir
from tests.support.landing.binlogs import SHOP, transaction_ends
from tests.support.models.invoke import run_dbt

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FILE = SHOP / "binlog.000001"
ENDS = transaction_ends(FILE)
NODES = ["+row_changes"]
# The hook of register_landed_segments is the third.
AFTER_REGISTRATION = 3


@pytest.fixture(scope="module")
def landing(home: Path, spark: Any) -> Iterator[StreamLanding]:
    land_snapshot("shop", read_snapshot_dir(SHOP / "schema"), home)
    with StreamLanding("shop", home, IngestOptions(segment_bytes=6_000)) as landing:
        landing.open_epoch({"epoch": 0, "server_id": 1, "flavor": "mysql"})
        landing.land([SpoolFile(FILE, 0, ENDS[5])])
        ensure_tables(spark, warehouse_dir(home))
        run_dbt(home, "run", "--select", *NODES)
        yield landing


def seen_upto(spark: Any) -> int:
    """Return the position up to which the models see segments; assert that they see the rows of each."""
    rows = spark.sql(
        "select segment_start, segment_end, any_value(row_events), count(change_id)"
        " from binloom_intermediate.int_completed_segments segments left join binloom.row_changes changes"
        " on start_pos >= segment_start and start_pos < segment_end group by 1, 2"
    ).collect()
    assert [row[:2] for row in rows if row[2] != row[3]] == []
    return int(max(row[1] for row in rows))


@pytest.mark.parametrize("is_listed_again", [False, True])
def test_rows_of_a_segment_that_lands_meanwhile_are_seen_with_it(
    landing: StreamLanding, home: Path, spark: Any, is_listed_again: bool
) -> None:
    first, second = (ENDS[15], ENDS[20]) if is_listed_again else (ENDS[8], ENDS[10])
    landing.land([SpoolFile(FILE, 0, first)])

    def land(event: Any) -> None:
        nonlocal has_landed
        if is_listed_again:
            is_moment = event.info.name == "LogStartLine"
        else:
            is_moment = event.info.name == "LogHookStartLine" and event.data.index == AFTER_REGISTRATION
        if is_moment and not has_landed:
            has_landed = True
            landing.land([SpoolFile(FILE, 0, second)])
            if is_listed_again:
                # Each model has a session of its own on a Thrift server, which lists the files then.
                spark.sql("refresh table binlog_raw.segments")

    has_landed = False
    run_dbt(home, "run", "--select", *NODES, watch=land)
    assert has_landed
    assert seen_upto(spark) == (second if is_listed_again else first)
    run_dbt(home, "run", "--select", *NODES)
    assert seen_upto(spark) == second
