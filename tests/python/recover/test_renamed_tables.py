"""The history of a row goes on when its table is renamed, as far as the log proves that it is the same table."""

import re
from pathlib import Path

import pytest

from binloom.answers.table_state import table_state_of
from ingest.ddl.statements import actions_of
from ingest.sources.snapshots.snapshot import SchemaSnapshot
from ingest.sources.snapshots.snapshot_files import read_snapshot_dir
from recover.retention.erased import find
from recover.sources.files.needed_tables import renames
from recover.sources.log import Log
from recover.timeline.history import UnknownRowError, history_of
from recover.timeline.named_table import find_table
from recover.timeline.names import later_name, periods_of
from recover.timeline.rows import Version
from tests.servers import Server
from tests.servers.marked import marked
from tests.support.recover.baselines import NO_BASELINES
from tests.support.recover.cluster_rows import copied_history

WORKLOAD = """
create database named
use named
create table a (id int primary key, v int)
insert into a values (1, 1), (2, 2)
update a set v = 10 where id = 1
rename table a to b
update b set v = 11 where id = 1
alter table b rename to c
update c set id = 3 where id = 1
create table a (id int primary key, v int)
insert into a values (1, 100)
create table t (id int primary key, v int)
insert into t values (1, 1)
create table t_new (id int primary key, v int)
insert into t_new values (1, 5)
rename table t to t_old, t_new to t
update t set v = 6 where id = 1
create table u (id int primary key, v int)
insert into u values (1, 1)
drop table u
create table u_new (id int primary key, v int)
insert into u_new values (1, 7)
rename table u_new to u
update u set v = 8 where id = 1
"""


@pytest.fixture(scope="module", params=marked("mariadb", "mysql"))
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, SchemaSnapshot]:
    """A binlog with the workload, and a snapshot of the tables after it."""
    server: Server = request.getfixturevalue(f"{request.param}_server")
    server.execute("drop database if exists named")
    server.flush()
    server.execute(*WORKLOAD.strip().splitlines())
    file = server.flush()
    return file, read_snapshot_dir(server.snapshot_dir(tmp_path_factory.mktemp("named")))


@pytest.fixture(scope="module")
def log(file: tuple[Path, SchemaSnapshot]) -> Log:
    """All tables of the binlog."""
    return Log.of_whole_files([file[0]], snapshot=file[1])


def versions(log: Log, name: str, key: str) -> list[Version]:
    return history_of(log.connection, find_table(log, f"named.{name}"), key)


def shown(found: list[Version]) -> list[tuple[str, int, str | None]]:
    makers = [one.change.event_type if one.change else one.event.reason if one.event else "" for one in found]
    return [(maker, one.line, one.row["v"] if one.row else None) for maker, one in zip(makers, found, strict=True)]


@pytest.mark.parametrize("key", ["1", "3"])
def test_a_history_goes_on_under_each_later_name(log: Log, key: str) -> None:
    found = versions(log, "c", key)
    assert shown(found) == [("INSERT", 1, "1"), ("UPDATE", 1, "10"), ("UPDATE", 1, "11"), ("UPDATE", 1, "11")]
    assert found[-1].key == "3"
    assert not any(one.defect or one.doubts for one in found)
    assert [str(period.table) for period in periods_of(log.connection, find_table(log, "named.c"))] == [
        "named.c",
        "named.b",
        "named.a",
    ]


def test_the_other_rows_of_the_table_are_followed_too(log: Log) -> None:
    assert shown(versions(log, "c", "2")) == [("INSERT", 1, "2")]


def test_an_earlier_name_tells_the_later_one(log: Log) -> None:
    table = find_table(log, "named.a")
    assert [str(period.table) for period in periods_of(log.connection, table)] == ["named.a"]
    found = shown(versions(log, "a", "1"))
    assert found[:3] == [("INSERT", 1, "1"), ("UPDATE", 1, "10"), ("RENAME TABLE", 1, None)]
    assert found[3][0] == "INSERT" and found[3][2] == "100"
    later = later_name(log.connection, table)
    assert later is not None and later[0] == "named.b"


