"""`binloom ui`: what each page shows of the recorded shop, and that it leads on."""

import io
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from starlette.testclient import TestClient

from binloom.answers.given_definitions import GivenDefinitions
from binloom.answers.opening import Inputs
from binloom.ui.row import _changed_by
from binloom.ui.words import FILTERS
from tests.servers import Server
from tests.support.in_process import binloom_here
from tests.support.pages import DAMAGE, LOG, let_in, page, sample_inputs
from tests.support.places import SAMPLES

FILES = ("--files", LOG / "binlog.000001", LOG / "binlog.000002", "--snapshot-dir", LOG / "schema")


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with let_in(sample_inputs()) as found:
        yield found


def test_the_timeline_leads_to_the_changes(client: TestClient) -> None:
    found = page(client, "/")
    assert "397 row changes" in found.text and "the log goes on after binlog.000002" in found.text
    # What a form has no field for would be lost when it is sent.
    assert {name for name, _ in found.fields} == {*FILTERS}
    assert "4 statements defined, altered, emptied or dropped tables" in found.text
    orders = page(client, found.links["shop.orders"])
    assert "135 row changes" in orders.text and ("table", "shop.orders") in orders.fields
    assert "other changes" in orders.text
    bars = re.findall(r'<a href="(/\?since[^"]*)" aria-label="([^"]*)"', client.get("/").text)
    assert len(bars) > 10
    highest = next(address for address, label in bars if "shop.orders 54" in label)
    zoomed = page(client, highest.replace("&amp;", "&"))
    assert "57 row changes" in zoomed.text
    listed = page(client, zoomed.links["Transactions with these changes"])
    assert DAMAGE in listed.links


def test_transactions_are_sorted_and_paged(client: TestClient) -> None:
    first = page(client, "/transactions")
    biggest = page(client, first.links["rows"])
    assert next(text for text in biggest.links if text.startswith("binlog.")) == DAMAGE
    both = [page(client, "/transactions"), page(client, first.links["Next"])]
    assert "Next" not in both[1].links
    names = [text for one in both for text in one.links if text.startswith("binlog.")]
    done = binloom_here("query", "--by", "transaction", "--format", "csv", *FILES)
    known = [line.split(",")[0].removeprefix("files/0/") for line in done.stdout.splitlines()[1:]]
    assert names == [one.replace("/", ":") for one in known] and len(names) == 72
    assert "There are no more transactions." in page(client, "/transactions?page=9").text


def test_a_list_tells_what_each_transaction_did(client: TestClient) -> None:
    found = page(client, "/transactions?sort=rows&since=2026-11-17+10:15&until=2026-11-17+10:20")
    assert re.search(r"shop.orders\n53\n53 updates\n", found.text) and "Statement\n" not in found.text
    # The statements that define tables are on another page, with the filters that it has.
    schema = found.links["see those of the same time"]
    assert "since=2026-11-17+10%3A15" in schema and page(client, schema)
    assert page(client, "/transactions?where=before.status='new'").links["see those of the same time"] == "/schema"


def test_a_list_has_the_statements_that_a_server_logged() -> None:
    log = SAMPLES / "shop-mariadb"
    with let_in(Inputs([log / "binlog.000002"], GivenDefinitions(log / "schema"))) as client:
        found = page(client, "/transactions?sort=rows").text
    assert re.search(r"Statement\n(.*\n)*shop.orders\n53\nUPDATE `shop` . `orders` SET STATUS = \?\n53 updates", found)
    assert re.search(r"INSERT INTO `shop` . `orders` .*\nand 2 more\n", found)


def test_a_renamed_column_was_changed_last_by_the_statement() -> None:
    versions = [
        SimpleNamespace(transaction_id="t1", changed_columns=None),
        SimpleNamespace(transaction_id="t2", changed_columns=["old"]),
        SimpleNamespace(transaction_id=None, changed_columns=["old", "new"]),
        SimpleNamespace(transaction_id=None, changed_columns=None),
        SimpleNamespace(transaction_id="t3", changed_columns=["other"]),
    ]
    found = {name: _changed_by(versions, range(5), name) for name in ("new", "other", "id")}  # type: ignore[arg-type]
    assert found == {"new": 3, "other": 5, "id": 1}


def test_a_mistake_keeps_what_was_asked(client: TestClient) -> None:
    found = page(client, "/transactions?table=shop.orders&since=yesterday&page=3&tabel=x", 400)
    assert "This page has no 'tabel'" in found.text
    assert found.fields == [("table", "shop.orders"), ("since", "yesterday")]
    assert page(client, "/nowhere", 404).fields == []


def test_sums_of_a_selection_are_those_of_query(client: TestClient) -> None:
    found = page(client, "/transactions?table=shop.orders&changed=status")
    done = binloom_here(
        "query", "--by", "transaction", "--format", "csv", "--table", "shop.orders", "--changed", "status", *FILES
    )
    names = [text for text in found.links if text.startswith("binlog.")]
    assert len(names) == len(done.stdout.splitlines()) - 1


