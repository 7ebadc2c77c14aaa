"""A snapshot that is killed leaves the names of before or those of after, and the same command again mends the rest."""

import shutil
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ingest.landing.published import published_bindings
from ingest.warehouse.files import read_rows
from ingest.warehouse.tables import (
    FOREIGN_KEYS,
    SCHEMA_COLUMNS,
    SCHEMA_DEFAULTS,
    SCHEMA_HISTORIES,
    SCHEMA_KEYS,
    SCHEMA_SNAPSHOTS,
    TABLE_BINDINGS,
    TABLE_VERSIONS,
)
from tests.support.landing.faulted import SOURCE, land, land_schema
from tests.support.places import PROJECT

SNAPSHOT = (SCHEMA_SNAPSHOTS, SCHEMA_COLUMNS, SCHEMA_DEFAULTS, SCHEMA_KEYS, FOREIGN_KEYS)
HISTORY = (SCHEMA_HISTORIES, TABLE_VERSIONS, TABLE_BINDINGS)


def contents(home: Path) -> dict[str, list[str]]:
    """Return all rows of the tables that a snapshot writes, without times."""
    return {
        table.name: sorted(
            repr({name: value for name, value in row.items() if name != "published_at"})
            for row in read_rows(table, home)
        )
        for table in (*SNAPSHOT, *HISTORY)
    }


def names(home: Path) -> list[dict[str, Any]]:
    """Return the names that readers of the warehouse see."""
    rows = published_bindings(SOURCE, home)
    return sorted(rows, key=lambda row: (row["table_map_id"], row["valid_from_pos"] or 0))


@pytest.mark.slow
def test_killed_before_each_file_that_it_writes(tmp_path: Path) -> None:
    nameless, whole, home = (tmp_path / name for name in ("nameless", "whole", "home"))
    land(nameless)
    shutil.copytree(nameless, whole)
    land_schema(whole)
    before, after, expected = names(nameless), names(whole), contents(whole)
    assert None in [row["column_names"] for row in before]
    assert None not in [row["column_names"] for row in after]
    seen = []
    for operations in count(1):
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(nameless, home)
        command = ["-m", "tests.support.landing.faulted", "snapshot", str(home), str(operations)]
        code = subprocess.run([sys.executable, *command], cwd=PROJECT, check=False).returncode
        found = names(home)
        assert found in (before, after)
        seen.append(found == after)
        land_schema(home)
        assert names(home) == after
        assert contents(home) == expected
        assert not list((home / "warehouse").rglob("*.tmp"))
        if code == 0:
            break
        assert code == -signal.SIGKILL
    # It was killed before each of its files, and names change once.
    assert len(seen) > len(SNAPSHOT) + len(HISTORY) - 2
    assert seen == sorted(seen)
