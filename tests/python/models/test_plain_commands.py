"""dbt as users run it: commands without the upstream models they need, failing models, remains of a killed build.

The tests of this module are one story, told in order on one warehouse.
"""

import re
import shutil
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from binloom.commands import project
from ingest.warehouse.built import TableRecord
from recover.sources.home.kept_files import UnfinishedMartError
from recover.sources.home.marts import open_marts
from tests.support.in_process import binloom_here
from tests.support.models.copied import ANALYSIS_ERROR, RUNTIME_ERROR, copied_project
from tests.support.models.raw import NOON, Change, RawTables, Table
from tests.support.places import PROJECT

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Dbt = Callable[..., dict[str, str]]

CUSTOMERS = Table("customers", [("id", "int"), ("name", "varchar")], names_logged=True)
SEEDS = ["event_types"]
# The models that this module looks at.
MODELS = ["row_changes", "transactions", "quarantined_row_events", "quarantined_tables", "table_activity_hourly"]


@pytest.fixture(scope="module")
def first_run(raw: RawTables, dbt: Dbt) -> dict[str, str]:
    """`dbt run` after something has landed and before anything was built."""
    raw.land(
        "binlog.000001",
        [
            Change(CUSTOMERS, NOON, after=["1", "Ann"]),
            Change(CUSTOMERS, NOON + timedelta(hours=1), ["1", "Ann"], ["1", "Bob"]),
        ],
        undecoded=[
            {"start_pos": 9000, "end_pos": 9100, "event_type": "PARTIAL_UPDATE_ROWS", "reason": "unsupported event"}
        ],
    )
    return dbt("run", "--select", *(f"+{model}" for model in MODELS))


def contents(spark: Any, *tables: str) -> dict[str, list[str]]:
    """Return all rows of some tables, as sorted JSON texts."""
    return {
        table: sorted(row[0] for row in spark.sql(f"select to_json(struct(*)) from {table}").collect())
        for table in tables
    }


def rows_for_readers(home: Path, *tables: str) -> list[int]:
    """Return the numbers of rows that a command without Spark reads."""
    names = [table.split(".") for table in tables]
    with open_marts(home, [(schema, name) for schema, name in names]) as connection:
        return [connection.execute(f"select count(*) from {table}").fetchall()[0][0] for table in tables]


def record_as_cut_short(home: Path, table: str) -> None:
    """Leave the record that a build leaves when it is killed while it changes a table."""
    record = TableRecord(home, *table.split("."))
    with record.changing(hides=True):
        pass
    record.end(is_whole=False)


def test_a_home_without_rows_can_be_asked(raw: RawTables, dbt: Dbt, home: Path) -> None:
    # What `binloom follow` makes beside a quiet server.
    states = dbt("run", "--selector", "changes")
    assert set(states.values()) == {"success"}, states
    commands = (
        ("query", "--where", "after.name = 'Ann'"),
        ("transactions",),
        ("sql", "select source_id, event_hour, count(*) from row_changes group by all"),
        ("history", "shop.customers", "1"),
        ("state", "shop.customers", "--as-of", "2026-11-17 10:00:00"),
        ("undo", "--transaction", "binlog.000001:4"),
        ("status",),
    )
    for command in commands:
        answer = binloom_here(*command, env={"BINLOOM_HOME": str(home)})
        # Exit code 2: the log has no such table or transaction.
        assert answer.returncode in (0, 2) and "has not ended" not in answer.stderr, (command, answer)


def test_a_run_loads_the_seeds_that_it_leaves_out(first_run: dict[str, str], spark: Any, dbt: Dbt, home: Path) -> None:
    assert set(first_run.values()) == {"success"}, first_run
    tables = [f"binloom_seeds.{name}" for name in SEEDS]
    loaded = contents(spark, *tables, "binloom.quarantined_row_events")
    dbt("seed")
    assert contents(spark, *tables, "binloom.quarantined_row_events") == loaded
    assert all(loaded.values())
    schemas = [spark.table(table).schema for table in tables]
    # Truncated, as a killed build leaves it.
    columns = ", ".join(f"{column.name} string" for column in schemas[0])
    spark.sql("drop table binloom_seeds.event_types")
    spark.sql(f"create table binloom_seeds.event_types ({columns})")
    # A copy of the project was built in this home, and is gone: dbt keeps the folder of what it has parsed.
    parsed = home / "target" / "partial_parse.msgpack"
    parsed.write_bytes(parsed.read_bytes().replace(bytes(PROJECT), b"/" * len(bytes(PROJECT))))
    dbt("run", "--select", "quarantined_row_events")
    assert contents(spark, *tables, "binloom.quarantined_row_events") == loaded
    assert [spark.table(table).schema for table in tables] == schemas


