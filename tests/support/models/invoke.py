"""Runs dbt in this process, with the current session."""

from pathlib import Path

from tests.support.places import PROJECT


def run_dbt(home: Path, *arguments: str) -> dict[str, str]:
    """Run a dbt command; return the status of every node that ran."""
    from dbt.cli.main import dbtRunner

    places = ["--project-dir", PROJECT, "--profiles-dir", PROJECT, "--target-path", home / "target"]
    quiet = ["--log-path", home / "logs", "--log-level", "error"]
    result = dbtRunner().invoke([*arguments, *map(str, places), *map(str, quiet)])
    assert result.exception is None, result.exception
    # An exposure is not executed.
    return {node.node.name: str(node.status) for node in result.result if node.status != "no-op"}
