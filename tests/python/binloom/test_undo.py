"""`binloom undo` and `redo` on marts that were built before: they need no Java, and refuse what the log cannot show."""

import re
from pathlib import Path

import pytest

from tests.support.command_line import assert_sentence
from tests.support.in_process import binloom_here
from tests.support.older_warehouse import unpack
from tests.support.places import SAMPLES

pytestmark = pytest.mark.slow

WITHOUT_JAVA = {"JAVA_HOME": "/nonexistent"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with marts: `landed` is the first file of a shop, `followed` a few boats on MariaDB."""
    return unpack(tmp_path_factory.mktemp("[odd] 'home*"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--table", "shop.order"), ("There is no table", "shop.orders")),
        (("--source", "shops"), ("There is no source", "landed")),
        (("--table", "shop.orders", "--key", "999999"), ("No row change fits", "--key")),
        (("--table", "shop.orders", "--where", "nothing = 1"), ("nothing",)),
        (("--gtid", "nonsense"), ("nonsense",)),
        (("--end-with", "hope", "--source", "landed"), ("cannot end with 'hope'", "rollback")),
        (("--skip-conflicts", "--force", "--source", "landed"), ("contradict each other", "one of them")),
        (("--with-cascades", "--rows-only", "--source", "landed"), ("whole transactions", "--rows-only")),
        (("--with-dependents", "--rows-only", "--source", "landed"), ("whole transactions", "--rows-only")),
        (("--source", "landed"), ("an older binloom", "binloom build")),
        ((), ("everal sources", "--source")),
        (("--table", "shop.orders", "--columns", ""), ("--columns is empty",)),
        (("--table", "shop.orders", "--columns", ","), ("',' contains no name",)),
    ],
)
def test_bad_input_is_explained(home: Path, options: tuple[str, ...], words: tuple[str, ...]) -> None:
    result = binloom_here("undo", *options, home=home)
    assert_sentence(result, 2, *map(re.escape, words))
    assert result.stdout == ""


def test_a_script_is_reported_only_when_it_is_written(tmp_path: Path) -> None:
    shop = SAMPLES / "shop-mysql"
    options = ("--files", shop / "binlog.000001", "--snapshot-dir", shop / "schema")
    chosen = ("--table", "shop.orders", "--thread", "10", "--rows-only", "--force")
    full = binloom_here("undo", *options, *chosen, "--output", "/dev/full", home=tmp_path)
    assert_sentence(full, 3, "/dev/full: No space left on device")
    assert "proved" not in full.stderr
    assert Path("/dev/full").is_char_device()
    done = binloom_here("undo", *options, *chosen, "--output", tmp_path / "undo.sql", home=tmp_path)
    assert_sentence(done, 0, "is proved: .* UPDATE of shop.orders")
    assert "UPDATE `shop`.`orders`" in (tmp_path / "undo.sql").read_text()


def test_the_head_tells_in_words_how_names_and_definitions_are_known(tmp_path: Path) -> None:
    shop = SAMPLES / "shop-mysql"
    chosen = ("--transaction", "binlog.000002:20069", "--snapshot-dir", shop / "schema")
    later = binloom_here("undo", "--files", shop / "binlog.000002", *chosen, home=tmp_path).stdout
    assert "-- definition of shop.orders: from the export of information_schema\n" in later
    # The export does not tell its position.
    assert "-- column names: inferred from a definition whose position is unknown or later\n" in later
    files = ("--files", shop / "binlog.000001", shop / "binlog.000002")
    assert (
        "-- column names: known from a definition and the statements since\n"
        in binloom_here("undo", *files, *chosen, home=tmp_path).stdout
    )


def test_nothing_is_called_proved_where_there_is_no_statement(tmp_path: Path) -> None:
    shop = SAMPLES / "shop-mysql"
    options = ("--files", shop / "binlog.000001", shop / "binlog.000002", "--snapshot-dir", shop / "schema")
    chosen = ("--table", "shop.orders", "--key", "1042", "--rows-only", "--skip-conflicts")
    result = binloom_here("undo", *options, *chosen, home=tmp_path)
    assert_sentence(result, 1, "nothing can be done: each row that would change is left out")
    assert "proved" not in result.stderr


def test_rows_that_are_left_out_are_told_by_reason_and_listed_in_a_file(tmp_path: Path) -> None:
    shop, script, rows = SAMPLES / "shop-mysql", tmp_path / "undo.sql", tmp_path / "undo.sql.left-out"
    options = ("--files", shop / "binlog.000001", "--snapshot-dir", shop / "schema", "--output", script, "--rows-only")
    changed = ("--table", "shop.orders", "--where", "after.status = 'paid'", "--changed", "status")
    refused = binloom_here("undo", *options, *changed, home=tmp_path)
    count = int(re.search(r"shop\.orders: (\d+) rows \(", refused.stderr)[1])  # type: ignore[index]
    assert_sentence(
        refused, 1, r"the same columns were changed since \(status\), by", "--skip-conflicts goes on without"
    )
    assert refused.stderr.count("were changed since (status)") == 1
    assert not script.exists() and len(rows.read_text().splitlines()) >= count > 1
    assert all(line.startswith("shop.orders ") for line in rows.read_text().splitlines())
    rest = binloom_here("undo", *options, *changed, "--skip-conflicts", home=tmp_path)
    assert rest.returncode == 1 and "-- not all of the selection: " in script.read_text(), rest.stderr
    done = binloom_here("undo", *options, *changed, "--force", home=tmp_path)
    assert done.returncode == 0 and not rows.exists(), done.stderr


@pytest.mark.parametrize("command", ["undo", "redo"])
@pytest.mark.parametrize(("options", "is_told"), [((), True), (("--table", "shop.orders"), False)])
def test_a_selection_of_everything_is_told(
    command: str, options: tuple[str, ...], is_told: bool, tmp_path: Path
) -> None:
    shop = SAMPLES / "shop-mysql"
    files = ("--files", shop / "binlog.000001", "--snapshot-dir", shop / "schema", "--output", tmp_path / "script.sql")
    result = binloom_here(command, *files, *options, home=tmp_path)
    assert (f"no filter is given, so this {command} is of all transactions" in result.stderr) == is_told
