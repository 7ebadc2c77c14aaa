"""The statements by which models become tables of Parquet, Iceberg and Delta, without Spark."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jinja2
import pytest
import yaml

from binloom.doctor.cluster import _file_format
from tests.support.models.macros import Macros, Table
from tests.support.places import PROJECT

PARTITIONS = ["source_id", "epoch"]
COLUMNS = ["gtid", *PARTITIONS]
PARTS = [{"source_id": "it's", "epoch": 0}, {"source_id": "b", "epoch": 1}]
FORMATS = ["parquet", "iceberg", "delta"]
LEAN = (
    "'parquet.enable.dictionary' \"false\" , 'parquet.column.statistics.enabled' \"false\" ,"
    " 'parquet.size.statistics.enabled' \"false\" , 'parquet.compression.codec.zstd.level' \"1\" ,"
    " 'parquet.enable.dictionary#kind' \"true\" , 'parquet.column.statistics.enabled#start_pos' \"true\" ,"
    " 'parquet.bloom.filter.enabled#pk_hash' \"true\" , 'parquet.bloom.filter.adaptive.enabled' \"true\" ,"
    " 'parquet.bloom.filter.candidates.number#pk_hash' \"9\" "
)


def macros(file_format: str, **config: Any) -> Macros:
    """Return the macros as a partitioned model of this format has them."""
    table = Table("marts.model", COLUMNS, file_format)
    given = {
        "contract": {"enforced": False},
        "file_format": file_format,
        "partition_by": PARTITIONS,
        "materialized": "parts",
    }
    return Macros({**given, **config}, this=table)


def lean(file_format: str) -> dict[str, str]:
    """Return the options of a table that is looked up by one column and filtered by another."""
    options: dict[str, str] = macros(file_format).value("lean_parquet_options", ["kind"], ["start_pos"], ["pk_hash"])
    return options


@pytest.mark.parametrize(
    ("file_format", "created"),
    [
        (
            "parquet",
            f"create table marts.model using parquet options ({LEAN}) partitioned by (source_id,epoch) as select 1",
        ),
        (
            "iceberg",
            "create or replace table marts.model using iceberg tblproperties ("
            "'write.parquet.bloom-filter-enabled.column.pk_hash' = 'true', 'write.parquet.compression-level' = '1',"
            " 'write.metadata.metrics.default' = 'none', 'write.metadata.metrics.column.start_pos' = 'truncate(16)')"
            " partitioned by (source_id,epoch) as select 1",
        ),
        (
            "delta",
            "create or replace table marts.model using delta tblproperties ("
            "'delta.dataSkippingStatsColumns' = 'start_pos') partitioned by (source_id,epoch) as select 1",
        ),
    ],
)
def test_a_table_is_created_in_its_format(file_format: str, created: str) -> None:
    found = macros(file_format, options=lean(file_format))
    assert found.render("spark__create_table_as", False, Table("marts.model", []), "select 1") == created


def test_delta_keeps_no_statistics_where_no_column_is_filtered_by() -> None:
    options = macros("delta").value("lean_parquet_options")
    assert macros("delta", options=options).value("format_properties") == {"delta.dataSkippingNumIndexedCols": "0"}


@pytest.mark.parametrize("file_format", FORMATS)
def test_parts_are_replaced_by_the_partitions_that_the_query_returns(file_format: str) -> None:
    clause = " partition (source_id, epoch)" if file_format == "parquet" else ""
    replaced = f"insert overwrite table marts.model{clause} select gtid, source_id, epoch from ( select 1 )"
    assert macros(file_format).render("replace_parts", "select 1") == replaced


@pytest.mark.parametrize(
    ("file_format", "dropped"),
    [
        (
            "parquet",
            "alter table t drop if exists partition (source_id = 'it\\U00000027s', epoch = 0),"
            " partition (source_id = 'b', epoch = 1)",
        ),
        (
            "iceberg",
            "delete from t where (source_id = 'it\\U00000027s' and epoch = 0) or (source_id = 'b' and epoch = 1)",
        ),
    ],
)
def test_parts_that_are_gone_are_dropped_or_deleted(file_format: str, dropped: str) -> None:
    found = macros(file_format)
    found.value("drop_parts", "t", PARTS)
    found.value("drop_parts", "t", [])
    assert found.statements == [dropped]
    assert macros("delta").value("drop_parts_statement", "t", PARTS) == macros("iceberg").value(
        "drop_parts_statement", "t", PARTS
    )


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("before", [None, *FORMATS])
def test_the_record_of_parts_is_emptied_in_its_format(file_format: str, before: str | None) -> None:
    record = None if before is None else Table("built", [*PARTITIONS, "fingerprint"], before)
    found = Macros({"file_format": file_format, "partition_by": PARTITIONS}, load_cached_relation=lambda built: record)
    found.value("forget_parts", "built")
    created = f"create table if not exists built (source_id string, epoch int, fingerprint string) using {file_format}"
    emptied = "truncate table built" if file_format == "parquet" else "delete from built"
    dropped = ["drop table built"] if before not in (None, file_format) else []
    unfinished = "alter table built set tblproperties ('binloom.is_whole' = 'false')"
    assert found.statements[: len(dropped) + 3] == [*dropped, created, unfinished, emptied]


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("before", FORMATS)
def test_a_table_in_another_format_is_written_again(file_format: str, before: str) -> None:
    record = Table("built", [*PARTITIONS, "fingerprint"])
    found = Macros({"file_format": file_format, "partition_by": PARTITIONS}, load_cached_relation=lambda built: record)
    table = Table("marts.model", COLUMNS, before)
    assert found.value("has_parts_of_model", table, record) is (before == file_format)
    record.columns = ["source_id", "fingerprint"]
    if file_format != "parquet":
        assert not found.value("has_parts_of_model", table, record)


def test_one_variable_chooses_the_format_of_all_tables() -> None:
    text = (PROJECT / "dbt_project.yml").read_text()
    template = jinja2.Environment(autoescape=False)
    formats = []
    for environment in ({}, {"BINLOOM_FILE_FORMAT": "iceberg"}):
        # Hooks and macros are rendered by dbt, later.
        lines = "\n".join(line for line in text.splitlines() if "env_var" in line or "{{" not in line)
        project = yaml.safe_load(template.from_string(lines).render(env_var=environment.get))
        formats += [project["models"]["+file_format"], project["seeds"]["+file_format"]]
    assert formats == ["parquet", "parquet", "iceberg", "iceberg"]


def test_an_unknown_format_is_refused() -> None:
    def refuse(message: str) -> None:
        raise ValueError(message)

    exceptions = {"raise_compiler_error": refuse}
    found = Macros({}, env_var=lambda name, default: "orc", exceptions=exceptions)
    with pytest.raises(ValueError, match=r"BINLOOM_FILE_FORMAT is 'orc', but .* parquet, iceberg, delta"):
        found.value("assert_file_format_is_known")


@pytest.mark.parametrize(
    ("made", "words"), [("metadata/v1.metadata.json", "an Iceberg"), ("_delta_log/00.json", "a Delta")]
)
def test_a_table_that_is_not_parquet_is_refused_without_spark(made: str, words: str, tmp_path: Path) -> None:
    table = tmp_path / "warehouse" / "binloom.db" / "row_changes"
    (table / made).parent.mkdir(parents=True)
    (table / made).touch()
    (table / "part-0.parquet").touch()
    command = [sys.executable, "-m", "binloom.cli", "sql", "select * from row_changes"]
    result = subprocess.run(
        command, env={"BINLOOM_HOME": str(tmp_path), "PYTHONPATH": str(PROJECT)}, capture_output=True, text=True
    )
    assert result.returncode == 3, result.stderr
    assert f"binloom.row_changes is {words} table, which only a Spark cluster can read." in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("file_format", "catalog", "found"),
    [
        ("parquet", None, []),
        ("iceberg", None, ["error"]),
        ("iceberg", "org.apache.iceberg.spark.SparkSessionCatalog", []),
        ("delta", "org.apache.iceberg.spark.SparkSessionCatalog", ["error"]),
    ],
)
def test_the_catalog_of_a_cluster_must_fit_the_format(
    file_format: str, catalog: str | None, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BINLOOM_FILE_FORMAT", file_format)
    cluster: Any = SimpleNamespace(setting=lambda name: catalog)
    assert [finding.level for finding in _file_format(cluster)] == found
