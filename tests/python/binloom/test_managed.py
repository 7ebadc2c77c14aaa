"""The commands that ask a live server, by users with the privileges that managed services grant."""

from pathlib import Path
from typing import Any

import pytest

from ingest.warehouse.files import read_rows
from ingest.warehouse.tables import SCHEMA_SNAPSHOTS
from tests.servers import Server
from tests.servers.accounts import Account, create_account
from tests.servers.managed import PRIVILEGES, known_to, without_lock
from tests.servers.marked import marked
from tests.support.command_line import assert_sentence
from tests.support.in_process import binloom_here

SHOP = (
    "drop database if exists managed",
    "create database managed",
    "create table managed.orders (id int primary key, status varchar(9))",
    "insert into managed.orders values (1, 'paid'), (2, 'paid')",
    "update managed.orders set status = 'lost' where id = 2",
)


@pytest.fixture
def log(mysql_server: Server) -> Path:
    mysql_server.flush()
    mysql_server.execute(*SHOP)
    return mysql_server.flush()


def _asked(server: Server, account: Account, option: str) -> tuple[Any, ...]:
    return (option, f"{server.host}:{server.port}", "--defaults-file", account.defaults_file)


# The other services grant what Azure grants, and more.
LEAST = "azure"


@pytest.mark.mysql
@pytest.mark.parametrize(
    "service", [LEAST, *(pytest.param(service, marks=pytest.mark.deep) for service in PRIVILEGES if service != LEAST)]
)
def test_commands_work_with_the_privileges_of_a_service(
    mysql_server: Server, log: Path, tmp_path: Path, service: str
) -> None:
    assert {*PRIVILEGES[LEAST]} <= {*PRIVILEGES[service]}
    account = create_account(mysql_server, tmp_path, "admin", without_lock(PRIVILEGES[service]))
    undo = ("undo", "--files", log, "--table", "managed.orders", "--type", "UPDATE")
    home = tmp_path / "home"
    for words in (
        ("snapshot", "--source", "shop", *_asked(mysql_server, account, "--server")),
        ("query", "--files", log, "--table", "managed.orders", *_asked(mysql_server, account, "--schema-from")),
        (*undo, *_asked(mysql_server, account, "--against")),
        ("follow", "--source", "shop", *_asked(mysql_server, account, "--server"), "--from-now", "--once"),
    ):
        done = binloom_here(*words, home=home)
        assert done.returncode == 0, (words, done.stderr)
        if words[0] == "undo":
            assert "SET `status` = 'paid'" in done.stdout, done.stdout
    assert read_rows(SCHEMA_SNAPSHOTS, home)


@pytest.mark.parametrize("flavor", marked("mysql56", "mariadb", "mariadb118"))
def test_a_snapshot_needs_no_more_on_other_servers(flavor: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    server: Server = request.getfixturevalue(f"{flavor}_server")
    account = create_account(server, tmp_path, "admin", known_to(server, without_lock(PRIVILEGES["rds"])))
    done = binloom_here("snapshot", "--source", "shop", *_asked(server, account, "--server"), home=tmp_path / "home")
    assert done.returncode == 0, done.stderr


@pytest.mark.mysql
@pytest.mark.parametrize(
    ("words", "granted", "missing"),
    [
        (("snapshot", "--source", "shop", "--server"), ("select",), "lacks the privilege REPLICATION CLIENT"),
        (("follow", "--source", "shop", "--from-now", "--once", "--server"), ("select", "replication client"),
         "lacks the privilege REPLICATION SLAVE"),
        (("baseline", "--source", "shop", "--server"), ("replication client",), "lacks the privilege SELECT"),
        (("undo", "--table", "managed.orders", "--type", "UPDATE", "--against"), ("process",),
         "the user may SELECT: grant select on SCHEMA"),
    ],
)  # fmt: skip
def test_a_privilege_that_is_missing_is_named(
    mysql_server: Server, log: Path, tmp_path: Path, words: tuple[str, ...], granted: tuple[str, ...], missing: str
) -> None:
    account = create_account(mysql_server, tmp_path, "lacking", granted)
    files = ("--files", log) if words[0] == "undo" else ()
    done = binloom_here(*words[:-1], *files, *_asked(mysql_server, account, words[-1]), home=tmp_path / "home")
    assert_sentence(done, done.returncode, missing)
    assert done.returncode != 0
