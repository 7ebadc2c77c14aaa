"""Running the gate: facts, expectations, Data Docs."""

import logging
import os
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ingest.errors import EXIT_CHECK_FAILED, EXIT_DONE, UnknownSourceError
from ingest.landing.session import SparkLaunch, binloom_home, warehouse_dir
from ingest.landing.store import read_rows
from ingest.landing.tables import SEGMENTS, ensure_tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHECKPOINT = "landed"
SITE = "binloom"

# Below this a JVM that starts fast is worth more than one that runs fast.
SMALL_BYTES = 256 << 20
EXAMPLES = 5


@dataclass(frozen=True)
class CheckResult:
    """What one expectation came to.

    Attributes
    ----------
    suite
        Suite that it belongs to: `landed_segments` or `landed_files`.
    check
        What is expected, as a sentence.
    success
        Whether it holds.
    violations
        Number of segments or files for which it does not.
    examples
        Some of them, as `source/epoch/file at position: value`.
    """

    suite: str
    check: str
    success: bool
    violations: int
    examples: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class GateResult:
    """What the gate came to.

    Attributes
    ----------
    success
        Whether every expectation holds.
    results
        One for each expectation.
    data_docs_path
        The page that Great Expectations made of it.
    segments, files
        How many were looked at.
    """

    success: bool
    results: list[CheckResult]
    data_docs_path: Path
    segments: int
    files: int

    @property
    def exit_code(self) -> int:
        """Exit code for the command: 1 when an expectation fails."""
        return EXIT_DONE if self.success else EXIT_CHECK_FAILED


def run_gate(
    source_id: str | None = None, session: "SparkSession | None" = None, home: Path | None = None
) -> GateResult:
    """Check what landed, of one source or of all, and write Data Docs.

    Parameters
    ----------
    source_id
        Source to check; None for all.
    session
        Session to use. Without one the active session is used, or one is started for this call.
    home
        Folder that binloom keeps everything under; default `$BINLOOM_HOME`, else `.binloom`.

    Raises
    ------
    UnknownSourceError
        Nothing was landed under that name.
    JavaMissingError, MetastoreLockedError, StoreError
    """
    home = (home or binloom_home()).absolute()
    states = read_rows(SEGMENTS, home, ["source_id", "segment_start", "segment_end"])
    known = {state["source_id"] for state in states}
    if source_id is not None and source_id not in known:
        have = f"There are: {', '.join(sorted(known))}." if known else "Nothing is landed yet."
        raise UnknownSourceError(f"There is no source {source_id!r} in {home}.", hint=have, source_id=source_id)
    size = sum(state["segment_end"] - state["segment_start"] for state in states)
    launch = SparkLaunch(home, short_lived=size < SMALL_BYTES, session=session)
    try:
        # These take longer to import than the JVM to start.
        _silence()
        import great_expectations  # noqa: F401

        from ingest.quality.facts import file_facts, segment_facts

        live = launch.session()
        ensure_tables(live, warehouse_dir(home))
        return _validate(home, {"segments": segment_facts(live, source_id), "files": file_facts(live, source_id)})
    finally:
        launch.stop()


def _silence() -> None:
    os.environ["GX_ANALYTICS_ENABLED"] = "False"
    # A person sees the results, not the progress of metrics and the deprecations of libraries.
    os.environ.setdefault("TQDM_DISABLE", "1")
    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="great_expectations")


def _validate(home: Path, facts: "dict[str, DataFrame]") -> GateResult:
    import great_expectations as gx

    from ingest.quality.suites import files_suite, segments_suite

    context = gx.get_context(mode="file", project_root_dir=str(home))
    context.variables.progress_bars = {"globally": False}
    source = context.data_sources.add_or_update_spark(name="binlog_raw")
    validations = []
    for name, suite in (("segments", segments_suite()), ("files", files_suite())):
        asset = source.add_dataframe_asset(name=name)
        batch = asset.add_batch_definition_whole_dataframe("all")
        stored = context.suites.add_or_update(suite)
        validations.append(
            context.validation_definitions.add_or_update(gx.ValidationDefinition(name=name, data=batch, suite=stored))
        )
    results: list[CheckResult] = []
    success = True
    for validation in validations:
        outcome = validation.run(
            batch_parameters={"dataframe": facts[validation.name]}, result_format={"result_format": "COMPLETE"}
        )
        success &= bool(outcome.success)
        results.extend(_check_result(validation.suite.name, one) for one in outcome.results)
    context.build_data_docs()
    page = home / "gx" / "uncommitted" / "data_docs" / "local_site" / "index.html"
    return GateResult(success, results, page, 0, 0)


def _check_result(suite: str, outcome: Any) -> CheckResult:
    detail = outcome.result or {}
    return CheckResult(
        suite,
        str(outcome.expectation_config.description),
        bool(outcome.success),
        int(detail.get("unexpected_count") or 0),
        [],
    )
