"""A home that an older commit made is read, landed into, followed on and built, without `--full-refresh`."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from recover.questions.sql import ask
from tests.servers import mariadb
from tests.support.in_process import binloom
from tests.support.older_warehouse import FOLLOWED, LANDED, PLACE, SAMPLE, SERVER_OPTIONS, run, unpack
from tests.support.places import SAMPLES
from tests.support.recover.landed_marts import assert_built_as_landed
from tests.support.recover.questions import QUESTIONS, comparable, documented_questions, in_schema

pytestmark = [pytest.mark.mariadb, pytest.mark.spark, pytest.mark.slow]

Dbt = Callable[..., dict[str, str]]

# The new server has neither the tables nor the rows of the recorded one.
UNLOGGED = """
    set session sql_log_bin = 0
    create database yard
    create table yard.boats (id int unsigned primary key, kind enum('sail', 'motor'), name varchar(20), n decimal(9, 2))
    alter table yard.boats add column length int after kind
    insert into yard.boats values (1, 'sail', 7, 'Ida', 2.5), (4000000000, 'motor', 12, 'Bo', 0)
"""
LOGGED = """
    update yard.boats set kind = 'motor' where id = 1
    alter table yard.boats modify kind enum('sail', 'row', 'motor')
    update yard.boats set kind = 'row' where id = 4000000000
"""
BOATS = [
    ("INSERT", None, {"id": "1", "kind": "sail", "name": "Ida", "n": "1.50"}),
    ("INSERT", None, {"id": "2", "kind": "motor", "name": "Åse", "n": None}),
    ("UPDATE", "sail", {"id": "1", "kind": "sail", "name": "Ida", "n": "2.50"}),
    ("UPDATE", "sail", {"id": "1", "kind": "sail", "length": "7", "name": "Ida", "n": "2.50"}),
    ("DELETE", "motor", None),
    ("INSERT", None, {"id": "4000000000", "kind": "motor", "length": "12", "name": "Bo", "n": "0.00"}),
    ("UPDATE", "sail", {"id": "1", "kind": "motor", "length": "7", "name": "Ida", "n": "2.50"}),
    ("UPDATE", "motor", {"id": "4000000000", "kind": "row", "length": "12", "name": "Bo", "n": "0.00"}),
]


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """The older home, in which the files and the server's log go on."""
    shutil.rmtree(PLACE, ignore_errors=True)
    home, server_folder = unpack(PLACE), PLACE / "server"
    server_folder.mkdir()
    (PLACE / "binlog").rename(server_folder / "binlog")
    binloom(home, "ingest", "--source", LANDED, "--binlog-dir", str(SAMPLES / SAMPLE), "--all")
    with mariadb.start(server_folder, SERVER_OPTIONS) as server:
        run(server, UNLOGGED)
        run(server, LOGGED)
        address = ("--server", server.host, "--port", str(server.port), "--user", "root")
        binloom(home, "follow", "--source", FOLLOWED, "--once", *address)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BINLOOM_HOME", str(home))
        yield home
    shutil.rmtree(PLACE)


@pytest.fixture(scope="module")
def build(dbt: Dbt) -> dict[str, str]:
    """The status of every node of the first build by this commit."""
    return dbt("build", "--exclude-resource-type", "unit_test")


def test_every_node_succeeds(build: dict[str, str]) -> None:
    assert {name: status for name, status in build.items() if status not in ("success", "pass")} == {
        "is_empty_statement_format_changes_": "warn",
        # The older commit did not record which tables a statement changes.
        "is_empty_segments_to_land_again_": "fail",
    }


def test_questions_have_the_same_marts_before_a_build(build: dict[str, str], home: Path, tmp_path: Path) -> None:
    assert_built_as_landed(home, tmp_path)


def test_row_changes_of_both_commits_are_there(build: dict[str, str], spark: Any) -> None:
    rows = spark.sql(
        f"""select event_type, row_before.kind, row_after from binloom.row_changes
        where source_id = '{FOLLOWED}' and table_name = 'boats'
        order by epoch, file_sequence, start_pos, payload_ordinal, row_ordinal"""
    ).collect()
    assert [tuple(row) for row in rows] == BOATS


@pytest.mark.parametrize("question", [*QUESTIONS, *documented_questions()])
def test_duckdb_answers_as_spark_does(build: dict[str, str], home: Path, spark: Any, question: str) -> None:
    expected = sorted(repr(comparable(tuple(row))) for row in spark.sql(in_schema(question)).collect())
    assert sorted(repr(comparable(row)) for row in ask(question, home).rows) == expected


@pytest.mark.deep
def test_a_full_build_makes_the_same_tables(build: dict[str, str], dbt: Dbt, spark: Any) -> None:
    tables = ("row_changes", "transactions", "schema_changes", "table_versions", "quarantined_row_events")

    def contents() -> dict[str, list[str]]:
        return {
            table: sorted(row[0] for row in spark.sql(f"select to_json(struct(*)) from binloom.{table}").collect())
            for table in tables
        }

    incremental = contents()
    assert len(incremental["row_changes"]) > 100
    states = dbt("run", "--full-refresh", "--select", *(f"+{table}" for table in tables))
    assert set(states.values()) == {"success"}
    assert contents() == incremental
