"""Runs commands of binloom and dbt, each in its own process; they must succeed."""

import os
import subprocess
import sys
from pathlib import Path

from ingest.warehouse.jvm import SHORT_LIVED_OPTIONS
from tests.support.places import PROJECT

DBT = Path(sys.executable).with_name("dbt")


def binloom(home: Path, *arguments: str) -> None:
    """Run a command of binloom."""
    command(home, sys.executable, "-m", "binloom.cli", *arguments)


def build(home: Path, *marts: str) -> None:
    """Build marts and everything that they depend on, without tests."""
    places = ["--project-dir", str(PROJECT), "--profiles-dir", str(PROJECT), "--target-path", str(home / "target")]
    wanted = ["--resource-type", "model", "--resource-type", "seed", "--select", *(f"+{mart}" for mart in marts)]
    command(home, str(DBT), "build", *wanted, *places, "--log-path", str(home / "logs"))


def command(home: Path, *words: str) -> None:
    """Run a command that must succeed."""
    paths = {"BINLOOM_HOME": str(home), "PYTHONPATH": str(PROJECT)}
    environment = {**os.environ, **paths, "JDK_JAVA_OPTIONS": " ".join(SHORT_LIVED_OPTIONS)}
    # With umask 0, private files are private only because binloom makes them so.
    done = subprocess.run(
        words,
        env=environment,
        cwd=PROJECT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        umask=0,
    )
    assert done.returncode == 0, f"{' '.join(words)}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
