"""Servers for tests, and what becomes of a test whose server is not there.

A test that needs a server carries the marker `mysql` or `mariadb`, or asks for the fixture. Without the
server it is skipped and the reason is shown; with BINLOOM_REQUIRE_SERVERS=1 it fails.
"""

import os
from collections.abc import Iterator

import pytest

from tests.servers import DISTRIBUTIONS, Server, mariadb, mysql


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that asks for a server's fixture."""
    for item in items:
        for name in DISTRIBUTIONS:
            if f"{name}_server" in getattr(item, "fixturenames", ()) and not item.get_closest_marker(name):
                item.add_marker(name)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose server is missing, or fail it where servers are required."""
    for name, distribution in DISTRIBUTIONS.items():
        if item.get_closest_marker(name) and not distribution.available():
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
