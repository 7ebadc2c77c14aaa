"""Spark's errors as dbt prints them: the useful part stays, the plan and the stack do not."""

from pathlib import Path

import pytest

from binloom.commands.spark_messages import told, without_plan
from ingest.warehouse import home

ANALYSIS = """Runtime Error
  [UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `nosuch` cannot be resolved. SQLSTATE: 42703; line 1 pos 7;
  'Project ['nosuch]
  +- SubqueryAlias spark_catalog.binlog_raw.row_events
"""
RUNTIME = """[CAST_INVALID_INPUT] The value 'x' of the type "STRING" cannot be cast to "INT". SQLSTATE: 22018
== SQL (line 1, position 12) ==
select sum(cast(concat('x', table_name) as int)) from binlog_raw.row_events
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"""
SERVER = "Error in query: [X] wrong. SQLSTATE: 1\n\tat org.apache.spark.sql.Some$Class.run(Some.scala)\n\tat a.b(C)"


def test_a_folder_of_a_killed_build_is_named_with_what_to_do(tmp_path: Path) -> None:
    message = (
        "Cannot name the managed table as `spark_catalog`.`binloom`.`x`, as its associated location"
        " 'file:/home/warehouse/binloom.db/x' already exists. Please pick a different table name"
    )
    assert told(message, tmp_path) == (
        "A build that was killed left the folder file:/home/warehouse/binloom.db/x, and Spark creates no table over it."
        " If no other build is running on this cluster, run the same command with --vars 'clear_dead_build: true'."
    )


def test_an_error_of_the_analysis_ends_with_its_line() -> None:
    assert without_plan(ANALYSIS).endswith("cannot be resolved. SQLSTATE: 42703; line 1 pos 7")


def test_an_error_of_a_row_keeps_the_expression() -> None:
    assert without_plan(RUNTIME) == RUNTIME


def test_the_stack_of_a_server_is_left_out() -> None:
    assert without_plan(SERVER) == "Error in query: [X] wrong. SQLSTATE: 1"


def test_a_full_disk_in_the_stack_is_told(tmp_path: Path) -> None:
    text = "[TASK_WRITE_FAILED] Failed.\n\tat a.b(C)\nCaused by: java.io.IOException: No space left on device"
    expected = f"No space left on device on the disk of {tmp_path}. Free some space, and run the same command again."
    assert told(text, tmp_path).splitlines() == ["[TASK_WRITE_FAILED] Failed.", expected]
    assert told(SERVER, tmp_path) == without_plan(SERVER)


def test_a_full_disk_that_hive_does_not_tell_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home, "is_full", lambda folder: folder == tmp_path)
    assert "No space left on device" in told("Unable to instantiate SessionHiveMetaStoreClient", tmp_path)
