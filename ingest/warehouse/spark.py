"""The only place that creates a Spark session, and the settings that all sessions share.

`spark_settings` returns the settings as data; `profiles.yml` contains the same settings for a plain `dbt build`.
"""

import contextlib
import fcntl
import os
import shlex
import shutil
import struct
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

from ingest.errors import MetastoreLockedError, StoreError
from ingest.extras import told_extras
from ingest.warehouse.few_rows import MANY_ROWS
from ingest.warehouse.home import NO_SPACE, binloom_home, comes_of_a_full_disk, prepare_home
from ingest.warehouse.jvm import Jvm, find_java, runs_in_this_process
from ingest.warehouse.masters import is_local, reason_of, require_executor, require_master
from ingest.warehouse.privacy import GROUP_VARIABLE, private_umask
from ingest.warehouse.settings_file import settings_file, users_settings

MASTER_VARIABLE = "BINLOOM_SPARK_MASTER"
MEMORY_VARIABLE = "BINLOOM_DRIVER_MEMORY"
DEFAULT_MASTER = "local[*]"
DEFAULT_MEMORY = "2g"

_METASTORE = "spark.hadoop.javax.jdo.option.ConnectionURL"
_REMOTE_METASTORE = "spark.hadoop.hive.metastore.uris"
_SUBMIT_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"

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

    Raises
    ------
    UsageError
        The file of the user's settings is wrong.
    """
    home = home or binloom_home()
    added = users_settings()
    settings = {**_own_settings(home), **added}
    if _JAVA_OPTIONS in added:
        settings[_JAVA_OPTIONS] = f"{_own_settings(home)[_JAVA_OPTIONS]} {added[_JAVA_OPTIONS]}"
    if is_local(settings["spark.master"]):
        settings.setdefault("spark.driver.host", "127.0.0.1")
        settings.setdefault("spark.driver.bindAddress", "127.0.0.1")
    return settings


def _own_settings(home: Path) -> dict[str, str]:
    return {
        "spark.app.name": "binloom",
        "spark.master": os.environ.get(MASTER_VARIABLE) or DEFAULT_MASTER,
        "spark.driver.memory": os.environ.get(MEMORY_VARIABLE) or DEFAULT_MEMORY,
        _JAVA_OPTIONS: " ".join(
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
        _METASTORE: f"jdbc:derby:;databaseName={home}/metastore;create=true",
        "spark.hadoop.datanucleus.schema.autoCreateAll": "true",
        "spark.hadoop.hive.metastore.schema.verification": "false",
        # Hive makes this folder in each session, by default in /tmp with another name each time.
        "spark.hadoop.hive.downloaded.resources.dir": f"{home}/tmp/resources",
        # Derby runs in this process: a write that fails on a full disk fails again. The default is 10 tries, 2 s apart.
        "spark.hadoop.hive.hmshandler.retry.attempts": "1",
        # The umask gives each folder its permissions. Hive starts ten programs to copy those of the parent.
        "spark.hadoop.hive.warehouse.subdir.inherit.perms": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.shuffle.partitions": MANY_ROWS["spark.sql.shuffle.partitions"],
        # Each task of an aggregation fills a page with zeros: 32 MB by default, for 2 GB of memory and two cores.
        "spark.buffer.pageSize": "4m",
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
        # A build compiles several hundred classes; the next build in the same process uses those that are kept.
        "spark.sql.codegen.cache.maxEntries": "2000",
        # Spark describes each plan for its pages, also when it shows none: this is the short description.
        "spark.sql.ui.explainMode": "simple",
    }


def active_session() -> Any:
    """Return the session that this process has open, None without one."""
    if "pyspark" not in sys.modules or _open_context() is None:
        return None
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()


def _open_context(session: Any = None) -> Any:
    """Return the SparkContext of a session, or else of this process; None unless it runs."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context if session is None else session.sparkContext
    return context if context is not None and context._jsc is not None else None


def uses_embedded_metastore(settings: Mapping[str, str]) -> bool:
    """Return whether a session with these settings holds a metastore of its own, which one process can open."""
    return _REMOTE_METASTORE not in settings and settings[_METASTORE].startswith("jdbc:derby:")


def metastore_address(home: Path) -> str | None:
    """Return the address of the metastore that sessions of a home use, None if it is the embedded one of the home.

    Raises
    ------
    UsageError
        The file of the user's settings is wrong.
    """
    settings = spark_settings(home)
    if settings.get(_REMOTE_METASTORE) is None and settings[_METASTORE] == _own_settings(home)[_METASTORE]:
        return None
    return settings.get(_REMOTE_METASTORE) or settings[_METASTORE]


def metastore_holder(home: Path) -> int | None:
    """Return the id of the process that holds the embedded metastore, None when no process holds it."""
    try:
        with open(home / "metastore" / "dbex.lck", "rb") as lock_file:
            # struct flock of Linux: type, whence, start, length, pid.
            query = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            answer = struct.unpack("hhqqi", fcntl.fcntl(lock_file, fcntl.F_GETLK, query)[: struct.calcsize("hhqqi")])
    except OSError:
        return None
    return int(answer[4]) if answer[0] != fcntl.F_UNLCK else None


def assert_no_reader(home: Path, consequence: str) -> None:
    """Refuse to change files of landed rows while a process holds the metastore.

    Parameters
    ----------
    consequence
        A sentence for the hint: what was not done.

    Raises
    ------
    StoreError
        A build or another process may be reading them.
    """
    holder = metastore_holder(home)
    if holder is not None:
        raise StoreError(
            f"Another process (pid {holder}) holds the metastore in {home / 'metastore'}: it may be reading the rows.",
            hint=f"Wait until it has ended and try again. {consequence}",
            path=str(home / "metastore"),
        )


