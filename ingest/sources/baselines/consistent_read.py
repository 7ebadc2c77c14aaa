"""All rows of tables of a live server at one position of its binlog.

The rows are read in one transaction, whose snapshot begins at a position that belongs exactly to it:

- MariaDB and Percona Server give the position of a transaction's snapshot in status variables. No lock is needed.
- MySQL does not. FLUSH TABLES WITH READ LOCK holds all commits while the transaction begins and the position is read,
  and is released at once.
- Where MySQL refuses the lock, the transaction begins between two positions, and the log between them tells the rows
  that may differ: they are carried to the second one (`beginnings.py`).

The definitions are read before the snapshot begins, after it, and after the last row. They are the same each time, or
DDL ran and the rows are not known to be those of the position. InnoDB itself refuses to read a table that was altered
or truncated after the snapshot began. Old servers do not notice a TRUNCATE; there the transaction touches all tables
while the lock is held, so that DDL on them waits until it ends.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Self

import pymysql
from pymysql.connections import MySQLResult
from pymysql.constants import COMMAND, ER

from ingest.binlog import TableFilter
from ingest.errors import AccessRefusedError, BinloomError, BrokenStreamError, SourceError
from ingest.sources.baselines.baseline_tables import (
    BINARY_TYPES,
    BaselineTable,
    Definitions,
    choose_tables,
    read_definitions,
)
from ingest.sources.baselines.beginnings import Beginning, begin_between
from ingest.sources.baselines.logged_changes import Unproved
from ingest.sources.servers.address import ServerAddress
from ingest.sources.servers.connection import ANSWER_SECONDS, GuardedConnection
from ingest.sources.servers.information_schema import ATTEMPTS, Position, binlog_position
from ingest.sources.servers.server import Server, ServerIdentity, connect, log_name, server_identity, source_error
from ingest.sources.servers.server_check import logs_cascades
from ingest.sources.snapshots.snapshot import SchemaSnapshot

if TYPE_CHECKING:
    import pyarrow as pa

LOCK_SECONDS: Final = 30
"""A lock that waits for a long statement makes all writers wait behind it."""
RECEIVE_BYTES: Final = 1 << 18

_TABLE_DEFINITION_CHANGED: Final = 1412
_GONE: Final = (ER.NO_SUCH_TABLE, ER.BAD_FIELD_ERROR, _TABLE_DEFINITION_CHANGED)
_NOTICES_TRUNCATE: Final = {"mysql": (8, 0, 0), "mariadb": (10, 3, 0)}
"""Older servers show a truncated table as empty to a transaction that began before."""


class ConsistentRead:
    """A transaction of a server that reads tables as they were at one position. Use it in a `with` block.

    Parameters
    ----------
    address
        The server.
    wanted
        Filter of the tables; None for all tables outside of the system's schemas.
    throttle
        Called with the number of bytes each time that some came.
    without_lock
        Whether to ask for no lock, even if the server would grant it.

    Raises
    ------
    AccessRefusedError
        The user lacks a privilege.
    SourceError
        The server's binlog is off, DDL runs again and again, or a long statement keeps the lock from being granted.
    UsageError
        No table is selected, or a table is not of InnoDB.
    """

    def __init__(
        self,
        address: ServerAddress,
        wanted: TableFilter | None = None,
        throttle: Callable[[int], None] = lambda _: None,
        *,
        without_lock: bool = False,
    ) -> None:
        self._address = address
        self._throttle = throttle
        self._without_lock = without_lock
        self.refused_lock: str | None = None
        self._server = Server(address)
        self._reader: TransactionReader | None = None
        try:
            self._identity = server_identity(self._server)
            self._begin(wanted)
        except BaseException:
            self.close()
            raise

    snapshot: SchemaSnapshot
    """The definitions, and the position, at which the rows are read."""
    tables: tuple[BaselineTable, ...]
    beginning: Beginning
    """How the position was found."""
    refused_lock: str | None
    """Why the server did not grant the read lock, None if it was not asked for or granted."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the transaction and the connections."""
        if self._reader is not None:
            self._reader.close()
        self._server.close()

    def rows(self, table: BaselineTable) -> "Iterator[pa.ListArray]":
        """Yield the rows of a table, each a list of texts.

        Raises
        ------
        SourceError
            The table was altered or replaced since the transaction began, or the connection broke.
        """
        assert self._reader is not None
        try:
            yield from self.beginning.rows(table, self._reader.stream(table))
        except pymysql.MySQLError as error:
            raise reading_error(error, self._address, self._changed(table)) from None

    def assert_unchanged(self) -> None:
        """Check that no table was altered or replaced while the rows were read.

        Raises
        ------
        SourceError
            A table was, so its rows are not known to be those of the position.
        """
        now = read_definitions(self._server)
        for table in self.tables:
            if now.of([table]) != self._definitions.of([table]):
                raise self._changed(table)

    def _changed(self, table: BaselineTable) -> SourceError:
        return SourceError(
            f"A statement altered, truncated or replaced table {table} on the server at {self._address} while the"
            " baseline was read.",
            hint="Nothing was landed. Start the baseline again when no DDL is running.",
        )

    def _begin(self, wanted: TableFilter | None) -> None:
        before = read_definitions(self._server)
        reason = last = ""
        for attempt in range(ATTEMPTS):
            self.tables = choose_tables(self._server, before, wanted)
            reader = self._reader = TransactionReader(self._address, self._throttle)
            try:
                self.beginning = self._begin_at(reader, before)
            except Unproved as error:
                reason = str(error)
            taken_at = datetime.now(UTC)
            after = read_definitions(self._server)
            if before != after:
                reason = "the schema changed"
            elif not reason:
                break
            reader.close()
            before, last, reason = after, reason, ""
            time.sleep(0.1 * attempt)
        else:
            raise SourceError(
                f"The baseline began {ATTEMPTS} times on the server at {self._address}, and each time its position"
                f" could not be proved. At last, {last}.",
                hint="Try again when no DDL is running, or fewer rows change.",
            )
        self._definitions = after
        name, offset, gtids = self.beginning.position
        columns, keys, foreign_keys, defaults = after.schema
        logged = logs_cascades(self._server)
        self.snapshot = SchemaSnapshot(
            "server", taken_at, name, offset, gtids, columns, keys, foreign_keys, logged, defaults
        )

    def _begin_at(self, reader: "TransactionReader", definitions: Definitions) -> Beginning:
        """Begin the transaction, with the position of its snapshot or near it."""
        server, identity = self._server, self._identity
        reader.prepare(identity)
        notices_truncate = identity.version_numbers >= _NOTICES_TRUNCATE[identity.flavor]
        if notices_truncate and reader.tells_position:
            return Beginning(reader.begin_with_position(identity, server), "server")
        touched = () if notices_truncate else self.tables
        refusal = None
        if not self._without_lock:
            try:
                with _read_lock(self._address, server):
                    reader.begin(touched)
                    return Beginning(binlog_position(server, identity), "read_lock")
            except AccessRefusedError as error:
                refusal = error
        self.refused_lock = None if refusal is None else refusal.message
        try:
            return begin_between(server, identity, self.tables, definitions.schema, lambda: reader.begin(touched))
        except AccessRefusedError as error:
            if refusal is None:
                raise
            raise AccessRefusedError(
                f"{refusal.message} Without this lock: {error.message}",
                hint=error.hint,
                **error.context,
            ) from None