def test_a_transaction_leads_to_its_rows_and_its_undo(client: TestClient) -> None:
    found = page(client, f"/transaction?id={DAMAGE}")
    assert "53 rows, 5,700 bytes" in found.text and re.search(r"status\npacked\ncancelled", found.text)
    second = page(client, found.links["Next"])
    assert found.text.count("UPDATE\n") == 50 and second.text.count("UPDATE\n") == 3
    name, address = next((text, link) for text, link in second.links.items() if text.startswith("History of"))
    assert f"Row\n{name.removeprefix('History of ')}\n" in page(client, address).text
    later = page(client, found.links["Later changes of the same rows"])
    assert (
        re.search(r":76\nshop.orders\n1\n0\nstatus\n1042", later.text)
        and "/row?table=shop.orders&key=1042&source=files" in later.links.values()
    )
    assert "is proved: 52 UPDATE of shop.orders." in page(client, found.links["How to take it back"]).text


def test_a_row_through_time(client: TestClient) -> None:
    last = page(client, "/row?table=shop.orders&key=1042")
    assert "Version 6 of 6" in last.text and re.search(r"status\ncancelled\nshipped\nversion 6", last.text)
    assert ("version", "6") in last.fields and "Next" not in last.links
    before = page(client, last.links["Previous"])
    assert re.search(r"status\nshipped\ncancelled\nversion 5", before.text)
    # The column was not changed since the row was made.
    first = page(client, before.links["version 1"])
    assert "Version 1 of 6" in first.text and "INSERT" in first.text
    assert "no version 7" in page(client, "/row?table=shop.orders&key=1042&version=7", 400).text


def test_a_table_at_a_moment_and_its_files(client: TestClient) -> None:
    found = page(client, f"/table?table=shop.orders&as-of={DAMAGE}")
    assert re.search(r"Rows\n53,\ncomplete", found.text) and "1042" in found.links
    assert "shop.orders" in page(client, "/table").links
    files = {kind: client.get(found.links[kind]) for kind in ("CSV", "Parquet", "SQL")}
    for name, kind in (("csv", "CSV"), ("sql", "SQL")):
        done = binloom_here("state", "shop.orders", "--as-of", DAMAGE, "--format", name, *FILES)
        assert files[kind].content.decode() == done.stdout and done.stdout.count("\n") > 50
        assert "attachment" in files[kind].headers["content-disposition"]
    assert pq.read_table(io.BytesIO(files["Parquet"].content)).num_rows == 53


def test_an_undo_and_its_script(client: TestClient) -> None:
    found = page(client, f"/undo?transaction={DAMAGE}")
    # A long form is above the plan, so its result is told before.
    assert found.links["The script takes these changes back"] == "#plan"
    assert "The script takes these changes back" in found.text and re.search(r"shop.orders\nUPDATE\n52", found.text)
    assert "its former values were set again" in found.text
    done = binloom_here("undo", "--transaction", DAMAGE, *FILES)
    assert client.get(found.links["Download the script"]).text == done.stdout
    rehearsal = client.get(found.links["Download a rehearsal, which ends with ROLLBACK"]).text
    assert "ROLLBACK" in rehearsal and rehearsal != done.stdout


def test_an_undo_that_is_refused_has_its_reason_and_who_changed_the_row_later(client: TestClient) -> None:
    refused = "/undo?table=shop.orders&key=1042&type=INSERT"
    found = page(client, refused)
    assert (
        "No script takes these changes back" in found.text
        and "Why there is no script:\nthe undo is refused" in found.text
    )
    later = [address for text, address in found.links.items() if address.startswith("/transaction?id=")]
    assert later and page(client, later[0])
    forced = page(client, f"{refused}&conflicts=with-dependents&rows-only=yes")
    assert ("rows-only", "yes") in forced.fields
    assert "There is no script" in page(client, refused.replace("/undo", "/undo/script"), 400).text
    assert "No filter is set." in page(client, "/undo/script", 400).text
    assert "Select the transactions" in page(client, "/undo").text


def test_an_undo_of_one_row_tells_how_many_its_transactions_have(client: TestClient) -> None:
    found = page(client, "/undo?table=shop.orders&key=1001&changed=status&where=after.status='cancelled'")
    assert "the filters select 1 row change; the whole transaction has 53" in found.text
    alone = page(client, "/undo?table=shop.orders&key=1001&changed=status&where=after.status='cancelled'&rows-only=yes")
    assert "the whole transaction has" not in alone.text and re.search(r"shop.orders\nUPDATE\n1\n", alone.text)


def test_rows_that_are_left_out_or_overwritten_are_told(client: TestClient) -> None:
    # Later transactions shipped some of these orders.
    packed = "/undo?table=shop.orders&where=after.status='packed'&rows-only=yes&conflicts="
    left = page(client, f"{packed}skip-conflicts")
    (text,) = (text for text in left.links if "left as" in text)
    names = client.get(left.links[text]).text.splitlines()
    assert len(names) == int(re.search(r"(\d+) row", text)[1]) > 0  # type: ignore[index]
    assert all(name.startswith("shop.orders ") for name in names)
    forced = page(client, f"{packed}force")
    assert f"except for {len(names)} row" in forced.text and "overwritten" in forced.text
    assert "the script overwrites the later changes" in forced.text and "left as it is" not in forced.text


