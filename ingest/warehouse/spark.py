"""The only place that creates a Spark session, and the settings that all sessions share.

`spark_settings` returns the settings as data; `profiles.yml` contains the same settings for a plain `dbt build`.
For a local master this module starts the JVM, not pyspark's shell scripts. The JVM is ready two seconds sooner, it
starts while files are being scanned, and its output goes to a log file.
"""

import contextlib
import fcntl
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from ingest.errors import JavaMissingError, MetastoreLockedError, StoreError
from ingest.warehouse.home import NO_SPACE, binloom_home, comes_of_a_full_disk, prepare_home
from ingest.warehouse.privacy import private_umask

MASTER_VARIABLE = "BINLOOM_SPARK_MASTER"
MEMORY_VARIABLE = "BINLOOM_DRIVER_MEMORY"
DEFAULT_MASTER = "local[*]"
DEFAULT_MEMORY = "2g"
JAVA_NEEDED = 17
JVM_START_SECONDS = 120.0
JVM_END_SECONDS = 30.0
# In the environment that contains the jars of these classes. Written by `ingest.landing.class_archive`.
CLASS_ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"

JAVA_HINT = (
    "Install a Java runtime, version 17 or newer, and try again: `apt-get install openjdk-17-jre-headless` on Debian "
    "or Ubuntu, `dnf install java-17-openjdk-headless` on Fedora or RHEL, `brew install openjdk@17` on macOS; "
    "or set JAVA_HOME to one."
)

# The options that Spark's own launcher gives a JVM of version 17, without the incubator module for linear algebra.
_JVM_OPTIONS = [
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(
        f"--add-opens=java.base/{package}=ALL-UNNAMED"
        for package in (
            "java.lang",
            "java.lang.invoke",
            "java.lang.reflect",
            "java.io",
            "java.net",
            "java.nio",
            "java.util",
            "java.util.concurrent",
            "java.util.concurrent.atomic",
            "jdk.internal.ref",
            "sun.nio.ch",
            "sun.nio.cs",
            "sun.security.action",
            "sun.util.calendar",
        )
    ),
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--enable-native-access=ALL-UNNAMED",
    "-Dderby.connection.requireAuthentication=false",
]

# A JVM that lives for seconds spends half of its processor time on optimising code that it hardly runs. Without the
# optimiser the JVM reserves less memory for compiled code: too little for a whole `dbt build`, so the size is set.
SHORT_LIVED_OPTIONS = ["-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m"]

# Settings that only landing needs.
_LANDING_SETTINGS = {
    # Workers import pyarrow and the decoder once, before they fork.
    "spark.python.daemon.module": "ingest.warehouse.daemon",
    # Otherwise Hive lists the folder of each registered partition, for statistics that are never used.
    "spark.hadoop.hive.stats.autogather": "false",
}


def spark_settings(home: Path | None = None) -> dict[str, str]:
    """Return the Spark settings of every binloom session, whichever program starts it.

    Parameters
    ----------
    home
        Folder that binloom keeps everything under; default `$BINLOOM_HOME`, else `.binloom`.
    """
    home = home or binloom_home()
    settings = {
        "spark.app.name": "binloom",
        "spark.master": os.environ.get(MASTER_VARIABLE) or DEFAULT_MASTER,
        "spark.driver.memory": os.environ.get(MEMORY_VARIABLE) or DEFAULT_MEMORY,
        "spark.driver.extraJavaOptions": " ".join(
            [
                f"-Dderby.system.home={home}",
                f"-Dderby.stream.error.file={home}/logs/derby.log",
                f"-Dlog4j2.configurationFile=file:{home}/conf/log4j2.properties",
                "-Duser.timezone=UTC",
            ]
        ),
        # Hadoop sets permissions itself and ignores the umask of the process.
        "spark.hadoop.fs.permissions.umask-mode": f"{private_umask():03o}",
        "spark.local.dir": f"{home}/tmp",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": f"{home}/warehouse",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={home}/metastore;create=true",
        "spark.hadoop.datanucleus.schema.autoCreateAll": "true",
        "spark.hadoop.hive.metastore.schema.verification": "false",
        # Derby runs in this process: a write that fails on a full disk fails again. The default is 10 tries, 2 s apart.
        "spark.hadoop.hive.hmshandler.retry.attempts": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.shuffle.partitions": "16",
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
    }
    if settings["spark.master"].startswith("local"):
        settings["spark.driver.host"] = "127.0.0.1"
        settings["spark.driver.bindAddress"] = "127.0.0.1"
    return settings


def find_java() -> Path:
    """Return the `java` that Spark will run on.

    Raises
    ------
    JavaMissingError
        There is no Java, or it is older than version 17.
    """
    java_home = os.environ.get("JAVA_HOME")
    found = str(Path(java_home) / "bin" / "java") if java_home else shutil.which("java")
    if not found or not os.access(found, os.X_OK):
        where = f"JAVA_HOME is {java_home}, but there is no {found}" if java_home else "no `java` is on the PATH"
        raise JavaMissingError(f"Spark needs Java {JAVA_NEEDED} or newer: {where}.", hint=JAVA_HINT)
    version = _java_version(Path(found))
    if version is None:
        raise JavaMissingError(f"{found} does not run: `java -version` printed no version.", hint=JAVA_HINT)
    if version < JAVA_NEEDED:
        raise JavaMissingError(f"{found} is Java {version}, but Spark needs {JAVA_NEEDED} or newer.", hint=JAVA_HINT)
    return Path(found)


