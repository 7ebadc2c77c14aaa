"""How a dbt run begins, for a plugin of dbt: with settings that fit its rows, without a record of good builds, and with
records of the tables that it changes."""

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dbt.adapters.contracts.connection import Connection
from dbt.adapters.spark.connections import SparkConnectionMethod
from dbt.adapters.spark.session import SessionConnectionWrapper
from dbt.flags import get_flags
from dbt_common.events.event_manager_client import add_callback_to_manager
from dbt_common.exceptions import DbtRuntimeError

from binloom.commands.build_places import place_name
from binloom.commands.build_record import forget_good_builds
from binloom.commands.built_tables import BuiltTables, RecordingConnection
from binloom.commands.dead_builds import clear_dead_builds
from binloom.commands.lost_connections import open_reconnecting
from ingest.errors import BinloomError, StoreError
from ingest.landing.published import open_home, publish_home
from ingest.warehouse.few_rows import FEW_ROWS, MANY_ROWS, builds_few_rows
from ingest.warehouse.home import binloom_home, has_landed, prepare_home
from ingest.warehouse.jvm import SHORT_LIVED_OPTIONS, last_line, runs_in_this_process
from ingest.warehouse.partitions import TABLES_ARE_OPEN
from ingest.warehouse.privacy import private_opener
from ingest.warehouse.settings_file import users_settings
from ingest.warehouse.spark import spark_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"


# Commands of dbt that write tables.
_WRITING: Final = ("build", "clone", "retry", "run", "run-operation", "seed", "snapshot")
# Those that clear what a dead build left.
_CLEARING: Final = ("build", "run", "seed")
# Those that read what is landed.
_READING: Final = ("build", "run", "test")


class RunConnections:
    """The connections of one dbt run. The first one begins the run, before it changes what is built."""

    def __init__(self) -> None:
        self._beginning = threading.Lock()
        self._has_begun = False
        self._tables = BuiltTables(binloom_home())
        add_callback_to_manager(self._tables.see)

    def open(self, connection: Connection) -> Connection:
        """Open a connection; one of a session in this process gets the settings that fit."""
        with self._beginning:
            if not self._has_begun:
                try:
                    _begin(connection.credentials)
                except BinloomError as error:
                    # dbt prints its own errors without a traceback.
                    raise DbtRuntimeError(str(error)) from error
                self._has_begun = True
        opened = open_reconnecting(connection)
        # `dbt compile` and `dbt docs` finish nodes too, and build nothing. With a Thrift server nobody reads the files.
        if get_flags().WHICH in _WRITING and type(opened.handle) is SessionConnectionWrapper:
            opened.handle = RecordingConnection(opened, self._tables)
        return opened


def _begin(credentials: Any) -> None:
    home = binloom_home()
    if get_flags().WHICH in _WRITING:
        forget_good_builds(home, place_name(home))
    if credentials.method == SparkConnectionMethod.SESSION:
        has_few_rows = builds_few_rows(home, bool(get_flags().FULL_REFRESH))
        settings = fitted(credentials.server_side_parameters, has_few_rows)
        is_new = not runs_in_this_process()
        _start_java(settings, home)
        session = _session_with(settings)
        if get_flags().WHICH in _READING and has_landed(home):
            _open_tables(session, home, is_new)
        if get_flags().WHICH in _CLEARING and has_landed(home):
            with spark_errors(home):
                clear_dead_builds(session, home)
        # dbt-spark would set them again before each statement, which takes milliseconds.
        credentials.server_side_parameters = {}
    elif get_flags().WHICH in _READING and has_landed(home):
        publish_home(home)


def _start_java(settings: dict[str, Any], home: Path) -> None:
    """Start Java as pyspark does, unless this process has it, but let it print into a file."""
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    if runs_in_this_process():
        return
    prepare_home(home)
    path = home / "logs" / "jvm.log"
    conf = SparkConf(False).setAll([(key, str(value)) for key, value in settings.items()])
    with open(path, "wb", opener=private_opener) as log:
        try:
            SparkContext._ensure_initialized(gateway=launch_gateway(conf, {"stdout": log, "stderr": log}))  # type: ignore[no-untyped-call]
        except PySparkRuntimeError as error:
            raise StoreError(
                f"The Java process for Spark did not start: {last_line(path)}", hint=f"Its output is in {path}."
            ) from error


def _session_with(parameters: dict[str, Any]) -> "SparkSession":
    """Give settings to the session of this process; start it if there is none."""
    from pyspark.sql import SparkSession

    return SparkSession.builder.enableHiveSupport().config(map=parameters).getOrCreate()


def _open_tables(session: "SparkSession", home: Path, is_new: bool) -> None:
    """Let the session know what was landed without Spark, unless `binloom build` has just done it."""
    if session.conf.get(TABLES_ARE_OPEN, "") != "true":
        with spark_errors(home):
            open_home(session, home, is_new=is_new)
        session.sql(f"set {TABLES_ARE_OPEN} = true")


def fitted(parameters: dict[str, str], has_few_rows: bool) -> dict[str, str]:
    """Return the settings of a profile with those for few or for many rows.

    Settings that a person made are left as they are: those of the settings file, and any in the profile other than the
    number of partitions, which binloom's own profile has.
    """
    chosen = FEW_ROWS if has_few_rows else MANY_ROWS
    own = {key for key, value in parameters.items() if MANY_ROWS.get(key) != value}
    fitting = {key: value for key, value in chosen.items() if key not in own and key not in users_settings()}
    if has_few_rows:
        # It matters only where dbt starts Java.
        options = [parameters.get(_JAVA_OPTIONS, ""), *SHORT_LIVED_OPTIONS]
        fitting[_JAVA_OPTIONS] = " ".join(options).strip()
    return {**parameters, **fitting}
