"""Values that partial images lack: an undo takes them from a baseline, where the log shows everything since."""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from recover.selection.filters import Filters
from recover.sources.files.file_log import SOURCE
from recover.sources.log import Log
from recover.timeline.as_of import moment_of
from recover.timeline.baselines import baseline_of
from recover.timeline.events import Table
from recover.timeline.history import history_of
from recover.timeline.state import state_of
from recover.undo.options import UndoOptions
from recover.undo.plan.planner import Plan
from recover.undo.print.script import script
from recover.undo.undoing import planned
from tests.servers import Server
from tests.servers.marked import marked
from tests.support.landing.binlogs import snapshot_of
from tests.support.recover.baselines import NO_BASELINES, Rows, add_baseline, read_baseline
from tests.support.recover.undo_servers import is_new, rows_of, run, transaction

SCHEMA = "undo_with_baselines"
TABLES = (
    "create table t (id int primary key, a int, b varchar(20), c text)",
    "create table children (id int primary key, t_id int, note varchar(20),"
    " foreign key (t_id) references t (id) on delete set null)",
    "create table by_statement (id int primary key, a int, b varchar(20))",
    "create table emptied (id int primary key, a int, b varchar(20))",
    "create table prepared (id int primary key, a int, b varchar(20))",
    "insert into t values (1, 1, 'one', 'text'), (2, 1, 'one', null), (3, 1, 'one', 'text'), (4, null, 'one', '')",
    "insert into children values (1, 1, 'one'), (2, 1, 'one')",
    *(f"insert into {name} values (1, 1, 'one'), (2, 1, 'one')" for name in ("by_statement", "emptied", "prepared")),
)
MINIMAL = "set session binlog_row_image = 'MINIMAL'"
BEFORE = (
    (MINIMAL, "update t set a = 5 where id = 1"),
    ("set session binlog_format = 'STATEMENT'", "update by_statement set b = 'unseen'"),
    ("set session binlog_format = 'ROW'", "insert into by_statement values (3, 1, 'one')"),
    ("truncate table emptied",),
    (MINIMAL, "insert into emptied (id, a, b) values (1, 2, 'two')"),
    ("update emptied set b = 'three'",),
)
DAMAGE = {
    "t": (
        "update t set b = 'damage' where id < 3",
        "delete from t where id = 3",
        "update t set id = 14, c = null where id = 4",
    ),
    "children": ("update children set note = 'damage' where id = 1",),
    "children_deleted": ("update children set note = 'damage' where id = 2", "delete from children where id = 2"),
    "by_statement": ("update by_statement set b = 'damage' where id = 1",),
    "emptied": ("update emptied set b = 'damage'",),
    "prepared": ("update prepared set b = 'damage'",),
}
AFTER = "update t set a = 7 where id = 2"
MISSING = "the log does not contain the value of column {}"


class Logged:
    """The log of a server since a baseline, and its tables as they were before the damage."""

    def __init__(self, server: Server) -> None:
        self.server = server
        server.execute(f"drop database if exists {SCHEMA}", f"create database {SCHEMA}")
        server.flush()
        transaction(server, SCHEMA, TABLES)
        # The baseline is in the middle of a file that has no other images of these rows.
        server.execute("flush binary logs")
        with server.connect(database=SCHEMA) as other, other.cursor() as cursor:
            for statement in (MINIMAL, "xa start 'x'", "update prepared set a = 9", "xa end 'x'", "xa prepare 'x'"):
                cursor.execute(statement)
            self.snapshot, self.baseline = read_baseline(server, SCHEMA)
            cursor.execute("xa commit 'x'")
        transaction(server, SCHEMA, *BEFORE)
        self.damage: dict[str, str] = {}
        self.rows_before = rows_of(server, SCHEMA)
        status = "show binary log status" if is_new(server) else "show master status"
        for name, statements in DAMAGE.items():
            begin = server.execute(status)[0]
            transaction(server, SCHEMA, (MINIMAL, *statements))
            self.damage[name] = f"{begin[0]}:{begin[1]}"
        transaction(server, SCHEMA, (MINIMAL, AFTER))
        self.file = server.flush()

    @contextmanager
    def planned(self, damage: str, baseline: Rows | None = None) -> Iterator[tuple[Plan, str]]:
        """Give the plan and the script for the transactions of a part of the damage."""
        _, begin = self.damage[damage].split(":")
        ends = [int(place.split(":")[1]) for place in self.damage.values()]
        end = min((place for place in ends if place > int(begin)), default=None)
        log = Log.of_whole_files([self.file], snapshot=snapshot_of(self.server.host, self.server.port))
        if baseline is not None:
            add_baseline(log.connection, SOURCE, SCHEMA, self.snapshot, baseline)
        table = damage.removesuffix("_deleted")
        filters = Filters.of(
            files=[self.file.name], from_pos=int(begin), to_pos=end, tables=[f"{SCHEMA}.{table}"],
            where=["after.b = 'damage'" if table != "children" else "after.note = 'damage'"],
        )  # fmt: skip
        with log.connection, planned(log, filters, UndoOptions()) as (planner, plan, heading):
            yield plan, "\n".join(script(planner, plan, heading)) if plan.is_printable else ""


