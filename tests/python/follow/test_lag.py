"""Lag of the tables behind a server: in seconds, bytes and transactions."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ingest.follow.checkpoint import ServerEnd
from ingest.follow.lag import find_lag, landed_gtids, last_landed_at
from ingest.follow.spool import Spool
from ingest.warehouse.record import SourceRecord
from tests.support.landing.binlogs import SHOP, SHOP_MARIADB
from tests.support.landing.followed import FILES, FollowedShop

NOW = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)


@pytest.fixture(params=[SHOP, SHOP_MARIADB], ids=["mysql", "mariadb"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> FollowedShop:
    """Each of the recorded servers, with nothing landed."""
    return FollowedShop(request.param, "shop", tmp_path)


def record_of(shop: FollowedShop) -> SourceRecord:
    """Return the record of the landed files."""
    return SourceRecord.load(shop.source_id, shop.home)


def test_before_anything_is_landed(shop: FollowedShop) -> None:
    lag = find_lag(shop.spool, record_of(shop), NOW)
    assert lag is not None
    first = shop.spool.path(0, FILES[0]).stat().st_size
    assert (lag.seconds, lag.bytes, lag.transactions) == (None, first - 4 + shop.size - 4, len(shop.transactions))


def test_in_the_middle_of_a_file_and_of_the_next(shop: FollowedShop) -> None:
    first = shop.spool.path(0, FILES[0]).stat().st_size
    for number in (10, len(shop.transactions) - 5):
        name, _, upto, gtid = shop.transactions[number]
        shop.land(name, upto)
        record = record_of(shop)
        lag = find_lag(shop.spool, record, NOW)
        assert lag is not None
        assert lag.bytes == (first - upto + shop.size - 4 if name == FILES[0] else shop.size - upto)
        assert lag.transactions == len(shop.transactions) - 1 - number
        assert gtid in landed_gtids(record) and shop.transactions[number + 1][3] not in landed_gtids(record)
        last = last_landed_at(record)
        assert last is not None and lag.seconds == (NOW - last).total_seconds() > 0


def test_at_the_end_there_is_none(shop: FollowedShop) -> None:
    shop.land(FILES[1], shop.received)
    lag = find_lag(shop.spool, record_of(shop), NOW)
    assert lag is not None and (lag.bytes, lag.transactions) == (shop.size - shop.received, 1)
    assert shop.spool.checkpoint is not None
    shop.spool.write_checkpoint(replace(shop.spool.checkpoint, position=shop.size))
    shop.land(FILES[1], shop.size)
    lag = find_lag(shop.spool, record_of(shop), NOW)
    assert lag is not None and (lag.seconds, lag.bytes, lag.transactions) == (0, 0, 0)


def test_what_came_since_the_server_was_asked_is_not_ahead(shop: FollowedShop) -> None:
    assert shop.spool.checkpoint is not None
    shop.land(FILES[1], shop.received)
    for end, ahead in (
        (ServerEnd(FILES[1], shop.received - 1, None, NOW, 0), 0),
        (ServerEnd(FILES[0], 4, None, NOW, 0), 0),
        (ServerEnd("binlog.000004", 500, None, NOW, 12_345), 12_345),
        (None, 0),
    ):
        shop.spool.write_checkpoint(replace(shop.spool.checkpoint, server=end))
        lag = find_lag(shop.spool, record_of(shop), NOW)
        assert lag is not None and (lag.bytes, lag.transactions) == (ahead, None)


def test_a_server_whose_clock_is_ahead_is_not_behind_less_than_nothing(shop: FollowedShop) -> None:
    shop.land(FILES[0], shop.transactions[10][2])
    last = last_landed_at(record_of(shop))
    assert last is not None
    lag = find_lag(shop.spool, record_of(shop), last - timedelta(seconds=3))
    assert lag is not None and lag.seconds == 0 and lag.bytes > 0


def test_a_source_that_nobody_follows(tmp_path: Path) -> None:
    assert find_lag(Spool("shop", tmp_path), SourceRecord("shop"), NOW) is None
