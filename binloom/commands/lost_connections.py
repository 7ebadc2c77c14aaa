"""Connections of dbt to a Thrift server that are lost, and opened again.

dbt-spark repeats a statement on the connection that it has just lost, which always fails. A statement that only reads,
or replaces a view, is repeated here on a new connection with the settings of the old one. A statement that writes a
table is not: the server may still be running it. The next build finds what is missing.

dbt-spark waits for a server that does not answer, with the settings of profiles.yml for a minute. After it has waited
in vain, later nodes try only once.
"""

import contextlib
import copy
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from dbt.adapters.contracts.connection import Connection
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.exceptions import FailedToConnectError
from dbt.adapters.spark.connections import (
    CONNECTION_LOST_EXCEPTIONS,
    PyhiveConnectionWrapper,
    SparkConnectionManager,
    SparkConnectionMethod,
    SparkCredentials,
)
from dbt_common.exceptions import DbtRuntimeError
from thrift.Thrift import TException

from binloom.commands.spark_messages import LOST_CONNECTION, NO_SERVER

COMMENTS: Final = r"(?:\s|/\*.*?\*/|--[^\n]*(?:\n|$))*"
_READS: Final = re.compile(
    rf"{COMMENTS}(?:select|with|show|describe|desc|explain|refresh|set|create\s+or\s+replace\s+view)\b", re.I | re.S
)
_WRITES: Final = re.compile(r"\binsert\s+(?:into|overwrite)\b", re.I)
_SETTING: Final = re.compile(rf"{COMMENTS}set\b", re.I | re.S)
_TEMPORARY: Final = re.compile(rf"{COMMENTS}create\s+(?:or\s+replace\s+)?(?:global\s+)?temp(?:orary)?\b", re.I | re.S)

logger = AdapterLogger("Spark")
_open = SparkConnectionManager.open
# Host and port of servers that were waited for in vain.
_gone: Final[set[tuple[str, int]]] = set()


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
        self._statement: tuple[str, list[Any] | None] = ("", None)

    def execute(self, sql: str, bindings: list[Any] | None = None) -> None:
        """Run a statement; once more on a new connection if this one is lost, and the statement can be repeated."""
        self._statement = (sql, bindings)
        try:
            self._execute_with_polling(sql, bindings)
        except CONNECTION_LOST_EXCEPTIONS as error:
            self._repeat(error)
        if _SETTING.match(sql):
            self._settings.append(sql)
        self._has_temporary_views |= _TEMPORARY.match(sql) is not None

    def fetchall(self) -> list[Any]:
        """Return the rows of the statement, which is repeated if the connection is lost before all have arrived."""
        try:
            return super().fetchall()  # type: ignore[no-any-return]
        except CONNECTION_LOST_EXCEPTIONS as error:
            self._repeat(error)
            return super().fetchall()  # type: ignore[no-any-return]

    def cancel(self) -> None:
        """Cancel the statement; on a lost connection there is nothing to cancel."""
        with contextlib.suppress(*CONNECTION_LOST_EXCEPTIONS):
            super().cancel()

    def close(self) -> None:
        """Close the connection, which may be lost already."""
        with contextlib.suppress(*CONNECTION_LOST_EXCEPTIONS):
            super().close()

    def _repeat(self, error: Exception) -> None:
        """Run the statement on a new connection, with the settings of the lost one."""
        if not can_be_repeated(self._statement[0]) or self._has_temporary_views:
            raise DbtRuntimeError(
                f"{LOST_CONNECTION} while it was writing"
                f" ({type(error).__name__}: {error}). Run the same command again: it builds what is missing."
            ) from error
        logger.warning(f"{LOST_CONNECTION} ({error}); a new one repeats the statement.")
        self.handle = self._open_again().handle
        with self._reported_as_lost():
            self.cursor()
            for statement in self._settings:
                self._execute_with_polling(statement, None)
                self.cursor()
            self._execute_with_polling(*self._statement)

    @contextlib.contextmanager
    def _reported_as_lost(self) -> Iterator[None]:
        try:
            yield
        except CONNECTION_LOST_EXCEPTIONS as error:
            raise DbtRuntimeError(
                f"{LOST_CONNECTION} twice in one statement ({type(error).__name__}: {error}). Run the same command"
                " again when the server is back: it builds what is missing."
            ) from error


def open_reconnecting(connection: Connection) -> Connection:
    """Open a connection as dbt-spark does; one of a Thrift server is opened again whenever it is lost."""
    opened = _opened(connection)
    handle = opened.handle
    if type(handle) is not PyhiveConnectionWrapper:
        return opened

    def open_again() -> PyhiveConnectionWrapper:
        fresh = Connection(type=connection.type, name=connection.name, credentials=connection.credentials)
        again: PyhiveConnectionWrapper = _opened(fresh).handle
        return again

    opened.handle = Reconnecting(handle, open_again)
    return opened


def _opened(connection: Connection) -> Connection:
    """Open a connection as dbt-spark does; a Thrift server that does not answer is one sentence."""
    credentials: SparkCredentials = connection.credentials
    if credentials.method != SparkConnectionMethod.THRIFT:
        return _open(connection)
    place = (credentials.host, credentials.port)
    if place in _gone:
        connection.credentials = copy.copy(credentials)
        connection.credentials.connect_retries = 0
    try:
        opened = _open(connection)
    except (FailedToConnectError, TException, OSError, EOFError) as error:
        _gone.add(place)
        raise DbtRuntimeError(
            f"{NO_SERVER} {credentials.host}:{credentials.port} ({type(error).__name__}: {error}). Run the same command"
            " again when the server is back: it builds what is missing."
        ) from error
    finally:
        connection.credentials = credentials
    _gone.discard(place)
    return opened
