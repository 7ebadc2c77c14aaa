"""Checks of a Spark cluster behind its Thrift server: version, clock, tables, and the settings that change answers."""

import os
import time
from collections.abc import Iterator
from importlib.metadata import version
from typing import Final

from binloom.doctor.clocks import clock_finding
from binloom.doctor.findings import Finding
from binloom.doctor.settings import unfit_settings
from ingest.errors import BinloomError
from ingest.warehouse.table_format import FORMAT_VARIABLE
from recover.sources.cluster.thrift import Cluster

# The catalog that makes `create table … using` work for a format, in the catalog where all tables are.
_CATALOG: Final = "spark.sql.catalog.spark_catalog"
_CATALOGS: Final = {
    "iceberg": "org.apache.iceberg.spark.SparkSessionCatalog",
    "delta": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def check_cluster() -> Iterator[Finding]:
    """Check the cluster that the environment names."""
    try:
        yield from checked(Cluster.of_environment(settings={}))
    except BinloomError as error:
        yield Finding.of_error("cluster", error)


def checked(cluster: Cluster) -> Iterator[Finding]:
    """Check a cluster through a session with the settings that dbt's sessions have: the server's own."""
    yield _version(cluster)
    yield _clock(cluster)
    yield from _settings(cluster)
    yield from _file_format(cluster)
    yield _tables(cluster)


def _version(cluster: Cluster) -> Finding:
    ((text,),) = cluster.plain_rows("select version()")
    there, here = str(text).split()[0], version("pyspark")
    if there.split(".")[:2] != here.split(".")[:2]:
        message = f"The cluster runs Spark {there}, but binloom's models are tested with Spark {here} only."
        return Finding("cluster version", "error", f"{message} Use a cluster of the same minor version.")
    return Finding("cluster version", "good", f"The cluster runs Spark {there}.")


def _clock(cluster: Cluster) -> Finding:
    before = time.time()
    ((micros,),) = cluster.plain_rows("select unix_micros(current_timestamp())")
    return clock_finding("cluster clock", "the cluster", int(micros) / 1e6, before)


def _settings(cluster: Cluster) -> Iterator[Finding]:
    def remedy(name: str, fit: str) -> str:
        return f"Start the server with --conf {name}={fit}."

    yield from unfit_settings("cluster settings", cluster.setting, remedy)


def _file_format(cluster: Cluster) -> Iterator[Finding]:
    chosen = os.environ.get(FORMAT_VARIABLE, "parquet")
    wanted, found = _CATALOGS.get(chosen), cluster.setting(_CATALOG)
    if wanted is not None and found != wanted:
        message = f"{FORMAT_VARIABLE} is {chosen}, but {_CATALOG} is {found or 'not set'}: no table can be built."
        yield Finding("cluster settings", "error", f"{message} Start the server with --conf {_CATALOG}={wanted}.")


def _tables(cluster: Cluster) -> Finding:
    names = {str(row[0]) for row in cluster.plain_rows("show schemas")}
    if "binlog_raw" not in names:
        message = "The cluster has no schema binlog_raw: nothing was landed in its metastore, or it uses another one."
        return Finding("cluster tables", "warning", f"{message} Run `binloom ingest` with the cluster's metastore.")
    if "binloom" not in names:
        return Finding("cluster tables", "warning", "The cluster has raw tables but no models. Run `dbt build`.")
    return Finding("cluster tables", "good", "The cluster has raw tables and models.")
