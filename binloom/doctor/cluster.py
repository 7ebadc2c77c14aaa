"""Checks of a Spark cluster behind its Thrift server: version, clock, tables, and the settings that change answers."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import Final

from binloom.doctor.clocks import clock_finding
from binloom.doctor.findings import Finding, Level
from ingest.errors import BinloomError
from recover.sources.cluster import Cluster


@dataclass(frozen=True)
class _Setting:
    """A setting, the values that fit, and what another value does."""

    name: str
    fits: tuple[str, ...]
    level: Level
    effect: str


_SETTINGS: Final = (
    _Setting("spark.sql.session.timeZone", ("UTC", "Etc/UTC", "GMT", "Z"), "error", "hours would be local hours"),
    _Setting("spark.sql.ansi.enabled", ("true",), "error", "a value that does not fit becomes NULL without an error"),
    _Setting("spark.sql.storeAssignmentPolicy", ("ANSI", "STRICT"), "error", "values are cut to fit their columns"),
    _Setting(
        "spark.sql.parquet.outputTimestampType",
        ("TIMESTAMP_MICROS", "INT96"),
        "error",
        "times lose their microseconds",
    ),
    _Setting("spark.sql.parquet.compression.codec", ("zstd",), "advice", "tables are larger"),
)
# Hadoop's committers that write to the final folder at once. Spark's dynamic overwrite, with which models replace their
# parts, needs a commit protocol that moves files from a folder of its own.
_COMMIT_PROTOCOL: Final = "spark.sql.sources.commitProtocolClass"
_MOVES_FILES: Final = (
    "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol",
    "org.apache.spark.internal.io.HadoopMapReduceCommitProtocol",
)
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
    for setting in _SETTINGS:
        yield from _setting(cluster, setting)
    yield from _commits(cluster)
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


def _setting(cluster: Cluster, setting: _Setting) -> Iterator[Finding]:
    found = cluster.setting(setting.name)
    if found is None or found.upper() not in (value.upper() for value in setting.fits):
        message = f"{setting.name} is {found or 'not set'}: {setting.effect}."
        remedy = f"Start the server with --conf {setting.name}={setting.fits[0]}."
        yield Finding("cluster settings", setting.level, f"{message} {remedy}")


def _commits(cluster: Cluster) -> Iterator[Finding]:
    found = cluster.setting(_COMMIT_PROTOCOL)
    if found is not None and found not in _MOVES_FILES:
        message = f"{_COMMIT_PROTOCOL} is {found}: a build may add rows to a part instead of replacing them."
        yield Finding("cluster settings", "error", f"{message} Start the server without this setting.")


def _file_format(cluster: Cluster) -> Iterator[Finding]:
    chosen = os.environ.get("BINLOOM_FILE_FORMAT", "parquet")
    wanted, found = _CATALOGS.get(chosen), cluster.setting(_CATALOG)
    if wanted is not None and found != wanted:
        message = f"BINLOOM_FILE_FORMAT is {chosen}, but {_CATALOG} is {found or 'not set'}: no table can be built."
        yield Finding("cluster settings", "error", f"{message} Start the server with --conf {_CATALOG}={wanted}.")


def _tables(cluster: Cluster) -> Finding:
    names = {str(row[0]) for row in cluster.plain_rows("show schemas")}
    if "binlog_raw" not in names:
        message = "The cluster has no schema binlog_raw: nothing was landed in its metastore, or it uses another one."
        return Finding("cluster tables", "warning", f"{message} Run `binloom ingest` with the cluster's metastore.")
    if "binloom" not in names:
        return Finding("cluster tables", "warning", "The cluster has raw tables but no models. Run `dbt build`.")
    return Finding("cluster tables", "good", "The cluster has raw tables and models.")
