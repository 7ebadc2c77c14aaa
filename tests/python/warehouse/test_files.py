"""Files of the raw tables: complete or absent, and the same definition on all sides."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingest.errors import IngestInProgressError, StoreError
from ingest.warehouse.catalog import create_statement, spark_type, sql_literal
from ingest.warehouse.descriptions import COLUMN_DESCRIPTIONS
from ingest.warehouse.files import append_rows, delete_temporaries, partition_folder, read_rows
from ingest.warehouse.home import raw_table_dir
from ingest.warehouse.landed import LANDED_SCHEMAS
from ingest.warehouse.locks import SourceLock, TaskLock
from ingest.warehouse.names import escape, source_stem
from ingest.warehouse.tables import RAW_TABLES, SEGMENT_TABLES, SEGMENTS, SOURCES


def test_partition_values_are_escaped_as_hive_does() -> None:
    assert escape("plain-name.000001") == "plain-name.000001"
    assert escape("a/b=c:d%e'f\"g#h") == "a%2Fb%3Dc%3Ad%25e%27f%22g%23h"
    assert escape("tab\there") == "tab%09here"
    assert escape("Ä ö") == "Ä ö"
    assert partition_folder({"source_id": "a/b", "epoch": 0}) == "source_id=a%2Fb/epoch=0"


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    row = {
        "source_id": "s",
        "epoch": 1,
        "server_uuid": None,
        "server_id": 7,
        "host": None,
        "port": None,
        "flavor": "mysql",
        "server_version": "9.7.0",
        "observed_at": datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
        "change": "epoch_opened",
        "start_file": "binlog.000003",
        "start_pos": 4,
        "gtids_before": "0-1-1 to 0-1-9",
    }
    append_rows(SOURCES, [row], "one", tmp_path)
    append_rows(SOURCES, [{**row, "source_id": "t"}], "two", tmp_path)
    assert read_rows(SOURCES, tmp_path, source_id="s") == [row]
    assert len(read_rows(SOURCES, tmp_path)) == 2
    # The same rows give the same file again.
    append_rows(SOURCES, [row], "one", tmp_path)
    assert len(read_rows(SOURCES, tmp_path)) == 2


def test_files_of_other_sources_are_not_opened(tmp_path: Path) -> None:
    row = {"source_id": "s", "epoch": 1, "flavor": "mysql", "observed_at": datetime(2026, 1, 2, tzinfo=UTC)}
    folder = raw_table_dir("sources", tmp_path)
    append_rows(SOURCES, [row], f"{source_stem('s')}-20260102-0a1b2c3d-00001", tmp_path)
    (folder / f"{source_stem('shop-eu')}-20260102-0a1b2c3d-00001.parquet").write_text("no Parquet")
    # The names of these files do not tell whose rows they have.
    append_rows(SOURCES, [{**row, "epoch": 2}], "part-00000-0a1b2c3d-0123-4567", tmp_path)
    append_rows(SOURCES, [{**row, "epoch": 3}], f"{source_stem('a b')}-20260102-0a1b2c3d-00001", tmp_path)
    assert {row["epoch"] for row in read_rows(SOURCES, tmp_path, source_id="s")} == {1, 2, 3}
    assert read_rows(SOURCES, tmp_path, source_id="t") == []
    with pytest.raises(StoreError):
        read_rows(SOURCES, tmp_path, source_id="shop-eu")


def test_half_written_and_hidden_files_are_not_read(tmp_path: Path) -> None:
    folder = raw_table_dir("sources", tmp_path)
    folder.mkdir(parents=True)
    (folder / ".one.123.tmp").write_bytes(b"PAR1 and then the power went")
    (folder / "_SUCCESS").write_bytes(b"")
    assert read_rows(SOURCES, tmp_path) == []


def test_files_from_before_a_column_was_added(tmp_path: Path) -> None:
    folder = raw_table_dir("sources", tmp_path)
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"source_id": ["s"], "epoch": pa.array([0], pa.int32())}), folder / "old.parquet")
    assert read_rows(SOURCES, tmp_path, ["source_id", "change"]) == [{"source_id": "s", "change": None}]


def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    raw_table_dir("sources", tmp_path).parent.mkdir(parents=True)
    raw_table_dir("sources", tmp_path).write_text("in the way")
    with pytest.raises(StoreError, match="cannot be written"):
        append_rows(SOURCES, [{"source_id": "s"}], "one", tmp_path)


def test_every_column_is_described_and_has_a_spark_type() -> None:
    for table in RAW_TABLES.values():
        for field in table.columns:
            assert COLUMN_DESCRIPTIONS[field.name]
            assert spark_type(field.type)
        assert f"create table if not exists binlog_raw.{table.name}" in create_statement(table)


def test_segment_tables_hold_what_is_landed_of_a_log_and_where_it_is_from() -> None:
    for kind, table in SEGMENT_TABLES.items():
        assert table.file_schema == LANDED_SCHEMAS[kind]
        assert table.columns.names[-4:] == ["source_id", "epoch", "binlog_file", "segment_start"]
        assert table.partition == ("source_id", "epoch", "binlog_file", "segment_start")
    assert spark_type(LANDED_SCHEMAS["row_events"].field("before_values").type) == "array<string>"


def test_literals_are_escaped_for_spark() -> None:
    assert sql_literal("it's a \\ {back}") == r"'it\U00000027s a \U0000005c \U0000007bback}'"


def test_one_ingest_of_a_source_at_a_time(tmp_path: Path) -> None:
    with (
        SourceLock(tmp_path, "shop", "run-1"),
        SourceLock(tmp_path, "other", "run-2"),
        pytest.raises(IngestInProgressError, match="landing source 'shop'"),
        SourceLock(tmp_path, "shop", "run-3"),
    ):
        pass
    with SourceLock(tmp_path, "shop", "run-4"):
        pass


def test_a_task_of_a_dead_run_writes_nothing(tmp_path: Path) -> None:
    with SourceLock(tmp_path, "shop", "run-1") as lock, TaskLock(lock.run_path, "run-1"):
        pass
    with (
        SourceLock(tmp_path, "shop", "run-2") as lock,
        pytest.raises(StoreError, match="has ended"),
        TaskLock(lock.run_path, "run-1"),
    ):
        pass


def test_sources_with_similar_names_have_locks_of_their_own() -> None:
    stems = {source_stem(name) for name in ("a/b", "a_b", "a b", "A b", "ä b")}
    assert len(stems) == 5
    assert all("/" not in stem and " " not in stem for stem in stems)


def test_temporary_files_of_a_killed_process_are_deleted(tmp_path: Path) -> None:
    folder = raw_table_dir("segments", tmp_path)
    folder.mkdir(parents=True)
    left, of_another, whole = (
        ".shop-1a-run-00005.parquet.7.tmp",
        ".shop-2b-run-1.parquet.7.tmp",
        "shop-1a-run-1.parquet",
    )
    for name in (left, of_another, whole):
        (folder / name).touch()
    delete_temporaries(SEGMENTS, "shop-1a-", tmp_path)
    assert {path.name for path in folder.iterdir()} == {of_another, whole}
