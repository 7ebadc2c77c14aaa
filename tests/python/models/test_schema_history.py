"""Two hundred random DDL statements between row changes: names and values equal those of a server with full metadata.

Each kind of server runs the same statements twice, once with its defaults and once with binlog_row_metadata=FULL, which
gives the expected result. All sources are in one home, which is asked twice: also after missing snapshots have arrived
and the segments were landed again. Landing names the rows, so a build is needed only for what should be landed again.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ingest.landing import ingest, land_snapshot
from ingest.sources.files.directory import find_binlogs
from recover.sources.home.marts import open_marts
from recover.sources.log import VIEWS
from tests.servers import ALL_DISTRIBUTIONS
from tests.servers.random_ddl import RandomDdl, run_step
from tests.support.landing.binlogs import snapshot_of
from tests.support.landing.spark import show_landed, without_session

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

pytestmark = [pytest.mark.mysql, pytest.mark.mariadb, pytest.mark.spark, pytest.mark.slow]

Dbt = Callable[..., dict[str, str]]
Change = tuple[Any, ...]

FLAVORS = ["mysql", "mariadb"]
SEED = 20261121
BEFORE, STEPS = 20, 200
# The columns have the same number and types: a missed statement would give wrong names, but no mismatch.
CAPITALS = [
    "insert into Shop.Orders values (1, 1)",
    "alter table SHOP.Orders change old new int",
    "insert into shop.orders values (2, 2)",
    "rename table Shop.Orders to Shop.Bills",
    "insert into Shop.Bills values (3, 3)",
    "create table SHOP.Orders (Number int primary key, Note int)",
    "insert into shop.ORDERS values (4, 4)",
]
# Labels that information_schema and a log without metadata write in several ways.
LABELS = ["a\\\\b", "cr\\r", "lf\\n", "nul\\0", "z\\Z", "it''s", "%_", 'q"', "(?)", "x''61''"]
WHOLE = "schema_name, table_name, event_type, row_before, row_after, changed_columns"


class Story:
    """A server's log, and its schema at the beginning and the end."""

    def __init__(self, folder: Path, flavor: str, options: list[str]) -> None:
        with ALL_DISTRIBUTIONS[flavor].start(folder, options) as server:
            steps = RandomDdl(SEED, flavor).steps(BEFORE + STEPS)
            with server.connect() as connection, connection.cursor() as cursor:
                for step in islice(steps, BEFORE):
                    run_step(cursor, step)
                # Earlier statements are not landed: only the first snapshot knows their effect.
                first = len(server.binlogs())
                server.flush()
                self.at_start = snapshot_of(server.host, server.port)
                for step in steps:
                    run_step(cursor, step)
            self.at_end = snapshot_of(server.host, server.port)
            server.flush()
            self.directory = server.binlog_dir
            self.names = [path.name for path in server.binlogs()[first:-1]]

    @without_session()
    def land(self, home: Path, source: str) -> None:
        """Land the log."""
        found = find_binlogs(self.directory, self.names)
        result = ingest(source, found, home=home)
        assert result.exit_code == 0, result.problems


@without_session()
def land_capitals(folder: Path, home: Path) -> None:
    """Land the log of a server that stores names in lower case, from statements with capitals."""
    with ALL_DISTRIBUTIONS["mariadb"].start(folder, ["--lower-case-table-names=1"]) as server:
        server.execute("create database Shop", "create table Shop.Orders (id int primary key, old int)")
        land_snapshot("capitals", snapshot_of(server.host, server.port), home)
        server.execute(*CAPITALS)
        server.flush()
        files = find_binlogs(server.binlog_dir, [path.name for path in server.binlogs()[:-1]])
        assert ingest("capitals", files, home=home).exit_code == 0
        server.execute(
            "create database labels",
            *(f"create table labels.t{n} (a enum('{label}'), b set('{label}'))" for n, label in enumerate(LABELS)),
            *(f"insert into labels.t{n} values (1, 1)" for n in range(len(LABELS))),
        )
        server.flush()
        last = find_binlogs(server.binlog_dir, [server.binlogs()[-2].name])
        assert ingest("labels", last, home=home).exit_code == 0


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Story]:
    """The statements on each server, with its defaults and with names logged."""
    folder = tmp_path_factory.mktemp("servers")
    logged = ["--binlog-row-metadata=FULL"]
    return {
        flavor + suffix: Story(folder / f"{flavor}{suffix}", flavor, options)
        for flavor in FLAVORS
        for suffix, options in (("", []), ("_named", logged))
    }


@dataclass(frozen=True)
class Found:
    """What a home knows: a connection to its marts, and the row changes of each source."""

    marts: "DuckDBPyConnection"
    changes: dict[str, list[Change]]


@pytest.fixture(scope="module")
def first(stories: dict[str, Story], home: Path, tmp_path_factory: pytest.TempPathFactory) -> Found:
    """Land with a snapshot at the beginning, and with one only at the end."""
    for flavor in FLAVORS:
        story, named = stories[flavor], stories[f"{flavor}_named"]
        land_snapshot(flavor, story.at_start, home)
        story.land(home, flavor)
        named.land(home, f"{flavor}_named")
        land_snapshot(f"{flavor}_late", story.at_end, home)
        story.land(home, f"{flavor}_late")
    land_capitals(tmp_path_factory.mktemp("capitals"), home)
    return found_in(home)


