"""An undo that is compared with a live server: rows that were changed beside the log are named and not printed."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from ingest.errors import AccessRefusedError
from ingest.sources.servers.address import ServerAddress
from recover.undo.options import Mode, UndoOptions
from recover.undo.plan.planner import Planner
from recover.undo.prove.against import Difference, LiveServer
from recover.undo.prove.expected import expected_rows
from recover.undo.rows.operations import Operation
from recover.undo.select.selected import select
from recover.undo.tables.table import Column, Table
from tests.servers import Server
from tests.servers.accounts import create_account
from tests.servers.marked import marked
from tests.support.command_line import assert_sentence
from tests.support.in_process import binloom_here
from tests.support.landing.binlogs import SHOP
from tests.support.recover.undo_servers import Case, marts, played, root_of, rows_of, run, statements_of, undone

SCHEMA = "undo_against"
BEFORE = (
    "create table t (k varchar(9) character set latin1 primary key, a int, b varchar(90) character set utf8mb4,"
    " f float, r varbinary(9), m bit(9))",
    "create table n (a int, b varchar(9) character set latin1)",
    "insert into t select concat('k', a.d, b.d), 1, 'one', 1.1, x'00ff', 5 from (select 0 as d union all select 1"
    " union all select 2) a, (select 0 as d union all select 1 union all select 2 union all select 3) b",
    "insert into n values (1, 'x'), (1, 'x'), (2, 'y')",
)
DAMAGE = (
    "update t set a = 2, b = 'two', f = 2.2, r = x'01', m = 6 where k < 'k20'",
    "delete from t where k like 'k2%'",
    "insert into t values ('new1', 1, 'new', 1, x'', 1), ('new2', 1, 'new', 1, x'', 1)",
    "update n set b = 'z' where a = 1",
)
BESIDE_THE_LOG = (
    "update t set b = 'TWO' where k = 'k00'",
    "delete from t where k = 'k01'",
    "update t set a = null, f = 2.2000003, r = x'02', m = 7 where k = 'k02'",
    "update t set a = 1, b = 'one', f = 1.1, r = x'00ff', m = 5 where k = 'k03'",
    "update t set k = 'K10' where k = 'k10'",
    "insert into t values ('K20', 1, 'one', 1.1, x'00ff', 5)",
    "insert into t values ('k21', 1, 'one', 1.1, x'00ff', 5)",
    "delete from t where k = 'new1'",
    "update t set b = repeat('n', 70) where k = 'new2'",
    "delete from n where a = 1 limit 1",
)
DIFFERENT = {
    "k00": (("b", "'two'", "'TWO'"),),
    "k01": (),
    "k02": (("a", "'2'", "NULL"), ("f", "'2.2'", "'2.2000003'"), ("r", "'0x01'", "'0x02'"), ("m", "'6'", "'7'")),
    "k03": (
        ("a", "'2'", "'1'"), ("b", "'two'", "'one'"), ("f", "'2.2'", "'1.1'"), ("r", "'0x01'", "'0x00FF'"),
        ("m", "'6'", "'5'"),
    ),
    "k10": (("k", "'k10'", "'K10'"),),
    "k21": (),
    "new1": (),
    "new2": (("b", "'new'", f"'{'n' * 60}…'"),),
    "(a table without a key)": (),
}  # fmt: skip
ALREADY = {"k03", "k21", "new1"}


@pytest.mark.parametrize("name", marked("mysql", "mysql56", "mariadb", "mariadb118"))
def test_rows_that_differ_on_the_server_are_named_and_not_printed(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    log, condition = played(server, Case("against", BEFORE, DAMAGE), SCHEMA)
    # This user cannot write, so the comparison writes nothing.
    account = create_account(server, tmp_path, "reader", ("select",))
    reader = ServerAddress.of(server.host, server.port, defaults_file=account.defaults_file)
    plan, text = undone(server, [log], tmp_path, condition, against=reader)
    assert plan.compared == len(statements_of(text)) - 1 and plan.differing == 0, plan.differences
    assert statements_of(text) == statements_of(undone(server, [log], tmp_path, condition)[1])

    server.execute("set sql_log_bin = 0", f"use {SCHEMA}", *BESIDE_THE_LOG)
    plan, text = undone(server, [log], tmp_path, condition, against=reader)
    assert not text
    found = {one.key: one for one in plan.differences}
    assert {key: _columns(one) for key, one in found.items()} == DIFFERENT
    assert {key for key, one in found.items() if one.is_done} == ALREADY
    # The server takes `K20` for the key of a row that would come back.
    assert [(one.holder.row, one.holder.claimant) for one in plan.in_the_way] == [("row K20", "k20")]
    assert not undone(server, [log], tmp_path, condition, UndoOptions(mode=Mode.FORCE), against=reader)[1]

    # The rest of the rows can be taken back.
    left = rows_of(server, SCHEMA)["t"]
    plan, text = undone(server, [log], tmp_path, condition, UndoOptions(mode=Mode.SKIP), against=reader)
    assert run(server, text).returncode == 0, text
    assert plan.statements == 5 and plan.differing == len(DIFFERENT)
    assert len(left - rows_of(server, SCHEMA)["t"]) == 3
    assert "rows that differ on the server, and are left out: 9" in text and "row K20 of" in text

    by_transaction = undone(server, [log], tmp_path, condition, UndoOptions(by_transaction=True), against=reader)[0]
    assert by_transaction.differing > len(DIFFERENT)


@pytest.mark.parametrize("name", marked("mysql", "mysql56", "mariadb", "mariadb118"))
def test_a_value_of_a_row_that_the_script_deletes_is_free(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    before = (
        "create table u (a int unique, b varchar(200) character set latin1, f float, d double, e datetime(3), n int)",
        "insert into u values (1, repeat('x', 150), 0.1, 1e20, '2026-11-17 10:00:00.5', null)",
        "insert into u values (null, 'y', 1, 1, null, 1)",
    )
    damage = (
        "delete from u where a = 1",
        "insert into u values (1, concat(repeat('é', 90), '|'), -1e10, 1e-20, '2026-11-17 10:00:00', null)",
    )
    log, condition = played(server, Case("against", before, damage), SCHEMA)
    plan, text = undone(server, [log], tmp_path, condition, against=root_of(server))
    assert plan.differing == 0, plan.differences
    assert [line.split()[0] for line in statements_of(text)] == ["DELETE", "INSERT"]


def _columns(difference: Difference) -> tuple[tuple[str, str, str], ...]:
    return tuple((one.column, one.expected, one.found) for one in difference.columns)


@pytest.mark.parametrize("name", marked("mysql", "mysql56", "mariadb", "mariadb118"))
def test_another_table_on_the_server_is_refused(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    table = "create table t (id int primary key, a int)"
    log, condition = played(server, Case("other", (table,), ("insert into t values (1, 1)",)), "undo_other")
    with marts(server, [log], tmp_path) as (connection, definitions):
        for change, words in (
            ("alter table undo_other.t change a c int", "the table has other columns there (a)"),
            ("drop table undo_other.t", "there is no table of this name"),
            ("drop database undo_other", "there is no "),
        ):
            server.execute("set sql_log_bin = 0", change)
            with LiveServer(root_of(server)) as live, Planner(connection, definitions, live) as planner:
                plan = planner.plan(select(connection, condition), UndoOptions())
            assert not plan.is_printable
            assert "undo_other.t cannot be compared with the server at 127.0.0.1" in plan.problems[0]
            assert words in plan.problems[0]


def test_a_user_without_access_is_refused(mariadb_server: Server, tmp_path: Path) -> None:
    account = create_account(mariadb_server, tmp_path, "nobody", ())
    place = (mariadb_server.host, mariadb_server.port)
    with pytest.raises(AccessRefusedError, match="refuses user 'nobody'"):
        LiveServer(ServerAddress(*place, "nobody", "wrong"))
    table = Table(("mysql", "user"), (Column("user", "int", "int"),))
    rows = expected_rows([Operation(table, "DELETE", {}, {"user": "1"}, {})], are_steps=False)
    live = LiveServer(ServerAddress(*place, account.user, account.password))
    with live, pytest.raises(AccessRefusedError, match="lacks a privilege"):
        live.differences(rows)


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--against", "127.0.0.1:1"), 3, ("127.0.0.1:1 cannot be reached", "Check that it runs")),
        (("--against", "[::1]:1"), 3, ("::1:1 cannot be reached",)),
        (("--against", "host:port"), 2, ("'host:port' is not the address", "HOST:PORT")),
        (("--against", "host:1", "--port", "2"), 2, ("the port 1, and --port is 2", "one of them")),
        (("--user", "me"), 2, ("--user goes with --against", "Give --against HOST")),
    ],
)
@pytest.mark.parametrize("command", ["undo", "redo"])
def test_a_server_that_is_not_there_is_explained(
    command: str, options: tuple[str, ...], code: int, words: tuple[str, ...], tmp_path: Path
) -> None:
    result = binloom_here(command, *options, "--files", SHOP / "binlog.000001", home=tmp_path)
    assert_sentence(result, code, *map(re.escape, words))
    assert result.stdout == ""


KEYED = Table(
    ("s", "t"), (Column("id", "int", "int", is_nullable=False), Column("a", "int", "int"), Column("b", "int", "int")),
    ("id",),
)  # fmt: skip
KEYLESS = replace(KEYED, primary_key=())


def test_steps_expect_only_what_no_earlier_step_set() -> None:
    steps = [
        Operation(KEYED, "UPDATE", {"id": "2"}, {"a": "3"}, {"a": "2"}),
        Operation(KEYED, "UPDATE", {"id": "2"}, {"a": "2", "b": "9"}, {"id": "1"}),
        Operation(KEYED, "DELETE", {"id": "1"}, {"a": "2", "b": "9"}, {}),
        Operation(KEYED, "INSERT", {}, {}, {"id": "2", "a": "0", "b": "0"}),
        Operation(KEYED, "UPDATE", {"id": "2"}, {"a": "0"}, {"a": "1"}),
    ]
    row, absent = expected_rows(steps, are_steps=True)
    assert (row.key, row.guard, row.count) == ({"id": "2"}, {"a": "3", "b": "9"}, 1)
    assert (absent.key, absent.is_absent, absent.own_key) == ({"id": "1"}, True, {"id": "2"})


def test_a_key_that_a_row_has_only_for_a_moment_is_told() -> None:
    moves = [Operation(KEYED, "UPDATE", {"id": old}, {}, {"id": new}) for old, new in (("3", "2"), ("2", "1"))]
    absent = [one for one in expected_rows(moves, are_steps=True) if one.is_absent]
    assert [(one.key["id"], one.is_passing) for one in absent] == [("2", True), ("1", False)]


def test_equal_rows_are_counted() -> None:
    def move(old: str, new: str) -> Operation:
        return Operation(KEYLESS, "UPDATE", {}, {"id": old, "a": None, "b": None}, {"id": new})

    moves = [move("1", "2"), move("1", "2"), move("2", "3")]
    for are_steps, counts in ((False, {"1": 2, "2": 1}), (True, {"1": 2})):
        assert {one.guard["id"]: one.count for one in expected_rows(moves, are_steps=are_steps)} == counts
