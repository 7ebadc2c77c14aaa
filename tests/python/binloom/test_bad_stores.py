"""Errors of the commands that land and read tables, on damaged or missing stores. These tests do not start Spark."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import assert_sentence, binloom
from tests.support.places import SAMPLES

pytestmark = pytest.mark.slow

SHOP = SAMPLES / "shop-mysql"


def ingest(directory: Path, home: Path, *more: object, **options: object) -> "subprocess.CompletedProcess[str]":
    return binloom("ingest", "--source", "shop", "--binlog-dir", directory, *(more or ["--all"]), home=home, **options)  # type: ignore[arg-type]


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    assert_sentence(ingest(tmp_path / "nowhere", tmp_path / "home"), 2, "nowhere", "--binlog-dir")


def test_a_directory_without_binlogs_says_so(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    assert_sentence(ingest(tmp_path, tmp_path / "home"), 2, str(tmp_path), "binlog")


def test_a_missing_file_of_files_is_named(tmp_path: Path) -> None:
    result = ingest(SHOP, tmp_path / "home", "--files", "binlog.000001,binlog.000404")
    assert_sentence(result, 2, "binlog.000404", "binlog.000001")


def test_a_directory_without_permission_is_named(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    try:
        assert_sentence(ingest(closed, tmp_path / "home", obey_permissions=True), 3, str(closed), "[Pp]ermission")
    finally:
        closed.chmod(0o755)


def test_a_home_without_permission_is_named(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    for arguments in (["ingest", "--source", "shop", "--binlog-dir", SHOP, "--all"], ["demo"]):
        result = binloom(*arguments, home=closed / "home", obey_permissions=True)
        assert_sentence(result, 3, str(closed / "home"), "[Pp]ermission", "BINLOOM_HOME")


@pytest.mark.parametrize("arguments", [["status", "--source", "nobody"], ["quality", "--source", "nobody"]])
def test_an_unknown_source_is_named(arguments: list[str], tmp_path: Path) -> None:
    assert_sentence(binloom(*arguments, home=tmp_path / "home"), 2, "nobody", "landed|ingest")


def test_a_missing_snapshot_is_named(tmp_path: Path) -> None:
    decoded = binloom("decode", SHOP / "binlog.000001", "--snapshot-dir", tmp_path / "nowhere")
    assert_sentence(decoded, 2, "nowhere")
    assert decoded.stdout == ""
    landed = binloom("snapshot", "--source", "shop", "--from-dir", tmp_path / "nowhere", home=tmp_path / "home")
    assert_sentence(landed, 2, "nowhere")


def test_a_snapshot_without_its_columns_is_named(tmp_path: Path) -> None:
    (tmp_path / "key_column_usage.json").write_text("[]")
    result = binloom("snapshot", "--source", "shop", "--from-dir", tmp_path, home=tmp_path / "home")
    assert_sentence(result, 2, "columns")


def test_a_malformed_snapshot_is_named(tmp_path: Path) -> None:
    (tmp_path / "columns.json").write_text('[{"TABLE_SCHEMA": "shop", ')
    (tmp_path / "key_column_usage.json").write_text("[]")
    result = binloom("snapshot", "--source", "shop", "--from-dir", tmp_path, home=tmp_path / "home")
    assert_sentence(result, 2, "columns.json")


@pytest.mark.parametrize("how", ["none on the path", "no such JAVA_HOME", "too old"])
def test_java_missing_or_too_old_says_how_to_get_it(how: str, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    variables = {"PATH": str(folder), "JAVA_HOME": ""}
    if how == "no such JAVA_HOME":
        variables = {"JAVA_HOME": str(tmp_path / "jdk")}
    elif how == "too old":
        java = folder / "java"
        java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
        java.chmod(0o755)
    # Files land without Java.
    landed = binloom("ingest", "--source", "shop", "--binlog-dir", SHOP, "--all", home=tmp_path / "home", env=variables)
    assert landed.returncode == 0, landed.stderr
    result = binloom("quality", home=tmp_path / "home", env=variables)
    assert_sentence(result, 3, "Java", "17", "apt-get install|JAVA_HOME")


def test_another_process_that_holds_the_metastore_is_named(tmp_path: Path) -> None:
    """Derby holds a write lock on the database's lock file."""
    home = tmp_path / "home"
    lock_file = home / "metastore" / "dbex.lck"
    lock_file.parent.mkdir(parents=True)
    lock_file.touch()
    script = (
        "import fcntl, sys\n"
        "held = open(sys.argv[1], 'r+b'); fcntl.lockf(held, fcntl.LOCK_EX); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(lock_file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        landed, checked = ingest(SHOP, home), binloom("quality", home=home)
        assert holder.stdin is not None
        holder.stdin.close()
    assert landed.returncode == 0, landed.stderr
    assert_sentence(checked, 3, "metastore", f"pid {holder.pid}", "[Ww]ait")