def test_a_page_is_the_same_after_others(client: TestClient) -> None:
    # A plan leaves temporary tables in the connection.
    shown = ["/row?table=shop.orders&key=1042", "/table?table=shop.orders", f"/undo?transaction={DAMAGE}"]
    before = [client.get(one).text for one in shown]
    assert client.get("/undo?table=shop.customers").status_code == 200
    assert [client.get(one).text for one in shown] == before


@pytest.mark.mariadb
def test_a_plan_leaves_the_log_as_it_is(mariadb_server: Server, tmp_path: Path) -> None:
    mariadb_server.flush()
    mariadb_server.execute(
        "drop database if exists paged",
        "create database paged",
        "use paged",
        "create table p (id int primary key, note varchar(9))",
        "create table c (id int primary key, p int, foreign key (p) references p (id) on delete cascade)",
        "insert into p values (1, 'a'), (2, 'b')",
        "insert into c values (1, 1), (2, 1), (3, 2)",
        "delete from p where id = 1",
        "alter table p drop column note, add column more int",
        "insert into p values (4, 4)",
    )
    given = GivenDefinitions(folder=mariadb_server.snapshot_dir(tmp_path))
    shown = ["/?schema=paged", "/transactions?schema=paged", "/table?table=paged.p", "/row?table=paged.p&key=1"]
    plans = [
        "/undo?table=paged.p&type=DELETE&with-cascades=on",
        "/undo?table=paged.p&type=INSERT",
        "/undo?table=paged.p&with-cascades=on",
    ]
    with let_in(Inputs((mariadb_server.flush(),), given)) as client:
        before = [client.get(one).text for one in shown]
        for plan in plans:
            first = client.get(plan)
            assert first.status_code == 200, first.text
            assert "bug in binloom" not in first.text
            assert client.get(plan).text == first.text
            assert [client.get(one).text for one in shown] == before, plan
        # The rows of the cascade are told where one looks for them, and only with the change that made it run.
        told = "rows of paged.c that foreign key c_ibfk_1 deleted or changed (CASCADE)"
        for kind, is_told in (("DELETE", True), ("INSERT", False)):
            listed = page(client, f"/transactions?table=paged.p&type={kind}")
            names = [text for text in listed.links if text.startswith(("mysql-bin", "binlog"))]
            texts = [page(client, f"/transaction?id={name}").text for name in names]
            assert texts and all((told in text) == is_told for text in texts), texts


@pytest.mark.parametrize(
    ("address", "status", "needle"),
    [
        ("/?table=shop.nothing", 400, "no table 'shop.nothing'"),
        ("/?tabel=shop.orders", 400, "This page has no 'tabel'"),
        ("/?since=yesterday", 400, "is not a time"),
        ("/?thread=x", 400, "which is no number"),
        ("/?where=before.%27", 400, "No answer"),
        ("/transactions?sort=size", 400, "cannot be sorted by 'size'"),
        ("/transactions?page=0", 400, "Give 1 or more"),
        ("/transaction", 400, "'id' is missing"),
        ("/transaction?id=x", 400, "does not name a transaction"),
        ("/transaction?id=binlog.000002:1", 400, ""),
        ("/transaction?id=5ca1ab1e-0000-4000-8000-0000b1d1003e:52-53", 400, "Several transactions have this name"),
        ("/row?table=shop.orders&key=999999", 400, "999999"),
        ("/row?table=shop.orders&table=shop.customers&key=1", 400, "has 2 values"),
        ("/table?table=shop.orders&as-of=2020-01-01", 400, ""),
        ("/table/file?table=shop.orders&format=exe", 400, "There is no format 'exe'"),
        ("/undo?table=shop.orders&conflicts=ignore", 400, "Conflicts cannot be met with 'ignore'"),
        ("/nothing", 404, "no page at this address"),
        ("/../../etc/passwd", 404, "no page at this address"),
        ("/table/file/..%2f..%2fetc%2fpasswd", 404, "no page at this address"),
    ],
)
def test_mistakes_are_sentences(client: TestClient, address: str, status: int, needle: str) -> None:
    found = page(client, address, status)
    assert needle in found.text and "Traceback" not in found.text and "root:" not in found.text


def test_the_schema_shows_statements_and_definitions(client: TestClient) -> None:
    found = page(client, "/schema")
    assert found.text.count("CREATE TABLE") + found.text.count("create table") >= 3
    orders = page(client, found.links["shop.orders"])
    assert "Definitions of\nshop.orders" in orders.text and re.search(r"\nstatus\n", orders.text)
    assert page(client, orders.links["Transactions of the minutes around it"])


def test_coverage_shows_files_and_what_is_not_known(client: TestClient) -> None:
    found = page(client, "/coverage")
    assert "the log goes on after binlog.000002" in found.text and re.search(
        r"binlog.000002\nfiles, epoch 0", found.text
    )
    first = page(client, found.links["binlog.000001"])
    assert ("file", "binlog.000001") in first.fields
    assert {text.partition(":")[0] for text in first.links if text.startswith("binlog.")} == {"binlog.000001"}
