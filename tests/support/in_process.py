"""Runs commands of binloom and dbt in this process, with the Java process that all tests share; they must succeed."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from binloom.cli import app
from binloom.commands.running import run_app
from ingest.warehouse.spark import SparkLaunch
from tests.support.models.invoke import run_dbt


def binloom(home: Path, *arguments: str) -> None:
    """Run a command of binloom."""
    with _environment(home):
        assert run_app(app, arguments) == 0, arguments


def build(home: Path, *marts: str) -> None:
    """Build marts and everything that they depend on, without tests."""
    wanted = ["--resource-type", "model", "--resource-type", "seed", "--select", *(f"+{mart}" for mart in marts)]
    with _environment(home), SparkLaunch(home, short_lived=True) as launch:
        launch.session()
        states = run_dbt(home, "build", *wanted)
    assert set(states.values()) == {"success"}, states


@contextmanager
def _environment(home: Path) -> Iterator[None]:
    umask = os.umask(0)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("BINLOOM_HOME", str(home))
            yield
    finally:
        os.umask(umask)
