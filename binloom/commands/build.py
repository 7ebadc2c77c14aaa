"""`binloom build`: run `dbt build` when something has landed since the last good build, once or again and again."""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, Final

import yaml

from binloom.commands.build_places import build_place
from binloom.commands.build_record import BuildInputs, GoodBuild, build_inputs, good_builds, record_good_build
from binloom.commands.metrics import BuildMetrics, MetricsServer
from binloom.commands.output import print_line, progress, say
from binloom.commands.project import BUILD, DbtRun, project_dir, run_dbt
from binloom.commands.spark_messages import is_of_lost_server
from ingest.errors import EXIT_CHECK_FAILED, EXIT_DONE, EXIT_SOURCE, MetastoreLockedError, UsageError
from ingest.warehouse.few_rows import builds_few_rows
from ingest.warehouse.home import binloom_home, raw_table_dir
from ingest.warehouse.tables import SEGMENTS
from recover.sources.cluster.thrift import ClusterLostError

_CONTRACTS_HOLD: Final = "BINLOOM_CONTRACTS_HOLD"
_LEFT_OUT: Final = ("--exclude", "config.materialized:view", "resource_type:seed")
_OWN_OPTIONS: Final = ("--target", "-t", "--project-dir", "--profiles-dir")


def build_models(
    dbt_options: Sequence[str],
    every: float | None = None,
    force: bool = False,
    metrics_port: int | None = None,
    metrics_address: str = "127.0.0.1",
) -> int:
    """Build the models, unless nothing has landed since the last good build with the same options.

    Parameters
    ----------
    dbt_options
        Options of `dbt build`, such as `["--select", "+row_changes"]`.
    every
        Polling interval in seconds; Java and dbt stay loaded until SIGINT or SIGTERM. None: check once.
    force
        Build the first time even if nothing is new.
    metrics_port, metrics_address
        Where metrics are served; None: nowhere.

    Returns
    -------
    int
        The exit code of the last build: 1 when a model or a test failed, 3 when the Thrift server was lost.

    Raises
    ------
    ClusterLostError
        Without `every`: the Thrift server of target thrift does not answer.
    """
    with contextlib.ExitStack() as stack:
        builder = _Builder(binloom_home().absolute(), dbt_options, stack, builds_once=every is None)
        if metrics_port is not None:
            server = stack.enter_context(MetricsServer(builder.metrics, metrics_port, metrics_address))
            say(f"metrics are on http://{metrics_address}:{server.port}/metrics")
        if every is None:
            return builder.build_if_new(force)
        with _interrupted_by_sigterm() as interruption:
            return builder.build_until_interrupted(every, force, interruption)


