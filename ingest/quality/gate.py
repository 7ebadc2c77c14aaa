"""Run the gate: facts, expectations, Data Docs."""

import html
import logging
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ingest.errors import EXIT_CHECK_FAILED, EXIT_DONE, unknown_source
from ingest.escapes import visible
from ingest.warehouse.files import read_rows
from ingest.warehouse.home import binloom_home
from ingest.warehouse.partitions import open_tables
from ingest.warehouse.spark import SparkLaunch, spark_errors
from ingest.warehouse.tables import SEGMENTS

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    from pyspark.sql import SparkSession

# Below this size, a JVM that starts fast beats a JVM that runs fast.
SMALL_BYTES = 256 << 20
EXAMPLES = 5

_KEYS = ("source_id", "epoch", "binlog_file", "segment_start", "schema_name", "table_name", "definition_id")


@dataclass(frozen=True)
class CheckResult:
    """Result of one expectation.

    Attributes
    ----------
    suite
        Suite of the expectation: `landed_segments`, `landed_files` or `landed_definitions`.
    name
        Name of the checked figure in the facts.
    check
        The expectation as a sentence.
    success
        Whether the expectation holds.
    checked
        Number of checked segments, files or descriptions of columns.
    violations
        Number of checked items that violate the expectation.
    examples
        Keys of some violations.
    """

    suite: str
    name: str
    check: str
    success: bool
    checked: int
    violations: int
    examples: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class GateResult:
    """Result of the gate.

    Attributes
    ----------
    success
        Whether every expectation holds.
    results
        One result for each expectation.
    data_docs_path
        Page that Great Expectations made of the results.
    segments, files
        Numbers of checked segments and files.
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
    """Check the landed data of one source or of all sources, and write Data Docs.

    Parameters
    ----------
    source_id
        Source to check; None: all sources.
    session
        Session to use. If None, use the active session, or start a session for this call.
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
        raise unknown_source(source_id, known, home)
    size = sum(state["segment_end"] - state["segment_start"] for state in states)
    launch = SparkLaunch(home, short_lived=size < SMALL_BYTES, session=session)
    try:
        # The import takes longer than the start of the JVM, which runs meanwhile.
        _silence()
        import great_expectations  # noqa: F401

        from ingest.quality.facts import definition_facts, file_facts, segment_facts
        from ingest.quality.suites import DEFINITIONS_SUITE, FILES_SUITE, SEGMENTS_SUITE

        with spark_errors(home):
            live = launch.session()
            open_tables(live, home)
            facts = {
                SEGMENTS_SUITE: segment_facts(live, source_id),
                FILES_SUITE: file_facts(live, source_id),
                DEFINITIONS_SUITE: definition_facts(live, source_id),
            }
    finally:
        launch.stop()
    return _validate(home, facts)


def _silence() -> None:
    os.environ["GX_ANALYTICS_ENABLED"] = "False"
    # Show the user only the results, no progress of metrics and no deprecation warnings of libraries.
    os.environ.setdefault("TQDM_DISABLE", "1")
    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="great_expectations")


def _validate(home: Path, facts: "dict[str, pd.DataFrame]") -> GateResult:
    import great_expectations as gx
    from great_expectations.checkpoint import UpdateDataDocsAction

    from ingest.quality.suites import FILES_SUITE, SEGMENTS_SUITE, suites

    context = gx.get_context(mode="file", project_root_dir=str(home))
    context.variables.progress_bars = {"globally": False}
    source = context.data_sources.add_or_update_pandas(name="binlog_raw")
    results: list[CheckResult] = []
    for suite in suites():
        name = suite.name
        shown, names = _in_html(facts[name])
        data = source.add_dataframe_asset(name=name).add_batch_definition_whole_dataframe("all")
        validation = context.validation_definitions.add_or_update(
            gx.ValidationDefinition(name=name, data=data, suite=context.suites.add_or_update(suite))
        )
        checkpoint = context.checkpoints.add_or_update(
            gx.Checkpoint(
                name=name,
                validation_definitions=[validation],
                actions=[UpdateDataDocsAction(name="data_docs")],
                result_format={
                    "result_format": "COMPLETE",
                    "unexpected_index_column_names": [key for key in _KEYS if key in facts[name].columns],
                },
            )
        )
        outcome = checkpoint.run(batch_parameters={"dataframe": shown})
        for run in outcome.run_results.values():
            results.extend(_check_result(name, len(shown), one, names) for one in run.results)
    page = home / "gx" / "uncommitted" / "data_docs" / "local_site" / "index.html"
    success = all(result.success for result in results)
    return GateResult(success, results, page, len(facts[SEGMENTS_SUITE]), len(facts[FILES_SUITE]))


def _in_html(facts: "pd.DataFrame") -> "tuple[pd.DataFrame, dict[str, str]]":
    """Return facts with names escaped for HTML, and a mapping from escaped to original names.

    Great Expectations puts values into the pages of Data Docs without escaping.
    """
    texts = [key for key in _KEYS if key in facts.columns and key not in ("epoch", "segment_start")]
    shown = {name: html.escape(visible(name)) for key in texts for name in facts[key].unique()}
    return facts.assign(**{key: facts[key].map(shown) for key in texts}), {shown[name]: name for name in shown}


def _check_result(suite: str, checked: int, outcome: Any, names: Mapping[str, str]) -> CheckResult:
    config = outcome.expectation_config
    detail = outcome.result or {}
    broken = "" if not outcome.exception_info.get("raised_exception") else " (the check itself failed)"
    places = detail.get("unexpected_index_list") or []
    return CheckResult(
        suite,
        config.kwargs.get("column") or config.kwargs["column_A"],
        f"{config.description}{broken}",
        bool(outcome.success),
        checked,
        int(detail.get("unexpected_count") or 0),
        [
            ", ".join(f"{key} {names.get(place[key], place[key])}" for key in _KEYS if key in place)
            for place in places[:EXAMPLES]
        ],
    )
