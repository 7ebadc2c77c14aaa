"""The received facts of a source, from its spool and from its landed files."""

from dataclasses import replace
from pathlib import Path

import pytest

from ingest.binlog import scan_binlog
from ingest.binlog.gtid_sets import GtidSet
from ingest.follow.handover import Standing
from ingest.follow.standing import find_standing
from ingest.warehouse.record import SourceRecord
from tests.support.landing.binlogs import SHOP, SHOP_MARIADB
from tests.support.landing.followed import FILES, FollowedShop


@pytest.fixture(params=[SHOP, SHOP_MARIADB], ids=["mysql", "mariadb"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> FollowedShop:
    """Each of the recorded servers, with nothing landed."""
    return FollowedShop(request.param, "shop", tmp_path)


def standing_of(shop: FollowedShop) -> Standing:
    """Return the standing, which there must be."""
    standing = find_standing(shop.spool, SourceRecord.load(shop.source_id, shop.home))
    assert standing is not None
    return standing


def test_a_received_file_shows_its_end_and_that_its_server_logged_all_of_it(shop: FollowedShop) -> None:
    first = shop.spool.path(0, FILES[0])
    assert shop.spool.checkpoint is not None
    shop.spool.write_checkpoint(replace(shop.spool.checkpoint, binlog_file=FILES[0], position=first.stat().st_size))
    received = standing_of(shop).received
    assert (received.next_file, received.is_anonymous) == (FILES[1], False)
    assert received.rotated_at == scan_binlog(shop.spool.path(0, FILES[1])).first_event_at
    assert str(received.logged) == received.gtids
    assert all((gtid in received.logged) == (name == FILES[0]) for name, _, _, gtid in shop.transactions)


def test_a_lost_file_of_the_spool_shows_what_was_landed_of_it(shop: FollowedShop) -> None:
    name, _, upto, gtid = shop.transactions[-3]
    shop.land(name, upto)
    shop.spool.path(0, FILES[1]).unlink()
    received = standing_of(shop).received
    assert (received.next_file, received.is_anonymous) == (None, False)
    assert gtid in received.logged and shop.transactions[-2][3] not in received.logged


def test_a_file_that_is_not_begun_shows_nothing_that_its_server_logged(shop: FollowedShop) -> None:
    shop.land(FILES[1], shop.received)
    assert shop.spool.checkpoint is not None
    shop.spool.write_checkpoint(replace(shop.spool.checkpoint, epoch=1, binlog_file="second.000041", position=4))
    received = standing_of(shop).received
    assert not received.logged
    assert shop.transactions[0][3] in GtidSet.parse(received.gtids)
