"""Plugins of dbt: an error of Spark is a paragraph, without the plan behind it; a lost connection is opened again; a
session has the settings that fit the number of new rows; a run that writes tables makes the next `binloom build` build.

dbt loads each module on Python's path whose name begins with `dbt_`; `.ci/setup` puts this folder there. Spark adds the
plan of all models below to an error, and pyspark prints the error once more as a line of JSON. No setting reaches
either: the plan is written where the settings of the session are not known, in a thread of dbt's. A full disk is
named: Spark and Hive keep it in the stack, or to themselves.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from dbt.adapters.spark.connections import SparkConnectionManager
from dbt.plugins.manager import dbtPlugin
from dbt_common.exceptions import DbtRuntimeError
from pyspark.logger import PySparkLogger

from binloom.commands.build_settings import RunConnections
from binloom.commands.spark_messages import told
from ingest.warehouse.home import binloom_home

# The logger that pyspark.errors uses.
_REPEATING_LOGGER = "SQLQueryContextLogger"
_with_plan = SparkConnectionManager.exception_handler


@contextmanager
def _without_plan(manager: SparkConnectionManager, sql: str) -> Iterator[None]:
    try:
        with _with_plan(manager, sql):
            yield
    except Exception as error:
        # dbt adds the name of the model to its own errors. dbt-spark passes an error that a row raises on unchanged.
        text = error.msg if isinstance(error, DbtRuntimeError) else str(error)
        raise DbtRuntimeError(told(text, binloom_home()).removeprefix("Runtime Error\n").strip()) from error


class ShortErrors(dbtPlugin):
    """Cuts what dbt-spark makes of an error, and keeps pyspark from repeating it."""

    def initialize(self) -> None:
        PySparkLogger.getLogger(_REPEATING_LOGGER).setLevel(logging.CRITICAL + 1)
        SparkConnectionManager.exception_handler = _without_plan


class Connections(dbtPlugin):
    """Opens connections with settings that fit the run, and lost ones to a Thrift server again.

    The first connection of a run that writes tables forgets the good builds.
    """

    def initialize(self) -> None:
        # dbt does this for each run.
        SparkConnectionManager.open = staticmethod(RunConnections().open)


plugins = [ShortErrors, Connections]
