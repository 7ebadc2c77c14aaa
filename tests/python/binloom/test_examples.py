"""The examples in docs/examples, with the tools that they are for. `test_demo.py` runs them on the data of the demo."""

import subprocess
from pathlib import Path

import pytest

from tests.support.examples import program, refreshed, workflow


def test_the_workflow_is_one_of_github() -> None:
    check = [program("check-jsonschema"), "--builtin-schema", "vendor.github-workflows", workflow()]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_a_step_that_fails_ends_the_run_of_dagster(tmp_path: Path) -> None:
    done = refreshed(tmp_path, tmp_path / "home", "shop", tmp_path / "nowhere")
    assert done.returncode != 0
    # The error of binloom is in the log, and the steps behind it were not run.
    assert f"There is no directory {tmp_path / 'nowhere'}." in done.stderr, done.stderr[-4000:]
    # Dagster does not always print the event of the failed step before it ends.
    assert "resulted in failure" in done.stderr
    assert "$ binloom build" not in done.stderr and "$ binloom quality" not in done.stderr
