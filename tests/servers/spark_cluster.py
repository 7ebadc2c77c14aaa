"""A standalone cluster of Spark on this machine, from the jars of the pyspark wheel: a master and its workers."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ingest.warehouse.jvm import SHORT_LIVED_OPTIONS, class_options, find_java, java_command, spark_folder
from tests.servers.ports import ReservedPort
from tests.servers.server import ServerStartError, _end_with_parent
from tests.support.patience import PATIENCE_SECONDS
from tests.support.places import PROJECT

_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"

EXECUTORS = {
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.cores.max": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
"""An application has one executor of one core on each of two workers: two applications fit."""


@dataclass
class SparkCluster:
    """A master and workers, each a process of its own, as long as their block lasts."""

    folder: Path
    python: str
    reserved_port: ReservedPort = field(default_factory=ReservedPort)
    master: "subprocess.Popen[bytes] | None" = None
    workers: "list[subprocess.Popen[bytes]]" = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"spark://127.0.0.1:{self.reserved_port.number}"

    def start_master(self) -> None:
        """Start the master and wait until it takes workers."""
        options = ("--host", "127.0.0.1", "--port", str(self.reserved_port.number), "--webui-port", "0")
        self.master = self._start("master", _MASTER, options)
        self._wait_for("master", self.master, "New state: ALIVE")

    def start_worker(self) -> None:
        """Start a worker of two cores and a gigabyte, and wait until the master knows it."""
        name = f"worker-{len(self.workers)}"
        options = ("--host", "127.0.0.1", "--cores", "2", "--memory", "1g", "--webui-port", "0")
        options = (*options, "--work-dir", str(self.folder / name), self.address)
        self.workers.append(self._start(name, _WORKER, options))
        self._wait_for(name, self.workers[-1], "Successfully registered with master")

    def kill_master(self) -> None:
        """Kill the master at once, as a crash would."""
        assert self.master is not None
        _kill(self.master)

    def kill_worker(self, number: int) -> None:
        """Kill a worker and its executors at once, as the crash of a machine would."""
        _kill_with_children(self.workers[number])

    def executors_of(self, number: int) -> list[int]:
        """Return the processes below a worker: its executors, and the Python of their tasks."""
        return _children(self.workers[number].pid)

    def stop(self) -> None:
        """Kill all processes that still run."""
        for worker in self.workers:
            _kill_with_children(worker)
        if self.master is not None:
            _kill(self.master)
        self.reserved_port.free()

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def _start(self, name: str, program: str, options: Sequence[str]) -> "subprocess.Popen[bytes]":
        command = [
            *java_command(find_java(), "256m"),
            *SHORT_LIVED_OPTIONS,
            "-XX:+UseSerialGC",
            *class_options(),
            f"-Dlog4j2.configurationFile=file:{self._log_configuration()}",
            program,
            *options,
        ]
        environment = {
            **os.environ,
            "SPARK_HOME": str(spark_folder()),
            "SPARK_LOCAL_IP": "127.0.0.1",
            # Spark's own scripts set it. Without it, a worker looks for Scala's folder in a source tree of Spark.
            "SPARK_SCALA_VERSION": "2.13",
            # The executors have Python and binloom, and nothing of the driver's.
            "PYSPARK_PYTHON": self.python,
            "PYTHONPATH": str(PROJECT),
        }
        with self.log(name).open("wb") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                preexec_fn=_end_with_parent,
                umask=0o022,
            )

    def _log_configuration(self) -> Path:
        path = self.folder / "log4j2.properties"
        if not path.exists():
            path.write_text(
                "rootLogger.level = info\nrootLogger.appenderRef.console.ref = console\n"
                "appender.console.type = Console\nappender.console.name = console\n"
                "appender.console.layout.type = PatternLayout\nappender.console.layout.pattern = %p %c{1}: %m%n\n"
            )
        return path

    def _wait_for(self, name: str, process: "subprocess.Popen[bytes]", sign: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while sign not in (text := self.log(name).read_text(errors="replace")):
            if process.poll() is not None or time.monotonic() > deadline:
                tail = "\n".join(text.splitlines()[-15:])
                raise ServerStartError(f"the {name} of the Spark cluster does not start:\n{tail}")
            time.sleep(0.05)


@contextlib.contextmanager
def spark_cluster(folder: Path, workers: int = 2, python: str = sys.executable) -> Iterator[SparkCluster]:
    """Start a cluster that listens on this machine only, and end it with the block.

    Parameters
    ----------
    folder
        Folder of its logs and of the files of its executors; it must be empty.
    workers
        Number of workers.
    python
        Python of the executors.
    """
    cluster = SparkCluster(folder, python)
    try:
        cluster.start_master()
        for _ in range(workers):
            cluster.start_worker()
        yield cluster
    finally:
        cluster.stop()


def write_settings(path: Path, settings: dict[str, str]) -> Path:
    """Write a file for `BINLOOM_SPARK_CONF`."""
    path.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    return path


def _kill(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()


def _kill_with_children(process: "subprocess.Popen[bytes]") -> None:
    # An executor outlives its worker for a while otherwise, as it does not when a machine dies.
    children = _children(process.pid)
    _kill(process)
    for pid in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 9)


def _children(pid: int) -> list[int]:
    """Return the processes below a process."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return [*found, *(below for child in found for below in _children(child))]
