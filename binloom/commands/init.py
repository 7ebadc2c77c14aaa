"""`binloom init`: begin a dbt project of one's own that uses binloom as a package."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import binloom
from binloom.commands.output import print_line
from binloom.commands.project import project_dir
from ingest.errors import EXIT_DONE, UsageError
from ingest.warehouse.privacy import persons_umask

_TEMPLATES: Final = Path(binloom.__file__).parent / "templates"
_OWN_NAME: Final = "binloom"


def start_project(folder: Path) -> int:
    """Write the files of a project into a folder, and print the commands that build it.

    Raises
    ------
    UsageError
        A file is already there, or the name of the folder cannot be that of a project.
    """
    package = project_dir()
    files = dict(_files(_project_name(folder), package))
    for name in files:
        if (folder / name).exists():
            raise UsageError(f"{folder / name} exists.", hint="Name a folder that has no dbt project yet.")
    with persons_umask():
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            print_line(f"new: {path}")
    print_line()
    for command in (["cd", str(folder)], ["dbt", "deps"], ["binloom", "build"], ["dbt", "build"]):
        print_line(f"  {shlex.join(command)}")
    return EXIT_DONE


def _files(name: str, package: Path) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each file."""
    # The connection and the settings of Spark are those of binloom itself.
    yield "profiles.yml", (package / "profiles.yml").read_text()
    for path in sorted(path for path in _TEMPLATES.rglob("*") if path.is_file()):
        text = path.read_text().replace("your_project", name).replace("/path/to/binloom", str(package))
        yield str(path.relative_to(_TEMPLATES)).replace("gitignore", ".gitignore"), text


def _project_name(folder: Path) -> str:
    """Return the name of a folder with only the characters that dbt allows."""
    name = re.sub(r"\W", "_", folder.resolve().name, flags=re.ASCII).lower()
    if name == _OWN_NAME or not re.match(r"[a-z_]", name):
        raise UsageError(
            f"A dbt project cannot have the name {name!r}.",
            hint="Name a folder whose name begins with a letter and is not binloom.",
        )
    return name
