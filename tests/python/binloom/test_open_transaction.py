"""A last file that ends inside a transaction, at the end of an event: every answer says that its rows are left out."""

import json
import shutil
from pathlib import Path

import pytest

from binloom.answers.lacks import beside_files
from ingest.binlog import scan_binlog
from recover.notes import Kind
from tests.support.binlog.cut_files import cut_inside_a_transaction
from tests.support.in_process import binloom_here
from tests.support.places import SAMPLES

SHOP = SAMPLES / "shop-mysql"
TOLD = "he transaction at {} has no end in the file, so its rows are left out"


@pytest.fixture(params=[True, False], ids=["in use", "not in use"])
def cut(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[list[Path], str]:
    """The files of the shop, the last one cut, and where its open transaction begins."""
    files = [tmp_path / f"binlog.00000{number}" for number in (1, 2)]
    for file in files:
        shutil.copy(SHOP / file.name, file)
    start = cut_inside_a_transaction(files[1], is_in_use=request.param)
    scan = scan_binlog(files[1])
    assert (scan.open_transaction, scan.defect, scan.format.is_in_use) == (start, None, request.param)
    return files, f"{files[1].name}:{start}"


@pytest.mark.parametrize(
    "question",
    [
        ("query", "--limit", "1"),
        ("query", "--limit", "1", "--file", "binlog.000002"),
        ("transactions",),
        ("state", "orders"),
        ("state", "orders", "--as-of", "2030-01-01"),
        ("history", "orders", "1001"),
        ("history", "orders", "1001", "--as-of", "2030-01-01"),
    ],
    ids=" ".join,
)
def test_an_answer_says_that_rows_are_left_out(cut: tuple[list[Path], str], question: tuple[str, ...]) -> None:
    files, place = cut
    result = binloom_here(*question, "--files", *files, "--snapshot-dir", SHOP / "schema")
    assert result.returncode == 0, result.stderr
    assert result.stderr.count(f"binloom: t{TOLD.format(place)}") == 1
    assert "gap at" not in result.stderr


def test_an_answer_about_what_is_before_says_nothing(cut: tuple[list[Path], str]) -> None:
    files, _ = cut
    names = ("--files", *files, "--snapshot-dir", SHOP / "schema")
    for question in (
        ("query", "--limit", "1", "--file", "binlog.000001"),
        ("state", "orders", "--as-of", "binlog.000001:4000"),
        ("history", "orders", "1001", "--as-of", "binlog.000002:4000"),
    ):
        result = binloom_here(*question, *names)
        assert result.returncode == 0, result.stderr
        assert "no end in the file" not in result.stderr, question


def test_sums_a_script_and_a_report_say_so(cut: tuple[list[Path], str]) -> None:
    files, place = cut
    names = ("--files", *files, "--snapshot-dir", SHOP / "schema")
    top = json.loads(binloom_here("top", "--format", "json", *names).stdout)
    assert [one for one in top["lacks"] if one.startswith(f"T{TOLD.format(place)}")] == top["lacks"]
    undo = binloom_here("undo", "--file", "binlog.000001", "--table", "orders", "--skip-conflicts", *names)
    assert f": the transaction at {place}, which has no end in the file." in undo.stderr
    report = binloom_here("inspect", files[1])
    assert report.returncode == 0, report.stderr
    position = place.rpartition(":")[2]
    assert f"The transaction at position {position} has no end in the file" in report.stdout
    (facts,) = map(json.loads, binloom_here("inspect", "--format", "json", files[1]).stdout.splitlines())
    assert (facts["open_transaction"], facts["defect"]) == (int(position), None)


@pytest.mark.parametrize("more", [b"", bytes(7)], ids=["cut at an event", "cut inside an event"])
def test_decode_says_that_it_prints_rows_without_an_end(cut: tuple[list[Path], str], more: bytes) -> None:
    (_, last), place = cut
    position = int(place.rpartition(":")[2])
    with last.open("ab") as file:
        file.write(more)
    told = f"binloom: {last}: the transaction at position {position} has no end in the file, but the output contains"
    whole = binloom_here("decode", last)
    assert (whole.returncode, whole.stderr.count(told)) == (3 if more else 0, 1)
    assert json.loads(whole.stdout.splitlines()[-1])["start_pos"] > position
    before = binloom_here("decode", "--stop-position", position, last)
    assert "has no end" not in before.stderr


def test_a_limit_of_a_tool_is_a_lack(cut: tuple[list[Path], str]) -> None:
    files, place = cut
    notes = [*beside_files(files)]
    assert [TOLD.format(place) in note for note in notes] == [True, False]
    assert notes[0].kind is Kind.END


def test_whole_files_have_no_open_transaction() -> None:
    assert scan_binlog(SHOP / "binlog.000001").open_transaction is None
    result = binloom_here("query", "--limit", "1", "--files", SHOP / "binlog.000001", "--snapshot-dir", SHOP / "schema")
    assert "no end" not in result.stderr
