"""Faults at random instants under load; at the end the tables equal the server's own files."""

import contextlib
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from tests.servers import Server
from tests.servers.load import Load
from tests.servers.replication import kill_dump_threads
from tests.support.depth import at_depth
from tests.support.follow.follower import Follower, FollowerEnded
from tests.support.follow.proxy import Proxy
from tests.support.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.slow

SEED = os.environ.get("BINLOOM_CHAOS_SEED", "20261120")
PAUSES = (0.0, 1.0)  # seconds
# This share of the instants waits for this much progress; the others find the follower in any state.
SHARE_AMID = 0.75
PROGRESS_BYTES = 20_000


@dataclass
class Chaos:
    """The faults, and how to cause them.

    Attributes
    ----------
    done
        The number of times each fault was caused.
    """

    chance: random.Random
    server: Server
    proxy: Proxy
    follower: Follower
    done: Counter[str] = field(default_factory=Counter)

    def pause(self, is_amid: bool = True) -> None:
        """Wait for a while; first until the follower has received something, if it is to be amid that."""
        if is_amid:
            target, deadline = self.proxy.binlog_bytes + PROGRESS_BYTES, time.monotonic() + PATIENCE_SECONDS
            while self.proxy.binlog_bytes < target:
                assert time.monotonic() < deadline, self.follower.tail()
                time.sleep(0.02)
                self.supervise()
        time.sleep(self.chance.uniform(*PAUSES))

    def instant(self, what: str, is_amid: bool) -> None:
        """Cause a fault that is repaired when this returns, or heals by itself."""
        self.pause(is_amid)
        self.supervise()
        getattr(self, what)()
        self.done[what] += 1

    def supervise(self) -> None:
        """Start the follower again when it lost the server at its start: then it reports that and ends."""
        if not self.follower.is_running and self.lost_the_server():
            self.follower.start()
        self.follower.assert_running()

    def lost_the_server(self) -> bool:
        """Whether the last report of the follower is that the server is lost, or answers what a fault made of it."""
        last = self.follower.tail().rstrip().rpartition("\n")[2]
        is_about_server = f"{self.proxy.host}:{self.proxy.port}" in last or "on the way from the server" in last
        return last.startswith("binloom: ") and is_about_server and "--accept-gap" not in last

    def catch_up(self) -> None:
        """Wait until the follower has landed everything."""
        for _ in range(sum(WHAT.values())):
            self.supervise()
            # It may have lost the server, and not have ended yet.
            with contextlib.suppress(FollowerEnded):
                self.follower.wait_until_landed(self.server)
                return
        self.follower.assert_running()

    def kill_follower(self) -> None:
        self.follower.kill()
        self.follower.start()

    def stop_follower(self) -> None:
        code = self.follower.stop()
        assert code in (0, STARTING) or self.lost_the_server(), self.follower.tail()
        self.follower.start()

    def kill_connection(self) -> None:
        kill_dump_threads(self.server)

    def kill_server(self) -> None:
        with self.server.connect() as connection, connection.cursor() as cursor:
            if self.server.flavor == "mariadb":
                # MariaDB keeps an event that a kill cuts off, and the files that are compared must be whole.
                cursor.execute("flush tables with read lock")
            self.server.kill()
        self.server.start()

    def restart_server(self) -> None:
        self.server.restart()

    def rotate(self) -> None:
        self.server.flush()

    def cut(self) -> None:
        self.proxy.cut()

    def reset(self) -> None:
        self.proxy.cut(reset=True)

    def corrupt(self) -> None:
        # The proxy draws from it in a thread of its own.
        self.proxy.corrupt(random.Random(self.chance.random()))

    def delay(self) -> None:
        self.proxy.stall()
        time.sleep(self.chance.uniform(*PAUSES))
        self.proxy.resume()

    def refuse(self) -> None:
        self.proxy.refuse()
        self.proxy.cut()
        time.sleep(self.chance.uniform(*PAUSES))
        self.proxy.accept()


# The exit code of a follower that gets SIGTERM while Python still imports.
STARTING = -signal.SIGTERM

# Number of times that each fault is caused.
WHAT = {
    "kill_follower": at_depth(2, 5),
    "stop_follower": at_depth(1, 2),
    "kill_connection": at_depth(1, 2),
    "kill_server": at_depth(1, 2),
    "restart_server": 1,
    "rotate": at_depth(1, 3),
    "cut": at_depth(1, 2),
    "reset": at_depth(1, 2),
    "corrupt": at_depth(2, 4),
    "delay": 1,
    "refuse": 1,
}


def test_the_tables_are_those_of_the_servers_files(
    server: Server, proxy: Proxy, make_follower: Callable[..., Follower]
) -> None:
    print(f"BINLOOM_CHAOS_SEED={SEED}")
    chance = random.Random(f"{SEED}-{server.flavor}")
    follower = make_follower("home", proxy)
    chaos = Chaos(chance, server, proxy, follower)
    instants = list(Counter(WHAT).elements())
    chance.shuffle(instants)
    amid = {*chance.sample(range(len(instants)), int(SHARE_AMID * len(instants)))}
    with Load(server, ddl_every=60, seed=int(SEED)) as load:
        follower.start()
        for place, what in enumerate(instants):
            chaos.instant(what, place in amid)
        while proxy.corrupted < WHAT["corrupt"]:
            chaos.pause()
    chaos.catch_up()
    counts = follower.assert_has_all_of(server)
    print(f"{dict(chaos.done)}; {load.done.total()} transactions, {counts}")
    assert chaos.done.total() == len(instants)
    assert counts["row_events"] > 1000
    assert not follower.gaps()
    assert follower.stop() == 0
    follower.assert_has_all_of(server)