class _Builder:
    """Builds with one selection of nodes, and one Java process for all builds.

    Parameters
    ----------
    home
        Folder of all data of binloom.
    dbt_options
        Options of `dbt build`.
    stack
        Ends the Java process, which only a build starts.
    builds_once
        Whether the process serves a single build.
    """

    def __init__(self, home: Path, dbt_options: Sequence[str], stack: contextlib.ExitStack, builds_once: bool) -> None:
        for option in _OWN_OPTIONS:
            if any(word == option or word.startswith(f"{option}=") for word in dbt_options):
                raise UsageError(
                    f"binloom build cannot take {option}: it builds the warehouse of its own home.",
                    hint="Run `dbt build` with this option; for a Spark cluster, set BINLOOM_TARGET=thrift.",
                )
        self.metrics = BuildMetrics()
        self._home = home
        self._dbt_options = dbt_options
        self._arguments = [*BUILD, *dbt_options]
        self._key = " ".join(self._arguments)
        full_refresh = not {"--full-refresh", "-f"}.isdisjoint(dbt_options)
        self._place = build_place(home, stack, lambda: builds_once and builds_few_rows(home, full_refresh))

    def build_until_interrupted(self, every: float, force: bool, interruption: "_Interruption") -> int:
        """Build whenever something is new, until SIGINT or SIGTERM; return the exit code of the last build."""
        code = EXIT_DONE
        is_building = False
        tried: BuildInputs | None = None
        told = ""
        try:
            while True:
                begun, inputs = time.monotonic(), build_inputs(self._home)
                try:
                    # A build that failed would fail again, but a lost server may be back. A good one is forgotten when
                    # somebody runs dbt.
                    if force or (inputs != tried and self._last_good(inputs) is None):
                        is_building, tried = True, inputs
                        code = self._build_and_release(force)
                        is_building = force = False
                        tried = None if code == EXIT_SOURCE or self._last_good(inputs) is not None else inputs
                    told = ""
                except (ClusterLostError, MetastoreLockedError) as error:
                    if str(error) != told:
                        say(str(error))
                    code, told, tried, is_building = error.exit_code, str(error), None, False
                if interruption.came:
                    return code
                time.sleep(max(0.0, begun + every - time.monotonic()))
        except KeyboardInterrupt:
            if is_building:
                say("the build was interrupted; the next one repairs what it left.")
        return code

    def _build_and_release(self, everything: bool) -> int:
        try:
            return self._build(everything)
        finally:
            self._place.release()

    def build_if_new(self, force: bool) -> int:
        """Build unless nothing is new; return the exit code."""
        inputs = build_inputs(self._home)
        good = self._last_good(inputs)
        if good is not None and not force:
            warned = f"; {_listed(good.warnings)} warned" if good.warnings else ""
            print_line(f"nothing has landed since the last good build at {good.built_at}{warned}")
            return EXIT_DONE
        return self._build(everything=force)

    def _build(self, everything: bool) -> int:
        """Build everything, or what has new inputs since the last good build; return the exit code."""
        if not raw_table_dir(SEGMENTS.name, self._home).exists():
            say("nothing has landed in this home yet. Land a binlog with `binloom ingest` or `binloom follow`.")
            return EXIT_DONE
        begun = time.monotonic()
        self._place.open()
        # dbt forgets the good builds when it begins.
        others = good_builds(self._home, self._place.name)
        # Opening the place may merge files. Data that lands from here on counts as new for the next build.
        inputs = build_inputs(self._home)
        last = others.get(self._key) if self._place.has_tables() and not everything else None
        run = self._run(_options_of_build(self._dbt_options, last, inputs))
        seconds = time.monotonic() - begun
        self.metrics.built(seconds, run.success, len(run.warnings))
        if run.success and not run.leaves_rows_out:
            record_good_build(self._home, self._arguments, inputs, run.warnings, self._place.name, others)
        self._print(run, seconds)
        if run.success:
            return EXIT_DONE
        say(f"the build failed. The log of dbt is {self._home / 'logs' / 'dbt.log'}.")
        return EXIT_SOURCE if any(map(is_of_lost_server, run.failures)) else EXIT_CHECK_FAILED

    def _run(self, options: Sequence[str]) -> DbtRun:
        self._place.prepare()
        leaves_out = options is not self._dbt_options
        with _contracts_hold() if leaves_out else contextlib.nullcontext(), progress("building the models") as advance:
            return run_dbt([*BUILD, *options], self._home, advance)

    def _print(self, run: DbtRun, seconds: float) -> None:
        print_line(f"{_now()} {'built in' if run.success else 'failed after'} {seconds:.1f} s: {run.summary}")
        for name in run.warnings:
            print_line(f"  warns: {name}")
        for failure in run.failures:
            print_line(f"  fails: {failure}")
        sys.stdout.flush()

    def _last_good(self, inputs: BuildInputs) -> GoodBuild | None:
        """Return the last good build with the same options, if it had these inputs and its tables are still there."""
        known = good_builds(self._home, self._place.name).get(self._key)
        return known if known is not None and known.inputs == inputs and self._place.has_tables() else None


def _options_of_build(dbt_options: Sequence[str], last: GoodBuild | None, inputs: BuildInputs) -> Sequence[str]:
    """Return options of dbt that leave out what would be built as it is, and no test.

    A view follows what it reads, and a seed its file. Options of a person may mean more than a selection; then nothing
    is left out.
    """
    if last is None or last.inputs.project != inputs.project:
        return dbt_options
    if not dbt_options:
        changed = [f"source:binlog.{name}+" for name in inputs.raw_tables_unlike(last.inputs)]
        return ["--select", *changed, "resource_type:test", *_LEFT_OUT]
    if len(dbt_options) == 2 and dbt_options[0] == "--selector":
        # dbt reads no --exclude beside a selector.
        return ["--select", *selected, *_LEFT_OUT] if (selected := _selected_by(dbt_options[1])) else dbt_options
    return dbt_options


def _selected_by(name: str) -> list[str]:
    """Return what a selector of the project selects, in the words of --select; nothing if they cannot say it."""
    selectors = yaml.safe_load((project_dir() / "selectors.yml").read_text())["selectors"]
    parts = [part for one in selectors if one["name"] == name for part in _parts(one["definition"])]
    is_plain = all(part.keys() <= {"method", "value", "parents"} for part in parts)
    return [f"{'+' if part.get('parents') else ''}{part['method']}:{part['value']}" for part in parts if is_plain]


def _parts(definition: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    parts: Sequence[Mapping[str, Any]] = definition.get("union", [definition])
    return parts


@contextlib.contextmanager
def _contracts_hold() -> Iterator[None]:
    """Spare dbt the check of contracts, which the last good build made with the same project."""
    os.environ[_CONTRACTS_HOLD] = "true"
    try:
        yield
    finally:
        del os.environ[_CONTRACTS_HOLD]


def _listed(names: Sequence[str]) -> str:
    return f"{len(names)} tests" if len(names) > 3 else ", ".join(names)


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}"


class _Interruption:
    """A signal handler that interrupts the process, and remembers that the signal came.

    Python drops an exception that is raised while an object is deleted, and Spark's objects run much code then.
    """

    came = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        raise KeyboardInterrupt


@contextlib.contextmanager
def _interrupted_by_sigterm() -> Iterator[_Interruption]:
    """Let SIGTERM interrupt the process as SIGINT does."""
    before = signal.signal(signal.SIGTERM, interruption := _Interruption())
    try:
        yield interruption
    finally:
        signal.signal(signal.SIGTERM, before)
