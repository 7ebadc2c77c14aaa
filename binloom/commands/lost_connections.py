"""Connections of dbt to a Thrift server that are lost, and opened again.

dbt-spark repeats a statement on the connection that it has just lost, which always fails. A statement that only reads,
or replaces a view, is repeated here on a new connection with the settings of the old one. A statement that writes a
table is not: the server may still be running it. The next build finds what is missing.
"""

import re
from collections.abc import Callable
from typing import Any, Final

from dbt.adapters.contracts.connection import Connection
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.spark.connections import (
    CONNECTION_LOST_EXCEPTIONS,
    PyhiveConnectionWrapper,
    SparkConnectionManager,
)
from dbt_common.exceptions import DbtRuntimeError

_COMMENTS: Final = r"(?:\s|/\*.*?\*/|--[^\n]*(?:\n|$))*"
_READS: Final = re.compile(
    rf"{_COMMENTS}(?:select|with|show|describe|desc|explain|refresh|set|create\s+or\s+replace\s+view)\b", re.I | re.S
)
_WRITES: Final = re.compile(r"\binsert\s+(?:into|overwrite)\b", re.I)
_SETTING: Final = re.compile(rf"{_COMMENTS}set\b", re.I | re.S)
_TEMPORARY: Final = re.compile(rf"{_COMMENTS}create\s+(?:or\s+replace\s+)?(?:global\s+)?temp(?:orary)?\b", re.I | re.S)

logger = AdapterLogger("Spark")
_open = SparkConnectionManager.open


def can_be_repeated(sql: str) -> bool:
    """Return whether it does not matter that a server runs a statement twice, even at the same time."""
    return _READS.match(sql) is not None and _WRITES.search(sql) is None


class Reconnecting(PyhiveConnectionWrapper):  # type: ignore[misc]
    """A connection that is opened again after it is lost.

    Parameters
    ----------
    opened
        The connection.
    open_again
        Opens another one to the same server.
    """

    def __init__(self, opened: PyhiveConnectionWrapper, open_again: Callable[[], PyhiveConnectionWrapper]) -> None:
        super().__init__(opened.handle, opened.poll_interval, opened.query_timeout)
        self._open_again = open_again
        self._settings: list[str] = []
        self._has_temporary_views = False

    def execute(self, sql: str, bindings: list[Any] | None = None) -> None:
        """Run a statement; once more on a new connection if this one is lost, and the statement can be repeated."""
        try:
            self._execute_with_polling(sql, bindings)
        except CONNECTION_LOST_EXCEPTIONS as error:
            if not can_be_repeated(sql) or self._has_temporary_views:
                raise DbtRuntimeError(
                    "The connection to the Thrift server was lost while it was writing"
                    f" ({type(error).__name__}: {error}). Run the same command again: it builds what is missing."
                ) from error
            logger.warning(f"The connection to the Thrift server was lost ({error}); a new one repeats the statement.")
            self._reconnect()
            self._execute_with_polling(sql, bindings)
        if _SETTING.match(sql):
            self._settings.append(sql)
        self._has_temporary_views |= _TEMPORARY.match(sql) is not None

    def _reconnect(self) -> None:
        self.handle = self._open_again().handle
        self.cursor()
        for statement in self._settings:
            self._execute_with_polling(statement, None)
            self.cursor()


def open_reconnecting(connection: Connection) -> Connection:
    """Open a connection as dbt-spark does; one of a Thrift server is opened again whenever it is lost."""
    opened = _open(connection)
    handle = opened.handle
    if type(handle) is not PyhiveConnectionWrapper:
        return opened

    def open_again() -> PyhiveConnectionWrapper:
        fresh = Connection(type=connection.type, name=connection.name, credentials=connection.credentials)
        again: PyhiveConnectionWrapper = _open(fresh).handle
        return again

    opened.handle = Reconnecting(handle, open_again)
    return opened
