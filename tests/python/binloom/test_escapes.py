"""Invisible characters in a text are printed as escapes, in every output format."""

import csv
import io
import json
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest

from binloom.commands.metrics import FollowMetrics
from binloom.commands.output import Format, print_line, print_rows, progress, say, waiting
from ingest.escapes import csv_cell, json_in_script, json_visible, visible
from tests.support.places import PROJECT
from tests.support.terminal import Terminal

# A window title, a cleared screen, C1's CSI, right-to-left text, markup of rich, HTML and Jinja.
NASTY = "a\x1b]0;title\x07\x1b[2J\x9b31m\x7f\u202egnp.\n\r\t\u2028[red][/][link=http://x]<b>{{ 1 }}"


def test_each_character_that_does_not_show_is_an_escape() -> None:
    assert visible("a\nb\r\tc\x00\x1b[2J\x7f\x85\x9b\u061c\u200f\u2028\u202e\u2066\ufeff\U000e0041\udcff") == (
        "a\\nb\\r\\tc\\x00\\x1b[2J\\x7f\\x85\\x9b\\u061c\\u200f\\u2028\\u202e\\u2066\\ufeff\\U000e0041\\udcff"
    )


def test_what_shows_is_left_as_it_is() -> None:
    text = "naïve \u00a0 日本\u3000語 می\u200cخواهم 👩\u200d👧 \\x1b C:\\temp [red] <b>"
    assert visible(text) == text == json_visible(text)


def test_no_control_of_any_kind_is_left() -> None:
    every = "".join(map(chr, range(0x110000)))
    kinds = {unicodedata.category(sign) for sign in visible(every)}
    assert not kinds & {"Cc", "Cs", "Zl", "Zp"}
    assert not {sign for sign in visible(every) if unicodedata.bidirectional(sign) in _DIRECTIONS}


_DIRECTIONS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


@given(st.text())
def test_json_means_the_same(text: str) -> None:
    document = json_visible(json.dumps({text: [text]}, ensure_ascii=False))
    assert json.loads(document) == {text: [text]}
    assert visible(document) == document


def test_json_in_a_page_does_not_end_its_script() -> None:
    texts = ["</script><script>alert(1)</script>", "<!--", "a < b"]
    document = json_in_script(json.dumps(texts))
    assert "<" not in document
    assert json.loads(document) == texts


@pytest.mark.parametrize("sign", list("=+-@\t\r"))
def test_a_formula_gets_an_apostrophe(sign: str) -> None:
    (cells,) = csv.reader(io.StringIO(csv_cell(f'{sign}cmd|"/C calc"!A0'), newline=""))
    assert cells == [f'\'{sign}cmd|"/C calc"!A0']


@pytest.mark.parametrize("number", ["-5", "+1.5", "-1e3", "-0.25E-7"])
def test_a_number_is_left_as_it_is(number: str) -> None:
    assert csv_cell(number) == number


def test_rows_of_csv_keep_numbers_and_line_ends_and_no_other_control(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["=1+1", "two\r\nlines", "a\rb", 'quote " and , comma', NASTY]
    print_rows(("number", *"abcdef"), [[-5, *names, {"=x": "\x9b"}]], Format.CSV)
    text = capsys.readouterr().out
    _, cells = csv.reader(io.StringIO(text, newline=""))
    nasty = visible(NASTY, keep="\n\r\t")
    assert cells == ["-5", "'=1+1", "two\r\nlines", "a\rb", 'quote " and , comma', nasty, '{"=x": "\\u009b"}']
    assert visible(text, keep="\n\r\t") == text


def test_text_and_json_have_no_control_but_the_ends_of_lines(capsys: pytest.CaptureFixture[str]) -> None:
    row = [NASTY, [NASTY], {NASTY: NASTY}]
    print_rows(("a", "b", "c"), [row], Format.TEXT, title=NASTY)
    print_line(NASTY)
    say(NASTY)
    text = capsys.readouterr()
    assert visible(text.out, keep="\n") == text.out
    assert len(text.out.splitlines()) == 5  # a title, two lines of header, a row, a line
    assert text.out.count(visible(NASTY)) == 6
    assert text.err == f"binloom: {visible(NASTY)}\n"
    print_rows(("a", "b", "c"), [row], Format.JSON)
    document = capsys.readouterr().out
    assert visible(document, keep="\n") == document
    assert json.loads(document) == dict(zip("abc", row, strict=True))


@pytest.mark.parametrize("bar", [progress, waiting])
def test_a_bar_shows_a_name_as_it_is(bar: object, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    with bar(f"landing {NASTY}"):  # type: ignore[operator]
        pass
    assert visible(NASTY) in terminal.getvalue()
    assert "\x1b]0;" not in terminal.getvalue()


def test_a_label_of_prometheus_is_in_one_line_and_shows() -> None:
    registry = CollectorRegistry()
    registry.register(FollowMetrics('shop "1"\n\x1b[2J\\'))
    page = generate_latest(registry).decode()
    assert '{source="shop \\"1\\"\\\\n\\\\x1b[2J\\\\"}' in page
    assert visible(page, keep="\n") == page


def test_commands_print_for_people_in_one_place() -> None:
    """Rows of `decode` and `state` are exceptions: they are escaped as they are made."""
    writes = re.compile(r"\bprint\(|std(out|err)\.(buffer\.)?write")
    # The other prints are the help and the code for shells, which are the program's own text, and those rows.
    allowed = {"output.py", "running.py", "decode.py", "state.py", "completion.py"}
    commands = PROJECT / "binloom" / "commands"
    writing = {path.name for path in commands.glob("*.py") if writes.search(path.read_text())}
    assert writing == allowed
