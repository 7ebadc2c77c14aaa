"""A connection id that stands for several connections is told."""

from pathlib import Path

import pytest

from tests.support.in_process import binloom_here
from tests.support.landing.binlogs import SHOP, begun_at

FIRST, SECOND = "binlog.000001", "binlog.000002"
SCHEMA = ("--snapshot-dir", SHOP / "schema")
STARTED = f"the server started again at the beginning of {SECOND}, and counts connections from 1"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A folder with the two files of a shop, whose server was started again between them."""
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / FIRST).write_bytes((SHOP / FIRST).read_bytes())
    (folder / SECOND).write_bytes(begun_at((SHOP / SECOND).read_bytes(), 1_794_907_871))
    return folder


@pytest.mark.parametrize("command", [("query", "--by", "transaction"), ("undo", "--rows-only", "--force")])
def test_a_start_between_selected_changes_is_told(command: tuple[str, ...], logs: Path, tmp_path: Path) -> None:
    files = ("--files", logs / FIRST, logs / SECOND, *SCHEMA)
    told = binloom_here(*command, *files, "--thread", "10", home=tmp_path)
    assert f"--thread 10 may select several connections: {STARTED}" in told.stderr
    for options in (("--thread", "10", "--until", "2026-11-17 09:31"), ("--table", "shop.orders")):
        assert "several connections" not in binloom_here(*command, *files, *options, home=tmp_path).stderr
    never = ("--files", SHOP / FIRST, SHOP / SECOND, *SCHEMA)
    assert "several connections" not in binloom_here(*command, *never, "--thread", "10", home=tmp_path).stderr


def test_a_home_tells_starts_and_several_servers(logs: Path, tmp_path: Path) -> None:
    for source in ("a", "b"):
        binloom_here("snapshot", "--source", source, "--from-dir", SHOP / "schema", home=tmp_path)
        assert binloom_here("ingest", "--source", source, "--binlog-dir", logs, "--all", home=tmp_path).returncode == 0
    told = binloom_here("transactions", "--thread", "10", "--by", "table", "--source", "a", home=tmp_path)
    assert STARTED in told.stderr
    told = binloom_here("query", "--thread", "10", "--by", "table", home=tmp_path)
    assert "--thread 10 selects connections of several servers" in told.stderr
    assert "server_id 1 in a, server_id 1 in b. Choose one with --source" in told.stderr
