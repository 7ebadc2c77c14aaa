"""The base installation has neither Spark nor dbt: its commands load none of them, the others say what to install."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ingest.binlog import kernel
from tests.servers import Server
from tests.support.patience import PATIENCE_SECONDS
from tests.support.places import PROJECT, SAMPLES

pytestmark = pytest.mark.slow

SAMPLE = SAMPLES / "shop-mysql"
NAMED = ("--files", SAMPLE / "binlog.000001", SAMPLE / "binlog.000002", "--snapshot-dir", SAMPLE / "schema")
DAMAGE = ("--transaction", "binlog.000002:20069")
# The first package that a command looks for is not the same in all.
WITH_SPARK = re.compile(
    "This command needs Spark, dbt and Great Expectations, and (pyspark|py4j) is not installed. Run `pip install"
)

# Runs commands of a base installation in one process, and prints their exit codes.
PROGRAM = """
import json, sys

class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "py4j", "dbt", "dbt_common", "great_expectations", "pyhive", "mcp"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refusing())
from binloom.cli import app
from binloom.commands.running import run_app

codes = [run_app(app, command) for command in json.loads(sys.argv[1])]
print(json.dumps(codes), file=sys.stderr)
"""


def exit_codes(home: Path, *commands: tuple[object, ...]) -> tuple[list[int], "subprocess.CompletedProcess[str]"]:
    """Run commands without Spark; return their exit codes and what they printed."""
    words = json.dumps([[str(word) for word in command] for command in commands])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, words],
        cwd=PROJECT,
        env={"PATH": "/usr/bin:/bin", "HOME": str(home), "BINLOOM_HOME": str(home / "home")},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    return json.loads(done.stderr.splitlines()[-1]), done


def test_commands_that_read_and_ask_need_no_spark(tmp_path: Path) -> None:
    kernel.prepare()
    file = SAMPLE / "binlog.000001"
    codes, done = exit_codes(
        tmp_path,
        ("inspect", file),
        ("inspect", "--events", file),
        ("decode", file),
        ("query", *NAMED, *DAMAGE),
        ("transactions", *NAMED),
        ("history", "shop.orders", "1042", *NAMED),
        ("state", "shop.orders", *NAMED),
        ("undo", *NAMED, *DAMAGE),
        ("redo", *NAMED, *DAMAGE),
        ("snapshot", "--source", "shop", "--from-dir", SAMPLE / "schema"),
        ("status",),
        ("compact", "--source", "shop"),
        ("sql", "select 1"),
        ("build",),
    )
    assert codes == [0] * len(codes), done.stderr


def test_files_land_without_spark(tmp_path: Path) -> None:
    codes, done = exit_codes(tmp_path, ("ingest", "--source", "shop", "--binlog-dir", SAMPLE, "--all"), ("status",))
    assert codes == [0, 0] and "397 row changes in 76 transactions landed" in done.stdout, done.stderr


def test_commands_that_need_spark_say_what_to_install(tmp_path: Path) -> None:
    commands = (
        ("quality",),
        ("docs",),
        ("demo",),
    )
    codes, done = exit_codes(tmp_path, *commands)
    assert codes == [3] * len(commands)
    sentences = done.stderr.splitlines()[:-1]
    assert len(sentences) == len(commands) and all(map(WITH_SPARK.search, sentences)), done.stderr
    assert "`pip install 'binloom[spark]'`" in sentences[0]


def test_the_server_for_agents_says_what_to_install(tmp_path: Path) -> None:
    codes, done = exit_codes(tmp_path, ("mcp", *NAMED))
    assert codes == [3] and done.stdout == ""
    sentence = done.stderr.splitlines()[0]
    assert "needs the SDK of the Model Context Protocol, and mcp is not installed" in sentence
    assert "`pip install 'binloom[mcp]'`" in sentence


def test_a_server_is_followed_without_spark(tmp_path: Path, mysql_server: Server) -> None:
    mysql_server.execute(
        "create database followed", "create table followed.t (id int primary key)", "insert into followed.t values (1)"
    )
    server = ("--server", f"{mysql_server.host}:{mysql_server.port}", "--user", "root")
    kernel.prepare()
    codes, done = exit_codes(
        tmp_path,
        ("snapshot", "--source", "s", *server),
        ("follow", "--source", "s", "--once", *server),
        ("status",),
        ("build",),
    )
    assert codes[:3] == [0, 0, 0] and "landed" in done.stdout, done.stderr
    assert codes[3] == 3 and WITH_SPARK.search(done.stderr), done.stderr
