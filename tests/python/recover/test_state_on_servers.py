"""The state of tables at each transaction of a random workload equals what the server contained then.

The marts of this module also show what keeps an undo from being right.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jinja2 import Template

from ingest.binlog import TableFilter
from ingest.landing import ingest, land_snapshot
from ingest.landing.baselines import land_baseline
from ingest.sources.baselines.consistent_read import ConsistentRead
from ingest.sources.files.directory import find_binlogs
from ingest.sources.servers.address import ServerAddress
from ingest.warehouse.spark import SparkLaunch
from recover.selection.filters import Filters
from recover.sources.home.marts import open_marts
from recover.sources.log import VIEWS, Log
from recover.timeline import baselines
from recover.timeline.as_of import moment_of
from recover.timeline.events import Table
from recover.timeline.history import history_of
from recover.timeline.state import Row, State, state_of
from recover.timeline.table_log import MARTS
from recover.undo.options import UndoOptions
from recover.undo.undoing import planned
from tests.servers import ALL_DISTRIBUTIONS, Server
from tests.support.binlog import workload
from tests.support.depth import at_depth, is_full
from tests.support.landing.binlogs import snapshot_of
from tests.support.landing.spark import show_landed, without_session
from tests.support.models.invoke import run_dbt
from tests.support.models.macros import Macros
from tests.support.models.typed import (
    EVERY_TYPE,
    MOVED,
    ODD_NAMES,
    RENAMED_VERSIONS,
    Made,
    Typed,
    generated,
    make_tables,
    typed_row,
)
from tests.support.places import PROJECT
from tests.support.recover.landed_marts import assert_built_as_landed
from tests.support.recover.timeline import SCHEMA, Dump, Timeline

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

pytestmark = [
    *(pytest.mark.mysql, pytest.mark.mariadb, pytest.mark.mysql56, pytest.mark.mariadb118),
    *(pytest.mark.spark, pytest.mark.slow),
]

SERVERS = ("mysql", "mariadb")
LOGGED_ROWS = [f"{SCHEMA}.{table}" for table in ("items", "pairs", "past", "emptied", "swapped")]
# Servers whose tables of every type have typed models; each run decodes the types of the others elsewhere.
TYPED = SERVERS[:1] if not is_full() else tuple(ALL_DISTRIBUTIONS)
# The baseline comes when no transaction is prepared: a log that begins there would lack its rows.
TRANSACTIONS, MIDDLE = at_depth(40, 120), at_depth(20, 60)
# A log that begins later is asked for the states after some of the transactions; the whole log, after each.
SOME = slice(MIDDLE + 1, -1, at_depth(4, 1))

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
    """The home, its marts in memory, the session that built them, and the dumps of each server.

    Attributes
    ----------
    made
        Tables with typed models, and what they contained, by server and name.
    """

    home: Path
    marts: "DuckDBPyConnection"
    session: Any
    dumps: dict[str, list[Dump]]
    typed: Typed
    made: dict[str, dict[str, Made]]


@pytest.fixture(scope="module")
def timelines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Timelines]:
    """The marts of one workload on each server, and its dumps."""
    home = tmp_path_factory.mktemp("home")
    dumps: dict[str, list[Dump]] = {}
    made: dict[str, dict[str, Made]] = {}
    with pytest.MonkeyPatch.context() as patch, SparkLaunch(home, short_lived=True) as launch, without_session():
        patch.setenv("BINLOOM_HOME", str(home))
        for seed, name in enumerate(dict.fromkeys((*SERVERS, *TYPED))):
            with ALL_DISTRIBUTIONS[name].start(tmp_path_factory.mktemp(name), ["--binlog-format=ROW"]) as server:
                if name in TYPED:
                    made[name] = make_tables(server)
                if name in SERVERS:
                    timeline = Timeline(server, seed, has_documents=name == "mysql")
                    dumps[name] = timeline.run(TRANSACTIONS, {MIDDLE: baseline_of(name, server, home)})
                    _write_past_the_log(server)
                    baseline_of(name, server, home, "past")()
                    server.execute(*OBSTACLES)
                land_snapshot(name, snapshot_of(server.host, server.port))
                server.flush()
                result = ingest(name, find_binlogs(server.binlog_dir), home=home)
                assert result.exit_code == 0, result.problems
        show_landed(launch.session(), home)
        models = [f"+{mart}" for schema, mart in MARTS if schema != "binloom_staging"]
        models += ["+baseline_rows", "+baseline_differences"]
        built = run_dbt(home, "run", "--select", *models, "row_history", "table_statistics_hourly")
        assert set(built.values()) == {"success"}, built
        tables = {name: list(LOGGED_ROWS) for name in SERVERS}
        for name in TYPED:
            tables.setdefault(name, []).extend([f"{workload.SCHEMA}.*", ".".join(MOVED)])
        typed = generated(tmp_path_factory.mktemp("project"), home, tables)
        yield Timelines(home, in_memory(home), launch.session(), dumps, typed, made)


PAST = (
    f"create table {SCHEMA}.past (id int primary key, v varchar(20), w varchar(20))",
    f"insert into {SCHEMA}.past values (1, 'a', 'x'), (2, 'a', 'x'), (3, 'a', 'x'), (4, 'a', 'x')",
    f"create table {SCHEMA}.emptied (id int primary key, v varchar(20))",
    f"create table {SCHEMA}.swapped (id int primary key, v varchar(20), w varchar(20))",
    f"create table {SCHEMA}._swapped_gho like {SCHEMA}.swapped",
    f"insert into {SCHEMA}.swapped values (1, 'a', 'x'), (2, 'a', 'x')",
    f"insert into {SCHEMA}._swapped_gho values (1, 'b', 'y'), (2, 'b', 'y')",
    f"rename table {SCHEMA}.swapped to {SCHEMA}._swapped_del, {SCHEMA}._swapped_gho to {SCHEMA}.swapped",
    f"drop table {SCHEMA}._swapped_del",
    "set session sql_log_bin = 0",
    f"insert into {SCHEMA}.emptied values (1, 'a'), (2, 'b')",
)
PAST_THE_LOG = (
    f"update {SCHEMA}.past set v = 'b'",
    f"update {SCHEMA}.emptied set v = 'c' where id = 2",
    f"truncate table {SCHEMA}.emptied",
    "set session binlog_row_image = MINIMAL",
    f"update {SCHEMA}.swapped set v = 'c' where id = 2",
    "set session sql_log_bin = 0",
    f"update {SCHEMA}.past set w = 'y' where id = 2",
    f"delete from {SCHEMA}.past where id = 3",
    f"insert into {SCHEMA}.past values (5, 'a', 'x')",
)


def baseline_of(name: str, server: Server, home: Path, table: str | None = None) -> Callable[[], None]:
    """Return a function that lands the first baseline of all tables, or a further one of a table."""

    def land() -> None:
        if table is None:
            server.execute(*PAST)
        wanted = TableFilter.of(schemas=[SCHEMA], tables=[table] if table is not None else [])
        with ConsistentRead(ServerAddress("127.0.0.1", server.port, "root"), wanted) as read:
            land_baseline(name, read.snapshot, read.tables, read.rows, finish=read.assert_unchanged, home=home)

    return land


def _write_past_the_log(server: Server) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in PAST_THE_LOG:
            cursor.execute(statement)


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


def test_questions_have_the_same_marts_before_a_build(timelines: Timelines, tmp_path: Path) -> None:
    assert_built_as_landed(timelines.home, tmp_path)


@pytest.mark.parametrize("name", SERVERS)
def test_a_log_that_begins_later_shows_no_row_that_the_server_did_not_have(timelines: Timelines, name: str) -> None:
    dumps = timelines.dumps[name]
    connection = since(timelines.home, name, dumps[MIDDLE].position)
    connection.execute("drop table binloom.baselines")
    rows_before_their_first_change = 0
    for dump in dumps[SOME]:
        moment = moment_of(connection, name, dump.position)
        for table, expected in dump.rows.items():
            state = state_of(connection, Table(name, SCHEMA, table), moment)
            rows = list(state.rows())
            assert_among(rows, expected, state.columns)
            assert state.chain_breaks == 0
            rows_before_their_first_change += sum(bool(row.unknown_columns) for row in rows)
    assert rows_before_their_first_change > 0


@pytest.mark.parametrize("name", SERVERS)
def test_with_a_baseline_a_log_that_begins_later_shows_all_rows(timelines: Timelines, name: str) -> None:
    dumps = timelines.dumps[name]
    connection = since(timelines.home, name, dumps[MIDDLE].position)
    for dump in dumps[SOME]:
        moment = moment_of(connection, name, dump.position)
        for table, expected in dump.rows.items():
            state = state_of(connection, Table(name, SCHEMA, table), moment)
            assert rows_of(state) == expected, f"{table} at {dump.position}"
            assert (state.is_complete, state.rows_unknown) == (True, 0)
            assert state.baseline is not None


@pytest.mark.parametrize("name", SERVERS)
def test_a_second_baseline_shows_writes_past_the_log(timelines: Timelines, name: str) -> None:
    found = timelines.session.sql(
        f"""select table_name, pk_values, difference, columns from binloom_quality.baseline_differences
        where source_id = '{name}' order by pk_values"""
    ).collect()
    assert [tuple(row) for row in found] == [
        ("past", "2", "values_differ", ["w"]),
        ("past", "3", "missing", None),
        ("past", "5", "unexpected", None),
    ]


@pytest.mark.parametrize("name", SERVERS)
def test_typed_models_have_rows_that_only_a_baseline_has(timelines: Timelines, name: str) -> None:
    found = timelines.typed.current(name, SCHEMA, "past")
    rows = {row["id"]: (row["v"], row["w"], row["binloom_valid_from"] is None) for row in found}
    # The log shows what became of the others.
    assert rows == {**dict.fromkeys(range(1, 5), ("b", "x", False)), 5: ("a", "x", True)}

    assert timelines.typed.current(name, SCHEMA, "emptied") == []
    versions = timelines.session.sql(
        f"""select id, v, binloom_version, binloom_valid_from_pos is null, binloom_valid_to_pos is null
        from {timelines.typed.view(name, SCHEMA, "emptied", "history")} order by 1, 3"""
    ).collect()
    assert [tuple(row) for row in versions] == [
        (1, "a", 1, True, False),
        (2, "b", 1, True, False),
        (2, "c", 2, False, False),
    ]


@pytest.mark.parametrize("name", SERVERS)
def test_a_baseline_shows_the_rows_of_a_table_that_replaced_another(timelines: Timelines, name: str) -> None:
    current = timelines.typed.current(name, SCHEMA, "swapped")
    assert {row["id"]: (row["v"], row["w"]) for row in current} == {1: ("b", "y"), 2: ("c", "y")}
    versions = sorted(versions_of(timelines, name, SCHEMA, "swapped"), key=itemgetter("id", "binloom_version"))
    assert [row["v"] for row in versions] == ["a", "b", "a", "b", "c"]
    # The rows of the second table begin with the statement that ends those of the first one.
    ends = [(row["binloom_valid_from_pos"], row["binloom_valid_to_pos"]) for row in versions]
    assert None not in {begin for begin, _ in ends}
    assert ends[0][1] == ends[1][0] == ends[2][1] == ends[3][0]


@pytest.mark.parametrize("name", SERVERS)
def test_history_shows_a_row_that_never_changed_since_the_baseline(timelines: Timelines, name: str) -> None:
    dumps = timelines.dumps[name]
    connection = since(timelines.home, name, dumps[-1].position)
    dump = dumps[MIDDLE]
    key, *_ = next(iter(dump.rows["items"]))
    connection.execute("delete from binloom.row_changes where table_name = 'items'")
    (version, *_) = history_of(connection, Table(name, SCHEMA, "items"), str(key))
    values = next(row for row in dump.rows["items"] if row[0] == key)
    assert (version.change, version.row) == (None, dict(zip(("id", "name", "n", "at"), values, strict=True)))


@pytest.mark.parametrize("name", SERVERS)
@pytest.mark.parametrize(
    ("table", "obstacle"),
    [
        ("kept", None),
        ("wider", None),
        ("emptied", "shop.emptied was emptied since by"),
        ("replaced", "shop.replaced was emptied since by DROP TABLE"),
        # Its values are short enough for the new type.
        ("narrowed", None),
        ("dropped", "shop.dropped was dropped since by DROP TABLE"),
        ("by_statement", "rows of shop.by_statement may have changed unseen since"),
        ("prepared", "a prepared XA transaction holds 1 row change of shop.prepared"),
    ],
)
def test_an_undo_is_refused_after_changes_that_the_log_does_not_show(
    timelines: Timelines, name: str, table: str, obstacle: str | None
) -> None:
    damage = Filters.of(sources=[name], tables=[f"shop.{table}"], where=["after.v = 'c'"])
    log = Log.of_warehouse(timelines.home, dict.fromkeys((*VIEWS, *MARTS)))
    with planned(log, damage, UndoOptions()) as (_, plan, _):
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
    assert len({row.dbt_scd_id for row in found}) == len(found) > 20
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


@pytest.mark.parametrize("name", TYPED)
@pytest.mark.parametrize("table_name", [EVERY_TYPE, ODD_NAMES])
def test_typed_current_rows_are_the_rows_of_the_server(timelines: Timelines, name: str, table_name: str) -> None:
    made = timelines.made[name][table_name]
    table, rows = made.table, made.seen[-1].rows
    found = {row["id"]: row for row in timelines.typed.current(name, workload.SCHEMA, table_name)}
    assert found.keys() == rows.keys() and len(found) >= 2
    for id, row in rows.items():
        expected = typed_row(table, row)
        assert {column: found[id][column] for column in expected} == expected
        assert found[id]["binloom_unfit_columns"] == found[id]["binloom_unknown_columns"] == []
        zero = [column for column, value in expected.items() if value is None and row[column] is not None]
        assert found[id]["binloom_zero_dates"] == zero


def test_no_text_makes_a_typed_value_raise_an_error_in_ansi_mode(timelines: Timelines) -> None:
    texts = ["", "x", "0x", "0xZZ", "0x0", "-0", "1e400", "nan", "9" * 60, "-838:59:59.999999", "0000-00-00", "\0", "é"]
    texts += ["2026-02-30", "0000-00-00 00:00:00.000000", "2026-11-01 25:00:00", "+294247-01-10 04:00:54.775807", ","]
    types = ["int", "bigint", "decimal(20,0)", "decimal(38,38)", "float", "double", "date", "timestamp"]
    types += ["timestamp_ntz", "binary", "array<string>", "string"]
    macros = Macros({})
    # Spark has years that Python lacks.
    values = ", ".join(f"cast({macros.value('typed_value', 'text', type)} as string) as `{type}`" for type in types)
    rows = ", ".join(f"({macros.value('text_literal', text)})" for text in texts)
    session = timelines.session.newSession()
    session.conf.set("spark.sql.ansi.enabled", "true")
    found = session.sql(f"select text, {values} from values {rows}, (null) as given(text)").toArrow().to_pylist()
    assert [row["text"] for row in found] == [*texts, None]
    by_text = {row.pop("text"): row for row in found}
    assert {*by_text[None].values()} == {None}
    for text in ("x", "0000-00-00", "0000-00-00 00:00:00.000000", "2026-02-30"):
        assert {type for type, value in by_text[text].items() if value is not None} == {"string", "array<string>"}


@pytest.mark.parametrize("name", TYPED)
@pytest.mark.parametrize("table_name", [EVERY_TYPE, ODD_NAMES])
def test_typed_history_of_every_type_is_what_the_server_contained(
    timelines: Timelines, name: str, table_name: str
) -> None:
    made = timelines.made[name][table_name]
    if table_name == EVERY_TYPE:
        assert len({seen.place for seen in made.seen}) > 50
    versions = versions_of(timelines, name, workload.SCHEMA, table_name)
    for seen in made.seen:
        found = {row["id"]: row for row in versions if _is_valid(row, seen.place)}
        assert found.keys() == seen.rows.keys(), seen.place
        for id, row in seen.rows.items():
            expected = typed_row(made.table, row)
            assert {column: found[id][column] for column in expected} == expected, (seen.place, id)


@pytest.mark.parametrize("name", TYPED)
def test_a_renamed_table_is_one_table(timelines: Timelines, name: str) -> None:
    made = timelines.made[name][MOVED[1]]
    versions = versions_of(timelines, name, *MOVED)
    for seen in made.seen:
        found = [(row["id"], row["w"]) for row in versions if _is_valid(row, seen.place)]
        expected = [(id, row.get("v", row.get("w"))) for id, row in seen.rows.items()]
        assert sorted(found) == sorted(expected), seen.place
    assert {row["id"]: row["w"] for row in timelines.typed.current(name, *MOVED)} == {2: "B", 3: "c"}

    changes = timelines.session.sql(
        f"select event_type, before_w, after_w from {timelines.typed.view(name, *MOVED, 'changes')}"
        " order by file_sequence, start_pos, row_ordinal"
    ).collect()
    assert [tuple(row) for row in changes] == [
        *(("INSERT", None, v) for v in ("gone", "gone", "a", "b", "c")),
        *(("UPDATE", "a", "A"), ("UPDATE", "A", "AA"), ("UPDATE", "b", "B"), ("DELETE", "AA", None)),
    ]
    # The table that has the first name now.
    first = timelines.typed.current(name, workload.SCHEMA, "first_name")
    assert [(row["id"], row["v"]) for row in first] == [(2, "of another table")]
    history = versions_of(timelines, name, workload.SCHEMA, "first_name")
    assert Counter(row["binloom_is_current"] for row in history) == {True: 1, False: 6}


@pytest.mark.parametrize("name", TYPED)
def test_a_table_that_replaced_another_has_no_row_of_it(timelines: Timelines, name: str) -> None:
    versions = versions_of(timelines, name, workload.SCHEMA, "swapped")
    *_, last = timelines.made[name]["swapped"].seen
    for seen in timelines.made[name]["swapped"].seen:
        found = {row["id"]: row for row in versions if _is_valid(row, seen.place)}
        is_swapped = any("n" in row for row in seen.rows.values())
        # Nobody has changed row 3 since, so the log does not have it under this name.
        assert found.keys() == ({1, 2} if is_swapped else seen.rows.keys()), seen.place
        for id, row in found.items():
            known = {"id", "v", "w", "n"} - {*row["binloom_unknown_columns"]}
            expected = {**dict.fromkeys("vwn"), **seen.rows[id]}
            assert {c: str(row[c]) for c in known if row[c] is not None} == {
                c: expected[c] for c in known if expected[c] is not None
            }, (seen.place, id)
    current = {row["id"]: row for row in timelines.typed.current(name, workload.SCHEMA, "swapped")}
    assert last.rows[2]["w"] == "new"
    assert (current[1]["w"], current[1]["n"]) == ("new", 5)
    assert (current[2]["v"], current[2]["w"], current[2]["binloom_unknown_columns"]) == ("B", None, ["w", "n"])


@pytest.mark.parametrize("name", SERVERS)
@pytest.mark.parametrize("table", ["items", "pairs"])
def test_typed_history_is_what_the_server_contained(timelines: Timelines, name: str, table: str) -> None:
    history = timelines.typed.view(name, SCHEMA, table, "history")
    # Rows of prepared transactions have the place where they were prepared.
    condition = "id <= 1000" if table == "items" else "true"
    versions = timelines.session.sql(f"select * from {history} where {condition} and not binloom_is_deleted").collect()
    known = unknown = 0
    for dump in timelines.dumps[name]:
        file, _, pos = dump.position.partition(":")
        place = (int(file.rpartition(".")[2]), int(pos))
        rows = {row.binloom_pk_values: row for row in versions if _is_valid(row, place)}
        server = [TIMELINE_ROWS[table](row) for row in dump.rows[table].elements()]
        expected = {_pk_values(row, table): row for row in server if table != "items" or row["id"] <= 1000}
        assert rows.keys() == expected.keys(), dump.position
        for key, row in rows.items():
            left_out = {*row.binloom_unknown_columns}
            known, unknown = known + len(expected[key]) - len(left_out), unknown + len(left_out)
            assert {c: row[c] for c in expected[key] if c not in left_out} == {
                c: value for c, value in expected[key].items() if c not in left_out
            }, (dump.position, key)
    # The images of some changes have only the key.
    assert known > 2 * unknown


def versions_of(timelines: Timelines, name: str, schema: str, table: str) -> list[dict[str, Any]]:
    """Return all versions of the rows of a table that exist."""
    history = timelines.typed.view(name, schema, table, "history")
    rows = timelines.session.sql(f"select * from {history} where not binloom_is_deleted").toArrow()
    found: list[dict[str, Any]] = rows.to_pylist()
    return found


TIMELINE_ROWS: dict[str, Any] = {
    "items": lambda row: {
        "id": int(row[0]),
        "name": row[1],
        "n": row[2] and Decimal(row[2]),
        "at": row[3] and datetime.fromisoformat(row[3]),
    },
    "pairs": lambda row: {"a": int(row[0]), "b": row[1], "v": row[2] and float(row[2])},
}


def _pk_values(row: dict[str, Any], table: str) -> str:
    if table == "items":
        return str(row["id"])
    return "|".join(str(row[column]).replace("\\", "\\\\").replace("|", "\\|") for column in ("a", "b"))


def _is_valid(row: Any, place: tuple[int, int]) -> bool:
    begin = (row["binloom_valid_from_file_sequence"] or 0, row["binloom_valid_from_pos"] or 0)
    end = (row["binloom_valid_to_file_sequence"], row["binloom_valid_to_pos"])
    return begin < place and (end[0] is None or place <= end)


@pytest.mark.parametrize("name", TYPED)
def test_renamed_columns_are_followed_through_typed_history(timelines: Timelines, name: str) -> None:
    history = timelines.typed.view(name, workload.SCHEMA, "renamed", "history")
    rows = timelines.session.sql(f"select * from {history} order by id, binloom_version").collect()
    columns = ("number", "a", "b", "c")
    assert [{column: row[column] for column in columns} for row in rows if row.id == 1] == [*RENAMED_VERSIONS]
    assert [row.binloom_unfit_columns for row in rows] == [[], [], ["b"], [], []]
    assert [row.binloom_zero_dates for row in rows] == [[], [], [], [], ["c"]]
    changes = timelines.typed.view(name, workload.SCHEMA, "renamed", "changes")
    first = timelines.session.sql(f"select * from {changes} where event_type = 'UPDATE' order by start_pos").first()
    assert (first.before_number, first.after_number, first.changed_columns) == (10, 11, ["number"])
    properties = (
        timelines.typed.project / "models" / "tables" / f"{timelines.typed.stems[name, 'workload', 'renamed']}.yml"
    )
    assert "Number of {{ '{' }}{{ '{' }} things }}" in properties.read_text()


def since(home: Path, name: str, position: str) -> "DuckDBPyConnection":
    """Return the marts of a log that begins at a position."""
    connection = in_memory(home)
    begin = moment_of(connection, name, position).place
    for mart in ("row_changes", "transactions", "schema_changes"):
        connection.execute(
            f"""delete from binloom.{mart}
            where source_id = $source and (epoch, file_sequence, start_pos) < ($epoch, $sequence, $pos)""",
            {"source": name, "epoch": begin.epoch, "sequence": begin.file_sequence, "pos": begin.pos},
        )
    return connection


def in_memory(home: Path) -> "DuckDBPyConnection":
    """Return the marts as tables in memory: a thousand states are read from them."""
    import duckdb

    tables = (*MARTS, *baselines.VIEWS)
    marts, copy = open_marts(home, tables), duckdb.connect()
    copy.execute("set global timezone = 'UTC'")
    for schema in {schema for schema, _ in tables}:
        copy.execute(f"create schema {schema}")
    for schema, name in tables:
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