def _java_version(java: Path) -> int | None:
    # Reading the release file takes a millisecond, starting the JVM takes a hundred.
    release = java.resolve().parent.parent / "release"
    try:
        text = release.read_text(errors="replace")
        pattern = r'JAVA_VERSION="(\d+)(?:\.(\d+))?'
    except OSError:
        try:
            text = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=30).stderr
        except (OSError, subprocess.TimeoutExpired):
            return None
        pattern = r'version "(\d+)(?:\.(\d+))?'
    match = re.search(pattern, text)
    if not match:
        return None
    major = int(match.group(1))
    return int(match.group(2) or 0) if major == 1 else major


def metastore_holder(home: Path) -> int | None:
    """Return the id of the process that holds the embedded metastore, None when no process holds it."""
    try:
        with open(home / "metastore" / "dbex.lck", "r+b") as lock_file:
            # struct flock of Linux: type, whence, start, length, pid.
            query = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            answer = struct.unpack("hhqqi", fcntl.fcntl(lock_file, fcntl.F_GETLK, query)[: struct.calcsize("hhqqi")])
    except OSError:
        return None
    return int(answer[4]) if answer[0] != fcntl.F_UNLCK else None


def _check_metastore(home: Path, patience: float = 3.0) -> None:
    # A command that has just ended may still be closing the metastore.
    until = time.monotonic() + patience
    while (holder := metastore_holder(home)) is not None:
        if time.monotonic() > until:
            raise MetastoreLockedError(
                f"Another process (pid {holder}) holds the metastore in {home / 'metastore'}, and only one "
                "process can.",
                hint="Wait until that binloom or dbt command has ended, or end it, and try again.",
                path=str(home / "metastore"),
                pid=holder,
            )
        time.sleep(0.1)


