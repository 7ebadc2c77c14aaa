"""Marts of followed servers: the same as those of the files, and in each epoch the names and values of that epoch."""

from pathlib import Path
from typing import Any

import pytest

from recover.sources.home.marts import open_marts
from tests.python.follow.conftest import SERVER_OPTIONS
from tests.servers import DISTRIBUTIONS, Distribution
from tests.servers.accounts import create_account
from tests.servers.load import Load
from tests.support.follow import epochs
from tests.support.follow.follower import Follower
from tests.support.follow.tables import Tables, assert_same_tables
from tests.support.in_process import binloom
from tests.support.permissions import GROUP_AND_OTHERS, open_to

pytestmark = [pytest.mark.mysql, pytest.mark.mariadb, pytest.mark.slow]

MARTS = ["row_changes", "transactions", "schema_changes"]
# These values contain the source's name, or depend on how and when the rows were landed.
OF_THE_LANDING = {"source_id", "change_id", "table_version_id", "segment_start", "landed_at"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with three sources for each kind of server."""
    folder = tmp_path_factory.mktemp("marts")
    home = folder / "home"
    for name, distribution in DISTRIBUTIONS.items():
        follow_and_read(folder, home, name, distribution)
        follow_epochs(folder, home, name, distribution)
    return home


def follow_and_read(folder: Path, home: Path, name: str, distribution: Distribution) -> None:
    """Land a log as two sources: a followed one, and one that is read from the files."""
    with distribution.start(folder / name, SERVER_OPTIONS[distribution.flavor]) as server:
        account = create_account(server, folder, f"follower_{name}")
        with Follower(home, server, account.defaults_file, "--from-oldest", source=f"followed-{name}") as follower:
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


def follow_epochs(folder: Path, home: Path, name: str, distribution: Distribution) -> None:
    """Follow a server whose log begins again."""
    with distribution.start(folder / f"epochs_{name}", epochs.SERVER_OPTIONS) as server:
        account = create_account(server, folder, f"follower_epochs_{name}")
        with Follower(home, server, account.defaults_file, "--from-oldest", source=f"epochs-{name}") as follower:
            epochs.live_through_two_epochs(server, follower)


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


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_rows_of_two_epochs_have_the_names_and_labels_of_the_snapshot_of_their_epoch(home: Path, name: str) -> None:
    rows = rows_of(home, "row_changes", f"epochs-{name}")
    rows.sort(key=lambda row: (row["epoch"], row["file_sequence"], row["start_pos"], row["row_ordinal"]))
    inserted = [(row["epoch"], dict(row["row_after"])) for row in rows if row["event_type"] == "INSERT"]
    assert inserted == epochs.INSERTED


def test_nobody_else_can_read_what_is_in_the_home(home: Path) -> None:
    assert [*open_to(GROUP_AND_OTHERS, home)] == []
    assert {"locks", "logs", "spool", "warehouse"} <= {path.name for path in home.iterdir()}


def rows_of(home: Path, mart: str, source: str) -> list[dict[str, Any]]:
    """Return the rows of a mart for one source, as questions compute them from what has landed."""
    with open_marts(home, [("binloom", mart)]) as marts:
        found = marts.sql(f"select * from binloom.{mart} where source_id = $source", params={"source": source})
        rows: list[dict[str, Any]] = found.to_arrow_table().to_pylist()
    return rows


def texts_of(home: Path, mart: str, source: str) -> list[str]:
    """Return the rows of a mart for one source, as sorted texts."""
    rows = rows_of(home, mart, source)
    texts = (repr({column: row[column] for column in row if column not in OF_THE_LANDING}) for row in rows)
    # Some keys begin with the name of the source.
    return sorted(text.replace(f"'{source}/", "'") for text in texts)
