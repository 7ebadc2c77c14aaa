"""Builds the package with the dbt project in it, and with the compiled decoder if `tools.wheel` has compiled it.

dbt finds the project in the root of the repository, where its users name it as a package; there it stays. A wheel has a
copy in `binloom/project`, and dbt's plugin beside the packages, where dbt looks for it.
"""

import os
import re
from pathlib import Path
from typing import Any

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
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
PAGES = "https://github.com/binloom/binloom/blob"
RAW_FILES = "https://raw.githubusercontent.com/binloom/binloom"
KERNEL = os.environ.get("BINLOOM_COMPILED_KERNEL")


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
        for file in _files(Path(KERNEL)) if KERNEL else ():
            self._copy(file, built / "ingest" / "binlog" / "kernel" / "shipped" / file.name)

    def _copy(self, source: Path, target: Path) -> None:
        self.mkpath(str(target.parent))
        self.copy_file(str(source), str(target), preserve_mode=False)


def _files(part: Path) -> list[Path]:
    found = [part] if part.is_file() else sorted(path for path in part.rglob("*") if path.is_file())
    return [path for path in found if "__pycache__" not in path.parts]


class Package(Distribution):
    """The package as its readers and its platform need it."""

    def parse_config_files(self, *arguments: Any, **options: Any) -> None:
        super().parse_config_files(*arguments, **options)
        if not KERNEL:
            # Nothing in this distribution can decode without it.
            needed = [re.sub("^(numba.*?) *;.*", r"\1", one) for one in self.install_requires]
            self.install_requires = self.metadata.install_requires = needed
        self.metadata.long_description = _with_whole_links(self.metadata.long_description, self.metadata.version)

    def has_ext_modules(self) -> bool:
        # The build then makes a wheel of one platform.
        return bool(KERNEL)


def _with_whole_links(readme: str, version: str) -> str:
    """Let the links of the README lead into the repository: a package index does not have the files beside it."""
    return re.sub(
        r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)]+)\)",
        lambda link: f"{link[1]}[{link[2]}]({RAW_FILES if link[1] else PAGES}/v{version}/{link[3]})",
        readme,
    )


class WheelOfPlatform(bdist_wheel):
    """With the decoder, a wheel is for Linux on x86-64 and for every Python: the code needs none, and no new libc."""

    def get_tag(self) -> tuple[str, str, str]:
        return ("py3", "none", "manylinux_2_17_x86_64") if KERNEL else super().get_tag()


if __name__ == "__main__":
    setup(distclass=Package, cmdclass={"build_py": BuildWithProject, "bdist_wheel": WheelOfPlatform})
