"""Servers for tests, and what becomes of a test whose server is not there.

A test that needs a server carries its marker (`mysql`, `mariadb`, `mysql56`, `mariadb118`), or asks for its fixture.
Without the server it is skipped and the reason is shown; with BINLOOM_REQUIRE_SERVERS=1 it fails.
"""

import os
from collections.abc import Iterator

import pytest

from tests.servers import ALL_DISTRIBUTIONS, Server, mariadb, mariadb118, mysql, mysql56


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that asks for a server's fixture."""
    for item in items:
        for distribution in ALL_DISTRIBUTIONS.values():
            marker = distribution.marker
            if f"{marker}_server" in getattr(item, "fixturenames", ()) and not item.get_closest_marker(marker):
                item.add_marker(marker)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose server is missing, or fail it where servers are required."""
    for distribution in ALL_DISTRIBUTIONS.values():
        if item.get_closest_marker(distribution.marker) and not distribution.available():
            if os.environ.get("BINLOOM_REQUIRE_SERVERS") == "1":
                pytest.fail(distribution.why_not(), pytrace=False)
            pytest.skip(distribution.why_not())


@pytest.fixture(scope="session")
def mysql_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A MySQL server under its defaults: MINIMAL metadata, CRC32, GTIDs."""
    with mysql.start(tmp_path_factory.mktemp("mysql")) as server:
        yield server


@pytest.fixture(scope="session")
def mariadb_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A MariaDB server under its defaults with row format: no metadata, CRC32, annotations."""
    with mariadb.start(tmp_path_factory.mktemp("mariadb")) as server:
        yield server


@pytest.fixture(scope="session")
def mysql56_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A MySQL 5.6 server with row format: no metadata, CRC32, no GTIDs."""
    with mysql56.start(tmp_path_factory.mktemp("mysql56")) as server:
        yield server


@pytest.fixture(scope="session")
def mariadb118_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A MariaDB 11.8 server under its defaults with row format."""
    with mariadb118.start(tmp_path_factory.mktemp("mariadb118")) as server:
        yield server
