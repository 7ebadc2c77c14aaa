"""Errors of Spark as dbt hands them on: what a person needs is kept, the plan and the stack are not."""

from ingest.commands.spark_messages import without_plan

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


def test_an_error_of_the_analysis_ends_with_its_line() -> None:
    assert without_plan(ANALYSIS).endswith("cannot be resolved. SQLSTATE: 42703; line 1 pos 7")


def test_an_error_of_a_row_keeps_the_expression() -> None:
    assert without_plan(RUNTIME) == RUNTIME


def test_the_stack_of_a_server_is_left_out() -> None:
    assert without_plan(SERVER) == "Error in query: [X] wrong. SQLSTATE: 1"
