"""Parts of the log that are missing are told, although all that is there can be read."""

from pathlib import Path

import pytest

from tests.support.in_process import binloom_here
from tests.support.landing.binlogs import SHOP, created_at, flip_bit, transaction_ends

SNAPSHOT = ("--snapshot-dir", SHOP / "schema")
FIRST, SECOND = "binlog.000001", "binlog.000002"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A folder with the two files of a shop."""
    (tmp_path / "logs").mkdir()
    for name in (FIRST, SECOND):
        (tmp_path / "logs" / name).write_bytes((SHOP / name).read_bytes())
    return tmp_path / "logs"


def cut(path: Path) -> None:
    """Leave out the last transaction and the ROTATE, as a copy does that is made while the server writes."""
    path.write_bytes(path.read_bytes()[: transaction_ends(path)[-3]])


def land(logs: Path, home: Path, *options: str) -> int:
    assert binloom_here("snapshot", "--source", "s", "--from-dir", SHOP / "schema", home=home).returncode == 0
    return binloom_here("ingest", "--source", "s", "--binlog-dir", logs, "--all", *options, home=home).returncode


@pytest.mark.parametrize(
    "question", [("query", "--by", "table"), ("query", "--table", "shop.orders", "--key", "1042"), ("transactions",)]
)
def test_a_file_that_was_copied_before_its_end_is_told(question: tuple[str, ...], logs: Path, tmp_path: Path) -> None:
    files = ("--files", logs / FIRST, logs / SECOND, *SNAPSHOT)
    assert "has a gap" not in binloom_here(*question, *files, home=tmp_path).stderr
    cut(logs / FIRST)
    told = binloom_here(*question, *files, home=tmp_path).stderr
    assert f"the log has a gap at {FIRST}: the next file that is known does not continue this one" in told


def test_the_rest_of_a_file_that_could_not_be_landed_is_told(logs: Path, tmp_path: Path) -> None:
    damaged, ends = logs / SECOND, transaction_ends(logs / SECOND)
    damaged.write_bytes(flip_bit(damaged.read_bytes(), ends[-2] + 30))
    assert land(logs, tmp_path) == 3
    gap = f"the log has a gap at {SECOND}:{ends[-2]} of s: a part of the file could not be landed"
    for moment in ((), ("--as-of", "2026-11-17 23:00:00")):
        assert gap in binloom_here("state", "shop.orders", *moment, home=tmp_path).stderr
    assert gap in binloom_here("history", "shop.orders", "1042", "--as-of", "2026-11-17 23:00", home=tmp_path).stderr
    assert gap not in binloom_here("state", "shop.orders", "--as-of", f"{SECOND}:{ends[3]}", home=tmp_path).stderr


@pytest.mark.parametrize("lost", [None, FIRST])
def test_a_log_that_began_anew_is_proved_or_told(lost: str | None, logs: Path, tmp_path: Path) -> None:
    gap = f"{SECOND} of s: the log begins anew after it, and its files before {SECOND} are not known"
    if lost is None:
        cut(logs / SECOND)
        size = (logs / SECOND).stat().st_size
        gap = f"{SECOND}:{size} of s: it is not proved that nothing is missing after it"
    assert land(logs, tmp_path) == 0
    for name in (FIRST, SECOND):
        (logs / name).write_bytes(created_at((SHOP / name).read_bytes(), 1_790_000_000))
    if lost is not None:
        (logs / lost).unlink()
    assert land(logs, tmp_path, "--new-epoch") == 0
    assert f"the log has a gap at {gap}" in binloom_here("query", "--by", "table", home=tmp_path).stderr
    state = binloom_here("state", "shop.orders", home=tmp_path).stderr
    # The first file creates the table.
    assert (f"After missing files or transactions at {SECOND}:0, rows may be missing" in state) == (lost is not None)
