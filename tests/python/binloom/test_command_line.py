"""General behaviour of the command line: help, wrong usage, streams, exit codes, start-up time."""

import fcntl
import os
import signal
import struct
import subprocess
import sys
import termios
import time
import tomllib
from pathlib import Path
from typing import IO

import pytest

from tests.support.command_line import COMMAND, assert_sentence, binloom
from tests.support.patience import PATIENCE_SECONDS
from tests.support.places import PROJECT, SAMPLES

SAMPLE = SAMPLES / "shop-mysql" / "binlog.000001"


def test_help_lists_the_commands_on_stdout() -> None:
    result = binloom("--help")
    assert result.returncode == 0 and result.stderr == ""
    for command in (
        "inspect",
        "decode",
        "snapshot",
        "ingest",
        "follow",
        "compact",
        "status",
        "quality",
        "demo",
        "docs",
    ):
        assert command in result.stdout


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_the_version_is_that_of_the_package(option: str) -> None:
    result = binloom(option)
    version = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
    assert (result.returncode, result.stdout, result.stderr) == (0, f"binloom {version}\n", "")


@pytest.mark.parametrize(
    ("arguments", "needle"),
    [
        (["frobnicate"], "frobnicate"),
        (["folow"], r"Did you mean 'follow'\? See: binloom --help"),
        (["inspect"], "FILE"),
        (["decode", "--bogus", "x"], "--bogus"),
        (["decode", "--format", "xml", "x"], "xml"),
        (["decode", "--start-position", "soon", "x"], "--start-position"),
        (["ingest", "--source", "s"], "--binlog-dir"),
        (["ingest", "--source", "s", "--binlog-dir", "."], "--all"),
        (["snapshot", "--source", "s"], "--server|--from-dir"),
        (["snapshot", "--source", "s", "--server", "h", "--from-dir", "."], "--server|--from-dir"),
        (["snapshot", "--source", "s", "--from-dir", ".", "--from-ddl", "x"], "--from-dir|--from-ddl"),
        (["snapshot", "--source", "s", "--from-dir", ".", "--schema", "x"], "--schema|--from-ddl"),
        (["snapshot", "--source", "s", "--from-ddl", "x", "--at-pos", "4"], "--at-file|--at-pos"),
    ],
)
def test_wrong_usage_is_a_sentence_and_exit_code_2(arguments: list[str], needle: str, tmp_path: Path) -> None:
    result = binloom(*arguments, home=tmp_path / "home")
    assert_sentence(result, 2, needle)
    assert result.stdout == ""
    assert not (tmp_path / "home").exists(), "wrong usage must not leave anything behind"


def test_inspect_and_decode_load_only_what_they_need() -> None:
    unneeded = ("pyspark", "dbt", "great_expectations", "pymysql", "duckdb", "numba", "scipy", "pandas", "sqlglot")
    script = (
        "import sys; from binloom.commands.running import run_app; from binloom.cli import app;"
        f"run_app(app, ['inspect', {str(SAMPLE)!r}]); run_app(app, ['decode', {str(SAMPLE)!r}]);"
        f"print([m for m in {(*unneeded, 'pyarrow.dataset')} if m in sys.modules], file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", script], cwd=PROJECT, capture_output=True, text=True)
    assert result.returncode == 0 and result.stderr.strip() == "[]"


@pytest.mark.parametrize(
    "commands",
    [
        [["query", "--files", str(SAMPLE), "--snapshot-dir", str(SAMPLE.parent / "schema"), "--limit", "1"]],
        [["ingest", "--source", "shop", "--binlog-dir", str(SAMPLE.parent), "--all"], ["status"]],
    ],
    ids=lambda commands: commands[0][0],
)
def test_questions_and_landing_load_only_what_they_need(commands: list[list[str]], tmp_path: Path) -> None:
    script = (
        "import sys; from binloom.commands.running import run_app; from binloom.cli import app;"
        f"code = max(run_app(app, words) for words in {commands!r});"
        "print([m for m in ('pyspark', 'dbt', 'numba', 'pandas') if m in sys.modules], file=sys.stderr); sys.exit(code)"
    )
    command, home = [sys.executable, "-c", script], {**os.environ, "BINLOOM_HOME": str(tmp_path)}
    result = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, env=home)
    assert result.returncode == 0 and result.stderr.strip().endswith("[]"), result.stderr


def test_help_is_there_at_once() -> None:
    script = (
        "import sys; from binloom.cli import app; from binloom.commands.running import run_app\n"
        "run_app(app, ['--help'])\n"
        "print([m for m in ('pyspark', 'dbt', 'numba', 'pyarrow', 'numpy') if m in sys.modules], file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", script], cwd=PROJECT, capture_output=True, text=True)
    assert result.stderr.strip() == "[]"


def test_a_closed_pipe_ends_the_command_silently() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        process = subprocess.run(
            [*COMMAND, "decode", str(SAMPLE)], cwd=PROJECT, stdout=write_end, stderr=subprocess.PIPE, text=True
        )
    finally:
        os.close(write_end)
    assert process.stderr == ""
    assert process.returncode != 0


