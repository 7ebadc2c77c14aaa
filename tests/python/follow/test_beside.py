"""Two followers of one server, each with the same paths, as on separate machines."""

from pathlib import Path

import pytest

from tests.servers import Server
from tests.servers.accounts import Account
from tests.support.follow.follower import Follower

pytestmark = pytest.mark.slow


class Container(Follower):
    """A follower whose home has the same path as all others."""

    def command(self, *more: str) -> list[str]:
        self.home.mkdir(exist_ok=True)
        return ["env", "-C", str(self.home), "BINLOOM_HOME=/proc/self/cwd", *super().command(*more)]


def test_both_keep_receiving(server: Server, account: Account, tmp_path: Path) -> None:
    server.execute("create database shop", "create table shop.orders (id int primary key)")
    with (
        Container(tmp_path / "one", server, account.defaults_file, "--from-oldest") as one,
        Container(tmp_path / "two", server, account.defaults_file, "--from-oldest") as two,
    ):
        one.start_and_connect()
        two.start_and_connect()
        for number in range(3):
            server.execute(f"insert into shop.orders values ({number})")
            for follower in (one, two):
                follower.wait_until_landed(server)
        for follower in (one, two):
            assert follower.stop() == 0
            assert "Another replica" not in follower.output()
            assert follower.assert_has_all_of(server)["row_events"] == 3
