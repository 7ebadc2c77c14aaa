"""A home is closed to other users, and nothing outside of it changes."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest.warehouse.home import prepare_home
from ingest.warehouse.privacy import GROUP_VARIABLE, keep_private, persons_umask, private_opener
from tests.support.patience import PATIENCE_SECONDS
from tests.support.permissions import GROUP_AND_OTHERS, open_to
from tests.support.places import PROJECT


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    """Use umask 0; restore the umask after the test."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> str:
    """Return the permissions of a path, in octal."""
    return f"{path.stat().st_mode & 0o7777:o}"


@pytest.mark.parametrize(("group_access", "closed"), [("", "700"), ("0", "700"), ("1", "750")])
def test_a_home_is_closed_when_it_is_made_and_when_it_was_open(
    group_access: str, closed: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(GROUP_VARIABLE, group_access)
    new, old = tmp_path / "new", tmp_path / "old"
    for folder in ("warehouse/binlog_raw.db", "metastore", "spool", "logs"):
        (old / folder).mkdir(parents=True)
    for home in (new, old):
        prepare_home(home)
        assert {path.name: mode(path) for path in [home, *home.iterdir()] if mode(path) != closed} == {}
    assert mode(tmp_path / "old" / "warehouse" / "binlog_raw.db") == "777"


def test_a_folder_with_other_things_in_it_keeps_its_permissions(tmp_path: Path) -> None:
    home, elsewhere = tmp_path / "srv", tmp_path / "elsewhere"
    for folder in (home / "somebody's", elsewhere):
        folder.mkdir(parents=True)
    (home / "spool").symlink_to(elsewhere)
    prepare_home(home)
    assert [mode(path) for path in (home, home / "somebody's", elsewhere)] == ["777"] * 3
    assert mode(home / "warehouse") == "700"


def test_the_group_of_new_files_stays_that_of_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(GROUP_VARIABLE, "1")
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o2777)
    prepare_home(home)
    assert (mode(home), mode(home / "warehouse")) == ("2750", "2750")


def test_files_of_a_command_are_private_but_not_those_outside_the_home(tmp_path: Path) -> None:
    keep_private()
    (tmp_path / "inside").touch()
    with persons_umask():
        (tmp_path / "outside").touch()
    (tmp_path / "again").touch()
    assert [mode(tmp_path / name) for name in ("inside", "outside", "again")] == ["600", "666", "600"]


def test_nobody_else_can_put_code_into_the_kernels_that_a_daemon_compiles(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    until = time.monotonic() + PATIENCE_SECONDS
    with subprocess.Popen(
        [sys.executable, "-m", "ingest.warehouse.daemon"],
        env={**os.environ, "BINLOOM_CACHE": str(cache)},
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    ) as daemon:
        while not list(cache.glob("kernel/*")):
            assert daemon.poll() is None and time.monotonic() < until
            time.sleep(0.05)
        daemon.kill()
    assert open_to(GROUP_AND_OTHERS, cache) == []


def test_the_log_of_java_is_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with open(tmp_path / "jvm.log", "wb", opener=private_opener):
            pass
    finally:
        os.umask(before)
    assert open_to(GROUP_AND_OTHERS, tmp_path) == []
