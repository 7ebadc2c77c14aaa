"""Runs commands of binloom and dbt in this process, with the Java process that all tests share.

A command changes its process, for example its umask and what a closed pipe does. Here all of that is undone.
"""

import io
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from binloom.cli import app
from binloom.commands.running import run_app
from ingest.warehouse import privacy
from ingest.warehouse.spark import SparkLaunch
from tests.support.models.invoke import release_streams_of_dbt, run_dbt


def binloom_here(
    *arguments: object, home: Path | None = None, env: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run a command of binloom; for tests of what it prints, because a process takes half a second to start.

    Parameters
    ----------
    home
        `BINLOOM_HOME` of the command.
    env
        Further variables in addition to the tests' own environment.
    """
    command = list(map(str, arguments))
    out, problems = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    variables = {**({"BINLOOM_HOME": str(home)} if home else {}), **(env or {})}
    with _as_a_process(variables), redirect_stdout(out), redirect_stderr(problems):
        code = run_app(app, command)
    return subprocess.CompletedProcess(command, code, _written(out), _written(problems))


def _written(stream: io.TextIOWrapper) -> str:
    """Return the text that a stream was given."""
    stream.seek(0)
    return stream.read()


def binloom(home: Path, *arguments: str) -> None:
    """Run a command of binloom, which must succeed."""
    done = binloom_here(*arguments, home=home)
    assert done.returncode == 0, f"{' '.join(arguments)}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"


def build(home: Path, *marts: str) -> None:
    """Build marts and everything that they depend on, without tests."""
    wanted = ["--resource-type", "model", "--resource-type", "seed", "--select", *(f"+{mart}" for mart in marts)]
    with _as_a_process({"BINLOOM_HOME": str(home)}), SparkLaunch(home, short_lived=True) as launch:
        launch.session()
        states = run_dbt(home, "build", *wanted)
    assert set(states.values()) == {"success"}, states


@contextmanager
def restored_process() -> Iterator[None]:
    """Undo afterwards what a command changes in its process: signals, folder, umask, and where dbt writes."""
    signals = {number: signal.getsignal(number) for number in (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM)}
    folder, umask, persons = os.getcwd(), os.umask(0), privacy._persons_umask
    os.umask(umask)
    try:
        yield
    finally:
        release_streams_of_dbt()
        for number, handler in signals.items():
            signal.signal(number, handler)
        os.chdir(folder)
        os.umask(umask)
        privacy._persons_umask = persons


@contextmanager
def _as_a_process(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables and umask 0; afterwards undo what a command changed."""
    with restored_process(), pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        os.umask(0)
        yield