def reading_error(error: pymysql.MySQLError, address: ServerAddress, changed: SourceError) -> SourceError:
    """Return the error for rows that cannot be read: `changed` if the table is another one than at the begin."""
    is_gone = error.args and error.args[0] in _GONE
    return changed if is_gone else source_error(address, error, "select")


class TransactionReader:
    """The connection of a transaction that reads tables.

    Parameters
    ----------
    address
        The server.
    throttle
        Called with the number of bytes each time that some came.
    """

    def __init__(self, address: ServerAddress, throttle: Callable[[int], None] = lambda _: None) -> None:
        self._address = address
        self._throttle = throttle
        self._connection: Any = connect(address, kind=GuardedConnection, autocommit=True)

    def close(self) -> None:
        """End the transaction and the connection."""
        if self._connection.open:
            self._connection._force_close()

    def begin(self, touched: Sequence[BaselineTable]) -> None:
        """Begin the transaction, and read nothing from some tables: DDL on them then waits until it ends."""
        self._row("start transaction with consistent snapshot")
        for table in touched:
            self._row(f"select 1 from {table.quoted_name} limit 0")

    @property
    def tells_position(self) -> bool:
        """Whether the server tells the position of a transaction's snapshot."""
        return self._row("show global status like 'binlog_snapshot_file'") is not None

    def prepare(self, identity: ServerIdentity) -> None:
        """Set the texts of values, and that no limit ends a long read."""
        unlimited = "max_statement_time" if identity.flavor == "mariadb" else "max_execution_time"
        for statement in (
            "set session time_zone = '+00:00', sql_mode = '', sql_select_limit = 18446744073709551615",
            "set session net_write_timeout = 3600, wait_timeout = 86400",
            "set session transaction isolation level repeatable read",
        ):
            self._row(statement)
        if self._row(f"show variables like '{unlimited}'"):
            self._row(f"set session {unlimited} = 0")

    def begin_with_position(self, identity: ServerIdentity, server: Server) -> Position:
        """Begin the transaction and return the position of its snapshot, as the server tells it."""
        # A server whose binlog is off has the variables too, empty.
        name, offset, _ = binlog_position(server, identity)
        self.begin(())
        found = self._status("binlog_snapshot_%")
        name = log_name(self._address, found.get("Binlog_snapshot_file", ""))
        offset = int(found.get("Binlog_snapshot_position", ""))
        if identity.flavor == "mariadb":
            ((gtids,),) = self._rows(f"select binlog_gtid_pos('{pymysql.converters.escape_string(name)}', {offset})")
        else:
            gtids = found.get("Binlog_snapshot_gtid_executed", "").replace("\n", "")
        return name, offset, gtids or None

    def _status(self, pattern: str) -> dict[str, str]:
        return dict(self._rows(f"show status like '{pattern}'"))

    def _row(self, sql: str) -> Any:
        return next(iter(self._rows(sql)), None)

    def _rows(self, sql: str) -> Sequence[tuple[Any, ...]]:
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(sql)
                rows: Sequence[tuple[Any, ...]] = cursor.fetchall()
                return rows
        except BinloomError:
            raise
        except Exception as error:  # pymysql has no common class for its parse errors
            raise source_error(self._address, error, sql) from None

    def stream(self, table: BaselineTable) -> "Iterator[pa.ListArray]":
        """Yield the rows of a table, each a list of texts. Raises the errors of pymysql, too."""
        from ingest.binlog.rows.text_rows import TextRows

        connection = self._connection
        connection._execute_command(COMMAND.COM_QUERY, table.query)
        head = MySQLResult(connection)
        head.init_unbuffered_query()
        # The rows are read here, and not by pymysql, which would wait for them.
        head.unbuffered_active = False
        connection._sock.settimeout(ANSWER_SECONDS)
        rows = TextRows(
            [data_type in BINARY_TYPES for data_type in table.data_types],
            [data_type == "float" for data_type in table.data_types],
            connection._next_seq_id,
            self._receive,
        )
        is_ended = False
        try:
            yield from rows.batches()
            is_ended = True
        finally:
            if not is_ended:
                self.close()
        if rows.error is not None:
            pymysql.err.raise_mysql_exception(rows.error)

    def _receive(self, room: memoryview) -> int:
        try:
            # `readinto1` waits for more bytes when it has some.
            data: bytes = self._connection._rfile.read1(min(len(room), RECEIVE_BYTES))
        except OSError as error:
            why = "no more data arrived" if isinstance(error, TimeoutError) else str(error)
            raise BrokenStreamError(f"The connection to {self._address} broke: {why}.", hint="Try again.") from None
        if not data:
            raise BrokenStreamError(f"The server at {self._address} closed the connection.", hint="Try again.")
        room[: len(data)] = data
        self._throttle(len(data))
        return len(data)


@contextlib.contextmanager
def _read_lock(address: ServerAddress, server: Server) -> Iterator[None]:
    """Hold all commits of a server while the block runs."""
    with Server(address) as holder:
        holder.rows(f"set session lock_wait_timeout = {LOCK_SECONDS}")
        try:
            holder.rows("flush tables with read lock", need="lock")
        except SourceError as error:
            if error.context.get("number") != ER.LOCK_WAIT_TIMEOUT:
                raise
            raise SourceError(
                f"A statement on the server at {address} kept the read lock from being granted for {LOCK_SECONDS} s.",
                hint="Start the baseline again when no statement runs for so long.",
            ) from None
        yield
        holder.rows("unlock tables")
