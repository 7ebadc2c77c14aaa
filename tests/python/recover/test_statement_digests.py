"""Changes are selected and summed by the statements and comments that made them, in files and in a home alike."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

import binloom as binloom_package
from binloom.answers.opening import Inputs, open_full_log
from binloom.answers.transaction_list import transactions_listed
from ingest.ddl.digests.digest import DigestReader
from ingest.warehouse.home import raw_table_dir
from recover.questions.listed_transactions import Sort
from recover.selection.filters import Filters
from recover.sources.home.landed_marts import STATEMENTS
from recover.sources.home.marts import open_marts
from recover.sources.log import Log
from recover.sources.statement_digests import add_digest_function, with_digests
from tests.servers import Server
from tests.servers.marked import marked
from tests.support.command_line import assert_sentence
from tests.support.in_process import binloom, binloom_here
from tests.support.older_warehouse import FOLLOWED, unpack

INSERT = "insert into orders values ({}, 'new', 'it''s'), ({}, 'new', null)"
PAY = "update orders set status = 'paid' where id = {}"
DROP = "delete from items where id >= {}"
RAILS = "/*application:Shop,controller:orders,action:create*/"
SQLCOMMENTER = "/*application='Shop',route='%2Fitems%2F%3Cid%3E',traceparent='00-5bd6-c532-01'*/"
HOSTILE = "/*application='%1B%5B31m%3Cb%3E',k='%FF%00'*/"


def statements() -> Iterator[list[str]]:
    """Yield the statements of each transaction."""
    for number in range(3):
        yield [
            f"{INSERT.format(2 * number, 2 * number + 1)} {RAILS}",
            f"insert into items values ({number}, {number}) {SQLCOMMENTER}",
        ]
    yield [PAY.format(1), f"{PAY.format(2)} -- service:worker"]
    yield [f"{DROP.format(2)} {HOSTILE}"]


@pytest.fixture(scope="module", params=marked("mysql", "mariadb"))
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a binlog in which the statements of all changes are logged."""
    server: Server = request.getfixturevalue(f"{request.param}_server")
    server.execute("drop database if exists digests")
    server.flush()
    with server.connect(autocommit=False) as connection, connection.cursor() as cursor:
        if request.param == "mysql":
            cursor.execute("set session binlog_rows_query_log_events = 1")
        cursor.execute("create database digests")
        cursor.execute("use digests")
        cursor.execute("create table orders (id int primary key, status varchar(20), note varchar(20))")
        cursor.execute("create table items (id int primary key, n int)")
        for transaction in statements():
            for statement in transaction:
                cursor.execute(statement)
            connection.commit()
    file = server.flush()
    folder = tmp_path_factory.mktemp("binlogs")
    shutil.copy(file, folder)
    return folder


