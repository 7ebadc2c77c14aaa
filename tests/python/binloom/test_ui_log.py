"""The log under the pages of `binloom ui`: hostile names, masks, and a session that is open while the log changes."""

import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, build_opener

import pytest
from starlette.testclient import TestClient

from binloom.answers.opening import Inputs
from binloom.ui.app import VIEWS
from binloom.ui.opened_log import OpenedLog
from binloom.ui.view import View
from binloom.ui.words import Words
from ingest.escapes import visible
from ingest.warehouse.built import TableRecord
from ingest.warehouse.home import HOME_VARIABLE
from recover.sources.log import Log
from tests.support.in_process import binloom_here
from tests.support.nasty import SCHEMA, SCRIPT, TABLE, VALUE, nasty_file
from tests.support.pages import DAMAGE, LOG, addresses, let_in, page, served
from tests.support.patience import PATIENCE_SECONDS
from tests.support.places import SAMPLES

pytestmark = pytest.mark.slow


def run(home: Path, *words: object) -> None:
    done = binloom_here(*words, home=home)
    assert done.returncode == 0, done.stderr


def land(home: Path, folder: Path = LOG) -> None:
    run(home, "snapshot", "--source", "shop", "--from-dir", LOG / "schema")
    run(home, "ingest", "--source", "shop", "--binlog-dir", folder, "--all")


def everything(client: TestClient, more: tuple[str, ...] = ()) -> str:
    """Return all pages and files as one text."""
    kinds = [
        f"/table/file?table=shop.{one}&format={kind}" for one in ("orders", "customers") for kind in ("csv", "sql")
    ]
    script = f"/undo/script?transaction={DAMAGE}"
    return "\n".join(client.get(one).text for one in (*addresses(), *kinds, script, *more))


def test_names_and_values_are_data(tmp_path: Path) -> None:
    nasty_file(tmp_path / "b.000001", 1)
    own = {"table": f"{SCHEMA}.{TABLE}"}
    paths = [
        "/",
        "/transactions",
        "/transaction?id=b.000001%3A126",
        "/table",
        f"/table?{urlencode(own)}",
        f"/row?{urlencode({**own, 'key': '1'})}",
        f"/undo?{urlencode({'table': '*'})}",
        f"/?{urlencode({'table': SCRIPT, 'where': SCRIPT})}",
        f"/row?{urlencode({'table': SCRIPT, 'key': SCRIPT})}",
    ]
    with let_in(Inputs([tmp_path / "b.000001"])) as client:
        listed = page(client, "/transactions")
        paths[2] = next(link for link in listed.links.values() if link.startswith("/transaction?"))
        paths.append(paths[2].replace("/transaction?", "/later?"))
        texts = [client.get(path).text for path in paths]
        for path, text in zip(paths, texts, strict=True):
            assert page(client, path, client.get(path).status_code) and "<script" not in text, path
            # A field has the text itself, which is sent again.
            assert not {"\x1b", "\u202e", "\u2028", "\x9b"} & set(re.sub(r'value="[^"]*"', "", text)), path
        for text in (texts[2], texts[4], texts[5]):
            assert VALUE.partition("\x1b")[0] in text
        assert visible(TABLE).replace("<", "&lt;").replace(">", "&gt;").replace("'", "&#39;") in texts[3]
        # A link with such a name leads to its page.
        assert page(client, next(link for link in page(client, "/table").links.values() if "table=" in link))


def test_a_long_question_does_not_keep_other_pages_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    land(tmp_path)
    begun, ends = Event(), Event()

    def ask(log: Log, words: Words, opened: OpenedLog) -> str:
        begun.set()
        assert ends.wait(PATIENCE_SECONDS)
        return str(log.connection.execute("select count(*) from binloom.row_changes").fetchall())

    monkeypatch.setitem(VIEWS, "/long", View((), ask))
    with served(Inputs(home=tmp_path)) as (address, entrance), ThreadPoolExecutor() as pool:
        opener = build_opener(HTTPCookieProcessor())
        opener.open(entrance).close()
        long = pool.submit(lambda: opener.open(f"{address}/long").read())
        assert begun.wait(PATIENCE_SECONDS)
        try:
            with opener.open(f"{address}/transactions?sort=rows", timeout=60) as answer:
                assert DAMAGE in answer.read().decode()
        finally:
            ends.set()
        assert long.result() == b"[(397,)]"


def test_a_table_of_several_sources_asks_for_one(tmp_path: Path) -> None:
    land(tmp_path)
    run(tmp_path, "ingest", "--source", "other", "--binlog-dir", SAMPLES / "shop-mariadb", "--all")
    run(tmp_path, "snapshot", "--source", "other", "--from-dir", SAMPLES / "shop-mariadb" / "schema")
    with let_in(Inputs(home=tmp_path)) as client:
        refused = page(client, "/table?table=shop.orders", 400)
        assert "Several sources" in refused.text and refused.fields == [("table", "shop.orders"), ("source", "")]
        assert page(client, "/table?table=shop.orders&source=other")
        assert re.search(r"Behind\n[\d,]+ days?\n", page(client, "/coverage").text)