@pytest.mark.parametrize(
    ("command", "stream"),
    [
        (f"decode {SAMPLE} >&-", "stdout"),
        (f"inspect {SAMPLE} >&-", "stdout"),
        (f"query --files {SAMPLE} --snapshot-dir {SAMPLE.parent / 'schema'} --limit 1 >&-", "stdout"),
        ("--help >&-", "stdout"),
        ("sql - <&-", "stdin"),
    ],
)
def test_a_closed_stream_is_a_sentence(command: str, stream: str, tmp_path: Path) -> None:
    environment = {**os.environ, "BINLOOM_HOME": str(tmp_path)}
    call = f"{COMMAND[0]} {command}"
    result = subprocess.run(["sh", "-c", call], cwd=PROJECT, env=environment, capture_output=True, text=True)
    assert_sentence(result, 2, f"(?m)^binloom: {stream} is closed")


def test_messages_for_a_closed_stderr_do_not_mix_with_the_rows(tmp_path: Path) -> None:
    call = f"{COMMAND[0]} decode {SAMPLE} {tmp_path / 'nothing'} 2>&-"
    result = subprocess.run(["sh", "-c", call], cwd=PROJECT, capture_output=True, text=True)
    assert result.returncode == 2
    assert all(line.startswith("{") for line in result.stdout.splitlines())


def waiting_bytes(pipe: IO[bytes]) -> int:
    """Return the number of bytes in a pipe."""
    (size,) = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))
    return int(size)


def runs(pid: int) -> bool:
    """Whether the main thread of a process does not wait for anything."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "S"


def test_an_interrupt_ends_the_command_silently_with_130() -> None:
    with subprocess.Popen(
        [*COMMAND, "decode", *[str(SAMPLE)] * 8],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A shell starts background jobs with this signal ignored, and child processes inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None
        # The output does not fit into the pipe, so the command waits for this test to read.
        while waiting_bytes(process.stdout) < fcntl.fcntl(process.stdout, fcntl.F_GETPIPE_SZ) // 2 or runs(process.pid):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, problems = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, problems) == (130, b"")


def test_rows_are_utf8_whatever_the_locale(tmp_path: Path) -> None:
    latin1 = {"PYTHONIOENCODING": "latin-1", "LC_ALL": "C"}
    result = binloom("decode", "--format", "text", SAMPLE, env=latin1)
    assert result.returncode == 0 and "→" in result.stdout
    # A name that is not UTF-8 is valid, too.
    path = tmp_path / os.fsdecode(b"caf\xe9.000001")
    path.write_bytes(SAMPLE.read_bytes())
    result = binloom("inspect", path, env=latin1)
    assert result.returncode == 0 and "caf\\udce9.000001" in result.stdout


@pytest.mark.parametrize("call", ["logging.exception('lost')", "logging.getLogger('library').warning('old')"])
def test_messages_of_libraries_are_not_shown(call: str) -> None:
    script = (
        "import logging, typer; from binloom.commands.running import run_app\n"
        "app = typer.Typer()\n"
        "@app.command()\n"
        "def asked() -> None:\n"
        f"    {call}\n"
        "    logging.warning('later')\n"
        "run_app(app, [])\n"
    )
    result = subprocess.run([sys.executable, "-c", script], cwd=PROJECT, capture_output=True, text=True)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_a_bug_is_one_line_and_its_traceback_is_kept(tmp_path: Path) -> None:
    script = (
        "import sys, typer; from binloom.commands.running import run_app\n"
        "app = typer.Typer()\n"
        "@app.command()\n"
        "def broken() -> None:\n"
        "    raise RuntimeError('the roof is on fire\\nsecond line')\n"
        "sys.exit(run_app(app, []))\n"
    )
    environment = {**os.environ, "BINLOOM_HOME": str(tmp_path)}
    result = subprocess.run(
        [sys.executable, "-c", script], cwd=PROJECT, env=environment, capture_output=True, text=True
    )
    assert_sentence(result, 3, "bug in binloom: RuntimeError: the roof is on fire", "logs")
    assert len(result.stderr.splitlines()) == 1
    (log,) = (tmp_path / "logs").glob("*.log")
    assert str(log) in result.stderr
    assert "Traceback" in log.read_text() and "second line" in log.read_text()


def test_rows_that_do_not_fit_into_memory_are_a_sentence(tmp_path: Path) -> None:
    script = (
        "import sys, duckdb, typer; from binloom.commands.running import run_app\n"
        "app = typer.Typer()\n"
        "@app.command()\n"
        "def large() -> None:\n"
        "    connection = duckdb.connect()\n"
        "    connection.execute(\"set memory_limit = '4MB'; set temp_directory = ''\")\n"
        "    connection.execute(\"select repeat('x', 1000) || i as s from range(100000) t(i) order by s\").fetchall()\n"
        "sys.exit(run_app(app, []))\n"
    )
    environment = {**os.environ, "BINLOOM_HOME": str(tmp_path)}
    result = subprocess.run(
        [sys.executable, "-c", script], cwd=PROJECT, env=environment, capture_output=True, text=True
    )
    assert_sentence(result, 3, "the rows do not fit into memory", "Ask for fewer")
    assert not (tmp_path / "logs").exists()
