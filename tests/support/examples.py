"""The environment of the examples, with Dagster and the schemas of other tools' files: `make examples` makes it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.support.places import PROJECT

EXAMPLES: Final = PROJECT / "docs" / "examples"
_PROGRAMS: Final = PROJECT / ".examples" / "bin"


def program(name: str) -> Path:
    """Return a program of the environment; skip the test without it, except where everything must be there."""
    path = _PROGRAMS / name
    if not path.exists():
        missing = f"{path} does not exist: run `make examples`"
        assert "BINLOOM_REQUIRE_SERVERS" not in os.environ, missing
        pytest.skip(missing)
    return path


def workflow() -> Path:
    """Return the file of the workflow for pull requests."""
    return EXAMPLES / "analytics" / ".github" / "workflows" / "models.yml"


def workflow_steps() -> dict[str, str]:
    """Return the commands of the workflow, by the names of its steps."""
    read: dict[str, Any] = yaml.safe_load(workflow().read_text())
    return {step["name"]: step["run"] for step in read["jobs"]["build"]["steps"] if "run" in step}


def refreshed(folder: Path, home: Path, source: str, binlogs: Path) -> "subprocess.CompletedProcess[str]":
    """Run the job of the example once."""
    instance = folder / "instance"
    instance.mkdir()
    shutil.copy(EXAMPLES / "dagster" / "dagster.yaml", instance)
    variables = {
        "DAGSTER_HOME": str(instance),
        "BINLOOM_HOME": str(home),
        "BINLOOM_SOURCE": source,
        "BINLOOM_BINLOG_DIR": str(binlogs),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(PROJECT),
    }
    command = [program("dagster"), "job", "execute", "-f", EXAMPLES / "dagster" / "pipeline.py", "-j", "refresh"]
    environment = {**os.environ, **variables, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
