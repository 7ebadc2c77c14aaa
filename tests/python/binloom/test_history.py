"""`binloom history` and `binloom state` on marts that were built before: they need no Java."""

import csv
import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.support.command_line import assert_sentence, binloom
from tests.support.in_process import binloom_here
from tests.support.landing.full_disk import file_size_limit
from tests.support.older_warehouse import unpack
from tests.support.places import SAMPLES

WITHOUT_JAVA = {"JAVA_HOME": "/nonexistent"}
BOATS = [
    {"id": "1", "kind": "sail", "length": "7", "name": "Ida", "n": "2.50"},
    {"id": "4000000000", "kind": "motor", "length": "12", "name": "Bo", "n": "0.00"},
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with marts: `landed` is the first file of a shop, `followed` a few boats on MariaDB."""
    return unpack(tmp_path_factory.mktemp("[odd] 'home*"))


def test_a_history_has_each_version_with_its_transaction_and_statement(home: Path) -> None:
    result = binloom_here("history", "boats", "1", "--format", "json", home=home, env=WITHOUT_JAVA)
    assert result.returncode == 0, result.stderr
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(row["version"], row["operation"], row["gtid"], row["changed_columns"]) for row in rows] == [
        (1, "INSERT", "0-1-4", None),
        (2, "UPDATE", "0-1-5", ["n"]),
        (3, "ALTER TABLE", "0-1-8", ["length"]),
        (4, "UPDATE", "0-1-9", ["length"]),
    ]
    assert rows[1]["statement"] == "update yard.boats set n = n + 1"
    assert [row["valid_to"] for row in rows] == [*(row["valid_from"] for row in rows[1:]), None]
    assert rows[3]["row"] == BOATS[0]


def test_text_shows_old_and_new_values_and_what_was_unknown(home: Path) -> None:
    lines = binloom_here("history", "boats", "1", home=home).stdout.splitlines()
    assert lines[0] == "yard.boats 1 in followed"
    assert ["1.50 → 2.50" in line for line in lines].count(True) == 1
    assert ["length (unknown) → NULL" in line for line in lines].count(True) == 1


@pytest.mark.parametrize(
    ("key", "versions"),
    [
        # The row with key 9 takes key 1, whose row was deleted in the same transaction.
        ("1042|9", [("INSERT", "1042|9"), ("UPDATE", "1042|1")]),
        ("1042|1", [("INSERT", "1042|1"), ("INSERT", "1042|9"), ("DELETE", "1042|1"), ("UPDATE", "1042|1")]),
    ],
)
def test_a_row_is_followed_to_its_earlier_and_later_keys(home: Path, key: str, versions: list[tuple[str, str]]) -> None:
    result = binloom_here("history", "order_items", key, "--format", "csv", home=home)
    assert [(row["operation"], row["key"]) for row in csv.DictReader(result.stdout.splitlines())] == versions


@pytest.mark.parametrize(
    ("moment", "n"),
    [("0-1-4", "1.50"), ("0-1-5", "2.50"), ("binlog.000001:1150", "1.50"), ("binlog.000001:1398", "2.50")],
)
def test_as_of_prints_the_row_at_a_position(home: Path, moment: str, n: str) -> None:
    result = binloom_here("history", "boats", "1", "--as-of", moment, "--format", "json", home=home)
    assert json.loads(result.stdout) == {"id": "1", "kind": "sail", "name": "Ida", "n": n}
    assert_sentence(result, 0, r"yard.boats 1 as of binlog.000001:\d+, after 0-1-\d")


def test_a_row_that_did_not_exist_is_a_sentence(home: Path) -> None:
    result = binloom_here("history", "boats", "1", "--as-of", "0-1-3", home=home)
    assert_sentence(result, 1, "did not exist as of .*: its first change is the INSERT at binlog.000001:1061")
    assert result.stdout == ""


def test_a_position_inside_a_transaction_excludes_it(home: Path) -> None:
    result = binloom_here("state", "boats", "--as-of", "binlog.000001:1300", home=home)
    assert [row["n"] for row in csv.DictReader(result.stdout.splitlines())].count("1.50") == 1
    assert_sentence(result, 0, "inside the transaction at binlog.000001:1150, which is not included")


def test_the_state_of_a_table_that_the_log_creates_is_complete(home: Path, tmp_path: Path) -> None:
    result = binloom_here("state", "boats", "--format", "json", home=home, env=WITHOUT_JAVA)
    rows = sorted((json.loads(line) for line in result.stdout.splitlines()), key=lambda row: int(row["id"]))
    assert rows == BOATS
    assert_sentence(result, 0, r"yard.boats as of .*: 2 rows, complete\.")
    file = tmp_path / "boats.parquet"
    binloom_here("state", "boats", "--format", "parquet", "--output", file, home=home)
    table = pq.read_table(file).drop_columns(["_unknown_columns", "_uncertain_since"])
    assert sorted(table.to_pylist(), key=lambda row: int(row["id"])) == BOATS


def test_null_and_an_empty_text_differ_in_csv(home: Path) -> None:
    lines = binloom_here("state", "shop.orders", home=home).stdout.splitlines()
    assert any(',"",' in line for line in lines)
    assert any(",,," in line for line in lines)


@pytest.mark.parametrize(
    ("arguments", "needles"),
    [
        (("history", "boat", "1"), ["There is no table 'boat'", "The nearest name is boats"]),
        (("history", "boats", "x"), ["'x' is not a number, and column id is", "Give a number"]),
        (("history", "boats", "1|2"), ["not a number"]),
        (("history", "boats", "3"), ["no change of row 3", "The nearest keys are"]),
        (("history", "order_items", "1001"), ["has 2 columns", r"Give order_id\|line_number"]),
        (("history", "boats", "1", "--source", "follow"), ["no source 'follow'", "The nearest name is followed"]),
        (("state", "boats", "--as-of", "0-1-99"), ["does not contain 0-1-99", "contains 0-1-1 to 0-1-11"]),
        (
            ("state", "boats", "--as-of", "1999-01-01"),
            ["1999-01-01 00:00:00 UTC is before the log", "first transaction"],
        ),
        (("state", "boats", "--as-of", "soon"), ["not a time, a GTID or a position"]),
        (("state", "boats", "--as-of", "2026-13-01"), ["is not a time", "in UTC or with an offset"]),
        (("state", "boats", "--as-of", "binlog.00001:4"), ["no transactions in a file", "binlog.000001"]),
        (
            ("state", "boats", "--as-of", "2/binlog.000001:4"),
            ["has no file binlog.000001 in epoch 2", r"Give 0/binlog.000001:4\."],
        ),
        (("state", "boats", "--as-of", "binlog.000002:99999999"), ["known up to binlog.000002", "Land the rest"]),
        (("state", "boats", "--format", "parquet"), ["not written to stdout", "--output"]),
    ],
)
def test_a_mistake_is_a_sentence_with_what_is_nearest(
    home: Path, arguments: tuple[str, ...], needles: list[str]
) -> None:
    result = binloom_here(*arguments, home=home)
    assert_sentence(result, 2, *needles)
    assert result.stdout == ""


@pytest.mark.parametrize("command", [("state", "boats"), ("undo",), ("redo",)])
def test_a_file_that_cannot_be_written_is_refused_by_its_own_name(
    home: Path, command: tuple[str, ...], tmp_path: Path
) -> None:
    nowhere, locked = tmp_path / "nothing" / "x.sql", tmp_path / "locked.sql"
    assert_sentence(binloom_here(*command, "-o", nowhere, home=home), 2, f"{nowhere} cannot be written: there is no")
    assert_sentence(binloom_here(*command, "-o", tmp_path, home=home), 2, f"{tmp_path} is a folder")
    locked.touch(0o000)
    refused = binloom(*command, "-o", locked, home=home, obey_permissions=True)
    assert_sentence(refused, 2, f"{locked} is not writable")
    assert list(tmp_path.iterdir()) == [locked]


def test_a_state_before_the_create_table_says_that_it_is_later(home: Path) -> None:
    result = binloom_here("state", "boats", "--as-of", "binlog.000001:4", home=home)
    assert_sentence(result, 0, "The log before this moment contains neither the CREATE TABLE")


def test_a_time_after_the_log_is_its_end_with_a_remark(home: Path) -> None:
    result = binloom_here("state", "boats", "--as-of", "2099-01-01", home=home)
    assert_sentence(result, 0, "2 rows, complete", "The known log ends before 2099-01-01")


def test_a_row_that_a_damaged_file_does_not_show_may_be_behind_the_damage(tmp_path: Path) -> None:
    cut, shop = tmp_path / "binlog.000001", SAMPLES / "shop-mysql"
    cut.write_bytes((shop / cut.name).read_bytes()[:30000])
    files = ("--files", cut, "--snapshot-dir", shop / "schema")
    result = binloom_here("history", "shop.orders", "999", *files, home=tmp_path)
    assert_sentence(result, 3, r"rows from position \d+ on are missing.*\n.*contains no change of row 999")


@pytest.mark.parametrize("is_landed", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_row_that_may_be_in_a_gap_is_not_just_denied(is_landed: bool, tmp_path: Path) -> None:
    shop, files = SAMPLES / "shop-mysql", [tmp_path / "logs" / f"binlog.00000{number}" for number in (1, 4)]
    files[0].parent.mkdir()
    for number, file in enumerate(files, start=1):
        shutil.copy(shop / f"binlog.00000{number}", file)
    where: tuple[object, ...] = ("--files", *files, "--snapshot-dir", shop / "schema")
    if is_landed:
        where = ()
        binloom_here("snapshot", "--source", "files", "--from-dir", shop / "schema", home=tmp_path)
        binloom_here("ingest", "--source", "files", "--binlog-dir", files[0].parent, "--all", home=tmp_path)
    told = [
        r"no change of row 99999999 in shop\.orders that took effect\. The log has a gap at binlog\.000001:"
        r" the files between it and binlog\.000004 are not known\.",
        *([] if is_landed else ["The log goes on after binlog.000004, in files that were not given"]),
        "The nearest keys are",
    ]
    for moment in ((), ("--as-of", "binlog.000004:4000")):
        result = binloom_here("history", "orders", "99999999", *moment, *where, home=tmp_path)
        assert_sentence(result, 2, *told)
    of_another = binloom_here("history", "orders", "1|2", *where, home=tmp_path)
    assert "gap" not in of_another.stderr


def test_a_row_that_a_whole_log_lacks_is_denied_without_more(home: Path) -> None:
    result = binloom_here("history", "boats", "3", home=home, env=WITHOUT_JAVA)
    assert "The log contains no change of row 3 in yard.boats that took effect. The nearest keys" in result.stderr


@pytest.mark.parametrize("format", ["csv", "json", "parquet", "sql"])
def test_a_full_disk_leaves_no_cut_file(home: Path, format: str, tmp_path: Path) -> None:
    file = tmp_path / f"orders.{format}"
    for before in (None, "of an earlier run"):
        if before is not None:
            file.write_text(before)
        with file_size_limit(500):
            result = binloom_here("state", "shop.orders", "--format", format, "--output", file, home=home)
        assert_sentence(result, 3, f"{file}: File too large. Check that the path exists, may be used, and has space")
        assert [one.name for one in tmp_path.iterdir()] == ([] if before is None else [file.name])
    assert file.read_text() == "of an earlier run"
    assert binloom_here("state", "boats", "--format", format, "--output", "/dev/null", home=home).returncode == 0
    assert not Path("/dev/null").is_file()
