"""Spark's Thrift server on the warehouse of a home, from the jars of the pyspark wheel."""

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ingest.warehouse.jvm import SHORT_LIVED_OPTIONS, class_options, find_java, java_command, spark_folder
from ingest.warehouse.spark import spark_settings
from tests.servers.ports import ReservedPort
from tests.servers.server import ServerStartError, _end_with_parent
from tests.support.patience import PATIENCE_SECONDS

STOP_SECONDS = 30
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_CLASS = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"


@dataclass(frozen=True)
class ThriftServer:
    """A server that answers on this machine only, as long as its block lasts."""

    port: int
    process: "subprocess.Popen[bytes]"

    @property
    def host(self) -> str:
        """Return the address where it listens."""
        return "127.0.0.1"

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables with which a command asks this server."""
        return {
            "BINLOOM_TARGET": "thrift",
            "BINLOOM_THRIFT_HOST": "127.0.0.1",
            "BINLOOM_THRIFT_PORT": str(self.port),
        }

    def kill(self) -> None:
        """Kill the process at once, as a crash would."""
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def thrift_server(
    home: Path,
    *,
    warehouse: Path | None = None,
    settings: Mapping[str, str] = NOTHING,
) -> Iterator[ThriftServer]:
    """Start a server that holds the metastore of a home until the block ends.

    Parameters
    ----------
    home
        Its metastore must be free: the server is the one process that holds it.
    warehouse
        Folder of new tables; default the warehouse of the home.
    settings
        Further settings of Spark, such as the master of a cluster.
    """
    reserved = ReservedPort()
    port = reserved.number
    settings = {
        **spark_settings(home),
        "spark.master": "local[2]",
        "spark.driver.memory": "1g",
        # Most queries run once and read some hundred rows: compiling each of them takes longer than running it.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.shuffle.partitions": "1",
        **settings,
    }
    if warehouse is not None:
        settings["spark.sql.warehouse.dir"] = str(warehouse)
    # Hive writes the folders of sessions to /tmp otherwise.
    hive = {
        "hive.server2.thrift.port": port,
        "hive.server2.thrift.bind.host": "127.0.0.1",
        "hive.server2.logging.operation.enabled": "false",
        "hive.exec.scratchdir": home / "tmp" / "hive",
        "hive.exec.local.scratchdir": home / "tmp" / "hive-local",
    }
    command = [
        *java_command(find_java(), settings["spark.driver.memory"], settings.get("spark.driver.extraClassPath")),
        *SHORT_LIVED_OPTIONS,
        "-XX:+UseSerialGC",
        *class_options(),
        f"-Dderby.stream.error.file={home}/tmp/derby.log",
        "-Duser.timezone=UTC",
        "org.apache.spark.deploy.SparkSubmit",
        *("--class", _CLASS),
        *(part for key, value in settings.items() for part in ("--conf", f"{key}={value}")),
        "spark-internal",
        *(part for key, setting in hive.items() for part in ("--hiveconf", f"{key}={setting}")),
    ]
    (home / "tmp").mkdir(exist_ok=True)
    output = home / "tmp" / "thrift-server.log"
    output.touch(mode=0o600)
    with output.open("wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "SPARK_HOME": str(spark_folder()), "SPARK_LOCAL_IP": "127.0.0.1"},
            preexec_fn=_end_with_parent,
            # The files of a home are private, whichever program writes them.
            umask=0o077,
        )
    try:
        _wait_until_it_answers(process, port, output)
        yield ThriftServer(port, process)
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        reserved.free()


def _wait_until_it_answers(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            break
        if process.poll() is not None or time.monotonic() > deadline:
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
            raise ServerStartError(f"the Thrift server does not answer:\n{tail}")
        time.sleep(0.1)
    from pyhive import hive

    # The first session loads most of the classes.
    hive.connect("127.0.0.1", port, username="binloom").close()
