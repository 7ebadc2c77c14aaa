"""Builds the package with the dbt project in it, and with the decoder if somebody has compiled it: see `tools.wheel`.

dbt finds the project in the root of the repository, where its users name it as a package; there it stays. A wheel has a
copy in `binloom/project`, and dbt's plugin beside the packages, where dbt looks for it.
"""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

PROJECT = (
    "dbt_project.yml",
    "profiles.yml",
    "selectors.yml",
    "models",
    "macros",
    "seeds",
    "tests/dbt",
    "docs",
    "samples",
)
PLUGIN = "dbt_plugin/dbt_binloom.py"


class BuildWithProject(build_py):
    """Copies the project too. An editable install has it beside the packages."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        built = Path(self.build_lib)
        for part in PROJECT:
            for file in _files(Path(part)):
                self._copy(file, built / "binloom" / "project" / file)
        self._copy(Path(PLUGIN), built / Path(PLUGIN).name)

    def _copy(self, source: Path, target: Path) -> None:
        self.mkpath(str(target.parent))
        self.copy_file(str(source), str(target), preserve_mode=False)


def _files(part: Path) -> list[Path]:
    found = [part] if part.is_file() else sorted(path for path in part.rglob("*") if path.is_file())
    return [path for path in found if "__pycache__" not in path.parts]


setup(cmdclass={"build_py": BuildWithProject})
