"""Place of the dbt project that belongs to this code."""

from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).resolve().parents[2]
_INSTALLED: Final = _ROOT / "binloom" / "project"


def own_project() -> Path:
    """Return the folder with dbt_project.yml, seeds and samples: in the installed package, else the clone."""
    return _INSTALLED if is_installed() else _ROOT


def is_installed() -> bool:
    """Return whether this code is an installed package and not a clone."""
    return _INSTALLED.is_dir()
