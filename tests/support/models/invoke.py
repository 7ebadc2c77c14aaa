"""Runs dbt in this process, with the current session."""

import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from binloom.commands.project import share_parsed
from ingest.warehouse.few_rows import FEW_ROWS
from tests.support.places import PROJECT

# The first target of this process gives what dbt has parsed to the others, also to those of copies of the project.
_kept = tempfile.TemporaryDirectory(prefix="binloom-dbt-", ignore_cleanup_errors=True)


def run_dbt(
    home: Path, *arguments: str, project: Path = PROJECT, watch: Callable[[Any], None] | None = None
) -> dict[str, str]:
    """Run a dbt command; return the status of every node that ran. `watch` gets each event of dbt."""
    from dbt.cli.main import dbtRunner

    target = (home if project == PROJECT else project.parent) / "target"
    share_parsed(Path(_kept.name), target)
    places = ["--project-dir", project, "--profiles-dir", _profiles_dir(), "--target-path", target]
    # dbt would write the whole project twice in each run, which takes two seconds, and no test reads that.
    quiet = ["--log-path", home / "logs", "--log-level", "error", "--no-write-json"]
    result = dbtRunner(callbacks=[watch] if watch else []).invoke([*arguments, *map(str, places), *map(str, quiet)])
    release_streams_of_dbt()
    assert result.exception is None, result.exception
    # Tests read the results.
    result.result.write(str(target / "run_results.json"))
    if project == PROJECT:
        share_parsed(target, Path(_kept.name))
    # An exposure is not executed.
    return {node.node.name: str(node.status) for node in result.result if node.status != "no-op"}


def release_streams_of_dbt() -> None:
    """Let dbt forget where it wrote: it shows messages of Thrift later, when pytest has closed these streams."""
    if "dbt_common" in sys.modules:
        from dbt_common.events.event_manager_client import cleanup_event_logger

        cleanup_event_logger()


@cache
def _profiles_dir() -> Path:
    """Return a folder with the project's profile for few rows: each run of dbt sets what a profile has."""
    profile = yaml.safe_load((PROJECT / "profiles.yml").read_text())
    profile["binloom"]["outputs"]["local"]["server_side_parameters"] |= FEW_ROWS
    (Path(_kept.name) / "profiles.yml").write_text(yaml.safe_dump(profile))
    return Path(_kept.name)
