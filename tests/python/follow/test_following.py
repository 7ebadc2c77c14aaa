"""A follower lands exactly the content of the server's files, regardless of how it was started, ended and restarted."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ingest.warehouse.files import read_rows
from ingest.warehouse.record import read_states
from ingest.warehouse.segments import latest_states
from ingest.warehouse.tables import SCHEMA_COLUMNS
from tests.python.follow.conftest import ON_ONE
from tests.servers import Distribution, Server, mariadb118, mysql56
from tests.servers.accounts import Account, create_account
from tests.servers.load import SCHEMA, Load
from tests.servers.replication import LogPosition, executed_gtids, log_end
from tests.support.depth import at_depth
from tests.support.follow.follower import NOTHING, SOURCE, Follower
from tests.support.follow.secrecy import command_lines
from tests.support.follow.tables import Decoded, assert_same_tables

pytestmark = pytest.mark.slow


def test_rotation_ddl_and_a_restart_leave_no_mark(server: Server, follower: Follower, account: Account) -> None:
    with Load(server, ddl_every=20) as load:
        load.wait_for(50)
        follower.start_and_connect()
        load.wait_for(100)
        server.flush()
        load.wait_for(100)
        server.restart()
        load.wait_for(100)
        server.flush()
        load.wait_for(50)
    follower.wait_until_landed(server)
    assert account.password not in command_lines(follower.pid)
    counts = follower.assert_has_all_of(server)
    assert counts["row_events"] > 500
    assert len(server.binlogs()) == 4
    assert follower.stop() == 0
    follower.assert_has_all_of(server)
    assert not follower.gaps()


@ON_ONE
def test_a_file_that_ends_while_it_is_landed_is_landed_to_its_end(server: Server, follower: Follower) -> None:
    server.execute(f"create database {SCHEMA}")
    server.execute(f"create table {SCHEMA}.t (id int auto_increment primary key, filler blob)")
    insert = f"insert into {SCHEMA}.t (filler) values (repeat(x'a1', 65000))"

    def is_seen_landing(end: LogPosition) -> bool:
        """Wait until the follower is landing, or has landed the log up to its end; return whether it is landing."""
        is_landing = False

        def is_landing_or_done() -> bool:
            nonlocal is_landing
            (states,) = latest_states(read_states(follower.home, SOURCE)).values()
            is_landing = any(state.status == "in_progress" for state in states)
            return is_landing or follower.landed(0, end.binlog_file) >= end.position

        follower.wait_until(is_landing_or_done, "it does not land what came")
        return is_landing

    follower.start()
    follower.wait_until_landed(server)
    rounds = 0
    while True:
        # Decoding this much takes longer than logging a little more and rotating.
        server.execute(*[insert] * 1000)
        rounds += 1
        # On a busy machine the landing may be over before it is seen.
        if is_seen_landing(log_end(server)):
            break
    server.execute(insert)
    server.flush()
    server.execute(insert)
    follower.wait_until_landed(server)
    assert follower.assert_has_all_of(server)["row_events"] == 1000 * rounds + 2


def test_sigterm_leaves_what_the_next_start_goes_on_from(server: Server, follower: Follower) -> None:
    with Load(server) as load:
        for _ in range(4):
            follower.start_and_connect()
            load.wait_for(80)
            assert follower.stop() == 0
            load.wait_for(20)
    follower.start()
    follower.wait_until_landed(server)
    follower.assert_has_all_of(server)


@ON_ONE
def test_once_in_a_loop_is_one_long_run(server: Server, make_follower: Callable[..., Follower]) -> None:
    long, often = make_follower("long"), make_follower("often")
    with Load(server) as load:
        long.start()
        for _ in range(at_depth(1, 5)):
            load.wait_for(40)
            often.once()
            server.flush()
    end = log_end(server)
    often.once()
    assert (often.received() or NOTHING) >= end
    long.wait_until_landed(server)
    assert_same_tables(often.tables, long.tables)
    often.assert_has_all_of(server)
    # Nothing has changed since.
    often.once()
    often.assert_has_all_of(server)


def test_once_ends_while_the_server_is_written_to(server: Server, follower: Follower) -> None:
    with Load(server) as load:
        load.wait_for(100)
        before = log_end(server)
        follower.once()
    received = follower.received()
    assert received is not None
    assert received >= before


@ON_ONE
def test_a_schema_without_tables_is_followed_until_it_has_some(server: Server, tmp_path: Path) -> None:
    account = create_account(server, tmp_path, "reader", ["replication slave", "replication client"])
    server.execute("set session sql_log_bin = 0", f"grant select on {SCHEMA}.* to reader")
    with Follower(tmp_path / "home", server, account.defaults_file, "--from-oldest") as follower:
        follower.start()
        follower.wait_until_landed(server)
        assert not read_rows(SCHEMA_COLUMNS, follower.home)
        server.execute(f"create database {SCHEMA}", f"create table {SCHEMA}.t (id int primary key, note text)")
        server.execute(f"insert into {SCHEMA}.t values (1, 'one')")
        follower.wait_until_landed(server)
        assert [row["column_name"] for row in read_rows(SCHEMA_COLUMNS, follower.home)] == [
            "id",
            "note",
        ]
        follower.assert_has_all_of(server)


def test_a_transaction_is_landed_when_it_is_whole(server: Server, follower: Follower) -> None:
    server.execute(f"create database {SCHEMA}", f"create table {SCHEMA}.t (id int primary key, filler blob)")
    follower.start()
    follower.wait_until_landed(server)
    with server.connect(autocommit=False) as connection, connection.cursor() as cursor:
        for number in range(40):
            cursor.execute(f"insert into {SCHEMA}.t values (%s, repeat(x'ff', 65000))", (number,))
        assert follower.tables["row_events"].num_rows == 0
        connection.commit()
    follower.wait_until_landed(server)
    assert follower.tables["row_events"].num_rows == 40
    follower.assert_has_all_of(server)


@ON_ONE
def test_two_followers_of_one_source_are_one_too_many(server: Server, follower: Follower) -> None:
    server.execute(f"create database {SCHEMA}")
    follower.start()
    follower.wait_until_landed(server)
    second = Follower(follower.home, server, follower.defaults_file, "--from-oldest")
    second.log = second.log.with_name("second.log")
    code, said = second.run()
    assert code == 3
    assert re.search(rf"^binloom: .*{SOURCE}", said, re.MULTILINE)
    assert "Traceback" not in said
    server.execute(f"create database {SCHEMA}_2")
    follower.wait_until_landed(server)
    follower.assert_has_all_of(server)


def test_from_now_takes_what_comes(server: Server, account: Account, make_follower: Callable[..., Follower]) -> None:
    follower = make_follower()
    follower.options = ("--from-now",)
    server.execute(f"create database {SCHEMA}", f"create table {SCHEMA}.t (id int primary key)")
    server.execute(f"insert into {SCHEMA}.t values (1)")
    start = log_end(server)
    follower.start()
    follower.wait_until_received(server)
    server.execute(f"insert into {SCHEMA}.t values (2), (3)")
    follower.wait_until_landed(server)
    assert [row["after_values"] for row in follower.tables["row_events"].to_pylist()] == [["2"], ["3"]]
    logged = Decoded([(0, path) for path in server.binlogs()], follower.tables)["transactions"]["start_pos"].to_pylist()
    # MariaDB may have written a checkpoint event in between.
    assert follower.tables["transactions"]["start_pos"].to_pylist() == [at for at in logged if at >= start.position]
    assert not follower.gaps()


def test_a_position_to_start_from(server: Server, make_follower: Callable[..., Follower]) -> None:
    follower = make_follower()
    with Load(server) as load:
        load.wait_for(40)
        server.flush()
        load.wait_for(40)
    middle = log_end(server)
    with Load(server, first_client=5) as load:
        load.wait_for(40)
    follower.options = ("--start-file", middle.binlog_file, "--start-pos", str(middle.position))
    follower.once()
    wanted = Decoded([(0, server.binlogs()[-1])], follower.tables)["transactions"].to_pylist()
    expected = [row for row in wanted if row["start_pos"] >= middle.position]
    assert follower.tables["transactions"].to_pylist() == expected
    assert len(expected) >= 40


def test_gtids_to_start_from(server: Server, make_follower: Callable[..., Follower]) -> None:
    follower = make_follower()

    def logged() -> list[str]:
        decoded = Decoded([(0, path) for path in server.binlogs()], follower.tables)
        return [str(gtid) for gtid in decoded["transactions"]["gtid"].to_pylist()]

    with Load(server) as load:
        load.wait_for(40)
        server.flush()
        load.wait_for(40)
    follower.options = ("--start-gtid", executed_gtids(server))
    known = set(logged())
    with Load(server, first_client=5) as load:
        load.wait_for(40)
        server.flush()
        load.wait_for(40)
    follower.once()
    landed = follower.tables["transactions"]["gtid"].to_pylist()
    assert landed == [gtid for gtid in logged() if gtid not in known]
    assert len(landed) >= 80


@pytest.mark.parametrize(
    "distribution",
    [pytest.param(mysql56, marks=pytest.mark.mysql56), pytest.param(mariadb118, marks=pytest.mark.mariadb118)],
    ids=["mysql56", "mariadb118"],
)
def test_other_versions_are_followed_as_well(distribution: Distribution, tmp_path: Path) -> None:
    """A server without GTIDs, and a server that omits the position from most events."""
    with distribution.start(tmp_path / "server") as server:
        account = create_account(server, tmp_path)
        server.execute(f"create database {SCHEMA}", f"create table {SCHEMA}.t (id int primary key, note text)")
        with Follower(tmp_path / "home", server, account.defaults_file) as follower:
            follower.start_and_connect()
            server.execute(
                *[f"insert into {SCHEMA}.t values ({number}, repeat('x', {number}))" for number in range(50)]
            )
            server.flush()
            server.execute(f"update {SCHEMA}.t set note = 'changed' where id > 10", f"delete from {SCHEMA}.t limit 5")
            server.restart()
            server.execute(f"insert into {SCHEMA}.t values (100, null)")
            follower.wait_until_landed(server)
            assert follower.stop() == 0
            assert follower.assert_has_all_of(server)["row_events"] == 50 + 39 + 5 + 1
