"""Runs `binloom` as a user does: a process, its streams and its exit code."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_SECONDS
from tests.support.places import PROJECT

COMMAND = [str(Path(sys.executable).with_name("binloom"))]


def binloom(
    *arguments: object,
    home: Path | None = None,
    env: Mapping[str, str] | None = None,
    obey_permissions: bool = False,
    cwd: Path = PROJECT,
) -> "subprocess.CompletedProcess[str]":
    """Run a command as a user with umask 0, and wait for its end.

    Parameters
    ----------
    home
        `BINLOOM_HOME` of the process.
    env
        Further variables in addition to the tests' own environment.
    obey_permissions
        Drop root's capability to ignore file permissions.
    cwd
        Working directory of the process.
    """
    command = [*COMMAND, *map(str, arguments)]
    if obey_permissions and os.geteuid() == 0:
        if not shutil.which("setpriv"):
            pytest.skip("root ignores permissions, and setpriv (util-linux) is not there to take that away")
        command = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search", *command]
    environment = {**os.environ, **(env or {})}
    if home is not None:
        environment["BINLOOM_HOME"] = str(home)
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS, umask=0
    )


def assert_sentence(result: "subprocess.CompletedProcess[str]", code: int, *needles: str) -> None:
    """Assert a helpful error: the exit code, each needle (a regular expression) in stderr, no traceback."""
    assert result.returncode == code, result.stderr
    for line in result.stderr.splitlines():
        assert line.startswith("binloom: "), f"not a sentence of binloom: {line!r}"
    for needle in needles:
        assert re.search(needle, result.stderr), f"{needle!r} is not in {result.stderr!r}"
    assert "Traceback" not in result.stderr + result.stdout
