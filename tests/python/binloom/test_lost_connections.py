"""Statements of dbt that may be repeated on a new connection; TestCluster in test_demo.py loses real ones."""

import pytest

from binloom.commands.spark_messages import is_of_lost_server
from tests.servers.ports import ReservedPort

# Importing dbt's adapter takes seconds.
pytestmark = pytest.mark.slow

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
    from binloom.commands.lost_connections import can_be_repeated

    assert can_be_repeated(sql)


@pytest.mark.parametrize("sql", WRITES)
def test_a_statement_that_writes_is_not_repeated(sql: str) -> None:
    from binloom.commands.lost_connections import can_be_repeated

    assert not can_be_repeated(sql)


def test_a_server_that_is_away_is_one_sentence() -> None:
    from dbt.adapters.contracts.connection import Connection
    from dbt.adapters.spark.connections import SparkConnectionMethod, SparkCredentials
    from dbt_common.exceptions import DbtRuntimeError

    from binloom.commands.lost_connections import open_reconnecting

    with ReservedPort() as port:
        place = {"host": "127.0.0.1", "port": port.number, "user": "ada", "schema": "x"}
        patience = {"connect_retries": 1, "connect_timeout": 0, "retry_all": True}
        credentials = SparkCredentials(method=SparkConnectionMethod.THRIFT, **place, **patience)
        # The second time, it is not waited for.
        for _ in range(2):
            connection = Connection(type="spark", name="test", credentials=credentials)
            sentence = rf"No Thrift server answers at 127\.0\.0\.1:{port.number} "
            with pytest.raises(DbtRuntimeError, match=sentence) as told:
                open_reconnecting(connection)
            assert is_of_lost_server(str(told.value)) and str(told.value).endswith("it builds what is missing.")
            assert connection.credentials is credentials
