"""Failover to another server that has the same transactions in its own files: none is lost, none is landed twice."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ingest.warehouse.files import read_rows
from ingest.warehouse.tables import SOURCES
from tests.python.follow.conftest import SERVER_OPTIONS
from tests.servers import Distribution, Server
from tests.servers.accounts import create_account
from tests.servers.load import SCHEMA, Load
from tests.servers.replication import (
    REPLICA_OPTIONS,
    begin_again,
    executed_gtids,
    promote,
    replicate,
    wait_for_replica,
)
from tests.support.follow.follower import SOURCE, Follower
from tests.support.follow.proxy import Proxy
from tests.support.follow.secrecy import assert_not_told
from tests.support.follow.spool import assert_same_files
from tests.support.follow.tables import Decoded, Tables, assert_keys_are_unique

pytestmark = pytest.mark.slow

FIRST_FILE_OF_REPLICA = 41
# The content of a row, independent of its position.
CHANGE = ["event_type", "schema_name", "table_name", "before_values", "after_values"]

# The changes of each transaction, in order.
Transactions = dict[str, list[tuple[Any, ...]]]


@dataclass
class Pair:
    """A primary, its replica, and a follower behind a proxy that points to the primary at first."""

    primary: Server
    replica: Server
    proxy: Proxy
    follower: Follower

    def fail_over(self) -> None:
        """Kill the primary and promote its replica under the address that the follower knows."""
        self.primary.kill()
        promote(self.replica)
        self.proxy.point_to(self.replica)


@pytest.fixture
def pair(distribution: Distribution, tmp_path: Path) -> Iterator[Pair]:
    options = [*SERVER_OPTIONS[distribution.flavor], *REPLICA_OPTIONS[distribution.flavor]]
    with (
        distribution.start(tmp_path / "primary", options) as primary,
        distribution.start(tmp_path / "replica", options, server_id=2, log_name="second") as replica,
        Proxy(primary) as proxy,
    ):
        begin_again(replica, FIRST_FILE_OF_REPLICA)
        account = create_account(primary, tmp_path)
        create_account(replica, tmp_path, password=account.password)
        replicate(primary, replica)
        with Follower(tmp_path / "home", proxy, account.defaults_file, "--from-oldest") as follower:
            yield Pair(primary, replica, proxy, follower)
        assert_not_told(account.password, follower)


def transactions_of(tables: Tables | Decoded) -> Transactions:
    """Return row changes by GTID; every GTID must be there once."""
    gtids = tables["transactions"]["gtid"].to_pylist()
    assert len(set(gtids)) == len(gtids), "a transaction is there twice"
    changes: Transactions = defaultdict(list)
    for row in tables["row_events"].select(["gtid", *CHANGE]).to_pylist():
        gtid = row.pop("gtid")
        changes[gtid].append(tuple(row[name] if name in CHANGE[:3] else tuple(row[name]) for name in CHANGE))
    return {gtid: changes[gtid] for gtid in gtids}


def files_of(server: Server, epoch: int) -> list[tuple[int, Path]]:
    return [(epoch, path) for path in server.binlogs()]


def assert_same_transactions(ours: Transactions, expected: Transactions) -> None:
    missing, extra = sorted(expected.keys() - ours.keys()), sorted(ours.keys() - expected.keys())
    assert not missing, f"{len(missing)} transactions are missing: {missing[:10]}"
    assert not extra, f"{len(extra)} transactions are too many: {extra[:10]}"
    differing = [gtid for gtid in ours if ours[gtid] != expected[gtid]]
    assert not differing, f"{len(differing)} transactions differ: {differing[:10]}"


def epochs_of(follower: Follower) -> dict[int, int]:
    """Return the epochs of the source and the server_id for which each was opened."""
    rows = read_rows(SOURCES, follower.home, source_id=SOURCE)
    return {row["epoch"]: row["server_id"] for row in rows if row["change"] == "epoch_opened"}


def test_no_transaction_is_lost_or_landed_twice(pair: Pair) -> None:
    follower = pair.follower
    with Load(pair.primary, ddl_every=25) as load:
        follower.start()
        load.wait_for(100)
        pair.primary.flush()
        load.wait_for(50)
    wait_for_replica(pair.primary, pair.replica)
    follower.wait_until_received(pair.primary)
    pair.fail_over()
    with Load(pair.replica, first_client=5) as load:
        load.wait_for(100)
        pair.replica.flush()
        load.wait_for(50)
    follower.wait_until_landed(pair.replica)

    assert epochs_of(follower) == {0: 1, 1: 2}
    assert set(follower.tables["transactions"]["epoch"].to_pylist()) == {0, 1}
    # The replica has logged everything, too.
    everything = transactions_of(Decoded(files_of(pair.replica, 1), follower.tables))
    assert_same_transactions(transactions_of(follower.tables), everything)
    for kind in ("row_events", "transactions", "statements"):
        assert_keys_are_unique(kind, follower.tables[kind])
    assert_same_files(follower.spool_files(1), pair.replica.binlogs()[-len(follower.spool_files(1)) :])
    assert not [gap for gap in follower.gaps() if gap["status"] == "found"]


def test_a_replica_that_is_ahead_fills_what_was_not_read(pair: Pair) -> None:
    """The follower is down when the primary dies: the replica's log has the transactions that it has not read."""
    follower = pair.follower
    with Load(pair.primary) as load:
        load.wait_for(60)
        follower.once()
        load.wait_for(60)
    wait_for_replica(pair.primary, pair.replica)
    pair.fail_over()
    with Load(pair.replica, first_client=5) as load:
        load.wait_for(30)
    follower.once()
    assert set(follower.tables["transactions"]["epoch"].to_pylist()) == {0, 1}
    everything = transactions_of(Decoded(files_of(pair.replica, 1), follower.tables))
    assert_same_transactions(transactions_of(follower.tables), everything)


