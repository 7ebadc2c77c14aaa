"""dbt from the command line: the next build repairs a killed build, and a failing model is reported in a paragraph.

The tests of this module are one story, told in order on one warehouse. Its builds are separate processes, so no
session is open while they run.
"""

import itertools
import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from ingest.warehouse.home import raw_table_dir, warehouse_dir
from ingest.warehouse.jvm import SHORT_LIVED_OPTIONS
from ingest.warehouse.spark import SparkLaunch
from tests.support.commands import DBT
from tests.support.models.copied import ANALYSIS_ERROR, RUNTIME_ERROR, copied_project
from tests.support.models.invoke import run_dbt
from tests.support.models.raw import NOON, Change, RawTables, Table
from tests.support.places import PROJECT

pytestmark = [pytest.mark.spark, pytest.mark.slow]

KILLS = int(os.environ.get("BINLOOM_KILLS", "20"))
FROM_NOTHING, BEFORE_MORE_LANDS = KILLS // 4, KILLS * 3 // 5
SEED = os.environ.get("BINLOOM_KILLS_SEED", "20261122")
PATIENCE_SECONDS = 240
# Every kind of table: rebuilt in full, by hour, by file, with a record of its inputs, and a view below them.
UPSTREAM = ["+row_changes", "+int_chain_breaks", "+transactions"]
FEEDING = ["int_completed_segments", "int_row_event_counts", "int_row_change_parts", "int_chain_files"]
KILLED = [*FEEDING, "row_changes", "transactions", "int_row_change_counts", "int_chain_links", "int_chain_breaks"]
TABLES = [
    "binloom.row_changes",
    "binloom.transactions",
    "binloom_intermediate.int_row_event_counts",
    "binloom_intermediate.int_row_change_counts",
    "binloom_intermediate.int_chain_links",
    "binloom_intermediate.int_chain_breaks",
    "binloom_intermediate.row_changes_built_parts",
    "binloom_intermediate.int_table_map_bindings",
]
CUSTOMERS = Table("customers", [("id", "int"), ("name", "varchar")], names_logged=True)
EARLY_FILE, LATE_FILE = "binlog.000002", "binlog.000003"


def land(home: Path) -> None:
    """Land three files of two hours each; the last one is incomplete."""
    with SparkLaunch(home, short_lived=True) as launch:
        raw = RawTables(launch.session(), warehouse_dir(home))
        for number in range(3):
            at = NOON + timedelta(hours=number)
            changes = [Change(CUSTOMERS, at, after=[str(10 * number + row), "Ann"]) for row in range(4)]
            changes += [
                Change(CUSTOMERS, at + timedelta(hours=1), [str(10 * number + row), "Ann"], [str(row), "Bob"])
                for row in range(3)
            ]
            file = f"binlog.{number + 1:06d}"
            raw.land(file, changes, status="in_progress" if file == LATE_FILE else "completed")


def complete(home: Path, file: str, number: int) -> None:
    """Complete the landing of a segment without a session, as a follower does; a later one has a higher number."""
    folder = raw_table_dir("segments", home)
    for path in sorted(folder.glob("part-*.parquet")):
        table = pq.ParquetFile(path).read()
        (row,) = table.to_pylist()
        if row["binlog_file"] == file:
            row |= {"status": "completed", "recorded_at": row["recorded_at"] + timedelta(days=number)}
            pq.write_table(table.from_pylist([row], table.schema), folder / f"completed-{number}.parquet")


