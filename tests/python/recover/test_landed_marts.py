"""A home in which nothing was built answers, without Java: the answers are those of its files."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlglot
from sqlglot import exp

from recover.questions.sql import ask
from recover.sources.log import VIEWS, Log
from tests.support.command_line import assert_sentence
from tests.support.in_process import binloom, binloom_here
from tests.support.masking.shop import sample_files
from tests.support.places import SAMPLES

pytestmark = pytest.mark.slow

FLAVORS = ("mysql", "mariadb")
NOTE = "nothing was built in this home yet, so the answer is computed from what has landed"
DAMAGE = ("--table", "shop.orders", "--where", "before.status != 'cancelled' and after.status = 'cancelled'")


@pytest.fixture(scope="module", autouse=True)
def without_java() -> Iterator[None]:
    """No command of this module finds Java."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_HOME", "/nonexistent")
        yield


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two shops that are landed, with the definitions of their tables."""
    home = tmp_path_factory.mktemp("home")
    for flavor in FLAVORS:
        sample = SAMPLES / f"shop-{flavor}"
        binloom(home, "ingest", "--source", flavor, "--binlog-dir", str(sample), "--all")
        binloom(home, "snapshot", "--source", flavor, "--from-dir", str(sample / "schema"))
    return home


def answers(home: Path, flavor: str, *command: str) -> list[list[str]]:
    """Return the lines of an answer of the home, and of its files."""
    sample = SAMPLES / f"shop-{flavor}"
    files = ["--files", *(str(sample / name) for name in sample_files(sample)), "--snapshot-dir", sample / "schema"]
    landed = binloom_here(*command, "--source", flavor, home=home)
    decoded = binloom_here(*command, "--source", flavor, *files)
    assert (landed.returncode, decoded.returncode) == (0, 0), landed.stderr + decoded.stderr
    assert landed.stderr.count(NOTE) == 1
    return [one.stdout.splitlines() for one in (landed, decoded)]


@pytest.mark.parametrize("flavor", FLAVORS)
@pytest.mark.parametrize(
    "command",
    [
        ("state", "shop.orders", "--as-of", "2026-11-17T10:00:00", "--format", "csv"),
        ("undo", *DAMAGE),
    ],
)
def test_answers_are_those_of_the_files(home: Path, flavor: str, command: tuple[str, ...]) -> None:
    landed, decoded = answers(home, flavor, *command)
    assert len(landed) > 20
    # The files do not tell that the server has written no others.
    assert landed == [line for line in decoded if not line.startswith("-- not in this script: changes in files after")]


@pytest.mark.parametrize("flavor", FLAVORS)
@pytest.mark.parametrize("command", [("query", *DAMAGE), ("history", "shop.orders", "1042")])
def test_rows_are_those_of_the_files(home: Path, flavor: str, command: tuple[str, ...]) -> None:
    landed, decoded = ([*map(json.loads, lines)] for lines in answers(home, flavor, *command, "--format", "json"))
    assert len(landed) > 3
    # Files have one part each, and their definitions begin elsewhere.
    own = {"file_part", "table_version_id"}
    rows, expected = ([{name: one[name] for name in one.keys() - own} for one in found] for found in (landed, decoded))
    assert rows == expected


def test_rows_with_names_are_not_read_for_the_quarantine(tmp_path: Path) -> None:
    # Before its CREATE TABLE, nothing is known of a table, and nothing can be: that is no reason to read its rows.
    binloom(tmp_path, "ingest", "--source", "shop", "--binlog-dir", str(SAMPLES / "shop-mysql"), "--all")
    connection = Log.of_warehouse(tmp_path, dict.fromkeys(VIEWS)).connection
    ((text,),) = connection.execute(
        "select sql from duckdb_views() where view_name = 'quarantined_row_events' and schema_name = 'binloom'"
    ).fetchall()
    parts = sqlglot.parse_one(text, read="duckdb").find_all(exp.CTE)
    suspects = exp.select("*").from_("suspect_segments")
    for part in parts:
        suspects = suspects.with_(part.alias, part.this)
    unknown = connection.execute("select count(*) from binlog_raw.table_bindings where reason is not null").fetchall()
    assert unknown[0][0] > 0
    assert connection.execute(suspects.sql("duckdb")).fetchall() == []


def test_sources_are_told_apart(home: Path) -> None:
    found = binloom_here("sql", "select source_id, count(*) from transactions group by all order by 1", home=home)
    assert [line.split()[0] for line in found.stdout.splitlines()[2:]] == ["mariadb", "mysql"]
    tables = binloom_here("sql", "show tables", home=home).stdout
    assert "row_changes" in tables and "file_breaks" in tables
    assert_sentence(
        binloom_here("sql", "select 1 from row_history", home=home), 2, "There is no mart binloom.row_history in .*yet"
    )


def test_what_lands_later_is_in_the_next_answer(tmp_path: Path) -> None:
    sample = SAMPLES / "shop-mysql"
    counts = []
    for name in sample_files(sample):
        binloom(tmp_path, "ingest", "--source", "shop", "--binlog-dir", str(sample), "--files", name)
        found = binloom_here("sql", "select count(*) from row_changes", home=tmp_path)
        counts.append(int(found.stdout.split()[-1]))
    # The table maps of this shop have no names: without a snapshot, its log tells them.
    assert counts == sorted(counts) and len({*counts}) == len(counts)


def test_a_damaged_home_is_told(tmp_path: Path) -> None:
    segments = tmp_path / "warehouse" / "binlog_raw.db" / "segments"
    segments.mkdir(parents=True)
    (segments / "one.parquet").touch()
    assert_sentence(
        binloom_here("query", home=tmp_path), 3, r"one\.parquet cannot be read; it was truncated or damaged"
    )


def test_a_table_that_only_a_build_makes_says_when_it_was_built(home: Path, tmp_path: Path) -> None:
    built = tmp_path / "warehouse"
    shutil.copytree(home / "warehouse" / "binlog_raw.db", built / "binlog_raw.db")
    (built / "binloom.db" / "row_changes").mkdir(parents=True)
    proofs = built / "binloom_quality.db" / "proofs" / "part-0.parquet"
    proofs.parent.mkdir(parents=True)
    pq.write_table(pa.table({"proof": ["gtid_holes"], "violations": [0]}), proofs)
    (success := proofs.with_name("_SUCCESS")).touch()
    for file in (proofs, success):
        os.utime(file, (1_796_000_000, 1_796_000_000))
    told = list[str]()
    assert [*ask("select proof, violations from binloom_quality.proofs", tmp_path, told.append).rows] == [
        ("gtid_holes", 0)
    ]
    assert told == [
        "the answer does not have what has landed since these tables were built: binloom_quality.proofs, built at"
        " 2026-11-30 00:53:20."
    ]
    told.clear()
    assert ask("describe binloom_quality.proofs", tmp_path, told.append).columns and told == []
    assert ask("select 1 from binloom_quality.proofs", tmp_path, told.append, is_current=True).columns and told == []
