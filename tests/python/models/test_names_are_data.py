"""Files with harmful names, through landing, the models and the gate."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ingest.warehouse.catalog import sql_literal
from ingest.warehouse.names import partition_step
from tests.python.warehouse.test_names import KEPT
from tests.support.nasty import (
    FILE,
    FOLDER,
    INCIDENT,
    LABELS,
    SCHEMA,
    SOURCE,
    TABLE,
    VALUE,
    nasty_file,
    run,
)

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Dbt = Callable[..., dict[str, str]]


def test_tables_have_every_name_as_it_is(
    spark: Any, dbt: Dbt, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder := tmp_path / FOLDER).mkdir()
    # The second build writes the name of the new file into its statements.
    for number, marts in enumerate((["row_changes", "quarantined_row_events", "table_versions"], ["transactions"]), 1):
        nasty_file(folder / (FILE % number), number)
        run(capsys, "ingest", "--source", SOURCE, "--binlog-dir", str(folder), "--all")
        select = ["--resource-type", "model", "--resource-type", "seed", "--select", *(f"+{mart}" for mart in marts)]
        assert set(dbt("build", *select).values()) == {"success"}
    assert {path.name for path in tmp_path.rglob("*")} == {FOLDER, FILE % 1, FILE % 2}

    place = {"source_id": SOURCE, "schema_name": SCHEMA, "table_name": TABLE, "event_type": "INSERT"}
    (change,) = spark.table("binloom.row_changes").collect()
    assert {name: change[name] for name in place} == place
    assert change["binlog_file"] == FILE % 1
    assert change["row_after"] == dict(zip(LABELS, ["1", VALUE, VALUE], strict=True))
    transactions = spark.table("binloom.transactions").select("source_id", "binlog_file").distinct().collect()
    assert {tuple(row) for row in transactions} == {(SOURCE, FILE % 1), (SOURCE, FILE % 2)}
    quarantined = spark.table("binloom.quarantined_row_events").collect()
    assert [(row["source_id"], row["event_type"], INCIDENT in row["detail"]) for row in quarantined] == [
        (SOURCE, "INCIDENT", True)
    ]
    versions = spark.table("binloom.table_versions").select(*list(place)[:3]).distinct().collect()
    assert {tuple(row) for row in versions} == {(SOURCE, SCHEMA, TABLE), (SOURCE, SCHEMA, f"{TABLE}_2")}
    run(capsys, "quality", "--source", SOURCE)


def test_spark_and_its_metastore_find_each_name(spark: Any, home: Path) -> None:
    literals = ", ".join(f"({number}, {sql_literal(name)})" for number, name in enumerate(KEPT))
    rows = spark.sql(f"select * from values {literals} as t (number, name) order by number").collect()
    assert [row["name"] for row in rows] == KEPT

    folder = home / "named"
    spark.sql(
        f"create table named (n int, source_id string) using parquet partitioned by (source_id) location '{folder}'"
    )
    names = spark.createDataFrame(list(enumerate(KEPT)), "n int, source_id string")
    names.where("n % 2 = 0").coalesce(1).write.insertInto("named")
    # Data that was landed without Spark is found by its folders.
    for row in names.where("n % 2 = 1").collect():
        part = names.where(f"n = {row['n']}").select("n").toPandas()
        (folder / partition_step("source_id", row["source_id"])).mkdir()
        part.to_parquet(folder / partition_step("source_id", row["source_id"]) / "part-0.parquet", index=False)
    spark.sql("msck repair table named sync partitions")
    assert {path.name for path in folder.glob("source_id=*")} == {partition_step("source_id", name) for name in KEPT}
    for number, name in enumerate(KEPT):
        (row,) = spark.sql(f"select * from named where source_id = {sql_literal(name)}").collect()
        assert tuple(row) == (number, name)
    dropped = ", ".join(f"partition (source_id = {sql_literal(name)})" for name in KEPT)
    spark.sql(f"alter table named drop {dropped}")
    assert spark.table("named").count() == 0