def _mend_metastore(home: Path) -> None:
    # Derby writes service.properties last when it creates a database. If it is missing, the process was killed during
    # the creation: the database is empty, and Derby can neither open nor recreate it.
    folder = home / "metastore"
    if folder.is_dir() and not (folder / "service.properties").exists():
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def spark_errors(home: Path) -> Iterator[None]:
    """Turn an error of Spark or its metastore into a binloom error with a readable message.

    Raises
    ------
    MetastoreLockedError
        Another process took the metastore first.
    StoreError
        Anything else; the log contains the details.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException) as error:
        try:
            text = str(error)
        except Exception:  # the JVM has ended or does not answer
            text = type(error).__name__
        log = home / "logs" / "spark.log"
        if "XSDB6" in text or "another instance of derby" in text.lower():
            raise MetastoreLockedError(
                f"Another process took the metastore in {home / 'metastore'}, and only one process can hold it.",
                hint="Wait until that binloom or dbt command has ended, or end it, and try again.",
                path=str(home / "metastore"),
            ) from error
        # On a full disk, Hive may only report that it cannot instantiate a class, without the reason.
        if comes_of_a_full_disk(text, home):
            raise StoreError(
                f"Spark cannot write to {home}: {NO_SPACE}.",
                hint="Free some space, and run the same command again; finished work is kept.",
                path=str(home),
            ) from error
        raise StoreError(f"Spark failed: {text.splitlines()[0]}", hint=f"More is in {log}.", path=str(log)) from error


class SparkLaunch:
    """A Spark session that starts in the background: the JVM starts at once, callers wait only when they need it.

    Parameters
    ----------
    home
        Folder that binloom keeps everything under; default `$BINLOOM_HOME`, else `.binloom`.
    short_lived
        Tune the JVM for a command that runs for seconds: half the start-up cost, slower in the long run.
    session
        A session to use instead. An active session is used even without this argument.
    classes_into
        File that the JVM dumps its classes to when it ends: see `ingest.landing.class_archive`.

    Raises
    ------
    JavaMissingError, MetastoreLockedError, StoreError
    """

    def __init__(
        self,
        home: Path | None = None,
        *,
        short_lived: bool = False,
        session: Any = None,
        classes_into: Path | None = None,
    ) -> None:
        self.home = home or binloom_home()
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: str | None = None
        self._context: Any = None
        self._session: Any = None
        self._owned = True
        self._classes_into = classes_into
        self._adopt(session)
        if self._context is not None:
            return
        prepare_home(self.home)
        java = find_java()
        _check_metastore(self.home)
        _mend_metastore(self.home)
        self._settings = {**spark_settings(self.home), **_LANDING_SETTINGS}
        if self._settings["spark.master"].startswith("local"):
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            if "SPARK_HOME" not in os.environ:
                self._start_jvm(java, short_lived)

    def _adopt(self, session: Any) -> None:
        from pyspark import SparkContext

        active = SparkContext._active_spark_context if session is None else session.sparkContext
        if active is not None and active._jsc is not None:
            self._context = active
            self._owned = False

    def _start_jvm(self, java: Path, short_lived: bool) -> None:
        import pyspark

        spark_home = Path(pyspark.__file__).parent
        self._folder = tempfile.mkdtemp(prefix="jvm-", dir=self.home / "tmp")
        command = [
            str(java),
            "-cp",
            f"{spark_home}/jars/*",
            f"-Xmx{self._settings['spark.driver.memory']}",
            *_JVM_OPTIONS,
            *([*SHORT_LIVED_OPTIONS, "-XX:+UseSerialGC"] if short_lived else []),
            *self._class_options(),
            # Paths may contain blanks, so the options cannot be passed as one string in a setting.
            *(option for option in re.split(r" (?=-D)", self._settings["spark.driver.extraJavaOptions"])),
            "org.apache.spark.deploy.SparkSubmit",
            *(part for key, value in self._settings.items() for part in ("--conf", f"{key}={value}")),
            "pyspark-shell",
        ]
        environment = {
            **os.environ,
            "SPARK_HOME": str(spark_home),
            "SPARK_CONNECT_MODE": "0",
            "SPARK_LOCAL_IP": "127.0.0.1",
            "_PYSPARK_DRIVER_CONN_INFO_PATH": f"{self._folder}/connection",
        }
        with open(self.home / "logs" / "jvm.log", "wb") as log:
            # The JVM ends when its standard input is closed, that is when this process ends for any reason.
            # Its own process session, so that Ctrl-C reaches the JVM through Spark and not as a signal.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=environment,
                process_group=0,
                umask=private_umask(),
            )

    def _class_options(self) -> list[str]:
        if self._classes_into is not None:
            return [f"-XX:ArchiveClassesAtExit={self._classes_into}"]
        return [f"-XX:SharedArchiveFile={CLASS_ARCHIVE}"] if CLASS_ARCHIVE.exists() else []

    def _connection(self) -> tuple[int, str]:
        assert self._process is not None and self._folder is not None
        path = Path(self._folder) / "connection"
        until = time.monotonic() + JVM_START_SECONDS
        while not path.exists():
            if self._process.poll() is not None or time.monotonic() > until:
                raise StoreError(
                    f"The Java process for Spark did not start: {_last_line(self.home / 'logs' / 'jvm.log')}",
                    hint=f"Its output is in {self.home / 'logs' / 'jvm.log'}.",
                )
            time.sleep(0.01)
        with path.open("rb") as connection:
            port = _read_int(connection)
            secret = connection.read(_read_int(connection)).decode()
        shutil.rmtree(self._folder, ignore_errors=True)
        return port, secret

    @property
    def is_shared(self) -> bool:
        """Whether other code started the session and keeps using it."""
        return not self._owned

    def context(self) -> Any:
        """Return the SparkContext: it can run tasks, and is ready a few seconds before the session."""
        if self._context is None:
            from pyspark import SparkConf, SparkContext

            if self._process is None:
                conf = SparkConf(False)
                for key, value in self._settings.items():
                    conf.set(key, value)
                self._context = SparkContext(conf=conf)
            else:
                port, secret = self._connection()
                os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"] = str(port), secret
                try:
                    self._context = SparkContext(conf=SparkConf(False))
                finally:
                    del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
        return self._context

    def session(self) -> Any:
        """Return the SparkSession.

        Raises
        ------
        MetastoreLockedError
            Another process took the metastore in the meantime.
        """
        if self._session is None:
            from pyspark.sql import SparkSession

            self.context()
            with spark_errors(self.home):
                self._session = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
        return self._session

    def stop(self) -> None:
        """End the session and its JVM, which releases the metastore. A session that other code started goes on."""
        if not self._owned:
            return
        if self._session is not None:
            self._session.stop()
        elif self._context is not None:
            self._context.stop()
        was_used = self._context is not None
        self._session = self._context = None
        if self._process is not None and not was_used:
            # The JVM was not used yet: no orderly shutdown is needed.
            self._process.kill()
            self._process.wait()
            self._process = None
        elif self._process is not None:
            _end_gateway()
            assert self._process.stdin is not None
            self._process.stdin.close()
            try:
                self._process.wait(timeout=JVM_END_SECONDS if self._classes_into is None else None)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _end_gateway() -> None:
    # The next session of this process must start a new JVM.
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is not None:
        gateway.shutdown()
    SparkContext._gateway = None
    SparkContext._jvm = None


def _read_int(stream: IO[bytes]) -> int:
    return int.from_bytes(stream.read(4), "big", signed=True)


def _last_line(path: Path) -> str:
    try:
        lines = [line for line in path.read_text(errors="replace").splitlines() if line.strip()]
    except OSError:
        lines = []
    return lines[-1] if lines else "it printed nothing."
