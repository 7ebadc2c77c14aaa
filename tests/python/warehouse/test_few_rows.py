"""Which builds count as builds of few rows, and the settings that they get."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from binloom.commands.build_settings import fitted
from ingest.errors import UsageError
from ingest.warehouse.few_rows import FEW_ROWS, FEW_ROWS_VARIABLE, MANY_ROWS, builds_few_rows
from ingest.warehouse.files import append_rows
from ingest.warehouse.segments import Segment, Status
from ingest.warehouse.settings_file import CONF_VARIABLE
from ingest.warehouse.tables import SEGMENTS

SHUFFLE = "spark.sql.shuffle.partitions"
OPTIONS = "spark.driver.extraJavaOptions"


def _land(home: Path, file: int, rows: int, *statuses: Status) -> None:
    segment = Segment("shop", 0, f"binlog.{file:06}", 4, 1000)
    states = [
        segment.state(status, "run", datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC), row_events=rows)
        for second, status in enumerate(statuses or ("completed",))
    ]
    append_rows(SEGMENTS, [state.row for state in states], f"{file}", home)


def _build(home: Path, rows: int) -> None:
    folder = home / "warehouse" / "binloom_intermediate.db" / "int_completed_segments"
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"row_events": [rows]}), folder / "part-0.parquet")


def test_a_home_without_rows_has_not_few(tmp_path: Path) -> None:
    assert not builds_few_rows(tmp_path)


def test_rows_that_are_not_built_count(tmp_path: Path) -> None:
    _land(tmp_path, 1, 200_000)
    assert builds_few_rows(tmp_path)
    _land(tmp_path, 2, 1)
    assert not builds_few_rows(tmp_path)
    _build(tmp_path, 1)
    assert builds_few_rows(tmp_path)


def test_a_full_refresh_builds_all_rows(tmp_path: Path) -> None:
    _land(tmp_path, 1, 300_000)
    _build(tmp_path, 300_000)
    assert builds_few_rows(tmp_path)
    assert not builds_few_rows(tmp_path, full_refresh=True)


@pytest.mark.parametrize("landed", [10_000_000, 10_000_001])
def test_a_large_home_never_has_few(tmp_path: Path, landed: int) -> None:
    _land(tmp_path, 1, landed)
    _build(tmp_path, landed)
    assert builds_few_rows(tmp_path) == (landed == 10_000_000)


def test_rows_that_did_not_land_or_are_merged_do_not_count(tmp_path: Path) -> None:
    _land(tmp_path, 1, 100)
    _land(tmp_path, 2, 500_000, "failed")
    _land(tmp_path, 3, 500_000, "completed", "replaced")
    assert builds_few_rows(tmp_path)


@pytest.mark.parametrize(("limit", "is_few"), [("0", False), ("99", False), ("100", True), ("", True)])
def test_the_number_can_be_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, is_few: bool) -> None:
    monkeypatch.setenv(FEW_ROWS_VARIABLE, limit)
    _land(tmp_path, 1, 100)
    assert builds_few_rows(tmp_path) == is_few


@pytest.mark.parametrize("limit", ["some", "-1", "²"])
def test_a_limit_that_is_no_number_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setenv(FEW_ROWS_VARIABLE, limit)
    with pytest.raises(UsageError, match=f"BINLOOM_FEW_ROWS is '{limit}', which is not a number of rows"):
        builds_few_rows(tmp_path)


def test_settings_fit_the_rows() -> None:
    profile = {SHUFFLE: "16", OPTIONS: "-Dx=y", "spark.app.name": "binloom"}
    few = fitted(profile, has_few_rows=True)
    assert few.items() >= FEW_ROWS.items()
    assert few[OPTIONS].split() == ["-Dx=y", "-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m"]
    # A session that lives on gets the other settings back.
    assert fitted(profile, has_few_rows=False) == profile | MANY_ROWS


def test_settings_of_a_person_are_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spark.conf").write_text("spark.sql.adaptive.enabled true\n")
    monkeypatch.setenv(CONF_VARIABLE, str(tmp_path / "spark.conf"))
    few = fitted({SHUFFLE: "8"}, has_few_rows=True)
    assert few[SHUFFLE] == "8"
    assert "spark.sql.adaptive.enabled" not in few
    assert few["spark.sql.codegen.wholeStage"] == "false"