def test_a_swap_of_tables_is_not_followed(log: Log) -> None:
    assert len(periods_of(log.connection, find_table(log, "named.t"))) == 1
    values = [value for _, _, value in shown(versions(log, "t", "1"))]
    assert values == ["1", None, "5", "6"]


def test_a_name_that_another_table_had_before_is_not_followed(log: Log) -> None:
    assert len(periods_of(log.connection, find_table(log, "named.u"))) == 1


@pytest.mark.parametrize("name", ["a", "b", "c", "t", "u"])
@pytest.mark.parametrize("key", ["1", "2"])
def test_what_is_copied_from_a_cluster_suffices(log: Log, name: str, key: str) -> None:
    table = find_table(log, f"named.{name}")
    try:
        expected = history_of(log.connection, table, key)
    except UnknownRowError as error:
        with pytest.raises(UnknownRowError, match=re.escape(str(error))):
            copied_history(log, table, key)
    else:
        assert copied_history(log, table, key) == expected


@pytest.mark.parametrize("name", ["c", "named.c"])
def test_a_table_is_decoded_under_all_of_its_names(file: tuple[Path, SchemaSnapshot], log: Log, name: str) -> None:
    alone = Log.of_whole_files([file[0]], name, snapshot=file[1])
    assert shown(versions(alone, "c", "3")) == shown(versions(log, "c", "3"))
    tables = {row[0] for row in alone.connection.execute("select table_name from binloom.row_changes").fetchall()}
    assert tables == {"a", "b", "c"}


def test_rows_of_baselines_under_former_names_are_found_for_an_erasure(file: tuple[Path, SchemaSnapshot]) -> None:
    log = Log.of_whole_files([file[0]], snapshot=file[1])
    table = find_table(log, "named.c")
    after, _, former = periods_of(log.connection, table)
    assert former.until is not None and after.since is not None and str(former.table) == "named.a"
    # Decoded files do not have these.
    log.connection.execute(NO_BASELINES)
    for column in ("before_values", "after_values"):
        log.connection.execute(f"alter table binloom.quarantined_row_events add column {column} varchar[]")
    places = {"before": former.until, "after": after.since}
    for name, row, place in (("a", 1, "before"), ("a", 2, "before"), ("a", 3, "after"), ("c", 4, "after")):
        # Row 2 is that of another key, and the third one is of another table, which got the name later.
        key = {1: "1", 2: "2", 3: "1", 4: "1"}[row]
        epoch, sequence, pos = places[place]
        log.connection.execute(
            "insert into binloom.baseline_rows by name select ? as baseline_id, ? as source_id, ? as epoch,"
            " ? as file_sequence, ? as binlog_pos, 'named' as schema_name, ? as table_name, ? as row_number,"
            " ? as pk_values",
            [place, table.source_id, epoch, sequence, pos + (1 if place == "after" else -1), name, row, key],
        )
    found = find(log.connection, table, ["3"])
    assert found.erasure.baseline_rows == {("before", "named", "a"): {1}, ("after", "named", "c"): {4}}
    assert found.keys == ("1", "3") and found.erasure.row_events == 4


def test_names_with_a_dot_stay_schema_and_table() -> None:
    actions = actions_of("rename table `a.b`.t to c.`d.e`", None)
    assert renames([((place,), action) for place, action in enumerate(actions)]) == [(("a.b", "t"), ("c", "d.e"))]


@pytest.mark.mariadb118
def test_a_partition_that_became_a_table_took_rows_along_that_the_log_does_not_list(
    mariadb118_server: Server,
) -> None:
    mariadb118_server.flush()
    mariadb118_server.execute(
        *("create or replace database parted", "use parted"),
        "create table p (id int primary key, v int) partition by range (id)"
        " (partition p0 values less than (10), partition p1 values less than (100))",
        "insert into p values (1, 1), (11, 1)",
        "alter table p convert partition p0 to table x",
        *("insert into x values (6, 1)", "insert into p values (12, 1)"),
    )
    log = Log.of_whole_files([mariadb118_server.flush()])
    for name, certain in (("p", {"12"}), ("x", {"6"})):
        found = table_state_of(log, f"parted.{name}")
        rows = [*found]
        assert not found.state.is_complete
        assert {row.values["id"] for row in rows if not row.uncertain_since} == certain
