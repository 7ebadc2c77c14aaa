"""The dbt project from inside binloom's own process: built on the Spark session that is open, and its site."""

import contextlib
import io
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from binloom.commands.output import Advance
from binloom.commands.spark_messages import without_plan
from ingest.errors import StoreError, UsageError
from ingest.escapes import json_in_script
from ingest.warehouse.privacy import persons_umask

# The page that dbt generates can load a tracker from here. It does so only when the project allows it, and
# binloom's does not; the site still has no business to know the address.
_TRACKER = "//d1fc8wv8zag5ca.cloudfront.net/2.9.0/sp.js"

_MESSAGE_CHARACTERS = 1000


@dataclass
class DbtRun:
    """What came of a dbt command: whether all is well, nodes by status, and the names of those that are not."""

    success: bool = True
    counts: Counter[str] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def project_dir() -> Path:
    """Return the folder of the dbt project: the one we stand in, else the one binloom was installed from.

    Raises
    ------
    UsageError
        When there is none.
    """
    import binloom

    here = Path.cwd()
    for folder in (here, *here.parents, Path(binloom.__file__).parents[1]):
        if (folder / "dbt_project.yml").is_file() and (folder / "ingest").is_dir():
            return folder
    raise UsageError(
        f"There is no binloom project in {here} or above it.",
        hint="Change into the folder that was cloned, the one with dbt_project.yml and ingest/.",
    )


def run_dbt(arguments: Sequence[str], home: Path, advance: Advance | None = None) -> DbtRun:
    """Run a dbt command in this process, so that it takes the open Spark session over.

    Parameters
    ----------
    arguments
        The command and its options, such as `["build"]`.
    home
        Where its artifacts (`target/`) and its log go.
    advance
        Told which node of how many starts.

    Raises
    ------
    StoreError
        When dbt could not run at all. A node that failed is no error here: it stands in what is returned.
    """
    from dbt.cli.main import dbtRunner

    def watch(event: Any) -> None:
        if advance is not None and event.info.name == "LogStartLine":
            advance(event.data.index - 1, event.data.total)

    project = project_dir()
    places = ["--project-dir", project, "--profiles-dir", project, "--target-path", home / "target"]
    quiet = ["--log-path", home / "logs", "--log-level", "none", "--log-level-file", "debug", "--no-use-colors"]
    # dbt's libraries warn on stdout and stderr about matters of their own.
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        result = dbtRunner(callbacks=[watch]).invoke([*arguments, *map(str, places), *map(str, quiet)])
    if result.exception is not None:
        raise StoreError(
            f"dbt {arguments[0]} could not run: {_what_failed(result.exception)}.",
            hint=f"Its log is {home / 'logs' / 'dbt.log'}.",
        ) from result.exception
    run = DbtRun(bool(result.success))
    for node in getattr(result.result, "results", None) or []:
        status = str(node.status)
        # A hook is no model; it is told only when it fails.
        if status == "success" and node.node.resource_type == "operation":
            continue
        run.counts[status] += 1
        name = getattr(getattr(node, "node", None), "name", "?")
        if status == "warn":
            run.warnings.append(name)
        elif status in ("error", "fail", "runtime error"):
            run.failures.append(f"{name}: {_what_failed(node.message)}")
    return run


def build_site(site: Path, home: Path, advance: Advance | None = None, compile: bool = True) -> Path:
    """Build dbt's documentation as one page that opens from the disk and asks the network for nothing.

    Parameters
    ----------
    site
        Folder of the page; created.
    compile
        False right after a build with the same `home`, whose manifest then serves.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    StoreError
        dbt found something wrong, or the folder cannot be written.
    """
    run = run_dbt(["docs", "generate", "--static", *([] if compile else ["--no-compile"])], home, advance)
    if not run.success:
        raise StoreError(
            f"dbt could not describe the project: {'; '.join(run.failures) or 'it says why in its log'}.",
            hint=f"Its log is {home / 'logs' / 'dbt.log'}.",
        )
    page = site / "index.html"
    try:
        text = (home / "target" / "static_index.html").read_text()
        with contextlib.nullcontext() if site.is_relative_to(home) else persons_umask():
            site.mkdir(parents=True, exist_ok=True)
            for artifact in ("manifest.json", "catalog.json"):
                shutil.copyfile(home / "target" / artifact, site / artifact)
                document = (site / artifact).read_text()
                text = text.replace(document, json_in_script(document))
            draft = site / ".index.html"
            draft.write_text(text.replace(_TRACKER, "data:text/javascript,"))
            draft.replace(page)
    except OSError as error:
        raise StoreError(
            f"The site could not be written to {site}: {error.strerror} ({error.filename}).",
            hint="Make the folder writable, or free some space.",
            path=str(site),
        ) from error
    return page


def _what_failed(message: object) -> str:
    """An error of dbt in one line that a person can read: without Spark's plan, no longer than a paragraph."""
    line = _in_one_line(without_plan(str(message)))
    return line if len(line) <= _MESSAGE_CHARACTERS else f"{line[:_MESSAGE_CHARACTERS]} ..., the log has the rest"


def _in_one_line(message: object) -> str:
    return " ".join(str(message).split()).rstrip(".")
