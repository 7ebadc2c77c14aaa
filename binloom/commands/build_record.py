"""The record of good builds, by which `binloom build` knows that nothing has landed since.

A build that is killed or fails leaves tables that are not those of the last good build. So each run of dbt that writes
tables forgets the records of its place first, and a good `binloom build` records itself.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from binloom.commands.build_places import place_name
from binloom.commands.project import BUILD, project_dir
from ingest.warehouse.files import replacing
from ingest.warehouse.raw_state import PLAIN_TABLES, raw_states
from ingest.warehouse.table_format import FORMAT_VARIABLE
from ingest.warehouse.tables import DERIVED_TABLES, NAMING_RULES, SEGMENT_TABLES, SEGMENTS

_RECORD: Final = "builds.json"
_PROJECT_FILES: Final = ("models", "macros", "seeds", "tests/dbt", "dbt_project.yml", "profiles.yml", "selectors.yml")


@dataclass(frozen=True)
class BuildInputs:
    """Everything that the tables of a home follow from.

    Attributes
    ----------
    project
        Hash of the dbt project, of the format of its tables, and of the rules by which landed rows get names.
    raw
        Hash of each raw table without partitions that does not itself follow from others, by its name.
    """

    project: str
    raw: Mapping[str, str]

    def raw_tables_unlike(self, before: "BuildInputs") -> list[str]:
        """Return the names of the raw tables that have changed, or may have."""
        changed = [name for name, state in self.raw.items() if state != before.raw.get(name)]
        if SEGMENTS.name in changed:
            changed += [table.name for table in SEGMENT_TABLES.values()]
        if changed:
            changed += [table.name for table in DERIVED_TABLES]
        return changed


@dataclass(frozen=True)
class GoodBuild:
    """A build that succeeded.

    Attributes
    ----------
    inputs
        What the build began with.
    built_at
        Time of its end: ISO 8601, UTC.
    warnings
        Names of the tests that warned.
    """

    inputs: BuildInputs
    built_at: str
    warnings: tuple[str, ...]


def build_inputs(home: Path) -> BuildInputs:
    """Return the inputs that a build of a home would have now."""
    project = project_dir()
    found = hashlib.sha256(f"{os.environ.get(FORMAT_VARIABLE, '')} {NAMING_RULES}".encode())
    for path in _project_files(project):
        found.update(f"{path.relative_to(project)} ".encode() + hashlib.sha256(path.read_bytes()).digest())
    tables = (table for table in PLAIN_TABLES if table not in DERIVED_TABLES)
    return BuildInputs(found.hexdigest(), raw_states(home, tables))


def _project_files(project: Path) -> Iterator[Path]:
    for name in _PROJECT_FILES:
        path = project / name
        yield from sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else (path,)


def has_built_everything(home: Path) -> bool:
    """Return whether the last build of all models was good, and nothing has landed since."""
    known = good_builds(home, place_name(home)).get(" ".join(BUILD))
    return known is not None and known.inputs == build_inputs(home)


def good_builds(home: Path, place: str) -> dict[str, GoodBuild]:
    """Return the good builds of a place by their arguments; see `BuildPlace` for its name."""
    return _records(home).get(place, {})


def record_good_build(
    home: Path,
    arguments: Sequence[str],
    inputs: BuildInputs,
    warnings: Sequence[str],
    place: str = "",
    others: Mapping[str, GoodBuild] | None = None,
) -> None:
    """Record that a build with some arguments of dbt was good, so that it is not repeated with the same inputs.

    Parameters
    ----------
    others
        Builds with other arguments that count again, because they were good when this one began.
    """
    built = GoodBuild(inputs, f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}", tuple(warnings))
    _store(home, _records(home) | {place: {**(others or {}), " ".join(arguments): built}})


def forget_good_builds(home: Path, place: str) -> None:
    """Forget the good builds of a place, so that the next build runs."""
    records = _records(home)
    if records.pop(place, None):
        _store(home, records)


def _store(home: Path, records: Mapping[str, Mapping[str, GoodBuild]]) -> None:
    stored = {place: {key: asdict(each) for key, each in of_place.items()} for place, of_place in records.items()}
    with replacing(home / _RECORD) as draft:
        draft.write_text(json.dumps(stored, indent=2))


def _records(home: Path) -> dict[str, dict[str, GoodBuild]]:
    try:
        return {
            place: {
                key: GoodBuild(BuildInputs(**each["inputs"]), each["built_at"], tuple(each["warnings"]))
                for key, each in of_place.items()
            }
            for place, of_place in json.loads((home / _RECORD).read_text()).items()
        }
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        # Without a readable record, the next build counts as the first one. Older versions wrote another form.
        return {}
