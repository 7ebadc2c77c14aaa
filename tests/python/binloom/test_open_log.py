"""Commands print messages about the log that they read."""

import subprocess
import sys
from pathlib import Path

import pytest

from binloom.commands.open_log import report_writer

# Holds the metastore as Derby does, until its input ends.
_HOLDER = """
import fcntl, sys
with open(sys.argv[1], "r+b") as lock_file:
    fcntl.lockf(lock_file, fcntl.LOCK_EX)
    print("locked", flush=True)
    sys.stdin.read()
"""
_STARTER = "import subprocess, sys; subprocess.run([sys.executable, '-c', *sys.argv[1:]])"


@pytest.mark.parametrize(("program", "is_told"), [([_HOLDER], False), ([_STARTER, _HOLDER], True)])
def test_only_another_process_that_uses_the_warehouse_is_told(
    program: list[str], is_told: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lock_file = tmp_path / "metastore" / "dbex.lck"
    lock_file.parent.mkdir()
    lock_file.touch()
    command = [sys.executable, "-c", *program, str(lock_file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "locked\n"
        report_writer(tmp_path)
        holder.communicate()
    assert ("uses the warehouse" in capsys.readouterr().err) == is_told
