"""The record of good builds, by which `binloom build` knows that nothing has landed since.

A build that is killed or fails leaves tables that are not those of the last good build. So each run of dbt that writes
tables forgets the records of its place first, and a good `binloom build` records itself.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ingest.warehouse.files import replacing

_RECORD: Final = "builds.json"


@dataclass(frozen=True)
class GoodBuild:
    """A build that succeeded.

    Attributes
    ----------
    inputs
        Hash of the raw tables and the project at its beginning.
    built_at
        Time of its end: ISO 8601, UTC.
    warnings
        Names of the tests that warned.
    """

    inputs: str
    built_at: str
    warnings: tuple[str, ...]


def good_builds(home: Path, place: str) -> dict[str, GoodBuild]:
    """Return the good builds of a place by their arguments; see `BuildPlace` for its name."""
    return _records(home).get(place, {})


def record_good_build(
    home: Path,
    arguments: Sequence[str],
    inputs: str,
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
                key: GoodBuild(each["inputs"], each["built_at"], tuple(each["warnings"]))
                for key, each in of_place.items()
            }
            for place, of_place in json.loads((home / _RECORD).read_text()).items()
        }
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        # Without a readable record, the next build counts as the first one. Older versions wrote another form.
        return {}
