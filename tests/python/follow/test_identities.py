"""Epochs and their servers as they are recorded, also when a run is killed before an epoch begins; no server runs."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from ingest.follow.handover import Decision
from ingest.follow.identities import is_known, record_identity
from ingest.follow.lag import landed_gtids
from ingest.landing.held import SpoolFile, StreamLanding
from ingest.sources.files.directory import binlog_path
from ingest.sources.servers.server import ServerIdentity
from ingest.warehouse.record import SourceRecord
from tests.support.landing.binlogs import SHOP, of_server

FIRST: Final = SHOP / "binlog.000001"
UUID: Final = "5ca1ab1e-0000-4000-8000-0000b1d1003e"
A: Final = ServerIdentity("mysql", "9.7.0", 1, UUID, "db1", 3306)
B: Final = ServerIdentity("mysql", "9.7.0", 2, "b1d1003e-0000-4000-8000-00005ca1ab1e", "db2", 3306)
AS_BEFORE: Final = Decision(0, FIRST.name)


@pytest.fixture
def landing(tmp_path: Path) -> Iterator[StreamLanding]:
    """A landing of a source that A began to write."""
    with StreamLanding("shop", tmp_path / "home") as held:
        record_identity(held, Decision(0, FIRST.name, "first"), A)
        yield held


def failover(gtids: str) -> Decision:
    """Return the decision to follow B behind these numbers of A."""
    return Decision(1, FIRST.name, "failover", gtids_before=f"{UUID}:{gtids}")


def changes(landing: StreamLanding) -> list[tuple[int, int, str]]:
    """Return epoch, server_id and change of all recorded identities, as another process reads them."""
    loaded = SourceRecord.load(landing.source_id, landing.home).identities
    assert loaded == landing.record.identities
    return [(row["epoch"], row["server_id"], row["change"]) for row in loaded]


def whole(path: Path, epoch: int) -> SpoolFile:
    """Return a file to its end."""
    return SpoolFile(path, epoch, path.stat().st_size)


def test_what_was_landed_after_a_failover_was_given_up_is_not_landed_again(
    landing: StreamLanding, tmp_path: Path
) -> None:
    record_identity(landing, failover("1-30"), B)
    # The failover is undone: A goes on.
    record_identity(landing, AS_BEFORE, A)
    assert landing.land([whole(FIRST, 0)]).transactions == 56
    record_identity(landing, failover("1-56"), B)

    opening = landing.record.opening(1)
    assert opening is not None and opening["gtids_before"] == f"{UUID}:1-56"
    replica = tmp_path / "second.000041"
    replica.write_bytes(of_server(FIRST.read_bytes(), 2))
    result = landing.land([whole(replica, 1)])
    assert (result.problems, result.transactions, result.row_events) == ([], 0, 0)
    assert changes(landing) == [(0, 1, "epoch_opened"), (1, 2, "epoch_opened"), (1, 2, "epoch_opened")]


def test_another_server_may_take_over_than_the_one_that_was_given_up(landing: StreamLanding) -> None:
    record_identity(landing, failover("1-30"), B)
    third = replace(B, server_id=3, server_uuid="c", host="db3")
    record_identity(landing, failover("1-30"), third)
    assert changes(landing) == [(0, 1, "epoch_opened"), (1, 2, "epoch_opened"), (1, 3, "epoch_opened")]
    assert is_known(landing.record, failover("1-30"), third)
    assert not is_known(landing.record, failover("1-30"), B)


def test_only_the_last_opening_says_which_gtids_are_skipped(landing: StreamLanding, tmp_path: Path) -> None:
    record_identity(landing, failover("1-56:900-990"), B)
    record_identity(landing, failover("1-30"), B)
    replica = tmp_path / "second.000041"
    replica.write_bytes(of_server(FIRST.read_bytes(), 2))
    assert landing.land([whole(replica, 1)]).transactions == 26
    assert str(landed_gtids(landing.record)) == f"{UUID}:1-56"
    assert landing.record.is_landed(1, binlog_path(replica).name, replica.stat().st_size)


def test_an_epoch_is_opened_once_if_nothing_has_changed(landing: StreamLanding) -> None:
    for _ in range(3):
        record_identity(landing, failover("1-30"), B)
        record_identity(landing, AS_BEFORE, A)
    assert changes(landing) == [(0, 1, "epoch_opened"), (1, 2, "epoch_opened")]


def test_an_epoch_that_has_begun_is_not_opened_again(landing: StreamLanding) -> None:
    record_identity(landing, failover("1-30"), B)
    landing.land([whole(FIRST, 1)])
    record_identity(landing, failover("1-56"), replace(B, version="9.7.4"))
    opening = landing.record.opening(1)
    assert opening is not None and opening["gtids_before"] == f"{UUID}:1-30"
    assert changes(landing) == [(0, 1, "epoch_opened"), (1, 2, "epoch_opened"), (1, 2, "server_changed")]