def _check_metastore(home: Path, patience: float = 10.0) -> None:
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


def _close_metastore(settings: dict[str, str]) -> None:
    # Derby holds its files until it is told to close them, or until its process ends.
    from py4j.protocol import Py4JJavaError
    from pyspark import SparkContext

    address = settings[_METASTORE].replace("create=true", "shutdown=true")
    # Derby reports with an error that it has closed a database, and also that it had not opened it.
    with contextlib.suppress(Py4JJavaError):
        SparkContext._jvm.java.sql.DriverManager.getConnection(address)  # type: ignore[union-attr]


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


@contextlib.contextmanager
def _read_by_java() -> Iterator[dict[str, str]]:
    """Let Spark's own script read the user's settings, if it starts the JVM: no password is on the command line.

    Yields
    ------
    dict
        The settings that the script reads.
    """
    path = settings_file()
    if path is None or _SUBMIT_ARGUMENTS in os.environ or runs_in_this_process():
        yield {}
        return
    os.environ[_SUBMIT_ARGUMENTS] = f"--properties-file {shlex.quote(str(path))} --load-spark-defaults pyspark-shell"
    try:
        yield users_settings()
    finally:
        del os.environ[_SUBMIT_ARGUMENTS]


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
    PackagesMissingError, JavaMissingError, MetastoreLockedError, StoreError
    """

    # Tests set this: their tables have few rows.
    further_settings: ClassVar[Mapping[str, str]] = {}

    def __init__(
        self,
        home: Path | None = None,
        *,
        short_lived: bool = False,
        session: Any = None,
        classes_into: Path | None = None,
    ) -> None:
        self.home = home or binloom_home()
        self._jvm: Jvm | None = None
        self._context: Any = None
        self._session: Any = None
        self._owned = True
        with told_extras():
            self._adopt(session)
        if self._context is not None:
            return
        prepare_home(self.home)
        java = find_java()
        # Executors on other machines write files of the home with the same permissions.
        group_access = {f"spark.executorEnv.{GROUP_VARIABLE}": os.environ.get(GROUP_VARIABLE, "")}
        self._settings = {**_LANDING_SETTINGS, **group_access, **spark_settings(self.home), **self.further_settings}
        self._master = self._settings["spark.master"]
        require_master(self._master)
        self._await_metastore()
        os.environ.setdefault("PYSPARK_PYTHON", self._settings.get("spark.pyspark.python", sys.executable))
        if "SPARK_HOME" not in os.environ and not runs_in_this_process():
            self._jvm = Jvm(java, self._settings, self.home, short_lived=short_lived, classes_into=classes_into)

    def _await_metastore(self) -> None:
        if uses_embedded_metastore(self._settings):
            _check_metastore(self.home)
            _mend_metastore(self.home)

    def _adopt(self, session: Any) -> None:
        self._context = _open_context(session)
        self._owned = self._context is None

    @property
    def is_shared(self) -> bool:
        """Whether other code started the session and keeps using it."""
        return not self._owned

    def context(self) -> Any:
        """Return the SparkContext: it can run tasks, and is ready a few seconds before the session."""
        if self._context is None:
            from pyspark import SparkConf, SparkContext

            # Another process may have taken it while Java was starting, or since the last session.
            self._await_metastore()
            conf = SparkConf(False)
            with self._of_the_cluster(), _read_by_java() as known:
                if self._jvm is not None and not runs_in_this_process():
                    # It got the settings when it was started.
                    self._jvm.connect()
                else:
                    for key, value in self._settings.items():
                        if key not in known or key == _JAVA_OPTIONS:
                            conf.set(key, value)
                self._context = SparkContext(conf=conf)
                require_executor(self._context)
        return self._context

    @contextlib.contextmanager
    def _of_the_cluster(self) -> Iterator[None]:
        """Turn an error of a cluster that does not take the session into one sentence."""
        from py4j.protocol import Py4JError

        try:
            yield
        except Py4JError as error:
            if is_local(self._master):
                raise
            raise StoreError(
                f"The cluster at {self._master} did not start a session: {reason_of(error)}.",
                hint=f"{self.home / 'logs' / 'spark.log'} has more; so have the logs of the master and its workers.",
                master=self._master,
            ) from error

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
                # Hive keeps the settings of the metastore for each thread of Java. Where an earlier session had another
                # metastore, they become new in the thread that opens it.
                self._session.catalog.databaseExists("default")
        return self._session

    def release_metastore(self) -> None:
        """Let other processes have an embedded metastore: end the session. `session` starts another in the same JVM."""
        if self._owned and uses_embedded_metastore(self._settings):
            self._end_session()
            if runs_in_this_process():
                _close_metastore(self._settings)

    def _end_session(self) -> None:
        if self._session is not None:
            self._session.stop()
        elif self._context is not None:
            self._context.stop()
        self._session = self._context = None

    def stop(self) -> None:
        """End the session and its JVM, which releases the metastore. A session that other code started goes on."""
        if not self._owned:
            return
        self._end_session()
        if self._jvm is not None and not (self._jvm.is_kept and runs_in_this_process()):
            self._jvm.end()
        elif runs_in_this_process() and uses_embedded_metastore(self._settings):
            _close_metastore(self._settings)
        self._jvm = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
