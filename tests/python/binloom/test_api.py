"""The functions of `import binloom`: they answer as the commands do, and carry what an answer lacks."""

import contextlib
import html
import io
import json
import re
import shutil
from base64 import b64decode
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pytest

import binloom
from binloom.commands.output import _plain
from binloom.pages.timeline_plot import picture
from recover.notes import Kind
from tests.support.in_process import binloom_here
from tests.support.nasty import nasty_file
from tests.support.older_warehouse import unpack
from tests.support.places import PROJECT, SAMPLES

pytestmark = pytest.mark.slow

PAGE = (PROJECT / "docs" / "python.md").read_text()
LOG = SAMPLES / "shop-mysql"
FILES = [LOG / "binlog.000001", LOG / "binlog.000002"]
WHERE: dict[str, Any] = {"files": FILES, "snapshot_dir": LOG / "schema"}
OPTIONS = ("--files", *FILES, "--snapshot-dir", LOG / "schema")
# The UPDATE without a WHERE.
DAMAGE = "binlog.000002:20069"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which nothing was built."""
    home = tmp_path_factory.mktemp("home")
    for words in (
        ("snapshot", "--source", "shop", "--from-dir", LOG / "schema"),
        ("ingest", "--source", "shop", "--binlog-dir", LOG, "--all"),
    ):
        done = binloom_here(*words, home=home)
        assert done.returncode == 0, done.stderr
    return home


def printed(*words: object, home: Path | None = None) -> list[dict[str, Any]]:
    """Return the rows that a command prints as JSON."""
    done = binloom_here(*words, "--format", "json", home=home)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def as_printed(answer: Any) -> list[dict[str, Any]]:
    return [{name: _plain(cell) for name, cell in zip(answer.columns, cells, strict=True)} for cells in answer.read()]


def test_the_page_prints_what_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PROJECT)
    blocks = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {}
    for code, expected in blocks:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code, names)
        assert out.getvalue() == expected
    assert len(blocks) == PAGE.count("```python") == 5


@pytest.mark.parametrize("is_landed", [False, True], ids=["files", "home"])
def test_an_answer_has_the_rows_of_the_command(is_landed: bool, home: Path) -> None:
    where: dict[str, Any] = {"home": home} if is_landed else WHERE
    options = () if is_landed else OPTIONS
    filters: dict[str, Any] = {"table": "shop.orders", "since": datetime(2026, 11, 17, 9), "type": ["UPDATE", "DELETE"]}
    words = ("--table", "shop.orders", "--since", "2026-11-17 09:00", "--type", "UPDATE,DELETE")
    found = binloom.changes(**filters, **where)
    assert as_printed(found) == printed("query", *words, *options, home=home)
    assert as_printed(found) == [_plain(row) for row in found.arrow().to_pylist(maps_as_pydicts="strict")]
    first = next(iter(found))
    assert (first.table_name, first.event_type) == ("orders", "UPDATE") and first.row_before and first.row_after
    by_table = binloom.summary("table", **where)
    assert as_printed(by_table) == printed("query", "--by", "table", *options, home=home)
    assert [row["table_name"] for row in by_table] == ["order_items", "orders", "customers"]
    assert as_printed(binloom.transactions(top=2, **where)) == printed("transactions", "--top", 2, *options, home=home)
    assert as_printed(binloom.history("orders", 1042, **where)) == printed(
        "history", "orders", 1042, *options, home=home
    )
    state = binloom.state("shop.orders", as_of="2026-11-17 10:00", **where)
    expected = printed("state", "shop.orders", "--as-of", "2026-11-17 10:00", *options, home=home)
    assert [row.values for row in state] == expected and len(expected) > 40
    assert state.arrow().num_rows == len(expected)


def test_files_and_a_home_have_the_same_schema_changes_and_coverage(home: Path) -> None:
    of_files, of_home = binloom.schema_changes("shop.orders", **WHERE), binloom.schema_changes("shop.orders", home=home)
    assert [one.sql_text for one in of_files] == [one.sql_text for one in of_home]
    assert [one.statement_type for one in of_home] == ["CREATE DATABASE", "CREATE TABLE"]
    assert next(iter(binloom.schema_changes(schema="s*", home=home))).table_name is None
    assert [*binloom.schema_changes(since=datetime(2026, 11, 17, 9), home=home)] == []
    for known in (binloom.coverage(**WHERE), binloom.coverage("shop", home=home)):
        assert [(one.binlog_file, one.transactions, one.row_events) for one in known] == [
            ("binlog.000001", 56, 253),
            ("binlog.000002", 20, 144),
        ]
        assert known.gaps == known.quarantine == known.masked == () and known.proved is None
    assert [(one.last_file, one.last_pos) for one in known.sources] == [("binlog.000002", 27067)]


def test_an_undo_has_the_script_and_the_report_of_the_command(tmp_path: Path) -> None:
    done = binloom_here("undo", "--transaction", DAMAGE, *OPTIONS)
    with binloom.undo(transaction=DAMAGE, **WHERE) as undo:
        assert "".join(f"{line}\n" for line in undo.script()) == done.stdout
        assert [f"binloom: {note}" for note in undo.notes] == done.stderr.splitlines()
        assert undo.statements == {"shop.orders": {"UPDATE": 52}} and [*undo.left_out] == []
        assert "-- this is a rehearsal: it ends with ROLLBACK" in [*undo.script(rehearsal=True)]


def test_a_refused_undo_tells_why_and_has_no_script() -> None:
    # Each of these rows was changed later.
    found = binloom.undo(table="shop.orders", type="INSERT", rows_only=True, **WHERE)
    assert not found.is_possible and found.lacks[-1].kind is Kind.REFUSED
    assert found.lacks[-1].startswith("the undo is refused")
    with pytest.raises(binloom.BinloomError, match="There is no script"):
        found.script()


def test_more_rows_than_asked_for_are_a_lack() -> None:
    found = binloom.changes(table="shop.orders", limit=3, **WHERE)
    assert len([*found]) == len([*found]) == 3
    assert [note.kind for note in found.lacks] == [Kind.END, Kind.CUT]
    whole = binloom.changes(transaction=DAMAGE, limit=100, **WHERE)
    assert whole.is_complete and 3 < len([*whole]) < 100


def test_rows_in_quarantine_are_a_lack(tmp_path: Path) -> None:
    with pytest.raises(binloom.BinloomError) as refused:
        binloom.changes(files=FILES[1], table="shop.orders")
    assert "quarantine" in refused.value.message and "--schema-from" in refused.value.hint
    schema = shutil.copytree(LOG / "schema", tmp_path / "schema")
    columns = json.loads((schema / "columns.json").read_text())
    kept = [row for row in columns if "order_items" not in row.values()]
    (schema / "columns.json").write_text(json.dumps(kept))
    found = binloom.changes(files=FILES[1], snapshot_dir=schema)
    assert [note.kind for note in found.lacks] == [Kind.QUARANTINE, Kind.END]


def test_a_damaged_file_is_a_lack(tmp_path: Path) -> None:
    cut = tmp_path / "binlog.000001"
    cut.write_bytes(FILES[0].read_bytes()[:-10])
    found = binloom.changes(files=cut, snapshot_dir=LOG / "schema")
    assert Kind.DAMAGED in {note.kind for note in found.lacks} and len([*found]) > 10


def test_a_state_without_the_beginning_of_the_table_is_not_complete() -> None:
    found = binloom.state("shop.orders", files=FILES[1], snapshot_dir=LOG / "schema")
    assert Kind.BEGINNING in {note.kind for note in found.lacks} and not found.is_complete


def test_a_masked_column_is_a_lack(tmp_path: Path) -> None:
    home = tmp_path / "home"
    rules = tmp_path / "masks.yml"
    rules.write_text('tags: {free: "null"}\nrules:\n  - {columns: shop.orders.note, tag: free}\n')
    done = binloom_here("snapshot", "--source", "shop", "--from-dir", LOG / "schema", home=home)
    masked = binloom_here("ingest", "--source", "shop", "--binlog-dir", LOG, "--all", "--masks", rules, home=home)
    if done.returncode or masked.returncode:
        pytest.fail(done.stderr + masked.stderr)
    found = binloom.history("shop.orders", 1042, home=home)
    assert Kind.MASKED in {note.kind for note in found.lacks}


def test_a_row_at_a_moment_or_why_there_is_none() -> None:
    then = binloom.row("shop.orders", 1042, datetime(2026, 11, 17, 10, 0, tzinfo=UTC), **WHERE)
    assert [row["status"] for row in then.rows] == ["shipped"] and then.absence == ""
    earlier = binloom.row("shop.orders", 1042, "2026-11-17 09:00", **WHERE)
    assert earlier.rows == () and "did not exist as of" in earlier.absence


def test_nothing_selected_says_why_and_an_unknown_name_is_a_mistake() -> None:
    found = binloom.changes(table="shop.orders", key=999999, **WHERE)
    assert [*found] == [] and found.notes and found.arrow().num_rows == 0
    with pytest.raises(binloom.BinloomError, match=r"no table 'shop\.nothing'"):
        binloom.changes(table="shop.nothing", **WHERE)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: binloom.undo(force=True, skip_conflicts=True, **WHERE), "contradict each other"),
        (lambda: binloom.changes(snapshot_dir=LOG / "schema"), "Definitions are for the tables of files"),
        (lambda: binloom.changes(since="yesterday", **WHERE), "'yesterday' is not a time"),
        (lambda: binloom.changes(files=LOG / "nothing"), "nothing"),
    ],
)
def test_mistakes_say_what_to_do(call: Any, message: str) -> None:
    with pytest.raises(binloom.BinloomError, match=message) as refused:
        call()
    assert refused.value.hint


def test_a_notebook_shows_values_as_text() -> None:
    found = binloom.changes(table="shop.orders", key=1042, **WHERE)
    shown = found._repr_html_()
    assert shown.count("<tr>") == 7 and "<script" not in shown
    table = pa.table({"a": ["<b>"]})
    from binloom.answers.answer import Answer

    answer = Answer(("a <i>",), (), lambda: iter([("<script>x</script>",)]), dict, lambda: table)
    assert "&lt;script&gt;" in answer._repr_html_() and "<i>" not in answer._repr_html_()


def test_a_notebook_shows_changes_over_time_as_a_picture() -> None:
    found = binloom.timeline(table="shop.orders", **WHERE)
    rows = found.arrow().to_pylist()
    assert sum(row["changes"] for row in rows) == found.timeline.changes == 135
    assert {row["table_name"] for row in rows} == {"shop.orders"} and rows == sorted(rows, key=lambda row: row["at"])
    shown = re.search(
        r'^<img alt="135 row changes over time" src="data:image/svg\+xml;base64,([^"]+)"><ul>', found._repr_html_()
    )
    assert shown is not None
    root = ElementTree.fromstring(b64decode(shown[1]))
    texts = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] == "2026-11-17 07:30:00" and texts[5:] == ["shop.orders", "other changes"]
    assert found.lacks and found.lacks[0] in html.unescape(found._repr_html_())
    nothing = binloom.timeline(table="shop.orders", key=99, **WHERE)
    assert nothing.arrow().num_rows == 0 and "No row change fits" in str(picture(nothing.timeline))
    assert any("99" in note or "fit" in note for note in nothing.notes)
    with pytest.raises(binloom.BinloomError, match="no table"):
        binloom.timeline(table="shop.nothing", **WHERE)


def test_names_in_a_picture_are_data(tmp_path: Path) -> None:
    nasty_file(tmp_path / "b.000001", 1)
    shown = picture(binloom.timeline(files=tmp_path / "b.000001").timeline)
    ElementTree.fromstring(shown)
    assert "<script" not in shown and "\u202e" not in shown


def test_marts_of_an_older_build_lack_no_field(tmp_path: Path) -> None:
    found = binloom.changes(home=unpack(tmp_path / "older"), table="boats")
    assert {change.table_name for change in found} == {"boats"}