def test_a_model_and_what_it_is_made_of_can_be_built_alone(first_run: dict[str, str], spark: Any, dbt: Dbt) -> None:
    spark.sql("drop table binloom.table_activity_hourly")
    states = dbt("build", "--select", "+row_changes", "--exclude-resource-type", "unit_test")
    assert set(states.values()) == {"success"}, states
    # A test of a model's counts runs when that model is selected, and finds the defect.
    states = dbt("build", "--select", "table_activity_hourly")
    assert states["table_activity_hourly_adds_up"] == "pass"
    columns = spark.table("binloom.table_activity_hourly").columns
    wrong = ", ".join("row_events + 1" if column == "row_events" else column for column in columns)
    spark.sql(f"insert into binloom.table_activity_hourly select {wrong} from binloom.table_activity_hourly")
    states = dbt("test", "--select", "table_activity_hourly")
    assert states["table_activity_hourly_adds_up"] == "fail"


def test_what_a_dead_build_left_is_cleared(
    first_run: dict[str, str], raw: RawTables, spark: Any, dbt: Dbt, home: Path
) -> None:
    tables = ["binloom.row_changes", "binloom.transactions", "binloom_quality.quarantined_tables"]
    whole = contents(spark, *tables)
    schema, quality = home / "warehouse" / "binloom.db", home / "warehouse" / "binloom_quality.db"
    staged = schema / "row_changes"
    # Killed while it made a table, in the middle of a partition, and before it registered another partition.
    spark.sql("drop table binloom_quality.quarantined_tables")
    spark.sql("drop table binloom_seeds.event_types")
    leftovers = [
        home / "warehouse" / "binloom_seeds.db" / "event_types" / "part-1.parquet",
        quality / "quarantined_tables" / "_temporary" / "0" / "task_1" / "part-1.parquet",
        schema / "transactions" / "_temporary" / "0" / "task_1" / "part-1.parquet",
        staged / ".spark-staging-1" / "event_hour=2026-11-01-12" / "part-1.parquet",
        staged / ".spark-staging-2" / "_temporary" / "0" / "task_1" / "event_hour=x" / "part-1.parquet",
        staged / ".spark-staging-3" / "_temporary" / "0" / "_temporary" / "attempt_1" / "part-1.parquet",
    ]
    (kept,) = (schema / "transactions" / "source_id=shop" / "epoch=0").iterdir()
    gone = kept.with_name("binlog_file=binlog.000009")
    shutil.copytree(kept, gone)
    for file in leftovers:
        file.parent.mkdir(parents=True)
        file.write_bytes(b"half a file")
    # Spark lists no file without bytes.
    leftovers.append(staged / ".spark-staging-4" / "_temporary" / "0" / "_temporary" / "attempt_1" / "part-1.parquet")
    leftovers[-1].parent.mkdir(parents=True)
    leftovers[-1].touch()
    for table in tables:
        record_as_cut_short(home, table)
    record = "binloom_intermediate.transactions_built_parts"
    spark.sql(f"alter table {record} set tblproperties ('binloom.is_whole' = 'false')")
    for table in tables[:2]:
        spark.catalog.refreshTable(table)
    states = dbt("seed")
    assert set(states.values()) == {"success"}, states
    assert [file for file in leftovers if file.exists()] == []
    states = dbt("run", "--select", "row_changes", "transactions", "quarantined_tables")
    assert set(states.values()) == {"success"}, states
    assert not gone.exists()
    assert sorted(path.name for path in staged.glob(".*")) == []
    assert contents(spark, *tables) == whole
    assert spark.sql("show tables in binlog_raw like 'left*'").count() == 0
    expected = [len(whole[table]) for table in tables]
    assert rows_for_readers(home, *tables, "binloom.quarantined_row_events") == [*expected, 1]


def test_what_is_well_is_left_alone(first_run: dict[str, str], spark: Any, dbt: Dbt, home: Path) -> None:
    somebodys = home / "warehouse" / "binloom.db" / "row_changes" / ".spark-staging-of-somebody" / "part-1.parquet"
    somebodys.parent.mkdir()
    somebodys.write_bytes(b"half a file")
    dbt("run", "--select", "quarantined_tables")
    assert somebodys.exists()
    shutil.rmtree(somebodys.parent)


