"""Statements of dbt that may be repeated on a new connection; TestCluster in test_demo.py loses real ones."""

import pytest

from binloom.commands.lost_connections import can_be_repeated

READS = [
    "select 1",
    '/* {"app": "dbt"} */\n\n  -- a comment\n  with one as (select 1) select * from one',
    "show table extended in binloom like '*'",
    "describe extended binloom.row_changes",
    "set spark.sql.sources.partitionOverwriteMode = DYNAMIC",
    "refresh table binlog_raw.segments",
    "/* x */ create or replace view binloom.v as select 1",
]
WRITES = [
    "insert overwrite table binloom.t partition (event_hour) select 1",
    "/* x */ create table binloom.t using parquet as select 1",
    "with one as (select 1) insert into binloom.t select * from one",
    "create or replace temporary view seed_file using csv",
    "drop table if exists binloom.t",
    "alter table binloom.t set tblproperties ('a' = 'b')",
    "msck repair table binlog_raw.row_events sync partitions",
    "-- select",
]


@pytest.mark.parametrize("sql", READS)
def test_a_statement_that_reads_is_repeated(sql: str) -> None:
    assert can_be_repeated(sql)


@pytest.mark.parametrize("sql", WRITES)
def test_a_statement_that_writes_is_not_repeated(sql: str) -> None:
    assert not can_be_repeated(sql)
