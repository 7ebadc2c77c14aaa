"""dbt from the command line: the next build repairs a killed build, and a failing model is reported in a paragraph.

Builds run in a process of their own, which is stopped at random instants. A copy of the home is what SIGKILL would
leave at that instant; the next build must make of it what the unbroken build makes. Two real kills follow.
"""

import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from ingest.warehouse.home import raw_table_dir, warehouse_dir
from ingest.warehouse.spark import SparkLaunch, metastore_holder
from tests.support.commands import DBT
from tests.support.depth import at_depth
from tests.support.freezing import POLL_SECONDS, Kills, Worker, children
from tests.support.models.copied import ANALYSIS_ERROR, RUNTIME_ERROR, copied_project
from tests.support.models.invoke import run_dbt
from tests.support.models.raw import NOON, Change, RawTables, Table
from tests.support.patience import PATIENCE_SECONDS
from tests.support.places import PROJECT

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# Each kill costs a build that repairs it.
KILLS = at_depth(1, 20)
# Kills of a build from nothing, with a file again, in full, and with more of a file. The others are of repairs.
KILLS_OF_BUILDS = (at_depth(1, 4), at_depth(0, 4), at_depth(0, 4), at_depth(0, 4))
SEED = os.environ.get("BINLOOM_KILLS_SEED", "20261122")
# Every kind of table: rebuilt in full, by hour, by file, with a record of its inputs, and a view below them.
UPSTREAM = ["+row_changes", "+int_chain_breaks", "+transactions"]
FEEDING = ["int_completed_segments", "int_row_event_counts", "int_row_change_parts", "int_chain_files"]
CHAIN = ["int_chain_suspects", "int_chain_breaks"]
KILLED = [*FEEDING, "row_changes", "transactions", "int_row_change_counts", *CHAIN]
EVERYTHING = [*UPSTREAM, *KILLED]
TABLES = [
    "binloom.row_changes",
    "binloom.transactions",
    "binloom_intermediate.int_row_event_counts",
    "binloom_intermediate.int_row_change_counts",
    *(f"binloom_intermediate.{name}" for name in CHAIN),
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
        self.process = subprocess.Popen(
            [DBT, *arguments, *map(str, places), "--log-path", str(home / "logs")],
            cwd=project,
            env={**os.environ, "BINLOOM_HOME": str(home)},
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

    def kill_java(self) -> None:
        """Kill the JVM; dbt must report this and end."""
        (java,) = (pid for pid in children(self.process.pid) if Path(f"/proc/{pid}/comm").read_text() == "java\n")
        os.kill(java, signal.SIGKILL)
        printed = self.printed()
        # The hooks at the end of the run fail too, which dbt reports with another code than a failed model.
        assert self.process.returncode in (1, 2), printed
        assert "ERROR creating" in printed, printed

    def kill_dbt(self) -> None:
        """Kill dbt; the JVM ends when it notices this."""
        self.process.kill()
        self.process.communicate()

    def wait_until_it_frees(self, home: Path) -> None:
        """Wait until its JVM has ended."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while metastore_holder(home) is not None:
            assert time.monotonic() < deadline
            time.sleep(POLL_SECONDS)

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
# The log of each kind of build has about this many lines after its first hook, and that of a repair about
# LOG_LINES_OF_A_REPAIR. If it has fewer, instants beyond its end are drawn again in another build.
LOG_LINES = {"from nothing": 4200, "with a file again": 3600, "in full": 2700, "with more of a file": 3600}
LOG_LINES_OF_A_REPAIR = 2700
# With many more, no instant would be in the last part of a build.
MOST_LINES_MORE = 1.3
# A copy is made up to this long after the line of the log that was drawn for it.
PAUSE_SECONDS = 1.0

Contents = dict[str, list[str]]


def build(home: Path, is_over: Path, *arguments: str) -> Contents:
    """Run dbt in this process, create a file when it has ended, and return all rows of all tables."""
    os.environ["BINLOOM_HOME"] = str(home)
    with SparkLaunch(home, short_lived=True) as launch:
        spark = launch.session()
        states = run_dbt(home, "run", "--log-level-file", "debug", *arguments)
        is_over.touch()
        assert set(states.values()) == {"success"}, states
        unowned = list(unowned_files(spark, home))
        assert unowned == [], unowned
        return contents(spark)


@dataclass(frozen=True)
class Killed:
    """A build that was killed.

    Attributes
    ----------
    instant
        The kind of the build, and how far it was.
    home
        Copy of its home.
    models
        The models that it builds.
    expected
        The tables of an unbroken build.
    """

    instant: str
    home: Path
    models: Sequence[str]
    expected: Contents


class Story:
    """Builds of one home that are killed, and what they leave.

    Attributes
    ----------
    killed
        The killed builds.
    latest
        The tables of the latest unbroken build.
    """

    def __init__(self, kills: Kills) -> None:
        self.kills = kills
        self.killed: list[Killed] = []
        self.latest: Contents = {}

    def build(self, kind: str, number: int, models: Sequence[str], *options: str) -> Contents:
        """Build, kill the build at a number of instants, and return the tables of the unbroken build."""
        log_of(self.kills.folder).unlink(missing_ok=True)
        whole = LOG_LINES.get(kind)
        self.latest, copies = self.kills.call(number, build, *options, "--select", *models, whole=whole)
        logged = lines_logged(self.kills.folder)
        assert whole is None or logged <= MOST_LINES_MORE * whole, f"{kind}: {logged} lines in the log, not {whole}"
        for copy in copies:
            last = log_of(copy).read_text(errors="replace").rstrip().rpartition("\n")[2]
            instant = f"{kind}, after {lines_logged(copy)} lines of the log: {last}"
            self.killed.append(Killed(instant, copy, models, self.latest))
        return self.latest

    def repair(self, broken: Killed, number: int = 0) -> str | None:
        """Build what a killed build left, kill that build at a number of instants, and return what is wrong then."""
        self.kills.return_to(broken.home)
        try:
            found = self.build(f"repair of [{broken.instant}]", number, broken.models)
        except Exception as error:
            return f"{broken.instant}: {error}"
        different = [table for table in TABLES if found[table] != broken.expected[table]]
        print(f"{broken.instant}: {different or 'repaired'}")
        return f"{broken.instant}: {different}" if different else None


def log_of(home: Path) -> Path:
    """Return the log of the latest build."""
    return home / "logs" / "dbt.log"


def lines_logged(home: Path) -> int:
    """Return the number of lines of a build's log after its first hook."""
    log = log_of(home)
    return log.read_text(errors="replace").partition(HOOKS)[2].count("\n") if log.exists() else 0


@pytest.fixture(scope="module")
def story(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """A home with landed files."""
    print(f"BINLOOM_KILLS_SEED={SEED}")
    with Worker() as worker:
        worker.call(land, home)
        copies = tmp_path_factory.mktemp("copies")
        chance = random.Random(SEED)
        yield Story(Kills(worker, home, copies, chance, lines_logged, LOG_LINES_OF_A_REPAIR, PAUSE_SECONDS))


def test_the_next_build_makes_what_an_unbroken_one_makes(home: Path, story: Story) -> None:
    from_nothing, with_a_file, in_full, with_more = KILLS_OF_BUILDS
    # Instants that a short build does not meet are met in the repairs: KILLS is the number of all of them.
    story.build("from nothing", from_nothing, EVERYTHING)
    if with_a_file:
        complete(home, EARLY_FILE, 1)
        again = story.build("with a file again", with_a_file, KILLED)
        assert len(again["binloom.row_changes"]) == 2 * 7
    if in_full:
        assert story.build("in full", in_full, KILLED, "--full-refresh") == again
    if with_more:
        complete(home, LATE_FILE, 2)
        whole = story.build("with more of a file", with_more, KILLED)
        assert len(whole["binloom.row_changes"]) == 3 * 7

    latest, first = story.killed[-1], story.kills.chance.sample(story.killed, len(story.killed))
    wrong = [story.repair(broken, number=int(len(story.killed) < KILLS)) for broken in first]
    wrong += [story.repair(broken) for broken in story.killed[len(first) :]]
    assert [each for each in wrong if each] == []
    assert len(wrong) == KILLS

    if in_full:
        story.kills.return_to(latest.home)
        assert story.build("in full", 0, KILLED, "--full-refresh") == latest.expected


@pytest.mark.deep
def test_dbt_and_java_are_each_killed_alone(home: Path, story: Story) -> None:
    expected = story.latest or story.build("from nothing", 0, EVERYTHING)
    for kill in (Build.kill_java, Build.kill_dbt):
        build = Build(home, "run", "--full-refresh", "--select", *KILLED)
        build.wait_for(MODELS)
        time.sleep(story.kills.chance.uniform(0, 3 * PAUSE_SECONDS))
        kill(build)
        build.wait_until_it_frees(home)
    assert story.build("in order", 0, KILLED) == expected


@pytest.mark.deep
def test_a_model_that_fails_is_told_in_a_paragraph(home: Path, story: Story, tmp_path: Path) -> None:
    models = {"int_misspelt": ANALYSIS_ERROR, "int_spoilt": RUNTIME_ERROR}
    build = Build(home, "run", "--select", *models, project=copied_project(tmp_path, models))
    printed = build.printed()
    assert build.process.returncode == 1
    for name, fault in (("int_misspelt", "`no_such_column`"), ("int_spoilt", "spoilt customers")):
        assert re.search(rf"in model {name} \(models/intermediate/{name}\.sql\)\n[^\n]*{fault}", printed), printed
    # dbt prints it when it happens and again at the end.
    assert len(printed) < 6_000, printed
    assert "Relation spark_catalog" not in printed and "SQLQueryContextLogger" not in printed