@pytest.mark.deep
def test_a_full_refresh_first_forgets_what_was_built(
    first_run: dict[str, str], spark: Any, dbt: Dbt, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = ["binloom.row_changes", "binloom_intermediate.row_changes_built_parts"]
    whole = contents(spark, *tables)
    spoilt = copied_project(tmp_path, {})
    model = spoilt / "models" / "marts" / "row_changes.sql"
    model.write_text(model.read_text().replace("select * from final", "select * from final where raise_error('x')"))
    with monkeypatch.context() as inside:
        inside.chdir(spoilt)
        assert project.run_dbt(["run", "--full-refresh", "--select", "row_changes"], home).counts == Counter(error=1)
    # Otherwise a table that was cut off after `create table` would look complete.
    assert contents(spark, tables[1]) == {tables[1]: []}
    # Questions take what is not in the record from the raw tables.
    assert rows_for_readers(home, "binloom.row_changes") == [2]
    dbt("run", "--select", "row_changes")
    assert contents(spark, *tables) == whole
    assert rows_for_readers(home, "binloom.row_changes") == [2]


@pytest.mark.deep
def test_tables_that_lack_rows_do_not_count_as_built(
    first_run: dict[str, str], spark: Any, dbt: Dbt, home: Path
) -> None:
    tables = ["binloom.row_changes", "binloom.transactions"]
    chosen = ("--select", "+row_changes", "+transactions")
    whole = contents(spark, *tables)
    states = dbt("run", "--empty", *chosen)
    assert set(states.values()) == {"success"}, states
    assert contents(spark, *tables) == {table: [] for table in tables}
    with pytest.raises(UnfinishedMartError, match="left rows out"):
        rows_for_readers(home, "binloom.row_changes")
    states = dbt("run", *chosen)
    assert set(states.values()) == {"success"}, states
    assert contents(spark, *tables) == whole
    assert rows_for_readers(home, *tables) == [len(whole[table]) for table in tables]


@pytest.mark.deep
def test_a_sample_has_the_rows_of_its_time(first_run: dict[str, str], spark: Any, dbt: Dbt) -> None:
    table, chosen = "binloom.row_changes", ("--select", "+row_changes")
    (whole,) = contents(spark, table).values()
    # The first of the two changes.
    states = dbt("run", "--sample", "{'start': '2026-11-01 12:00', 'end': '2026-11-01 12:30'}", *chosen)
    assert set(states.values()) == {"success"}, states
    assert contents(spark, table) == {table: [row for row in whole if '"Bob"' not in row]}
    dbt("run", *chosen)
    assert contents(spark, table) == {table: whole}


def test_dbt_tells_how_fresh_the_sources_are(first_run: dict[str, str], dbt: Dbt) -> None:
    states = dbt("source", "freshness")
    assert {states[name] for name in ("segments", "binlog_files")} <= {"pass", "warn"}, states


def test_a_model_that_fails_is_told_in_a_paragraph(
    first_run: dict[str, str], home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = {"int_misspelt": ANALYSIS_ERROR, "int_spoilt": RUNTIME_ERROR}
    monkeypatch.chdir(copied_project(tmp_path, models))
    run = project.run_dbt(["run", "--select", *models], home)
    assert not run.success and run.counts == Counter(error=2)
    misspelt, spoilt = sorted(run.failures)
    assert re.match(r"int_misspelt: .*\(models/intermediate/int_misspelt\.sql\).*`no_such_column`.*line \d+", misspelt)
    assert re.match(r"int_spoilt: .*\(models/intermediate/int_spoilt\.sql\).*spoilt customers", spoilt)
    for failure in run.failures:
        assert len(failure) < 1500 and "\n" not in failure
        assert "plan" not in failure and "Relation" not in failure and "Exception" not in failure


@pytest.mark.deep
def test_a_column_of_another_type_stops_the_build_of_a_table(
    first_run: dict[str, str],
    raw: RawTables,
    spark: Any,
    dbt: Dbt,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = "binloom_intermediate.int_row_change_counts"
    dbt("run", "--select", "int_row_change_counts")
    whole = contents(spark, table)
    raw.land("binlog.000002", [Change(CUSTOMERS, NOON + timedelta(hours=2), after=["2", "Eve"])])
    dbt("run", "--select", "+row_changes")
    changed = copied_project(tmp_path, {})
    model = changed / "models" / "intermediate" / "row_changes" / "int_row_change_counts.sql"
    text = model.read_text()
    model.write_text(
        text.replace("select * from final", "select * except (row_changes), row_changes / 2 as row_changes from final")
    )
    assert model.read_text() != text
    with monkeypatch.context() as inside:
        inside.chdir(changed)
        run = project.run_dbt(["run", "--select", "int_row_change_counts"], home)
    (failure,) = run.failures
    assert "on_schema_change" in failure and contents(spark, table) == whole
    dbt("run", "--select", "int_row_change_counts")
    assert len(contents(spark, table)[table]) == len(whole[table]) + 1
