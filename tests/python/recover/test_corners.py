"""Answers have the values of the server, or say that they are not known, also where no image tells."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.servers import Server
from tests.support.in_process import binloom_here

# The statements, and what `state` says of the table t of the database corners.
ON_BOTH: dict[str, tuple[tuple[str, ...], list[dict[str, Any]], str]] = {
    "the expression of a generated column changes": (
        (
            "create table t (id int primary key, a int, g int as (a + 1) stored, v int as (a * 2) virtual)",
            "insert into t (id, a) values (1, 1)",
            "alter table t modify g int as (a + 100) stored",
            "alter table t change v w int as (a * 3) virtual",
        ),
        [{"id": "1", "a": "1", "_unknown_columns": ["g", "w"]}],
        "1 row, complete",
    ),
    "a column becomes generated": (
        (
            "create table t (id int primary key, a int, g int)",
            "insert into t values (1, 1, 7)",
            "alter table t modify g int as (a + 9) stored",
        ),
        [{"id": "1", "a": "1", "_unknown_columns": ["g"]}],
        "1 row, complete",
    ),
    "rows are equal": (
        ("create table t (a int, b varchar(5))", "insert into t values (1, 'x'), (1, 'x'), (1, 'x'), (2, 'y')"),
        [{"a": "1", "b": "x"}] * 3 + [{"a": "2", "b": "y"}],
        "4 rows, complete",
    ),
}
ON_MYSQL: dict[str, tuple[tuple[str, ...], list[dict[str, Any]], str]] = {
    "a generated column is the key": (
        (
            "create table t (a int, g int as (a + 1) stored primary key)",
            "insert into t (a) values (1)",
            "alter table t modify g int as (a + 4) stored",
        ),
        [{"a": "1", "_unknown_columns": ["g"]}],
        "1 row may have other values, or may not exist",
    ),
    "an insert without a key lacks a column": (
        (
            "set binlog_row_image = minimal",
            "create table t (a int, b int default 7, c int)",
            "insert into t (a, c) values (1, 1), (1, 1), (2, 2)",
            "delete from t where a = 1 limit 1",
            "update t set c = 3 where a = 2",
            "set binlog_row_image = full",
        ),
        [{"a": "1", "c": "1", "_unknown_columns": ["b"]}, {"a": "2", "b": "7", "c": "3"}],
        "2 rows, complete",
    ),
}
ON_MARIADB: dict[str, tuple[tuple[str, ...], list[dict[str, Any]], str]] = {
    "a partial image lacks generated columns": (
        (
            "create table t (id int primary key, p int, v int as (p * 3) virtual)",
            "insert into t (id, p) values (1, 1), (2, 2)",
            "set binlog_row_image = minimal",
            "update t set p = 4 where id = 1",
            "update t set p = 2 where id = 2",
            "set binlog_row_image = full",
        ),
        [{"id": "1", "p": "4", "_unknown_columns": ["v"]}, {"id": "2", "p": "2", "v": "6"}],
        "2 rows, complete",
    ),
    "the history of a table is dropped": (
        (
            "create table t (id int primary key, a int) with system versioning",
            "insert into t values (1, 1)",
            "update t set a = 2",
            "alter table t drop system versioning",
        ),
        [],
        "changed rows only",
    ),
}


def state_of(server: Server, statements: tuple[str, ...], *given: object) -> tuple[list[dict[str, Any]], str]:
    """Return the rows of the table after statements, and what is said about them."""
    server.flush()
    server.execute("drop database if exists corners", "create database corners", "use corners", *statements)
    found = binloom_here("state", "corners.t", "--format", "json", *given, "--files", server.flush())
    assert found.returncode == 0, found.stderr
    return [json.loads(line) for line in found.stdout.splitlines()], found.stderr


CASES = [
    *(("mysql", name, case) for name, case in {**ON_BOTH, **ON_MYSQL}.items()),
    *(("mariadb118", name, case) for name, case in {**ON_BOTH, **ON_MARIADB}.items()),
]


@pytest.mark.parametrize(
    ("server", "case"),
    [
        pytest.param(server, case, marks=getattr(pytest.mark, server), id=f"{server}-{name}")
        for server, name, case in CASES
    ],
)
def test_what_the_log_does_not_tell_is_unknown(
    server: str, case: tuple[tuple[str, ...], list[dict[str, Any]], str], request: pytest.FixtureRequest
) -> None:
    statements, rows, words = case
    found, told = state_of(request.getfixturevalue(f"{server}_server"), statements)
    for row in found:
        row.pop("_uncertain_since", None)
    assert found == rows and words in told


@pytest.mark.mariadb
def test_a_foreign_key_that_was_dropped_may_have_changed_rows(mariadb_server: Server, tmp_path: Path) -> None:
    statements = (
        "create table p (id int primary key)",
        "create table t (id int primary key, p int, constraint fk foreign key (p) references p (id) on delete cascade)",
        "insert into p values (1), (2)",
        "insert into t values (1, 1), (2, 2)",
        "delete from p where id = 1",
        "alter table t drop foreign key fk",
    )
    told = state_of(mariadb_server, statements)[1]
    assert "changed rows only" in told
    folder = mariadb_server.snapshot_dir(tmp_path)
    assert "changed rows only" in state_of(mariadb_server, statements, "--snapshot-dir", folder)[1]


@pytest.mark.mariadb118
def test_addresses_compare_by_their_values(mariadb118_server: Server) -> None:
    mariadb118_server.flush()
    mariadb118_server.execute(
        "drop database if exists corners",
        "create database corners",
        "use corners",
        "create table t (id int primary key, a inet6, b inet4, u uuid, y year)",
        "insert into t values (1, '1000::', '10.0.0.1', 'abcdef00-0000-0000-0000-000000000001', 1970),"
        " (2, '::ffff:1.2.3.4', '9.0.0.1', 'abcdef00-0000-0000-0000-000000000002', 2005), (3, 'a::', null, null, 2069)",
    )
    log = mariadb118_server.flush()

    def asked(condition: str) -> tuple[list[str], str]:
        found = binloom_here("query", "--table", "corners.t", "--where", condition, "--format", "json", "--files", log)
        return [json.loads(line)["row_after"]["id"] for line in found.stdout.splitlines()], found.stderr

    for condition in (
        "a = 'A::'",
        "a = '::ffff:102:304'",
        "a in ('A::', '1000:0:0::')",
        "a <=> 'A::'",
        "b = '010.0.0.1'",
        "u = 'ABCDEF00-0000-0000-0000-000000000001'",
        "u != 'abcdef00000000000000000000000001'",
        "y = 70",
        "y = 5",
        "y <= 70",
    ):
        expected = [str(row[0]) for row in mariadb118_server.execute(f"select id from corners.t where {condition}")]
        assert asked(condition)[0] == expected != [], condition
    for condition in ("b > '9.0.0.1'", "a = 'x'", "b = '1.2.3.400'", "u = '1'", "a < a"):
        assert "no order here" in asked(condition)[1] or "is no value of column" in asked(condition)[1], condition


@pytest.mark.mariadb118
def test_a_key_over_a_period_is_no_obstacle(mariadb118_server: Server, tmp_path: Path) -> None:
    mariadb118_server.flush()
    columns = "id int, s date, e date, v int, period for pp (s, e)"
    mariadb118_server.execute(
        "drop database if exists corners",
        "create database corners",
        "use corners",
        f"create table t ({columns}, unique (id, pp without overlaps))",
        f"create table p ({columns}, primary key (id, pp without overlaps))",
        f"create table later ({columns})",
        "alter table later add unique (id, pp without overlaps)",
        "create table other (id int primary key)",
        *(f"insert into {name} values (1, '2020-01-01', '2021-01-01', 1)" for name in ("t", "p", "later")),
        "insert into other values (1)",
    )
    folder, log = mariadb118_server.snapshot_dir(tmp_path), mariadb118_server.flush()
    for given in ((), ("--snapshot-dir", folder)):
        for name in ("t", "p", "later", "other"):
            done = binloom_here("undo", "--table", f"corners.{name}", *given, "--files", log)
            assert done.returncode == 0 and f"DELETE FROM `corners`.`{name}`" in done.stdout, done.stderr


@pytest.mark.mariadb118
def test_generated_columns_are_unknown_where_an_update_lacks_them(mariadb118_server: Server, tmp_path: Path) -> None:
    mariadb118_server.execute(
        "drop database if exists corners",
        "create database corners",
        "use corners",
        "create table t (id int primary key, a int, b text, g int as (a + 1) stored, v int as (a + 2) virtual)",
    )
    mariadb118_server.flush()
    folder = mariadb118_server.snapshot_dir(tmp_path)
    mariadb118_server.execute(
        "use corners",
        "insert into t (id, a, b) values (1, 1, 'x'), (2, 2, 'y'), (3, 3, 'z')",
        "update t set a = 9 where id = 1",
        "set binlog_row_image = noblob",
        "update t set a = 9 where id = 2",
        "set binlog_row_image = minimal",
        "update t set id = 33 where id = 3",
        "set binlog_row_image = full",
    )
    given = ("--format", "json", "--snapshot-dir", folder, "--files", mariadb118_server.flush())
    found = binloom_here("state", "corners.t", *given)
    # Neither the text, which NOBLOB leaves out, nor the columns beside a changed key are unknown.
    assert [json.loads(line) for line in found.stdout.splitlines()] == [
        {"id": "1", "a": "9", "b": "x", "_unknown_columns": ["g", "v"]},
        {"id": "2", "a": "9", "b": "y", "_unknown_columns": ["g", "v"]},
        {"id": "33", "a": "3", "b": "z", "g": "4", "v": "5"},
    ]
