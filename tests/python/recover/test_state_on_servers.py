"""The state of tables at each transaction of a random workload equals what the server contained then.

The marts of this module also show what keeps an undo from being right.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jinja2 import Template

from ingest.landing import ingest, land_snapshot
from ingest.sources.directory import find_binlogs
from ingest.warehouse.spark import SparkLaunch
from recover.selection.filters import Filters
from recover.sources.log import VIEWS, Log
from recover.sources.marts import open_marts
from recover.timeline.as_of import moment_of
from recover.timeline.state import Row, State, state_of
from recover.timeline.table_log import MARTS, Table
from recover.undo.classify import Wish
from recover.undo.undoing import planned
from tests.servers import ALL_DISTRIBUTIONS
from tests.support.landing.binlogs import snapshot_of
from tests.support.models.invoke import run_dbt
from tests.support.places import PROJECT
from tests.support.recover.timeline import SCHEMA, Dump, Timeline

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

pytestmark = [pytest.mark.mysql, pytest.mark.mariadb, pytest.mark.spark, pytest.mark.slow]

SERVERS = ("mysql", "mariadb")
TRANSACTIONS = 120

# Each table gets two rows and an UPDATE, and then something that the log does not show row by row.
TABLES_WITH_OBSTACLES = ("kept", "wider", "emptied", "replaced", "narrowed", "dropped", "by_statement", "prepared")
OBSTACLES = (
    "create database shop",
    *(f"create table shop.{table} (id int primary key, v varchar(20))" for table in TABLES_WITH_OBSTACLES),
    *(f"insert into shop.{table} values (1, 'a'), (2, 'b')" for table in TABLES_WITH_OBSTACLES),
    *(f"update shop.{table} set v = 'c'" for table in TABLES_WITH_OBSTACLES),
    "alter table shop.wider add column w int",
    "truncate table shop.emptied",
    "drop table shop.replaced",
    "create table shop.replaced (id int primary key, v varchar(20))",
    "alter table shop.narrowed modify v varchar(10)",
    "drop table shop.dropped",
    "set session binlog_format = STATEMENT",
    "update shop.by_statement set v = 'd'",
    "set session binlog_format = ROW",
    "xa start 'x'",
    "update shop.prepared set v = 'd' where id = 1",
    "xa end 'x'",
    "xa prepare 'x'",
)


@dataclass(frozen=True)
class Timelines:
    """The home, its marts in memory, the session that built them, and the dumps of each server."""

    home: Path
    marts: "DuckDBPyConnection"
    session: Any
    dumps: dict[str, list[Dump]]


@pytest.fixture(scope="module")
def timelines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Timelines]:
    """The marts of one workload on each server, and its dumps."""
    home = tmp_path_factory.mktemp("home")
    dumps: dict[str, list[Dump]] = {}
    with pytest.MonkeyPatch.context() as patch, SparkLaunch(home, short_lived=True) as launch:
        patch.setenv("BINLOOM_HOME", str(home))
        for seed, name in enumerate(SERVERS):
            with ALL_DISTRIBUTIONS[name].start(tmp_path_factory.mktemp(name), ["--binlog-format=ROW"]) as server:
                timeline = Timeline(server, seed, has_documents=name == "mysql")
                dumps[name] = timeline.run(TRANSACTIONS)
                server.execute(*OBSTACLES)
                land_snapshot(name, snapshot_of(server.host, server.port))
                server.flush()
                result = ingest(name, find_binlogs(server.binlog_dir), session=launch.session(), home=home)
                assert result.exit_code == 0, result.problems
        models = [f"+{mart}" for _, mart in MARTS]
        built = run_dbt(home, "run", "--select", *models, "row_history", "table_statistics_hourly")
        assert set(built.values()) == {"success"}, built
        yield Timelines(home, in_memory(home), launch.session(), dumps)


@pytest.mark.parametrize("name", SERVERS)
def test_the_state_at_each_transaction_is_what_the_server_contained(timelines: Timelines, name: str) -> None:
    connection = timelines.marts
    for number, dump in enumerate(timelines.dumps[name]):
        moment = moment_of(connection, name, dump.position)
        assert moment.remarks == ()
        for table, expected in dump.rows.items():
            state = state_of(connection, Table(name, SCHEMA, table), moment)
            assert rows_of(state) == expected, f"{table} after transaction {number}, at {dump.position}"
            assert (state.is_complete, state.rows_unknown) == (True, 0)


@pytest.mark.parametrize("name", SERVERS)
def test_a_log_that_begins_later_shows_no_row_that_the_server_did_not_have(timelines: Timelines, name: str) -> None:
    dumps = timelines.dumps[name]
    first = len(dumps) // 2
    connection = in_memory(timelines.home)
    begin = moment_of(connection, name, dumps[first].position).place
    for mart in ("row_changes", "transactions", "schema_changes"):
        connection.execute(
            f"""delete from binloom.{mart}
            where source_id = $source and (epoch, file_sequence, start_pos) < ($epoch, $sequence, $pos)""",
            {"source": name, "epoch": begin.epoch, "sequence": begin.file_sequence, "pos": begin.pos},
        )
    rows_before_their_first_change = 0
    for dump in dumps[first + 1 : -1]:
        moment = moment_of(connection, name, dump.position)
        for table, expected in dump.rows.items():
            state = state_of(connection, Table(name, SCHEMA, table), moment)
            rows = list(state.rows())
            assert_among(rows, expected, state.columns)
            assert state.chain_breaks == 0
            rows_before_their_first_change += sum(bool(row.unknown_columns) for row in rows)
    assert rows_before_their_first_change > 0


@pytest.mark.parametrize("name", SERVERS)
@pytest.mark.parametrize(
    ("table", "obstacle"),
    [
        ("kept", None),
        ("wider", None),
        ("emptied", "shop.emptied was emptied since by"),
        ("replaced", "shop.replaced was emptied since by DROP TABLE"),
        ("narrowed", "shop.narrowed was altered since by"),
        ("dropped", "no schema snapshot describes shop.dropped"),
        ("by_statement", "rows of shop.by_statement may have changed unseen since"),
        ("prepared", "a prepared XA transaction holds 1 row changes of shop.prepared"),
    ],
)
def test_an_undo_is_refused_after_changes_that_the_log_does_not_show(
    timelines: Timelines, name: str, table: str, obstacle: str | None
) -> None:
    damage = Filters.of(sources=[name], tables=[f"shop.{table}"], where=["after.v = 'c'"])
    log = Log.of_warehouse(timelines.home, dict.fromkeys((*VIEWS, *MARTS)))
    with planned(log, damage, Wish()) as (_, plan, _):
        assert plan.is_printable == (obstacle is None), plan.problems
        if obstacle is None:
            assert plan.counts == {(f"shop.{table}", "UPDATE"): 2}
        else:
            assert any(problem.startswith(obstacle) for problem in plan.problems), plan.problems


@pytest.mark.parametrize("name", SERVERS)
def test_the_current_versions_of_row_history_are_the_keys_that_the_server_has(timelines: Timelines, name: str) -> None:
    rows = timelines.session.sql(
        f"select pk_values from binloom.row_history where is_current and source_id = '{name}' and table_name = 'items'"
    ).collect()
    last = timelines.dumps[name][-1].rows["items"]
    assert Counter(row.pk_values for row in rows) == Counter(key for key, *_ in last.elements())


def test_row_history_has_the_columns_of_a_dbt_snapshot(timelines: Timelines) -> None:
    macro = (PROJECT / "macros" / "history" / "dbt_snapshot_columns.sql").read_text()
    columns = Template(macro).module.dbt_snapshot_columns()  # type: ignore[attr-defined]
    found = timelines.session.sql(
        f"select {columns}, is_current from binloom.row_history where table_name = 'items' and not is_deleted"
    ).collect()
    assert [*found[0].asDict()][:4] == ["dbt_scd_id", "dbt_updated_at", "dbt_valid_from", "dbt_valid_to"]
    assert len({row.dbt_scd_id for row in found}) == len(found) > 100
    assert all(row.dbt_updated_at == row.dbt_valid_from for row in found)
    assert {row.dbt_valid_to is None for row in found if row.is_current} == {True}


def test_a_filter_on_the_key_of_row_history_reaches_the_scan(timelines: Timelines) -> None:
    query = "select * from binloom.row_history where pk_values = '1' and pk_hash = sha2('1', 256)"
    timelines.session.conf.set("spark.sql.maxMetadataStringLength", 2000)
    plan = timelines.session.sql(f"explain {query}").collect()[0].plan
    scans = [line for line in plan.splitlines() if "FileScan" in line and "row_changes" in line]
    assert len(scans) == 2
    assert "EqualTo(pk_values,1)" in scans[0] and "EqualTo(pk_hash," in scans[0]
    assert "EqualTo(pk_values_after,1)" in scans[1]


def in_memory(home: Path) -> "DuckDBPyConnection":
    """Return the marts as tables in memory: a thousand states are read from them."""
    import duckdb

    marts, copy = open_marts(home, MARTS), duckdb.connect()
    copy.execute("set timezone = 'UTC'; create schema binloom; create schema binloom_quality")
    for schema, name in MARTS:
        rows = marts.sql(f"select * from {schema}.{name}").to_arrow_table()
        copy.register("rows", rows)
        copy.execute(f"create table {schema}.{name} as select * from rows")
        copy.unregister("rows")
    return copy


def assert_among(rows: list[Row], expected: Counter[tuple[str | None, ...]], columns: tuple[str, ...]) -> None:
    """Assert that each row is one of the expected rows, in all values that it knows."""
    left = Counter(expected)
    for row in sorted(rows, key=lambda one: len(one.unknown_columns)):
        places = [columns.index(column) for column in row.values]
        known = tuple(row.values.values())
        found = next((one for one in left if tuple(one[place] for place in places) == known), None)
        assert found is not None, row
        left -= Counter([found])


def rows_of(state: State) -> Counter[tuple[str | None, ...]]:
    """Return the rows of a state; none of them may have an unknown value."""
    return Counter(tuple(row.values[column] for column in state.columns) for row in state.rows())