class Build:
    """A dbt command with its JVM in a separate process group."""

    def __init__(self, home: Path, *arguments: str, project: Path = PROJECT) -> None:
        places = ["--project-dir", project, "--profiles-dir", project, "--target-path", home / "target"]
        self.log = home / "logs" / "dbt.log"
        self.log.unlink(missing_ok=True)
        options = {"BINLOOM_HOME": str(home), "JDK_JAVA_OPTIONS": " ".join(SHORT_LIVED_OPTIONS)}
        self.process = subprocess.Popen(
            [DBT, *arguments, *map(str, places), "--log-path", str(home / "logs")],
            cwd=project,
            env={**os.environ, **options},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def wait_for(self, words: str) -> None:
        """Wait until the log contains some words."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (self.log.exists() and words in self.log.read_text(errors="replace")):
            assert self.process.poll() is None and time.monotonic() < deadline, self.printed()
            time.sleep(0.02)

    def lives_on(self, seconds: float) -> bool:
        """Wait; return whether it still runs then."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return True
        return False

    def kill(self) -> None:
        """Kill dbt and its JVM with SIGKILL."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    def printed(self) -> str:
        """Return its output up to its end, from both streams."""
        return self.process.communicate(timeout=PATIENCE_SECONDS)[0]


def contents(spark: Any) -> dict[str, list[str]]:
    """Return all rows of all tables, as sorted JSON texts."""
    return {
        table: sorted(row[0] for row in spark.sql(f"select to_json(struct(*)) from {table}").collect())
        for table in TABLES
    }


def unowned_files(spark: Any, home: Path) -> Iterator[Path]:
    """Return files under dbt's schemas that are in no table's folder, or in a folder for Spark's unfinished writes."""
    for schema in warehouse_dir(home).glob("binloom*.db"):
        owned = {row.tableName for row in spark.sql(f"show tables in {schema.stem}").collect()}
        for path in schema.rglob("*.parquet"):
            folders = path.relative_to(schema).parts[:-1]
            if folders[0] not in owned or any(part.startswith((".", "_")) for part in folders):
                yield path


HOOKS, MODELS = "START hook", "Began running node model"


@pytest.fixture(scope="module")
def killed(home: Path) -> list[str]:
    """Kill builds; return the kind of each; the last build's remains are in the home."""
    print(f"BINLOOM_KILLS_SEED={SEED}")
    chance = random.Random(SEED)
    land(home)
    kinds: list[str] = []
    # The kill comes within this many seconds; a build that finishes earlier shortens the time.
    length = 15.0
    for number in itertools.count(1):
        if len(kinds) == KILLS:
            break
        if len(kinds) == FROM_NOTHING:
            # From here on only models that a kill can damage are built again.
            build = Build(home, "run", "--select", *UPSTREAM, *KILLED)
            build.wait_for(MODELS)
            at_work = time.monotonic()
            assert build.process.wait(PATIENCE_SECONDS) == 0, build.printed()
            length = (time.monotonic() - at_work) / 2
        kind = chance.choice([["--full-refresh"], []])
        if not kind or len(kinds) == BEFORE_MORE_LANDS:
            # An incremental build without anything new would write nothing.
            complete(home, EARLY_FILE if len(kinds) < BEFORE_MORE_LANDS else LATE_FILE, number)
        build = Build(home, "run", *kind, "--select", *(UPSTREAM if len(kinds) < FROM_NOTHING else KILLED))
        build.wait_for(chance.choice([HOOKS, MODELS, MODELS, MODELS]))
        at_work = time.monotonic()
        pause = chance.uniform(0, length)
        if build.lives_on(pause):
            build.kill()
            kinds.append(" ".join(kind))
        else:
            assert build.process.returncode == 0, build.printed()
            length = min(length, time.monotonic() - at_work)
    return kinds


def test_the_next_build_makes_what_an_unbroken_one_makes(home: Path, killed: list[str]) -> None:
    assert len(killed) == KILLS
    with SparkLaunch(home, short_lived=True) as launch:
        spark = launch.session()
        states = run_dbt(home, "run", "--select", *UPSTREAM, *KILLED)
        assert set(states.values()) == {"success"}, states
        healed = contents(spark)
        assert list(unowned_files(spark, home)) == []
        states = run_dbt(home, "run", "--full-refresh", "--select", *UPSTREAM, *KILLED)
        assert set(states.values()) == {"success"}, states
        assert contents(spark) == healed
        assert len(healed["binloom.row_changes"]) == 3 * 7


def test_a_model_that_fails_is_told_in_a_paragraph(home: Path, killed: list[str], tmp_path: Path) -> None:
    models = {"int_misspelt": ANALYSIS_ERROR, "int_spoilt": RUNTIME_ERROR}
    build = Build(home, "run", "--select", *models, project=copied_project(tmp_path, models))
    printed = build.printed()
    assert build.process.returncode == 1
    for name, fault in (("int_misspelt", "`no_such_column`"), ("int_spoilt", "spoilt customers")):
        assert re.search(rf"in model {name} \(models/intermediate/{name}\.sql\)\n[^\n]*{fault}", printed), printed
    # dbt prints it when it happens and again at the end.
    assert len(printed) < 6_000, printed
    assert "Relation spark_catalog" not in printed and "SQLQueryContextLogger" not in printed