@pytest.mark.parametrize("name", marked("mysql", "mariadb"))
def test_values_of_a_baseline_are_used_where_nothing_else_changed_them(
    name: str, request: pytest.FixtureRequest
) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    logged = Logged(server)

    with logged.planned("t") as (plan, _):
        assert {row.reason for row in plan.refusals} == {MISSING.format(column) for column in ("a", "b", "c")}
    with logged.planned("t", logged.baseline) as (plan, text):
        assert plan.is_printable, (plan.problems, plan.refusals, plan.conflicts)
        position = f"{logged.snapshot.binlog_file}:{logged.snapshot.binlog_pos}"
        assert f"values of {SCHEMA}.t that images lack: from the baseline at {position} and the changes since" in text
    done = run(server, text)
    assert done.returncode == 0, done.stderr
    rows = logged.rows_before["t"] - Counter([("2", "1", "one", None)]) + Counter([("2", "7", "one", None)])
    assert rows_of(server, SCHEMA)["t"] == rows

    # A transaction that was prepared before the baseline, and committed after it, is not in the baseline.
    for damage, missing in (("children_deleted", "t_id"), ("by_statement", "b"), ("prepared", "b")):
        with logged.planned(damage, logged.baseline) as (plan, _):
            assert {row.reason for row in plan.refusals} == {MISSING.format(missing)}, damage
    for damage in ("children", "emptied"):
        with logged.planned(damage, logged.baseline) as (plan, text):
            assert plan.is_printable, (damage, plan.problems, plan.refusals)
            assert ("that images lack" in text) == (damage != "emptied")
        done = run(server, text)
        assert done.returncode == 0, done.stderr
        assert rows_of(server, SCHEMA)[damage] - logged.rows_before[damage] == Counter(), damage


CASCADING = (
    "create table p (id int primary key, v int)",
    "create table c (id int primary key, p int, v varchar(9), foreign key (p) references p (id) on delete cascade)",
    "create table g (id int primary key, c int, foreign key (c) references c (id) on delete set null)",
    "insert into p values (1, 1), (2, 2)",
    "insert into c values (1, 1, 'a'), (2, 1, 'b'), (3, 2, 'c')",
    "insert into g values (1, 1), (2, 2), (3, 3)",
)


@pytest.mark.parametrize("has_baseline", [False, True])
def test_a_cascade_changed_rows_that_only_a_baseline_shows(mariadb_server: Server, has_baseline: bool) -> None:
    mariadb_server.execute(f"drop database if exists {SCHEMA}", f"create database {SCHEMA}")
    transaction(mariadb_server, SCHEMA, CASCADING)
    mariadb_server.flush()
    snapshot, baseline = read_baseline(mariadb_server, SCHEMA)
    transaction(mariadb_server, SCHEMA, ("update c set v = 'new' where id = 2",))
    before = rows_of(mariadb_server, SCHEMA)
    transaction(mariadb_server, SCHEMA, ("delete from p where id = 1",))
    log = Log.of_whole_files([mariadb_server.flush()], snapshot=snapshot_of(mariadb_server.host, mariadb_server.port))
    if has_baseline:
        add_baseline(log.connection, SOURCE, SCHEMA, snapshot, baseline)
    filters = Filters.of(tables=[f"{SCHEMA}.p"])
    with log.connection, planned(log, filters, UndoOptions(with_cascades=True)) as (planner, plan, heading):
        assert plan.is_printable, (plan.problems, plan.refusals, plan.conflicts)
        text = "\n".join(script(planner, plan, heading))
    hidden = [one for one in plan.warnings if "and that the log had not shown before" in one]
    assert bool(hidden) == (not has_baseline)
    done = run(mariadb_server, text)
    assert done.returncode == 0, done.stderr
    assert (rows_of(mariadb_server, SCHEMA) == before) == has_baseline


