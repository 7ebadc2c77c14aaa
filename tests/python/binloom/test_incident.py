"""`binloom incident`: one file that shows what was selected, and loads nothing."""

import json
import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import pytest

from binloom.answers.opening import Inputs
from binloom.commands.incident import undo_command
from binloom.pages.rendering import _environment
from recover.selection.filters import Filters, in_words
from tests.support.browser import browser, complaints
from tests.support.command_line import assert_sentence
from tests.support.in_process import binloom_here
from tests.support.nasty import SCRIPT, VALUE, nasty_file
from tests.support.places import SAMPLES

pytestmark = pytest.mark.slow

LOG = SAMPLES / "shop-mysql"
FILES = ("--files", LOG / "binlog.000001", LOG / "binlog.000002", "--snapshot-dir", LOG / "schema")
DAMAGE = ("--transaction", "binlog.000002:20069")
MOST_BYTES = 500_000


class Page(HTMLParser):
    """The texts of a page, its elements, and everything that it would load."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.loaded: list[str] = []
        self.texts: list[str] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        links = [value for name, value in attrs if name in ("src", "href", "srcset", "action") and value]
        self.loaded += [link for link in links if not link.startswith(("#", "data:,"))]
        assert not [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data: str) -> None:
        self.texts.append(data.strip())

    @property
    def text(self) -> str:
        return "\n".join(filter(None, self.texts))


@pytest.fixture(scope="module")
def damage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the UPDATE without a WHERE."""
    path = tmp_path_factory.mktemp("report") / "incident.html"
    done = binloom_here("incident", *DAMAGE, *FILES, "--title", "Orders <cancelled>", "--output", path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1].startswith(f"binloom: {path} has 53 row changes (")
    return path


def test_it_shows_when_what_and_how_to_undo_it(damage: Path) -> None:
    page = Page(damage)
    assert damage.stat().st_size < MOST_BYTES and "Orders <cancelled>" in page.texts
    assert page.loaded == [] and "script" not in page.tags and page.tags.count("svg") == 1
    assert page.tags.count("article") == 1 and page.text.count("UPDATE\n") >= 53
    assert re.search(r"1042\nstatus\nColumn\nBefore\nAfter\nstatus\nshipped\ncancelled\n9 other columns", page.text)
    assert "the undo of 1 transaction is proved: 52 UPDATE of shop.orders." in page.text
    assert "UPDATE `shop`.`orders` SET `status` = 'packed' WHERE `id` = 1001" in page.text
    assert "binloom undo --transaction binlog.000002:20069 --files" in page.text


def test_the_command_that_it_names_writes_the_script(damage: Path, tmp_path: Path) -> None:
    (command,) = re.findall(r"<pre>(binloom undo .*)</pre>", damage.read_text())
    words = command.split()[1:-1]
    done = binloom_here(*words, tmp_path / "undo.sql")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "undo.sql").read_text().count("\nUPDATE ") == 52


def test_more_rows_than_are_shown_are_told(tmp_path: Path) -> None:
    path = tmp_path / "incident.html"
    done = binloom_here("incident", "--table", "shop.*", "--rows", "20", *FILES, "-o", path)
    assert done.returncode == 0 and "397 row changes; it shows 20 rows" in done.stderr
    page = Page(path)
    assert "This page does not show everything." in page.texts
    assert "The values of the first 20 of 397 changed rows follow." in page.text
    transactions = binloom_here("query", "--by", "transaction", "--table", "shop.*", *FILES, "--format", "json").stdout
    places = {
        json.loads(line)["transaction_id"].split("/", 2)[2].replace("/", ":") for line in transactions.splitlines()
    }
    assert len(places) > 20 and places <= {*page.texts}
    assert "4 statements that defined, altered, emptied or dropped tables in this time" in page.texts


def test_more_transactions_than_are_listed_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("binloom.answers.incident._LISTED", 10)
    path = tmp_path / "incident.html"
    assert binloom_here("incident", "--table", "shop.*", *FILES, "-o", path).returncode == 0
    assert re.search(r"These are the first 10 transactions, with [0-9]+ of 397 changed rows\.", Page(path).text)


def test_statements_that_are_not_shown_are_told() -> None:
    listed = _environment().get_template("parts.html").module
    at = datetime(2026, 11, 28, tzinfo=UTC)
    statements = [
        SimpleNamespace(
            event_timestamp=at,
            position=f"b:{pos}",
            thread_id=None,
            sql_text=f"drop table t{pos}",
            destroys_rows=pos % 2 == 0,
            drops_columns=pos % 2 == 1,
        )
        for pos in range(51)
    ]
    assert "These are the first 50." not in listed.definitions(statements[:50])  # type: ignore[attr-defined]
    shown = listed.definitions(statements)  # type: ignore[attr-defined]
    assert "These are the first 50." in shown and shown.count("drop table") == 50
    assert shown.count("removes rows") == shown.count("removes a column") == 25


