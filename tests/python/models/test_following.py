"""Models and tests on a followed server: gaps, changes of server, and a warehouse from before these features."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ingest.warehouse.catalog import create_statement, ensure_tables
from ingest.warehouse.files import append_rows
from ingest.warehouse.gaps import Gap, record_gap
from ingest.warehouse.home import raw_table_dir, warehouse_dir
from ingest.warehouse.tables import SCHEMA_SNAPSHOTS, SOURCES, STREAM_GAPS
from tests.support.models.raw import NOON, RawTables

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Dbt = Callable[..., dict[str, str]]

PURGED = Gap(0, "b.000002", 900, "u:1-5", 0, "b.000005", 4, "u:1-9", "u:6-9", "purged", "b.000002 is gone", "u")
NODES = ["stg_binlog__sources", "servers", "stg_binlog__stream_gaps", "stream_gaps", "stg_binlog__schema_snapshots"]


@pytest.fixture(scope="module", autouse=True)
def read_by_them(raw: RawTables, dbt: Dbt) -> None:
    """Make what NODES read, without its tests."""
    assert set(dbt("run", "--select", "+stream_gaps").values()) == {"success"}


def test_a_gap_fails_until_it_is_accepted_and_warns_from_then_on(
    raw: RawTables, dbt: Dbt, spark: Any, home: Path
) -> None:
    def outcomes() -> tuple[str, str]:
        spark.catalog.refreshTable(STREAM_GAPS.qualified_name)
        states = dbt("build", "--exclude-resource-type", "unit_test", "--select", *NODES)
        return states["stream_gaps_stop_no_following"], states["stream_gaps_were_none"]

    assert record_gap("shop", PURGED, "found", home)
    assert outcomes() == ("fail", "pass")
    assert record_gap("shop", PURGED, "accepted", home)
    assert outcomes() == ("pass", "warn")
    (row,) = spark.sql("select * from binloom_quality.stream_gaps").collect()
    assert (row.from_file, row.from_pos, row.to_file, row.missing_gtids) == ("b.000002", 900, "b.000005", "u:6-9")
    assert row.found_at < row.recorded_at
    assert record_gap("shop", PURGED, "filled", home)
    assert outcomes() == ("pass", "pass")


def test_every_identity_of_a_source_is_visible(raw: RawTables, dbt: Dbt, spark: Any, home: Path) -> None:
    first = {"source_id": "shop", "epoch": 0, "server_uuid": "u", "server_version": "9.7.0", "change": "epoch_opened"}
    seen = [
        {**first, "observed_at": NOON},
        {**first, "server_version": "9.7.4", "change": "server_changed", "observed_at": NOON + timedelta(hours=1)},
        {**first, "epoch": 1, "server_uuid": "v", "gtids_before": "u:1-9", "observed_at": NOON + timedelta(hours=2)},
    ]
    append_rows(SOURCES, seen, "seen", home)
    spark.catalog.refreshTable(SOURCES.qualified_name)
    dbt("run", "--select", "servers", "stg_binlog__sources")
    rows = spark.sql(
        "select epoch, server_uuid, server_version, gtids_before, observed_until is null as is_current "
        "from binloom.servers order by observed_at"
    ).collect()
    assert [tuple(row) for row in rows] == [
        (0, "u", "9.7.0", None, False),
        (0, "u", "9.7.4", None, False),
        (1, "v", "9.7.0", "u:1-9", True),
    ]


def test_a_warehouse_of_an_older_binloom_is_brought_up_to_date(
    raw: RawTables, dbt: Dbt, spark: Any, home: Path
) -> None:
    for table, added in ((SOURCES, {"start_file", "start_pos", "gtids_before"}), (SCHEMA_SNAPSHOTS, {"epoch"})):
        older = replace(table, columns=pa.schema([field for field in table.columns if field.name not in added]))
        spark.sql(f"drop table {table.qualified_name}")
        spark.sql(create_statement(older, str(raw_table_dir(table.name, home))))
    spark.sql("drop table binlog_raw.stream_gaps")
    spark.sql("alter schema binlog_raw set dbproperties ('binloom.layout' = 'an older one')")
    assert set(dbt("run", "--select", *NODES).values()) == {"success"}
    assert ensure_tables(spark, warehouse_dir(home)) == []
    assert {*added_columns(spark)} >= {"start_file", "start_pos", "gtids_before", "epoch"}


def added_columns(spark: Any) -> list[str]:
    """Return the columns of the tables that were made as an older binloom made them."""
    tables = (SOURCES.qualified_name, SCHEMA_SNAPSHOTS.qualified_name)
    return [name for table in tables for name in spark.table(table).columns]
