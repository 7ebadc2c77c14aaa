"""A copy of the project whose models can be changed."""

import shutil
from pathlib import Path

from tests.support.places import PROJECT

ANALYSIS_ERROR = "select no_such_column from {{ ref('row_changes') }}"
RUNTIME_ERROR = "select cast(raise_error(concat('spoilt ', table_name)) as int) as number from {{ ref('row_changes') }}"


def copied_project(folder: Path, models: dict[str, str]) -> Path:
    """Copy the part of the project that dbt reads, with further models by name; return the folder of the copy."""
    project = folder / "project"
    for part in ("macros", "models", "seeds", "tests/dbt"):
        shutil.copytree(PROJECT / part, project / part)
    shutil.copytree(PROJECT / "docs", project / "docs")
    for file in ("dbt_project.yml", "profiles.yml", "selectors.yml"):
        shutil.copy(PROJECT / file, project)
    # binloom recognises the folder as the project by these two.
    (project / "ingest").mkdir()
    for name, sql in models.items():
        (project / "models" / "intermediate" / f"{name}.sql").write_text(f"{sql}\n")
    return project