def test_an_undo_that_is_refused_has_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "incident.html"
    done = binloom_here("incident", "--table", "shop.orders", "--key", "1042", "--type", "INSERT", *FILES, "-o", path)
    assert done.returncode == 0, done.stderr
    found = Page(path)
    assert "no script" in found.texts and "Why there is no script:\nthe undo is refused" in found.text
    # The rows in the way are told once, apart from the reasons.
    assert found.text.count("it was changed since") == 1 and found.texts.count("left as it is") == 2
    done = binloom_here("incident", "--until", "2026-11-17T09:00", *FILES, "-o", path)
    assert done.returncode == 0, done.stderr
    apart = r"would not contain everything\.\n(a script would not contain: CREATE TABLE.*\n){3}"
    assert re.search(apart, Page(path).text)


def test_an_undo_that_has_nothing_to_do_is_no_refusal(tmp_path: Path) -> None:
    path, chosen = tmp_path / "incident.html", ("--where", "after.status = 'cancelled'", "--rows-only")
    done = binloom_here("incident", "--table", "shop.orders", "--key", "1042", *chosen, *FILES, "-o", path)
    assert done.returncode == 0, done.stderr
    assert "Nothing is left to take back" in Page(path).text


def test_an_undo_that_leaves_rows_out_is_that_of_the_same_command(tmp_path: Path) -> None:
    path, chosen = tmp_path / "incident.html", ("--table", "shop.order_items", "--type", "INSERT", "--skip-conflicts")
    done = binloom_here("incident", *chosen, "--rows-only", *FILES, "-o", path)
    assert done.returncode == 0, done.stderr
    found = Page(path)
    assert "The script takes some of these changes back." in found.texts and "DELETE" in found.texts
    (command,) = re.findall(r"<pre>(binloom undo .*)</pre>", path.read_text())
    made = binloom_here(*command.split()[1:-1], tmp_path / "undo.sql")
    assert made.returncode == 1 and (tmp_path / "undo.sql").exists(), made


def test_masked_values_are_nowhere_in_it(tmp_path: Path) -> None:
    home, path = tmp_path / "home", tmp_path / "incident.html"
    home.mkdir()
    (home / "masks.yml").write_text('tags: {free: "null"}\nrules:\n  - {columns: shop.orders.note, tag: free}\n')
    for words in (
        ("snapshot", "--source", "shop", "--from-dir", LOG / "schema"),
        ("ingest", "--source", "shop", "--binlog-dir", LOG, "--all"),
        ("incident", "--table", "shop.orders", "--key", "1042", "--output", path),
    ):
        done = binloom_here(*words, home=home)
        assert done.returncode == 0, done.stderr
    page = path.read_text()
    assert "Fragile" not in page and "Chlo" not in page and "web" in page


def hostile(folder: Path) -> Path:
    """Return the report of a file with names and values that do harm where they are not data."""
    nasty_file(folder / "b.000001", 1)
    path = folder / "incident.html"
    done = binloom_here("incident", "--files", folder / "b.000001", "--output", path)
    assert done.returncode in (0, 3), done.stderr
    return path


def test_names_and_values_are_data(tmp_path: Path) -> None:
    path = hostile(tmp_path)
    page = Page(path)
    assert "script" not in page.tags and SCRIPT in page.text
    assert not {"\x1b", "\u202e", "\u2028", "\x9b"} & set(path.read_text())
    assert VALUE.partition("\x1b")[0] in page.text


@pytest.mark.browser
def test_a_browser_shows_it_without_a_complaint(damage: Path, tmp_path: Path) -> None:
    pages = [damage, hostile(tmp_path)]
    with browser(tmp_path / "profile") as driver:
        for scheme in ("light", "dark"):
            media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
            for width in (1280, 400):
                size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
                driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
                for page in pages:
                    driver.get(page.as_uri())
                    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
                    assert driver.execute_script("return document.scripts.length") == 0
        # The keyboard alone opens a row that is folded.
        driver.get(damage.as_uri())
        closed = "[...document.querySelectorAll('details.row:not([open]) > summary')]"
        before = driver.execute_script(f"return {closed}.length")
        driver.execute_script(f"{closed}[0].focus()")
        driver.switch_to.active_element.send_keys("\ue007")
        assert driver.execute_script(f"return {closed}.length") == before - 1
        assert complaints(driver) == []


@pytest.mark.parametrize(
    ("words", "needle"),
    [
        ((*DAMAGE, *FILES), "A report is a file"),
        (("--table", "shop.orders", "--key", "999999", *FILES, "-o", "incident.html"), "No row change is selected"),
        (("--table", "shop.nothing", *FILES, "-o", "incident.html"), "no table 'shop.nothing'"),
        ((*DAMAGE, *FILES, "-o", "/nonexistent/incident.html"), "/nonexistent"),
    ],
)
def test_mistakes_leave_no_file(
    words: tuple[object, ...], needle: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert_sentence(binloom_here("incident", *words), 2, needle)
    assert [*tmp_path.glob("*.html*")] == []


def test_the_command_of_a_report_gives_each_filter_as_a_person_does() -> None:
    filters = Filters(tags=(("application", "a b"), ("route", "x")), tables=("shop.orders",), from_pos=4, files=("b",))
    assert undo_command(filters, Inputs()) == [
        *("binloom", "undo", "--table", "shop.orders", "--file", "b", "--from-pos", "4"),
        *("--tag", "application=a b", "--tag", "route=x", "--output", "undo.sql"),
    ]
    assert in_words(filters) == "tables shop.orders; files b; from pos 4; tags application=a b, route=x"
