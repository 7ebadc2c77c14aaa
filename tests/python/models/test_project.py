"""Consistency of the project's own files: settings and descriptions that exist in two places are equal."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml

from ingest.warehouse.descriptions import COLUMN_DESCRIPTIONS
from ingest.warehouse.spark import spark_settings
from recover.sources.home.landed_marts import STATEMENTS
from recover.sources.log import VIEWS as LOG_VIEWS
from recover.timeline.baselines import VIEWS as BASELINE_VIEWS
from recover.timeline.table_log import MARTS
from tests.support.patience import PATIENCE_SECONDS
from tests.support.places import PROJECT
from tools.generate import GENERATED

# A plain `dbt build` does not need these: log files, workers in Python, and paths that must be absolute.
ONLY_INGEST = {"spark.python.daemon.module"}


@pytest.mark.parametrize("path", GENERATED, ids=lambda path: path.name)
def test_generated_files_are_up_to_date(path: Path) -> None:
    assert path.read_text() == GENERATED[path](), "run `make generate`"


def test_descriptions_fit_into_the_metastore() -> None:
    # Limit of Derby's COLUMNS_V2.COMMENT. Hive tries a table with a longer one ten times, for twenty seconds in all.
    assert {name for name, text in COLUMN_DESCRIPTIONS.items() if len(text) > 256} == set()


def test_the_selector_of_changes_makes_what_the_questions_read() -> None:
    (changes,) = [
        one for one in yaml.safe_load((PROJECT / "selectors.yml").read_text())["selectors"] if one["name"] == "changes"
    ]
    selected = {each["value"] for each in changes["definition"]["union"] if each["parents"]}
    read = {name for schema, name in (*LOG_VIEWS, *MARTS, *BASELINE_VIEWS) if schema != STATEMENTS[0]}
    assert selected == read


@pytest.mark.parametrize("group_access", ["", "1"])
def test_profile_has_the_settings_of_the_session(
    group_access: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BINLOOM_HOME", str(tmp_path))
    monkeypatch.setenv("BINLOOM_GROUP_ACCESS", group_access)
    template = jinja2.Environment(autoescape=False)
    template.filters["as_number"] = int
    text = template.from_string((PROJECT / "profiles.yml").read_text()).render(env_var=os.environ.get)
    profile: dict[str, Any] = yaml.safe_load(text)["binloom"]["outputs"]["local"]["server_side_parameters"]
    settings = spark_settings(tmp_path)
    assert settings.keys() - profile.keys() <= ONLY_INGEST
    differing = {key for key in settings.keys() & profile.keys() if settings[key] != str(profile[key])}
    # Both set the paths of Derby and the log, each in its own way.
    assert differing <= {"spark.driver.extraJavaOptions"}


@pytest.mark.spark
@pytest.mark.slow
def test_build_of_an_empty_warehouse_says_what_to_do_and_java_says_nothing(tmp_path: Path) -> None:
    dbt = Path(sys.executable).parent / "dbt"
    result = subprocess.run(
        [dbt, "-q", "build", "--target-path", tmp_path / "target", "--log-path", tmp_path / "logs"],
        cwd=PROJECT,
        env={**os.environ, "BINLOOM_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert result.returncode != 0
    assert "nothing has been landed in this warehouse yet" in result.stdout
    assert "binloom ingest" in result.stdout
    assert (tmp_path / "home" / "metastore").is_dir()
    assert result.stderr == ""
    printed = (tmp_path / "home" / "logs" / "jvm.log").read_text().splitlines()
    assert printed and [line for line in printed if line and line in result.stdout] == []
