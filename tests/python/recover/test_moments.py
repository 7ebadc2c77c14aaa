"""A position names a place between transactions, also in a file that has none."""

import duckdb
import pytest

from recover.timeline.as_of import UnknownMomentError, moment_of
from recover.timeline.events import Place


@pytest.fixture
def log() -> duckdb.DuckDBPyConnection:
    """A log with a transaction in its files 1 and 4."""
    connection = duckdb.connect()
    connection.execute(
        """create schema binloom;
        create table binloom.transactions as
        select 's' as source_id, 0 as epoch, number as file_sequence, format('binlog.{:06d}', number) as binlog_file,
            200 as start_pos, 300 as end_pos, format('0-1-{}', number) as gtid,
            timestamptz '2026-11-29 12:00:00+00' as committed_at, null::varchar as xa_end_transaction_id
        from (values (1), (4)) as files (number)"""
    )
    return connection


def test_a_position_in_a_file_without_transactions_is_between_its_neighbours(log: duckdb.DuckDBPyConnection) -> None:
    moment = moment_of(log, "s", "binlog.000002:157")
    assert (moment.place, moment.gtid) == (Place(0, 2, 157), "0-1-1")
    assert moment_of(log, "s", "0/binlog.000003:4").place == Place(0, 3, 4)
    for outside in ("binlog.000000:4", "binlog.000005:4", "other.000002:4", "1/binlog.000002:4", "binlog:4"):
        with pytest.raises(UnknownMomentError, match="has no transactions in a file"):
            moment_of(log, "s", outside)


def test_a_position_in_several_epochs_needs_one(log: duckdb.DuckDBPyConnection) -> None:
    log.execute("insert into binloom.transactions select * replace (1 as epoch) from binloom.transactions")
    with pytest.raises(UnknownMomentError):
        moment_of(log, "s", "binlog.000002:157")
    assert moment_of(log, "s", "1/binlog.000002:157").place == Place(1, 2, 157)