@pytest.mark.parametrize(
    ("unread", "is_used"),
    [
        ("failed_segments values ('s', 0, 'b.000002', 4, 500)", True),
        ("failed_segments values ('s', 0, 'b.000002', 4, 501)", False),
        ("failed_segments values ('s', 0, 'b.000002', 4, null)", False),
        ("failed_segments values ('s', 0, 'b.000002', 500, 600)", True),
        ("uncovered_bytes values ('s', 0, 'b.000002', 4, 600, 'gap')", False),
        ("uncovered_bytes values ('s', 0, 'b.000002', 4, 600, 'overlap')", True),
        ("stream_gaps values ('s', 0, 'b.000001', 4, 0, 'b.000003', 4)", False),
        ("stream_gaps values ('s', 0, 'b.000001', 4, 0, 'b.000002', 4)", True),
        ("stream_gaps values ('s', 0, 'b.000001', 4, null, null, null)", False),
        ("stream_gaps values ('other', 0, 'b.000001', 4, null, null, null)", True),
    ],
)
def test_a_baseline_inside_a_part_that_was_not_read_is_not_used(unread: str, is_used: bool) -> None:
    import duckdb

    with duckdb.connect() as connection:
        connection.execute(
            """
            create schema binloom;
            create schema binloom_quality;
            create table binloom_quality.stream_gaps (
                source_id varchar, from_epoch integer, from_file varchar, from_pos bigint
            );
            create table binloom_quality.failed_segments (
                source_id varchar, epoch integer, binlog_file varchar, segment_start bigint
            );
            create table binloom_quality.uncovered_bytes (
                source_id varchar, epoch integer, binlog_file varchar, range_start bigint, range_end bigint,
                defect varchar
            );
            """
            + NO_BASELINES
        )
        connection.execute(
            "insert into binloom.baselines values ('i', 's', 0, 'b.000002', 2, 500, 'd', 't', now(), true)"
        )
        connection.execute(f"insert into binloom_quality.{unread}")
        assert (baseline_of(connection, Table("s", "d", "t")) is not None) == is_used


@pytest.mark.parametrize("name", marked("mysql", "mariadb"))
def test_nothing_is_certain_of_what_was_prepared_before_the_log(name: str, request: pytest.FixtureRequest) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    server.execute(f"drop database if exists {SCHEMA}", f"create database {SCHEMA}")
    transaction(server, SCHEMA, ("create table t (id int primary key, a int)", "insert into t values (1, 1), (2, 1)"))
    with server.connect(database=SCHEMA) as other, other.cursor() as cursor:
        for statement in ("xa start 'x'", "update t set a = 9 where id = 1", "xa end 'x'", "xa prepare 'x'"):
            cursor.execute(statement)
        first = server.flush()
        snapshot, baseline = read_baseline(server, SCHEMA)
        cursor.execute("xa commit 'x'")
    transaction(server, SCHEMA, (MINIMAL, "update t set a = 5 where id = 2"))
    second = server.flush()

    @contextmanager
    def logged(files: list[Path]) -> Iterator[Log]:
        log = Log.of_whole_files(files, snapshot=snapshot_of(server.host, server.port))
        with log.connection as connection:
            add_baseline(connection, SOURCE, SCHEMA, snapshot, baseline)
            yield log

    def state(files: list[Path]) -> tuple[set[tuple[str | None, ...]], tuple[str, ...]]:
        with logged(files) as log:
            found = state_of(log.connection, Table(SOURCE, SCHEMA, "t"), moment_of(log.connection, SOURCE, None))
            return {tuple(row.values.values()) for row in found.rows()}, found.gaps_in_knowledge

    assert state([first, second]) == ({("1", "9"), ("2", "5")}, ())
    rows, (gap,) = state([second])
    assert rows == {("1", "1"), ("2", "5")}
    assert re.match(r"After XA COMMIT of changes that the log lacks .*, rows may be missing or have other values", gap)

    with logged([second]) as log:
        (version,) = history_of(log.connection, Table(SOURCE, SCHEMA, "t"), "1")
        assert [doubt.reason for doubt in version.doubts] == ["XA COMMIT of changes that the log lacks"]
    filters = Filters.of(tables=[f"{SCHEMA}.t"], where=["after.a = 5"])
    for files, refused in (([first, second], set()), ([second], {MISSING.format("a")})):
        with logged(files) as log, planned(log, filters, UndoOptions()) as (_, plan, _):
            assert {row.reason for row in plan.refusals} == refused
