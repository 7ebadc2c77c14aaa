"""Settings of Spark that fit the rows of a dbt run: a plugin of dbt puts them into the sessions that dbt opens."""

import threading
from typing import Any, Final

from dbt.adapters.contracts.connection import Connection
from dbt.adapters.spark.connections import SparkConnectionMethod
from dbt.flags import get_flags
from dbt_common.exceptions import DbtRuntimeError

from binloom.commands.lost_connections import open_reconnecting
from ingest.errors import BinloomError
from ingest.warehouse.few_rows import FEW_ROWS, MANY_ROWS, builds_few_rows
from ingest.warehouse.home import binloom_home
from ingest.warehouse.jvm import SHORT_LIVED_OPTIONS
from ingest.warehouse.settings_file import users_settings

_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"


class FittingSettings:
    """The settings of one dbt run: chosen when its first connection opens, because the run changes what is built."""

    def __init__(self) -> None:
        self._choosing = threading.Lock()
        self._are_chosen = False

    def open(self, connection: Connection) -> Connection:
        """Open a connection; one of a session in this process gets the settings that fit."""
        credentials: Any = connection.credentials
        if credentials.method == SparkConnectionMethod.SESSION:
            with self._choosing:
                if not self._are_chosen:
                    credentials.server_side_parameters = _chosen(credentials.server_side_parameters)
                    self._are_chosen = True
        return open_reconnecting(connection)


def _chosen(parameters: dict[str, str]) -> dict[str, str]:
    try:
        return fitted(parameters, builds_few_rows(binloom_home(), bool(get_flags().FULL_REFRESH)))
    except BinloomError as error:
        # dbt prints its own errors without a traceback.
        raise DbtRuntimeError(str(error)) from error


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
