"""The marts of a home, built on a Spark cluster: with a metastore in PostgreSQL, through a Thrift server."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ingest.warehouse.catalog import create_statement
from ingest.warehouse.home import prepare_home, raw_table_dir, warehouse_dir
from ingest.warehouse.settings_file import CONF_VARIABLE
from ingest.warehouse.tables import RAW_SCHEMA, RAW_TABLES
from recover.sources.cluster import Cluster
from tests.servers.postgresql import postgresql
from tests.servers.spark_cluster import EXECUTORS, SparkCluster, spark_cluster, write_settings
from tests.servers.thrift import ThriftServer, thrift_server
from tests.support.commands import DBT
from tests.support.places import PROJECT


@dataclass(frozen=True)
class ClusterHome:
    """A home whose tables are on a cluster, and the programs of this cluster."""

    home: Path
    server: ThriftServer
    spark: SparkCluster
    settings: Path

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables with which sessions of Spark use the cluster and its metastore."""
        return {"BINLOOM_HOME": str(self.home), CONF_VARIABLE: str(self.settings)}

    def start_dbt(self, *words: str) -> "subprocess.Popen[str]":
        """Start a command of dbt with target thrift."""
        places = ["--project-dir", str(PROJECT), "--profiles-dir", str(PROJECT)]
        places += ["--target-path", str(self.home / "target"), "--log-path", str(self.home / "logs")]
        variables = {**self.server.environment, "BINLOOM_HOME": str(self.home), "PYTHONPATH": str(PROJECT)}
        return subprocess.Popen(
            [str(DBT), *words, *places],
            env={**os.environ, **variables},
            cwd=PROJECT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def dbt(self, *words: str) -> None:
        """Run a command of dbt with target thrift, which must succeed."""
        must_succeed(self.start_dbt(*words))


def must_succeed(process: "subprocess.Popen[str]") -> None:
    """Wait for the end of a process."""
    out, _ = process.communicate()
    assert process.returncode == 0, out[-5000:]


@contextmanager
def built_on_cluster(landed: Path, folder: Path, build: Sequence[str]) -> Iterator[ClusterHome]:
    """Start a cluster on a copy of the raw tables of a home, and build models there.

    Parameters
    ----------
    landed
        Home with the raw tables.
    folder
        An empty folder, for everything.
    build
        Words of dbt's command.
    """
    home = folder / "home"
    prepare_home(home)
    raw = f"{RAW_SCHEMA}.db"
    shutil.copytree(warehouse_dir(landed) / raw, warehouse_dir(home) / raw)
    (folder / "spark").mkdir()
    with postgresql() as metastore, spark_cluster(folder / "spark") as spark:
        settings = {"spark.master": spark.address, **EXECUTORS, **metastore.metastore_settings}
        path = write_settings(folder / "spark.conf", settings)
        with thrift_server(home, settings=settings) as server:
            register(server, home)
            there = ClusterHome(home, server, spark, path)
            there.dbt(*build)
            yield there


def register(server: ThriftServer, home: Path) -> None:
    """Make the raw tables of a home known to a metastore; dbt registers their partitions."""
    cluster = Cluster("127.0.0.1", server.port, "binloom")
    cluster.plain_rows(f"create schema {RAW_SCHEMA}")
    for table in RAW_TABLES.values():
        cluster.plain_rows(create_statement(table, str(raw_table_dir(table.name, home))))
