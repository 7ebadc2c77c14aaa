"""Run the dbt project inside binloom's process, on the open Spark session, and build its documentation site."""

import contextlib
import io
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from binloom.commands.output import Advance
from binloom.commands.spark_messages import without_plan
from ingest.errors import StoreError
from ingest.warehouse.privacy import persons_umask
from ingest.warehouse.project import own_project

_MESSAGE_CHARACTERS = 1000
_PARSED = "partial_parse.msgpack"

# Unit tests check the code, not the data; `dbt build` runs them.
BUILD = ("build", "--exclude-resource-type", "unit_test")


@dataclass
class DbtRun:
    """Result of a dbt command: success, number of nodes by status, and names of nodes with warnings or failures.

    Attributes
    ----------
    leaves_rows_out
        Whether the tables lack rows, because of --empty or --sample.
    """

    success: bool = True
    leaves_rows_out: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @property
    def summary(self) -> str:
        """The number of good nodes, and of others by status, in words."""
        good = self.counts["success"] + self.counts["pass"]
        # Exposures are nodes too, with status no-op.
        others = [
            f"{number} {status}" for status, number in self.counts.items() if status not in ("success", "pass", "no-op")
        ]
        return ", ".join([f"{good} models and tests are good", *others])


def clone_dir() -> Path | None:
    """Return the clone around the current folder, else the one that this code is in; None if it is installed."""
    here = Path.cwd()
    folders = (here, *here.parents, own_project())
    clones = (one for one in folders if (one / "dbt_project.yml").is_file() and (one / "ingest").is_dir())
    return next(clones, None)


def project_dir() -> Path:
    """Return the folder of binloom's dbt project: a clone, else the copy in the installed package."""
    return clone_dir() or own_project()


def using_project() -> Path | None:
    """Return the dbt project around the current folder if `dbt deps` has installed binloom in it as a package."""
    here = Path.cwd()
    project = next((one for one in (here, *here.parents) if (one / "dbt_project.yml").is_file()), None)
    return project if project and (project / "dbt_packages" / "binloom").is_dir() else None


def site_dir() -> Path:
    """Return the default folder of the lineage site: in a project its own, elsewhere in the current folder."""
    return (using_project() or clone_dir() or Path.cwd()) / "site"


def run_dbt(
    arguments: Sequence[str], home: Path, advance: Advance | None = None, project: Path | None = None
) -> DbtRun:
    """Run a dbt command in this process, so that it uses the open Spark session.

    Parameters
    ----------
    arguments
        The command and its options, such as `["build"]`.
    home
        Folder for dbt's artifacts (`target/`) and log.
    advance
        Progress callback: gets the index of the node that starts, and the number of nodes.
    project
        A project that uses binloom as a package, with a `target/` of its own; by default that of binloom.

    Raises
    ------
    StoreError
        dbt could not run at all. A failed node raises no error: it is listed in the result.
    """
    from dbt.cli.main import dbtRunner

    from binloom.commands.built_tables import leaves_rows_out

    def watch(event: Any) -> None:
        if advance is not None and event.info.name == "LogStartLine":
            advance(event.data.index - 1, event.data.total)

    own = project_dir()
    if project is None:
        share_parsed(own / "target", home / "target")
        places = ["--project-dir", own, "--profiles-dir", own, "--target-path", home / "target"]
    else:
        profiles = project if (project / "profiles.yml").is_file() else own
        places = ["--project-dir", project, "--profiles-dir", profiles, "--target-path", project / "target"]
    quiet = ["--log-path", home / "logs", "--log-level", "none", "--log-level-file", "debug", "--no-use-colors"]
    # dbt's libraries print unrelated warnings to stdout and stderr.
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        result = dbtRunner(callbacks=[watch]).invoke([*arguments, *map(str, places), *map(str, quiet)])
    if isinstance(result.exception, KeyboardInterrupt):
        raise result.exception
    if result.exception is not None:
        raise StoreError(
            f"dbt {arguments[0]} could not run: {_what_failed(result.exception)}.",
            hint=f"Its log is {home / 'logs' / 'dbt.log'}.",
        ) from result.exception
    run = DbtRun(bool(result.success), leaves_rows_out())
    for node in getattr(result.result, "results", None) or []:
        status = str(node.status)
        # A hook is not a model; report it only if it fails.
        if status == "success" and node.node.resource_type == "operation":
            continue
        run.counts[status] += 1
        name = getattr(getattr(node, "node", None), "name", "?")
        if status == "warn":
            run.warnings.append(name)
        elif status in ("error", "fail", "runtime error"):
            run.failures.append(f"{name}: {_what_failed(node.message)}")
    return run


def share_parsed(known: Path, target: Path) -> None:
    """Give a target folder of dbt what it has parsed in another, which `make setup` does: parsing takes seconds.

    dbt parses files that differ, and everything if the file was written by another version or is incomplete.
    """
    parsed = known / _PARSED
    if parsed.exists() and not (target / _PARSED).exists():
        target.mkdir(parents=True, exist_ok=True)
        # Without the permissions: those of a home are stricter.
        shutil.copyfile(parsed, target / _PARSED)


def build_site(
    site: Path, home: Path, advance: Advance | None = None, compile: bool = True, project: Path | None = None
) -> Path:
    """Build the lineage site, which opens from the disk and needs no network.

    Parameters
    ----------
    site
        Folder of the site; it is created.
    compile
        False to use the manifest of a build that was just made with the same `home`.
    project
        A project that uses binloom as a package: the site has its models, too.

    Returns
    -------
    Path
        Its page.

    Raises
    ------
    StoreError
        dbt found an error, or the folder cannot be written.
    """
    from binloom.site.folder import write_site

    target = (project or home) / "target"
    # A project that uses binloom may select only its own models by default; the site has all.
    chosen = ["--select", "fqn:*"] if compile else ["--no-compile"]
    try:
        with _kept(target / "run_results.json"):
            run = run_dbt(["docs", "generate", "--static", *chosen], home, advance, project)
        if not run.success:
            raise StoreError(
                f"dbt could not describe the project: {'; '.join(run.failures) or 'the reason is in its log'}.",
                hint=f"Its log is {home / 'logs' / 'dbt.log'}.",
            )
        with contextlib.nullcontext() if site.is_relative_to(home) else persons_umask():
            return write_site(site, home, target)
    except OSError as error:
        raise StoreError(
            f"The site could not be written to {site}: {error.strerror} ({error.filename}).",
            hint="Make the folder writable, or free some space.",
            path=str(site),
        ) from error


@contextlib.contextmanager
def _kept(file: Path) -> Iterator[None]:
    """Leave a file as it is: `dbt docs` would replace the results of the last build by empty results."""
    content = file.read_bytes() if file.exists() else None
    try:
        yield
    finally:
        if content is not None:
            file.write_bytes(content)


def _what_failed(message: object) -> str:
    """Return dbt's error in one readable line: without Spark's query plan, and at most as long as a paragraph."""
    line = _in_one_line(without_plan(str(message)))
    return line if len(line) <= _MESSAGE_CHARACTERS else f"{line[:_MESSAGE_CHARACTERS]} ..., the log has the rest"


def _in_one_line(message: object) -> str:
    return " ".join(str(message).split()).rstrip(".")