def test_a_gap_is_marked_where_the_log_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, folder = tmp_path / "home", tmp_path / "logs"
    folder.mkdir()
    shutil.copy(LOG / "binlog.000001", folder)
    shutil.copy(LOG / "binlog.000002", folder / "binlog.000003")
    land(home, folder)
    monkeypatch.setenv(HOME_VARIABLE, str(home))
    with let_in(Inputs([])) as client:
        marks = re.findall(r'<g><title>([^<]*)</title><line class="gap"', client.get("/").text)
        assert len(marks) == 1 and "gap at binlog.000001 of shop" in marks[0], marks
        (at,) = re.findall(r"^\S+ \S+", marks[0])
        listed = page(client, f"/?since={at}&file=binlog.000003").text
        assert listed.startswith("Timeline") and f"From\n{at}" in listed
        # Before the gap there is no mark.
        assert 'class="gap"' not in client.get("/?until=2026-11-17+08:00").text
        # Each source has its own.
        run(home, "ingest", "--source", "other", "--binlog-dir", folder, "--all")
        both = re.findall(r'<g><title>([^<]*)</title><line class="gap"', client.get("/").text)
        assert [re.sub(r".* of (\w+):.*", r"\1", one) for one in both] == ["other", "shop"]
        assert all(one.startswith(at) for one in both)


def test_masked_values_are_on_no_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "masks.yml").write_text('tags: {free: "null"}\nrules:\n  - {columns: shop.orders.note, tag: free}\n')
    land(home)
    monkeypatch.setenv(HOME_VARIABLE, str(home))
    with let_in(Inputs()) as client:
        texts = everything(client, ("/transactions?page=2", "/table?table=shop.orders&as-of=binlog.000001:20000"))
        assert "Fragile" not in texts and "cancelled" in texts and "masked" in texts


def test_an_open_session_sees_what_lands_an_erasure_and_an_expiry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv(HOME_VARIABLE, str(home))
    folder = tmp_path / "binlogs"
    folder.mkdir()
    shutil.copy(LOG / "binlog.000001", folder)
    land(home, folder)
    with let_in(Inputs()) as client:
        before = page(client, "/").text
        shutil.copy(LOG / "binlog.000002", folder)
        run(home, "ingest", "--source", "shop", "--binlog-dir", folder, "--all")
        after = page(client, "/").text
        assert "397 row changes" in after and "397 row changes" not in before
        maker = page(client, "/row?table=shop.customers&key=3&version=1").links
        made = next(link for link in maker.values() if link.startswith("/transaction?"))
        places = [made, "/row?table=shop.customers&key=3", "/table/file?table=shop.customers&format=csv"]
        address = re.findall(r"[\w.+-]+@[\w-]+\.[a-z]+", client.get(made).text)[2]
        assert all(address in client.get(place).text for place in places)
        run(home, "erase", "--source", "shop", "--table", "shop.customers", "--key", "3", "--apply")
        assert not any(address in client.get(place).text for place in places)
        assert "397 row changes" in page(client, "/").text
        run(home, "expire", "--source", "shop", "--before-file", "binlog.000002", "--apply")
        expired = page(client, "/").text
        assert "144 row changes" in expired and "This page does not show everything." in expired
        assert "No answer" in page(client, made, 400).text


def test_the_log_is_opened_anew_after_a_build_and_not_before(tmp_path: Path) -> None:
    land(tmp_path)
    with OpenedLog(Inputs(home=tmp_path), []) as opened:
        first = opened.log()
        assert opened.log() is first
        # As a build does for each of its tables.
        record = TableRecord(tmp_path, "binloom_quality", "lost_events")
        with record.changing(hides=False):
            second = opened.log()
        assert second is not first
        record.end(is_whole=True)
        assert opened.log() is not second and opened.log() is opened.log()


def test_a_home_that_goes_away_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv(HOME_VARIABLE, str(home))
    land(home)
    with let_in(Inputs()) as client:
        assert "397 row changes" in page(client, "/").text
        home.rename(tmp_path / "elsewhere")
        assert "There is no folder" in page(client, "/", 400).text
        (tmp_path / "elsewhere").rename(home)
        assert "397 row changes" in page(client, "/").text


def test_a_file_that_grows_is_read_again(tmp_path: Path) -> None:
    nasty_file(tmp_path / "b.000001", 1)
    with let_in(Inputs([tmp_path / "b.000001"])) as client:
        assert "1 row change" in page(client, "/").text
        whole = (LOG / "binlog.000001").read_bytes()
        (tmp_path / "b.000001").write_bytes(whole)
        assert "1 row change\n" not in page(client, "/").text


@pytest.mark.parametrize("is_in_place", [True, False])
def test_a_file_of_the_same_size_and_time_is_another_one(is_in_place: bool, tmp_path: Path) -> None:
    """An answer about the file before would be about rows that are not there any more."""
    file, other = tmp_path / "binlog.000001", tmp_path / "other"
    for name in (file, other):
        shutil.copyfile(LOG / "binlog.000001", name)
        os.utime(name, (1_000_000, 1_000_000))
    with OpenedLog(Inputs([file]), []) as opened:
        first = opened.log()
        assert opened.log() is first
        if is_in_place:
            file.write_bytes(other.read_bytes())
            os.utime(file, (1_000_000, 1_000_000))
        else:
            other.replace(file)
        assert opened.log() is not first
