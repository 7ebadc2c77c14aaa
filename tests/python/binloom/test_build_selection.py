"""What `binloom build` hands to dbt: the nodes that follow from raw tables with new rows, and all tests."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from binloom.commands.build import _options_of_build
from binloom.commands.build_record import BuildInputs, GoodBuild, build_inputs, good_builds, record_good_build
from binloom.commands.project import BUILD
from ingest.landing import ingest, land_snapshot
from ingest.sources.files.directory import find_binlogs
from ingest.sources.snapshots.snapshot_files import read_snapshot_dir
from ingest.warehouse.tables import RAW_TABLES
from tests.support.places import PROJECT, SAMPLES

SAMPLE = SAMPLES / "shop-mysql"
# What follows from others is published by the next command, so it counts as new when anything is.
DERIVED = {"schema_histories", "table_versions", "table_bindings"}
LEFT_OUT = ["--exclude", "config.materialized:view", "resource_type:seed"]
OF_SEGMENTS = {"row_events", "transactions", "statements", "ddl_actions", "unsupported_events"}


@pytest.fixture
def inputs(tmp_path: Path) -> BuildInputs:
    """The inputs of a home with a file and a snapshot."""
    land_snapshot("shop", read_snapshot_dir(SAMPLE / "schema"), home=tmp_path)
    assert ingest("shop", find_binlogs(SAMPLE)[:1], home=tmp_path).exit_code == 0
    return build_inputs(tmp_path)


def good(inputs: BuildInputs) -> GoodBuild:
    return GoodBuild(inputs, "2026-11-28 12:00:00", ())


def test_what_follows_from_another_file_is_built(inputs: BuildInputs, tmp_path: Path) -> None:
    assert ingest("shop", find_binlogs(SAMPLE), home=tmp_path).exit_code == 0
    changed = build_inputs(tmp_path).raw_tables_unlike(inputs)
    assert {*changed} >= {"segments", "binlog_files", *OF_SEGMENTS, *DERIVED}
    assert not {*changed} & {"baselines", "baseline_rows", "foreign_keys", "schema_snapshots", "erasures"}
    options = [*_options_of_build([], good(inputs), build_inputs(tmp_path))]
    assert (options[0], options[-3:]) == ("--select", LEFT_OUT)
    assert {*options[1:-3]} == {*(f"source:binlog.{name}+" for name in changed), "resource_type:test"}


def test_a_selector_selects_no_view_again(inputs: BuildInputs) -> None:
    options = [*_options_of_build(["--selector", "changes"], good(inputs), inputs)]
    assert (options[:2], options[-3:]) == (["--select", "+fqn:row_changes"], LEFT_OUT)
    options = [*_options_of_build(["--selector", "proofs"], good(inputs), inputs)]
    assert options == ["--select", "+path:models/marts/quality", *LEFT_OUT]


def test_what_follows_from_another_snapshot_is_built(inputs: BuildInputs, tmp_path: Path) -> None:
    snapshot = read_snapshot_dir(SAMPLE / "schema")
    land_snapshot("shop", replace(snapshot, foreign_keys=[]), home=tmp_path)
    changed = build_inputs(tmp_path).raw_tables_unlike(inputs)
    assert {*changed} >= {"schema_snapshots", "schema_columns", *DERIVED}
    assert not {*changed} & {"segments", "binlog_files", *OF_SEGMENTS}


def test_everything_is_built_where_the_last_good_build_tells_too_little(inputs: BuildInputs) -> None:
    assert inputs.raw_tables_unlike(inputs) == []
    for options in ([], ["--selector", "changes"]):
        assert _options_of_build(options, None, inputs) == options
        assert _options_of_build(options, good(replace(inputs, project="another")), inputs) == options
    # These may select nodes themselves, or mean all.
    for options in (["--select", "row_changes"], ["--full-refresh"], ["--selector", "unknown"]):
        assert _options_of_build(options, good(inputs), inputs) == options


def test_everything_is_built_after_an_update_that_gives_other_names(
    inputs: BuildInputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("binloom.commands.build_record.NAMING_RULES", 1000)
    assert _options_of_build([], good(inputs), build_inputs(tmp_path)) == []


def test_a_good_build_is_read_as_it_was_recorded(inputs: BuildInputs, tmp_path: Path) -> None:
    record_good_build(tmp_path, BUILD, inputs, ["is_empty_late_sources_"])
    (known,) = good_builds(tmp_path, "").values()
    assert (known.inputs, known.warnings) == (inputs, ("is_empty_late_sources_",))
    # The record of an older version says less, so the next build builds everything.
    (tmp_path / "builds.json").write_text('{"": {"build": {"inputs": "ab", "built_at": "", "warnings": []}}}')
    assert good_builds(tmp_path, "") == {}


def test_dbt_knows_each_raw_table_as_a_source() -> None:
    (sources,) = yaml.safe_load((PROJECT / "models" / "staging" / "binlog" / "__sources.yml").read_text())["sources"]
    assert sources["name"] == "binlog"
    assert {table["name"] for table in sources["tables"]} == {*RAW_TABLES}
