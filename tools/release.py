"""Checks a tag before a release, and prints the notes of its version: `python -m tools.release v0.2.0`.

It needs no installed package, so that the workflow of a release can ask before anything is built.
"""

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]


class ReleaseError(Exception):
    """The tag cannot be released; the message tells why, and what to do."""


def notes(tag: str, metadata: str, changelog: str) -> str:
    """Return the changes of the version that a tag names.

    Parameters
    ----------
    metadata, changelog
        The texts of `pyproject.toml` and `CHANGELOG.md`.

    Raises
    ------
    ReleaseError
        The tag is not that of the version, or the changelog has no dated section for it.
    """
    version = tomllib.loads(metadata)["project"]["version"]
    if tag != f"v{version}":
        raise ReleaseError(f"The tag is {tag}, but pyproject.toml has version {version}. Tag it v{version}.")
    section = re.search(
        rf"^## \[?{re.escape(version)}\]? - \d{{4}}-\d\d-\d\d\n(.*?)(?=^## |^\[[^\]]+\]: |\Z)",
        changelog,
        re.MULTILINE | re.DOTALL,
    )
    if section is None or not section[1].strip():
        raise ReleaseError(f"CHANGELOG.md has no section '## [{version}] - DATE' with changes. Write it first.")
    return section[1].strip() + "\n"


def main() -> None:
    """Print the notes, or end with the reason why there is no release."""
    if len(sys.argv) != 2:
        sys.exit("release: give the tag, such as v0.2.0")
    try:
        texts = [(PROJECT / name).read_text() for name in ("pyproject.toml", "CHANGELOG.md")]
        print(notes(sys.argv[1], *texts), end="")
    except ReleaseError as error:
        sys.exit(f"release: {error}")


if __name__ == "__main__":
    main()
