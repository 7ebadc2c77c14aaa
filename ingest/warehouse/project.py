"""Place of the dbt project that belongs to this code."""

from pathlib import Path


def own_project() -> Path:
    """Return the folder with dbt_project.yml, seeds and samples: in the installed package, else the clone."""
    root = Path(__file__).resolve().parents[2]
    installed = root / "binloom" / "project"
    return installed if installed.is_dir() else root
