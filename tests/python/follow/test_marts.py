"""The same logs, once followed and once read from files, give the same raw tables and marts."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.python.follow.conftest import SERVER_OPTIONS
from tests.servers import DISTRIBUTIONS
from tests.servers.accounts import create_account
from tests.servers.load import Load
from tests.support.commands import rows_of
from tests.support.follow.follower import Follower
from tests.support.follow.tables import Tables, assert_same_tables
from tests.support.in_process import binloom, build
from tests.support.permissions import GROUP_AND_OTHERS, open_to

pytestmark = [pytest.mark.mysql, pytest.mark.mariadb, pytest.mark.spark, pytest.mark.slow]

MARTS = ["row_changes", "transactions", "schema_changes", "table_activity_hourly"]
# These values contain the source's name, or depend on how and when the rows were landed.
OF_THE_LANDING = {"source_id", "change_id", "table_version_id", "segment_start", "landed_at"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home with two sources for each server: a followed one, and one that was read from the files."""
    folder = tmp_path_factory.mktemp("marts")
    home = folder / "home"
    for name, distribution in DISTRIBUTIONS.items():
        with distribution.start(folder / name, SERVER_OPTIONS[distribution.flavor]) as server:
            account = create_account(server, folder, f"follower_{name}")
            with Follower(
                home, server, account.defaults_file, "--from-oldest", source=f"followed-{name}", has_java=True
            ) as follower:
                with Load(server, ddl_every=15) as load:
                    follower.start()
                    load.wait_for(80)
                    server.flush()
                    load.wait_for(80)
                follower.wait_until_landed(server)
                assert follower.stop() == 0, follower.tail()
            live = ["--server", server.host, "--port", str(server.port), "--defaults-file", str(account.defaults_file)]
            binloom(home, "snapshot", "--source", f"read-{name}", *live)
            binloom(home, "ingest", "--source", f"read-{name}", "--binlog-dir", str(server.binlog_dir), "--all")
    build(home, *MARTS)
    yield home


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_raw_tables_are_the_same(home: Path, name: str) -> None:
    counts = assert_same_tables(Tables(home, f"followed-{name}"), Tables(home, f"read-{name}"))
    assert counts["row_events"] > 300
    assert counts["statements"] > 5


@pytest.mark.parametrize("mart", MARTS)
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_marts_are_the_same(home: Path, name: str, mart: str) -> None:
    followed, read = (texts_of(home, mart, f"{way}-{name}") for way in ("followed", "read"))
    assert followed
    missing, extra = sorted(set(read) - set(followed)), sorted(set(followed) - set(read))
    assert followed == read, f"{len(missing)} are missing, {len(extra)} too many: {missing[:3]} {extra[:3]}"


def test_nobody_else_can_read_what_is_in_the_home(home: Path) -> None:
    # Here dbt itself was told to write its own files there, and those have the user's umask.
    opened = [path for path in open_to(GROUP_AND_OTHERS, home) if not path.startswith(("target", "logs/dbt.log"))]
    assert opened == []
    assert {"locks", "logs", "metastore", "spool", "warehouse"} <= {path.name for path in home.iterdir()}


def texts_of(home: Path, mart: str, source: str) -> list[str]:
    """Return the rows of a mart for one source, as sorted texts."""
    rows = rows_of(home, mart, source)
    texts = (repr({column: row[column] for column in row if column not in OF_THE_LANDING}) for row in rows)
    # Some keys begin with the name of the source.
    return sorted(text.replace(f"'{source}/", "'") for text in texts)
