"""Servers for tests; a test whose server is missing is skipped.

A test that needs a server carries its marker (`mysql`, `mariadb`, `mysql56`, `mariadb118`), or asks for its fixture.
Without the server it is skipped and the reason is shown; with BINLOOM_REQUIRE_SERVERS=1 it fails. The same holds for
a test that needs a browser (`browser`) or a metastore in PostgreSQL (`postgresql`).
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.servers import ALL_DISTRIBUTIONS, Distribution, Server, mariadb, mariadb118, mysql, mysql56
from tests.servers.postgresql import why_no_postgresql
from tests.support.browser import missing_programs, why_no_browser
from tests.support.depth import is_full

# Seconds of the longest modules in a run of everything on a busy machine. Processes share the modules: the longest
# begin first, so that none of them runs alone at the end.
LONGEST = {
    "test_demo": 1224,
    "test_builds": 800,
    "test_state_on_servers": 711,
    "test_following": 512,
    "test_proofs": 410,
    "test_against_servers": 362,
    "test_gaps": 326,
    "test_build": 310,
    "test_undo_cases": 303,
    "test_restore": 283,
    "test_odd_ddl": 267,
    "test_values_at_positions": 261,
    "test_hostile": 229,
    "test_failover": 224,
    "test_killed_builds": 211,
    "test_chain": 196,
    "test_schema_watch": 177,
    "test_index": 174,
    "test_restore_compared": 161,
    "test_chaos": 157,
    "test_older_warehouse": 154,
    "test_data_source": 153,
    "test_altered_tables": 152,
    "test_plain_commands": 144,
    "test_compact": 141,
    "test_cascade_remarks": 136,
    "test_landing_beside": 135,
    "test_end_to_end": 130,
    "test_compaction": 128,
    "test_undo_literals": 123,
    "test_gate": 122,
    "test_schema_history": 122,
}


# Modules with Spark that `make test` runs: landing, a build of everything, and the questions to it.
SAMPLE = ("test_demo", "test_gate", "test_partitions")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests by their server and length, leave out those of other lanes, and let the longest modules begin."""
    for item in items:
        if item.get_closest_marker("spark") and item.path.stem not in SAMPLE:
            item.add_marker("long")
    if not is_full() and (deep := [item for item in items if item.get_closest_marker("deep")]):
        config.hook.pytest_deselected(items=deep)
        items[:] = [item for item in items if not item.get_closest_marker("deep")]
    items.sort(key=lambda item: -LONGEST.get(item.path.stem, 0))
    for item in items:
        for distribution in ALL_DISTRIBUTIONS.values():
            marker = distribution.marker
            if f"{marker}_server" in getattr(item, "fixturenames", ()) and not item.get_closest_marker(marker):
                item.add_marker(marker)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose server or browser is missing, or fail it where they are required."""
    for distribution in ALL_DISTRIBUTIONS.values():
        if item.get_closest_marker(distribution.marker) and not distribution.available():
            _skip_or_fail(distribution.why_not())
    if item.get_closest_marker("browser") and missing_programs():
        _skip_or_fail(why_no_browser())
    if item.get_closest_marker("postgresql") and (reason := why_no_postgresql()):
        _skip_or_fail(reason)


def _skip_or_fail(reason: str) -> None:
    if os.environ.get("BINLOOM_REQUIRE_SERVERS") == "1":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="module", autouse=True)
def no_leftovers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Remove what a module's tests wrote when all went well: a run's servers and warehouses are gigabytes."""
    base = tmp_path_factory.getbasetemp()
    before = {*base.iterdir()}
    failed_before = request.session.testsfailed
    yield
    if request.session.testsfailed == failed_before:
        for folder in {*base.iterdir()} - before:
            if not _is_shared(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _is_shared(folder: Path) -> bool:
    return folder.name.startswith("shared-")


def server_of(distribution: Distribution) -> Any:
    """The fixture of a server that all tests of a run share."""

    @pytest.fixture(scope="session", name=f"{distribution.marker}_server")
    def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
        with distribution.start(tmp_path_factory.mktemp(f"shared-{distribution.marker}")) as running:
            yield running

    return server


# Under its defaults: MINIMAL metadata, CRC32, GTIDs.
mysql_server = server_of(mysql)
# Under its defaults with row format: no metadata, CRC32, annotations.
mariadb_server = server_of(mariadb)
# With row format: no metadata, CRC32, no GTIDs.
mysql56_server = server_of(mysql56)
# Under its defaults with row format.
mariadb118_server = server_of(mariadb118)