def test_transactions_that_the_new_server_lacks_are_told(pair: Pair) -> None:
    """The replica was behind when the primary died, but the follower was not."""
    follower = pair.follower
    with Load(pair.primary) as load:
        load.wait_for(40)
    wait_for_replica(pair.primary, pair.replica)
    promote(pair.replica)
    with Load(pair.primary, first_client=5) as load:
        load.wait_for(20)
    received = executed_gtids(pair.primary)
    before = transactions_of(Decoded(files_of(pair.primary, 0), follower.tables))
    common = transactions_of(Decoded(files_of(pair.replica, 1), follower.tables))
    follower.once()
    pair.fail_over()
    with Load(pair.replica, first_client=10) as load:
        load.wait_for(20)
    follower.once()
    (gap,) = follower.gaps()
    assert gap["reason"] == "diverged"
    assert gap["from_gtids"].endswith(received)
    of_both = before | transactions_of(Decoded(files_of(pair.replica, 1), follower.tables))
    assert_same_transactions(transactions_of(follower.tables), of_both)
    assert len(before) >= len(common) + 20


def test_an_earlier_server_that_comes_back_is_refused(pair: Pair) -> None:
    follower = pair.follower
    with Load(pair.primary) as load:
        load.wait_for(40)
    wait_for_replica(pair.primary, pair.replica)
    follower.once()
    promote(pair.replica)
    pair.proxy.point_to(pair.replica)
    with Load(pair.replica, first_client=5) as load:
        load.wait_for(20)
    follower.once()
    landed = transactions_of(follower.tables)

    pair.primary.execute(f"create table {SCHEMA}.split_brain (id int primary key)")
    pair.proxy.point_to(pair.primary)
    code, said = follower.run("--once")
    assert code == 3, said
    assert "two servers" in said
    assert "Traceback" not in said
    assert transactions_of(follower.tables) == landed
    pair.proxy.point_to(pair.replica)
    follower.once()
    assert transactions_of(follower.tables) == landed
