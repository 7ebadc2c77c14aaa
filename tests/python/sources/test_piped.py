"""Binlog files from standard input and from named pipes."""

import gzip
import json
import os
import pty
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.archives import compressed
from tests.support.command_line import COMMAND, assert_sentence, binloom
from tests.support.in_process import binloom_here
from tests.support.patience import PATIENCE_SECONDS
from tests.support.places import SAMPLES

pytestmark = pytest.mark.slow

FILE = SAMPLES / "shop-mysql" / "binlog.000001"
OTHER = SAMPLES / "shop-mysql" / "binlog.000002"


def fed(data: bytes, *arguments: object) -> "subprocess.CompletedProcess[str]":
    """Run a command with these bytes on its standard input."""
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)], input=data, capture_output=True, timeout=PATIENCE_SECONDS, check=False
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_commands_read_standard_input(pack: Callable[[bytes], bytes]) -> None:
    data = pack(FILE.read_bytes())
    assert fed(data, "decode", "-").stdout == binloom_here("decode", FILE).stdout
    question = ("query", "--table", "shop.orders", "--format", "json", "--files")
    there = [json.loads(line) for line in fed(data, *question, "-").stdout.splitlines()]
    here = [json.loads(line) for line in binloom_here(*question, FILE).stdout.splitlines()]
    assert {row["binlog_file"] for row in there} == {"stdin"}
    told = ("start_pos", "gtid", "event_type", "pk_values", "row_before", "row_after")
    assert [[row[name] for name in told] for row in there] == [[row[name] for name in told] for row in here]
    report = fed(data, "inspect", "-").stdout
    assert report.replace("standard input", str(FILE)) == binloom_here("inspect", FILE).stdout


def test_an_archive_may_come_from_standard_input(tmp_path: Path) -> None:
    archive = subprocess.run(["tar", "cz", "-C", FILE.parent, FILE.name, OTHER.name], capture_output=True, check=True)
    assert fed(archive.stdout, "decode", "-").stdout == binloom_here("decode", FILE, OTHER).stdout


def test_a_named_pipe_has_the_name_of_its_file(tmp_path: Path) -> None:
    pipe = tmp_path / "binlog.000001"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(FILE.read_bytes(),))
    writer.start()
    result = binloom("query", "--format", "json", "--files", pipe, compressed(OTHER, tmp_path, ".gz"))
    writer.join(PATIENCE_SECONDS)
    assert (result.returncode, result.stdout) == (
        0,
        binloom_here("query", "--format", "json", "--files", FILE, OTHER).stdout,
    )


def test_a_stream_that_ends_early_is_damaged() -> None:
    result = fed(FILE.read_bytes()[:20_000], "decode", "-")
    assert_sentence(result, 3, "standard input: the event at position [0-9]+ has [0-9]+ bytes by its header")
    assert result.stdout


def test_nothing_on_standard_input_is_told() -> None:
    for command in (("inspect",), ("decode",), ("query", "--files")):
        assert_sentence(fed(b"", *command, "-"), 2, "standard input is empty")


def test_standard_input_is_read_once() -> None:
    assert_sentence(fed(FILE.read_bytes(), "decode", "-", "-"), 2, "named twice")


def test_a_terminal_is_not_waited_for() -> None:
    own, terminal = pty.openpty()
    try:
        result = subprocess.run(
            [*COMMAND, "decode", "-"], stdin=terminal, capture_output=True, text=True, timeout=PATIENCE_SECONDS
        )
    finally:
        os.close(own)
        os.close(terminal)
    assert_sentence(result, 2, "- is standard input, but that is this terminal")
