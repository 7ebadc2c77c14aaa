"""A server, a user that may follow it, a network with faults between them, and a follower."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.servers import DISTRIBUTIONS, Distribution, Server
from tests.servers.accounts import Account, create_account
from tests.support.follow.follower import Address, Follower
from tests.support.follow.proxy import Proxy
from tests.support.follow.secrecy import assert_not_told

# Table maps contain all properties of their columns, so decoded rows do not depend on when a snapshot was taken.
# MySQL has made certificates and would use TLS by default, which would hide the traffic from the proxy.
SERVER_OPTIONS = {
    "mysql": ["--binlog-row-metadata=FULL", "--tls-version="],
    "mariadb": ["--binlog-row-metadata=FULL"],
}

# For what does not depend on the server: MariaDB repeats it in deep runs.
ON_ONE = pytest.mark.parametrize(
    "distribution",
    [
        pytest.param(DISTRIBUTIONS["mysql"], id="mysql", marks=pytest.mark.mysql),
        pytest.param(DISTRIBUTIONS["mariadb"], id="mariadb", marks=[pytest.mark.mariadb, pytest.mark.deep]),
    ],
    indirect=True,
)


@pytest.fixture(
    params=[pytest.param(each, id=name, marks=getattr(pytest.mark, name)) for name, each in DISTRIBUTIONS.items()]
)
def distribution(request: pytest.FixtureRequest) -> Distribution:
    """MySQL, then MariaDB."""
    chosen: Distribution = request.param
    return chosen


@pytest.fixture
def server(distribution: Distribution, tmp_path: Path) -> Iterator[Server]:
    """A server whose log begins with the test."""
    with distribution.start(tmp_path / "server", SERVER_OPTIONS[distribution.flavor]) as started:
        yield started
        # Nothing reads its files any more, and a clean end takes seconds.
        started.kill()


@pytest.fixture
def account(server: Server, tmp_path: Path) -> Account:
    """A user with exactly the privileges that following needs."""
    return create_account(server, tmp_path)


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    """A network between the server and the proxy's clients."""
    with Proxy(server) as made:
        yield made


@pytest.fixture
def make_follower(server: Server, account: Account, tmp_path: Path) -> Iterator[Callable[..., Follower]]:
    """Make followers of the server, each with its own home; assert at the end that none revealed the password."""
    made: list[Follower] = []

    def make(name: str = "home", address: Address = server, *options: str, **settings: object) -> Follower:
        follower = Follower(tmp_path / name, address, account.defaults_file, "--from-oldest", *options, **settings)  # type: ignore[arg-type]
        made.append(follower)
        return follower

    yield make
    for follower in made:
        follower.kill()
        assert_not_told(account.password, follower)


@pytest.fixture
def follower(make_follower: Callable[..., Follower]) -> Follower:
    """A follower of the server, not started yet."""
    return make_follower()
