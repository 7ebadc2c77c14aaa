"""The two places where `binloom build` builds: a Spark session of its own, or a cluster behind its Thrift server."""

import contextlib
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from binloom.commands.output import progress
from recover.sources.cluster.thrift import Cluster, is_cluster_target, thrift_address

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ingest.warehouse.spark import SparkLaunch


class BuildPlace(Protocol):
    """The interface of a place.

    Attributes
    ----------
    name
        Distinguishes the good builds of this place from those of others; empty for the metastore of the home.
    """

    name: str

    def has_tables(self) -> bool:
        """Return whether the tables of the last build are still there, as far as this is known without Java."""

    def open(self) -> None:
        """Start a session unless one is open; merge and delete files, which only its process may do.

        Raises
        ------
        MetastoreLockedError
            Another process holds the embedded metastore.
        """

    def prepare(self) -> None:
        """Create missing raw tables, and register what landed without Spark. Call `open` first."""

    def release(self) -> None:
        """Let other processes work here until the next `open`."""


def build_place(home: Path, stack: contextlib.ExitStack, is_short: Callable[[], bool] = lambda: False) -> BuildPlace:
    """Return the place that the environment names.

    Parameters
    ----------
    home
        Folder of all data of binloom.
    stack
        Ends the Java process, which only a build starts.
    is_short
        Whether a process that starts now will live for one short build.

    Raises
    ------
    UsageError
        There is no such target, or the file of the user's settings is wrong.
    """
    return _ThriftServer(home) if is_cluster_target() else _Session(home, stack, is_short)


def place_name(home: Path) -> str:
    """Return the name of the place that the environment names, as `BuildPlace.name`."""
    from ingest.warehouse.spark import metastore_address

    if is_cluster_target():
        host, port = thrift_address()
        return f"thrift {host}:{port}"
    # The address may have a password.
    address = metastore_address(home)
    return "" if address is None else f"metastore {hashlib.sha256(address.encode()).hexdigest()[:16]}"


class _Session:
    """A session in this process, which dbt finds and uses.

    The next build uses the same Java process, and also the same session unless that holds an embedded metastore.
    """

    def __init__(self, home: Path, stack: contextlib.ExitStack, is_short: Callable[[], bool]) -> None:
        self._home = home
        self._stack = stack
        self._is_short = is_short
        self._launch: SparkLaunch | None = None
        self._session: SparkSession | None = None
        self._is_new = self._are_files_gone = False
        self.name = place_name(home)
        self._has_own_metastore = not self.name

    def has_tables(self) -> bool:
        # Only a session could ask another metastore.
        return not self._has_own_metastore or (self._home / "metastore").exists()

    def open(self) -> None:
        from ingest.landing.compact import KEEP_REPLACED_SECONDS, clean_up_held
        from ingest.warehouse.jvm import runs_in_this_process
        from ingest.warehouse.spark import SparkLaunch, spark_errors

        is_running = runs_in_this_process()
        with spark_errors(self._home), progress("starting Spark"):
            if self._launch is None:
                self._launch = self._stack.enter_context(SparkLaunch(self._home, short_lived=self._is_short()))
            session = self._launch.session()
            # A session opens its metastore with the first statement.
            session.sql("show schemas")
        # Other code may have used the first session, if it runs.
        self._is_new = session is not self._session and (self._session is not None or not is_running)
        self._session = session
        if self._has_own_metastore:
            # No other process does this while this one holds the metastore, and each landing adds files.
            self._are_files_gone |= clean_up_held(self._home, KEEP_REPLACED_SECONDS) > 0

    def prepare(self) -> None:
        from ingest.landing.published import open_home
        from ingest.warehouse.partitions import TABLES_ARE_OPEN, forget_lists_of_files
        from ingest.warehouse.spark import spark_errors

        assert self._session is not None
        with spark_errors(self._home):
            if self._are_files_gone:
                forget_lists_of_files(self._session)
            open_home(self._session, self._home, is_new=self._is_new)
            self._session.sql(f"set {TABLES_ARE_OPEN} = true")
        self._are_files_gone = False

    def release(self) -> None:
        if self._launch is not None:
            self._launch.release_metastore()


class _ThriftServer:
    """A Thrift server: dbt opens connections of its own, and this process needs neither Spark nor Java."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.name = place_name(home)

    def has_tables(self) -> bool:
        with contextlib.closing(Cluster.of_environment()) as cluster:
            return bool(cluster.plain_rows("show schemas like 'binloom*'"))

    def open(self) -> None:
        """Nothing: dbt connects by itself."""

    def prepare(self) -> None:
        from ingest.landing.published import open_home

        with contextlib.closing(Cluster.of_environment()) as cluster:
            open_home(_Statements(cluster), self._home)

    def release(self) -> None:
        """Nothing: nobody else needs the connections of this process."""


class _Statements:
    """Runs statements through a Thrift server, with the interface of a session."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def sql(self, statement: str, /) -> "_Rows":
        return _Rows(self._cluster.plain_rows(statement))


class _Rows:
    def __init__(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self._rows = rows

    def collect(self) -> Sequence[tuple[Any, ...]]:
        return self._rows