@pytest.fixture(scope="module")
def home(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    binloom(home, "ingest", "--source", "files", "--binlog-dir", str(folder), "--all")
    return home


def asked(folder: Path, home: Path, *command: str) -> list[dict[str, Any]]:
    """Return the answer of the files, which is also that of the home."""
    files = [str(path) for path in folder.iterdir()]
    options = (*command, "--format", "json")
    decoded = binloom_here(*options, "--files", *files)
    landed = binloom_here(*options, home=home)
    assert (decoded.returncode, landed.returncode) == (0, 0), decoded.stderr + landed.stderr
    found, expected = ([json.loads(line) for line in one.stdout.splitlines()] for one in (landed, decoded))
    own = {"file_part", "table_version_id", "landed_at"}
    assert [{k: v for k, v in row.items() if k not in own} for row in found] == [
        {k: v for k, v in row.items() if k not in own} for row in expected
    ]
    return expected


def test_changes_are_summed_by_application_and_route(folder: Path, home: Path) -> None:
    apps = asked(folder, home, "query", "--by", "app")
    assert [(row["app"], row["changes"], row["transactions"], row["tables"]) for row in apps] == [
        ("Shop", 9, 3, ["digests.items", "digests.orders"]),
        (None, 1, 1, ["digests.orders"]),
        ("\x1b[31m<b>", 1, 1, ["digests.items"]),
        ("worker", 1, 1, ["digests.orders"]),
    ]
    routes = asked(folder, home, "query", "--by", "route")
    assert [(row["app"], row["route"], row["inserts"]) for row in routes if row["route"]] == [
        ("Shop", "orders#create", 6),
        ("Shop", "/items/<id>", 3),
    ]
    assert all(row["first_change_at"] <= row["last_change_at"] for row in routes)


def test_a_list_of_transactions_names_application_and_first_statement(folder: Path) -> None:
    log = open_full_log(Inputs([*folder.iterdir()]))
    listed = transactions_listed(log, Filters(), Sort.TIME, 9).transactions
    found = [(one.application, one.statement, one.statements) for one in listed]
    orders = "INSERT INTO `orders` VALUES (...) /* , ... */"
    assert found == [
        *[("Shop", orders, 2)] * 3,
        ("worker", "UPDATE `orders` SET STATUS = ? WHERE `id` = ?", 2),
        ("\x1b[31m<b>", "DELETE FROM `items` WHERE `id` >= ?", 1),
    ]


def test_changes_are_summed_by_digest(folder: Path, home: Path) -> None:
    rows = asked(folder, home, "query", "--by", "digest")
    texts = {row["statement_text"]: (row["changes"], row["digest"]) for row in rows}
    assert {text: changes for text, (changes, _) in texts.items()} == {
        "INSERT INTO `orders` VALUES (...) /* , ... */": 6,
        "INSERT INTO `items` VALUES (...)": 3,
        "UPDATE `orders` SET STATUS = ? WHERE `id` = ?": 2,
        "DELETE FROM `items` WHERE `id` >= ?": 1,
    }
    digest, _ = DigestReader().read(PAY.format(77))
    assert texts[digest.text][1] == digest.hash
    for chosen in (digest.hash, digest.hash[:8]):
        changes = asked(folder, home, "query", "--digest", chosen)
        assert [(row["event_type"], row["pk_values"]) for row in changes] == [("UPDATE", "1"), ("UPDATE", "2")]


@pytest.mark.parametrize(
    ("options", "keys"),
    [
        (["--tag", "service=worker"], ["2"]),
        (["--tag", "application=Shop", "--tag", "controller=orders", "--table", "orders"], [*"012345"]),
        (["--tag", "controller=orders", "--tag", "controller=others", "--key", "3", "--table", "orders"], ["3"]),
        (["--tag", "traceparent=00-5bd6-c532-01", "--type", "insert"], [*"012"]),
        (["--tag", "application=\x1b[31m<b>"], ["2"]),
    ],
)
def test_tags_select_changes(folder: Path, home: Path, options: list[str], keys: list[str]) -> None:
    assert [row["pk_values"] for row in asked(folder, home, "query", *options)] == keys


def test_python_has_the_same_filters(folder: Path) -> None:
    found = binloom_package.changes(
        files=[*folder.iterdir()], tag=["application=Shop", "controller=orders"], table="orders", key=3
    )
    assert [change.pk_values for change in found] == ["3"]


def test_transactions_and_undo_have_the_same_filters(folder: Path, home: Path) -> None:
    rows = asked(folder, home, "transactions", "--tag", "controller=orders")
    assert [row["selected_changes"] for row in rows] == [2, 2, 2]
    done = binloom_here("undo", "--files", *map(str, folder.iterdir()), "--tag", "service=worker", "--rows-only")
    assert done.returncode == 0, done.stderr
    assert "'new'" in done.stdout and "`id` = 2" in done.stdout and "`id` = 1" not in done.stdout


def test_transactions_have_digests_and_tags(folder: Path, home: Path) -> None:
    query = "select gtid, digests, tags from binloom.transactions where row_events > 0 order by start_pos"
    landed = open_marts(home, [("binloom", "transactions")]).execute(query).fetchall()
    decoded = Log.of_files([*folder.iterdir()], Filters()).connection.execute(query).fetchall()
    assert landed == decoded
    assert [len(digests) for _, digests, _ in landed] == [2, 2, 2, 1, 1]
    assert landed[0][2] == {"application": "Shop", "controller": "orders", "action": "create"}
    assert landed[3][2] == {"service": "worker"}


@pytest.mark.mysql
def test_statements_that_are_not_logged_are_told(mysql_server: Server, tmp_path: Path) -> None:
    mysql_server.execute("create database if not exists digests")
    mysql_server.flush()
    mysql_server.execute(
        "create or replace view digests.v as select 1 as x",
        "drop table if exists digests.plain",
        "create table digests.plain (id int primary key)",
        "insert into digests.plain values (1) /*app:a*/",
    )
    file = shutil.copy(mysql_server.flush(), tmp_path)
    for by, told in (
        ("digest", "does not contain the statements"),
        ("app", "names an application"),
        ("route", "a route"),
    ):
        done = binloom_here("query", "--files", file, "--by", by, "--format", "json")
        (row,) = map(json.loads, done.stdout.splitlines())
        assert row["changes"] == 1 and row[by] is None
        assert told in done.stderr
    assert_sentence(binloom_here("query", "--files", file, "--tag", "app=a"), 0)


def test_names_in_comments_are_data_in_text(folder: Path) -> None:
    done = binloom_here("query", "--files", *map(str, folder.iterdir()), "--by", "app")
    assert "\x1b" not in done.stdout and "<b>" in done.stdout


def test_what_selects_nothing_is_explained(folder: Path) -> None:
    files = [str(path) for path in folder.iterdir()]
    for options, code, told in (
        (("--digest", "xyz"), 2, "'xyz' is not a digest."),
        (("--digest", "0" * 65), 2, "is not a digest."),
        (("--tag", "shop"), 2, "'shop' is not a tag."),
        (("--tag", "application=other"), 0, "No row change fits this filter: --tag application=other."),
        (("--digest", "0" * 8), 0, "No row change fits this filter: --digest 00000000."),
    ):
        done = binloom_here("query", "--files", *files, *options)
        assert_sentence(done, code)
        assert told in done.stderr


def test_statements_that_an_older_binloom_landed_have_digests(folder: Path, home: Path, tmp_path: Path) -> None:
    older = tmp_path / "home"
    shutil.copytree(home, older)
    for path in raw_table_dir("statements", older).glob("**/*.parquet"):
        rows = pq.ParquetFile(path).read()
        pq.write_table(rows.drop_columns(["digest", "digest_text", "tags"]), path)
    for by in ("app", "route", "digest"):
        one, other = (binloom_here("query", "--by", by, "--format", "json", home=each) for each in (older, home))
        assert one.stdout == other.stdout != ""
    # A model is a function of what was landed.
    marts = open_marts(older, [("binloom", "transactions")])
    assert marts.execute("select count(*) from binloom.transactions where digests is not null").fetchall() == [(0,)]


def test_a_home_that_an_older_binloom_built_has_digests(tmp_path: Path) -> None:
    home = unpack(tmp_path)
    done = binloom_here("query", "--source", FOLLOWED, "--by", "digest", "--format", "json", home=home)
    texts = [json.loads(line)["statement_text"] for line in done.stdout.splitlines()]
    assert done.returncode == 0 and len(texts) > 3
    assert all(text.startswith(("INSERT", "UPDATE", "DELETE", "REPLACE")) for text in texts if text)
    rows = open_marts(home, [STATEMENTS]).execute(f"select kind, digest from {'.'.join(STATEMENTS)}").fetchall()
    assert {kind for kind, digest in rows if digest is not None} >= {"ANNOTATE", "QUERY"}


def test_a_text_that_was_replaced_has_no_digest() -> None:
    texts = ("insert into t values (1)", "-- masked: INSERT, digest 0123456789abcdef", "erased/0123")
    with duckdb.connect() as connection:
        add_digest_function(connection)
        rows = ", ".join(f"('{text}')" for text in texts)
        logged = f"select 'ANNOTATE' as kind, null::varchar as sql_mode, * from (values {rows}) as texts (sql_text)"
        empty = "null::varchar as digest, null::varchar as digest_text, null::map(varchar, varchar) as tags"
        found = connection.execute(with_digests(f"select *, {empty} from ({logged})")).fetchall()
    assert [row[4] for row in found] == ["INSERT INTO `t` VALUES (?)", None, None]
