"""The marts of a home, built on a Spark cluster: with a metastore in PostgreSQL, through a Thrift server.

The one build that the tests share can also show what a killed server leaves: it is killed while a table is written,
another one takes its place, and `binloom build --every` builds the rest.
"""

import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from ingest.warehouse.home import prepare_home, warehouse_dir
from ingest.warehouse.settings_file import CONF_VARIABLE
from ingest.warehouse.tables import RAW_SCHEMA
from tests.servers.postgresql import postgresql
from tests.servers.spark_cluster import EXECUTORS, SparkCluster, spark_cluster, write_settings
from tests.servers.thrift import ThriftServer, thrift_server
from tests.support.command_line import COMMAND
from tests.support.commands import DBT
from tests.support.follow.proxy import Proxy
from tests.support.patience import PATIENCE_SECONDS
from tests.support.places import PROJECT

# The statement that writes this mart is in the log before it runs.
KILLED_AT = re.compile(r"create table\s+\S*\brow_changes\b")


@dataclass(frozen=True)
class ClusterHome:
    """A home whose tables are on a cluster, and the programs of this cluster.

    Attributes
    ----------
    home
        The home.
    server
        The Thrift server that runs now.
    spark
        The cluster.
    settings
        File with the settings of sessions.
    proxy
        The address of the Thrift server for `binloom build`: it stays when another server takes the place.
    options
        Options of `binloom build`.
    told
        Lines that `binloom build` has written.
    """

    home: Path
    server: ThriftServer
    spark: SparkCluster
    settings: Path
    proxy: Proxy
    options: Sequence[str]
    told: list[str]

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables with which sessions of Spark use the cluster and its metastore."""
        return {"BINLOOM_HOME": str(self.home), CONF_VARIABLE: str(self.settings)}

    @property
    def build_environment(self) -> dict[str, str]:
        """Return the variables of `binloom build`."""
        return build_environment(self.home, self.proxy)

    def start_dbt(self, *words: str) -> "subprocess.Popen[str]":
        """Start a command of dbt with target thrift."""
        places = ["--project-dir", str(PROJECT), "--profiles-dir", str(PROJECT)]
        places += ["--target-path", str(self.home / "target"), "--log-path", str(self.home / "logs")]
        # With the same address and variables, dbt uses what the build has parsed.
        variables = {**self.build_environment, "PYTHONPATH": str(PROJECT)}
        return subprocess.Popen(
            [str(DBT), *words, *places],
            env={**os.environ, **variables},
            cwd=PROJECT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


def must_succeed(process: "subprocess.Popen[str]") -> None:
    """Wait for the end of a process."""
    out, _ = process.communicate()
    assert process.returncode == 0, out[-5000:]


def build_environment(home: Path, proxy: Proxy) -> dict[str, str]:
    """Return the variables with which `binloom build` builds through a proxy of a Thrift server."""
    place = {"BINLOOM_THRIFT_HOST": proxy.host, "BINLOOM_THRIFT_PORT": str(proxy.port)}
    return {"BINLOOM_HOME": str(home), "BINLOOM_TARGET": "thrift", **place}


@contextmanager
def built_on_cluster(landed: Path, folder: Path, options: Sequence[str], *, with_kill: bool) -> Iterator[ClusterHome]:
    """Start a cluster on a copy of the raw tables of a home, and build models there.

    Parameters
    ----------
    landed
        Home with the raw tables.
    folder
        An empty folder, for everything.
    options
        Options of `binloom build`.
    with_kill
        Whether the first server is killed while the build writes a table.
    """
    home = folder / "home"
    prepare_home(home)
    raw = f"{RAW_SCHEMA}.db"
    shutil.copytree(warehouse_dir(landed) / raw, warehouse_dir(home) / raw)
    (folder / "spark").mkdir()
    with ExitStack() as stack:
        metastore = stack.enter_context(postgresql())
        spark = stack.enter_context(spark_cluster(folder / "spark"))
        settings = {"spark.master": spark.address, **EXECUTORS, **metastore.metastore_settings}
        path = write_settings(folder / "spark.conf", settings)
        server = stack.enter_context(thrift_server(home, settings=settings))
        proxy = stack.enter_context(Proxy(server))
        with _building(home, proxy, options) as process:
            if with_kill:
                _wait_until_it_writes(home, process)
                server.kill()
                server = stack.enter_context(thrift_server(home, settings=settings))
                proxy.point_to(server)
            told = _told_until_built(process)
        yield ClusterHome(home, server, spark, path, proxy, options, told)


@contextmanager
def _building(home: Path, proxy: Proxy, options: Sequence[str]) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [*COMMAND, "build", "--every", "1s", *options],
        cwd=PROJECT,
        env={**os.environ, **build_environment(home, proxy), "JAVA_HOME": "/nonexistent"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    timer = threading.Timer(PATIENCE_SECONDS, process.kill)
    timer.start()
    try:
        yield process
    finally:
        timer.cancel()
        process.kill()
        process.wait()


def _wait_until_it_writes(home: Path, process: "subprocess.Popen[str]") -> None:
    log = home / "logs" / "dbt.log"
    while not (log.exists() and KILLED_AT.search(log.read_text(errors="replace"))):
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.1)


def _told_until_built(process: "subprocess.Popen[str]") -> list[str]:
    """Return what a build writes until all models are good, and end it."""
    assert process.stdout is not None
    told: list[str] = []
    while not (told and " built in " in told[-1]):
        line = process.stdout.readline()
        assert line, f"the build has ended: {told}"
        told.append(line.rstrip("\n"))
        is_lost = "The connection to the Thrift server was lost" in line or "No Thrift server answers" in line
        # Anything else would not be tried again.
        assert is_lost or not line.startswith("  fails: "), told
    # It is recorded by now, but may not be over.
    process.send_signal(signal.SIGTERM)
    process.communicate()
    return told