@pytest.fixture(scope="module")
def second(first: Found, stories: dict[str, Story], home: Path) -> Found:
    """Add the missing first snapshots and land the files again."""
    for flavor in FLAVORS:
        land_snapshot(f"{flavor}_late", stories[flavor].at_start, home)
        stories[flavor].land(home, f"{flavor}_late")
    return found_in(home)


def found_in(home: Path) -> Found:
    """Return what a home knows without a build."""
    marts = open_marts(home, VIEWS)
    sources = [f"{flavor}{suffix}" for flavor in FLAVORS for suffix in ("", "_named", "_late")]
    return Found(marts, {source: changes(marts, source, WHOLE) for source in sources})


def changes(marts: "DuckDBPyConnection", source: str, columns: str) -> list[Change]:
    """Return the row changes of a source in log order, with their positions first."""
    return marts.execute(
        f"select (file_sequence, start_pos, payload_ordinal, row_ordinal) as place, {columns} "
        "from binloom.row_changes where source_id = ? order by place",
        [source],
    ).fetchall()


def quarantined(marts: "DuckDBPyConnection", source: str) -> list[Change]:
    """Return the reasons for which rows of a source are in quarantine, and the first row of each."""
    return marts.execute(
        "select schema_name, table_name, reason, detail, count(*), min(start_pos) from binloom.quarantined_row_events "
        "where source_id = ? group by all order by min(start_pos)",
        [source],
    ).fetchall()


def without_places(found: list[Change]) -> list[Change]:
    """Return changes without their positions, which differ where names are logged."""
    return [change[1:] for change in found]


@pytest.mark.parametrize("flavor", FLAVORS)
def test_one_snapshot_at_the_start_gives_every_row_its_names_and_values(first: Found, flavor: str) -> None:
    assert len(first.changes[flavor]) > STEPS
    assert without_places(first.changes[flavor]) == without_places(first.changes[f"{flavor}_named"])


def test_a_server_without_capitals_names_every_row(first: Found) -> None:
    assert quarantined(first.marts, "capitals") == []
    names = "concat_ws('.', schema_name, table_name), map_keys(row_after)"
    assert without_places(changes(first.marts, "capitals", names)) == [
        ("shop.orders", ["id", "old"]),
        ("shop.orders", ["id", "new"]),
        ("shop.bills", ["id", "new"]),
        ("shop.orders", ["Number", "Note"]),
    ]


def test_labels_of_any_sign_are_read_once(first: Found) -> None:
    assert quarantined(first.marts, "labels") == []
    expected = ["a\\b", "cr\r", "lf\n", "nul\0", "z\x1a", "it's", "%_", 'q"', "(?)", "x'61'"]
    found = changes(first.marts, "labels", "row_after['a'], row_after['b']")
    assert without_places(found) == [(label, label) for label in expected]


@pytest.mark.parametrize("flavor", FLAVORS)
def test_a_snapshot_at_the_end_mislabels_nothing(first: Found, flavor: str) -> None:
    right = {change[0]: change for change in first.changes[flavor]}
    late = first.changes[f"{flavor}_late"]
    assert [change for change in late if change != right[change[0]]] == []
    # Tables that the log created need no snapshot; tables that it dropped or reordered do.
    assert 0 < len(late) < len(right)


@pytest.mark.parametrize("flavor", FLAVORS)
def test_the_first_snapshot_mends_it(second: Found, flavor: str) -> None:
    assert quarantined(second.marts, f"{flavor}_late") == []
    assert second.changes[f"{flavor}_late"] == second.changes[flavor]


def test_nothing_is_to_be_landed_again(second: Found, home: Path, spark: Any, dbt: Dbt) -> None:
    show_landed(spark, home)
    states = dbt("run", "--select", "+segments_to_land_again")
    assert set(states.values()) == {"success"}, states
    assert spark.sql("select * from binloom_quality.segments_to_land_again").collect() == []


@pytest.mark.parametrize("flavor", FLAVORS)
def test_rows_have_the_key_that_the_server_logs(second: Found, flavor: str) -> None:
    keys = [key for _, key in changes(second.marts, flavor, "pk_values")]
    logged = [key for _, key in changes(second.marts, f"{flavor}_named", "pk_values")]
    # For a table without primary key the server logs the first unique key whose columns are all NOT NULL.
    assert [key for key in keys if key] == [answer for key, answer in zip(keys, logged, strict=True) if key]
    assert sum(key is not None for key in keys) > len(keys) / 2


@pytest.mark.parametrize("flavor", FLAVORS)
def test_every_row_is_bound_with_confidence(second: Found, flavor: str) -> None:
    assert quarantined(second.marts, flavor) == []
    rows = Counter(confidence for _, confidence in changes(second.marts, flavor, "binding_confidence"))
    # CREATE TABLE IF NOT EXISTS gives inferred definitions: it is unknown whether the table existed before.
    assert set(rows) <= {"in_force", "inferred"}
    assert rows["in_force"] > rows["inferred"]
