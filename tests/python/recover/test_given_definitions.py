"""Files that do not contain the definitions of their tables: a server, a dump or a folder gives them."""

import re
from pathlib import Path

import pytest

from tests.servers import Server
from tests.servers.accounts import create_account
from tests.servers.dumped import dumped
from tests.servers.marked import marked
from tests.support.command_line import assert_sentence
from tests.support.in_process import binloom_here
from tests.support.landing.binlogs import SHOP
from tests.support.recover.undo_servers import rows_of, run

SCHEMA = "given"
TABLE = (
    "create table orders (id int primary key, customer varchar(20) character set utf8mb4,"
    " status enum('open', 'paid', 'shipped') not null, doubled int{generated})"
)
ROWS = (
    "insert into orders (id, customer, status) values (1, 'Ann', 'open'), (2, 'Bob', 'paid'), (3, 'Eve', 'open')",
    "update orders set status = 'shipped' where id > 1",
    "delete from orders where id = 1",
)


def logged(server: Server, *after: str) -> Path:
    """Make a server log the rows of a table that an earlier file creates, as with binlog_row_image=MINIMAL."""
    generated = "" if server.flavor == "mysql" and server.version.startswith("5.") else " as (id * 2)"
    server.execute(f"drop database if exists {SCHEMA}", f"create database {SCHEMA}", f"use {SCHEMA}")
    server.execute(f"use {SCHEMA}", TABLE.format(generated=generated))
    server.flush()
    server.execute("set session binlog_row_image = 'MINIMAL'", f"use {SCHEMA}", *ROWS)
    log = server.flush()
    server.execute(f"use {SCHEMA}", *after)
    return log


@pytest.mark.parametrize("name", marked("mysql", "mysql56", "mariadb", "mariadb118"))
def test_a_server_gives_them(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    log = logged(server)
    account = create_account(server, tmp_path, "schema_reader", ("select",))
    host = f"{server.host}:{server.port}"
    asked = ("--schema-from", host, "--defaults-file", account.defaults_file)

    without = binloom_here("query", "--files", log, "--table", "given.orders", home=tmp_path)
    assert_sentence(without, 2, "in quarantine", "--schema-from HOST")
    found = binloom_here("query", "--files", log, *asked, "--where", "after.status = 'shipped'", home=tmp_path)
    assert found.returncode == 0 and found.stdout.count("→ 'shipped'") == 2, found
    assert re.search(rf"definitions of tables .* are those of the server {re.escape(host)} now\.", found.stderr)
    row = binloom_here("history", "given.orders", "2", "--files", log, *asked, "--format", "json", home=tmp_path)
    assert row.returncode == 0 and '"status": "shipped"' in row.stdout.replace('":"', '": "'), row
    rows = binloom_here("state", "given.orders", "--files", log, *asked, home=tmp_path)
    assert rows.stdout.splitlines()[0].startswith("id,customer,status"), rows
    assert [line[0] for line in rows.stdout.splitlines()[1:]] == ["2", "3"], rows
    printed = binloom_here("decode", log, *asked, home=tmp_path)
    assert printed.returncode == 0 and '"customer"' in printed.stdout, printed


@pytest.mark.parametrize("name", marked("mysql", "mysql56", "mariadb", "mariadb118"))
def test_an_undo_has_those_of_the_server_that_it_compares_with(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    logged(server)
    before = rows_of(server, SCHEMA)
    server.execute("set session binlog_row_image = 'FULL'", f"use {SCHEMA}", "update orders set customer = 'Mallory'")
    log = server.flush()
    account = create_account(server, tmp_path, "schema_reader", ("select",))
    script = tmp_path / "undo.sql"
    against = ("--against", f"{server.host}:{server.port}", "--defaults-file", account.defaults_file)
    made = binloom_here("undo", "--files", log, *against, "--output", script, home=tmp_path)
    assert made.returncode == 0 and "2 rows were compared" in made.stderr, made
    assert f"definition of given.orders is that of the server {server.host}:{server.port}" in made.stderr, made
    assert "that the log does not contain" not in made.stderr, made
    assert run(server, script.read_text()).returncode == 0
    assert rows_of(server, SCHEMA) == before


@pytest.mark.parametrize("name", marked("mysql", "mariadb"))
def test_a_dump_of_one_schema_gives_them(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    log, script = logged(server), tmp_path / "schema.sql"
    script.write_bytes(dumped(server, "--no-data", SCHEMA))
    found = binloom_here("query", "--files", log, "--ddl", script, "--where", "after.status = 'shipped'", home=tmp_path)
    assert found.returncode == 0 and found.stdout.count("→ 'shipped'") == 2, found


@pytest.mark.mariadb
def test_definitions_that_do_not_tell_how_to_read_a_value_say_what_they_lack(
    mariadb_server: Server, tmp_path: Path
) -> None:
    log, script = logged(mariadb_server), tmp_path / "schema.sql"
    table = TABLE.format(generated="").replace(" character set utf8mb4", "")
    script.write_text(f"create database {SCHEMA}; use {SCHEMA}; {table};")
    asked = ("--files", log, "--ddl", script, "--type", "insert")
    assert_sentence(
        binloom_here("query", *asked, home=tmp_path),
        2,
        "nothing tells the character set of customer",
        "--schema-from HOST",
    )


@pytest.mark.mysql
def test_a_dump_without_character_sets_is_still_followed_through_the_log(mysql_server: Server, tmp_path: Path) -> None:
    script = tmp_path / "schema.sql"
    table = TABLE.format(generated="").replace(" character set utf8mb4", "")
    script.write_text(f"create database {SCHEMA}; use {SCHEMA}; {table};")
    after = (
        "insert into orders (id, customer, status) values (9, 'Zoe', 'open')",
        "alter table orders rename column customer to client",
    )
    log = logged(mysql_server, *after)
    asked = ("--files", log, mysql_server.flush(), "--ddl", script)
    undone = binloom_here("undo", *asked, "--table", "orders", "--key", "9", home=tmp_path)
    assert "The character set of column client is unknown. A server tells it" in undone.stderr, undone
    assert "added later" not in undone.stderr, undone
    state = binloom_here("state", f"{SCHEMA}.orders", *asked, "--format", "sql", home=tmp_path)
    assert_sentence(state, 2, "Nothing tells the character set of client, status in given.orders", "CREATE DATABASE")


@pytest.mark.parametrize(
    ("options", "needles"),
    [
        (["--ddl", "x.sql", "--snapshot-dir", "y"], ["--snapshot-dir and --ddl all give", "Give one of them"]),
        (["--ddl", "nowhere.sql"], ["nowhere.sql cannot be read"]),
        (["--schema-from", "a:b:c:d]"], ["is not the address of a server|cannot be reached|Name or service"]),
        (["--user", "me"], ["--user goes with --schema-from"]),
    ],
)
def test_wrong_places_are_explained(options: list[str], needles: list[str], tmp_path: Path) -> None:
    result = binloom_here("query", "--files", SHOP / "binlog.000002", *options, home=tmp_path)
    assert_sentence(result, result.returncode, *needles)
    assert result.returncode in (2, 3)
