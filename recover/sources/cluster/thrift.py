"""A Spark cluster behind its Thrift server: queries in, rows out."""

import contextlib
import difflib
import logging
import os
import re
import struct
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from ingest.errors import StoreError, UsageError
from recover.sources.engine import Answer, in_memory, registered
from recover.sources.home.landed_marts import DIGESTS
from recover.sources.spark_rows import Column, line_of, values_of

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection
    from pyhive.hive import Connection
    from sqlglot import exp

TARGET_VARIABLE: Final = "BINLOOM_TARGET"
HOST_VARIABLE: Final = "BINLOOM_THRIFT_HOST"
PORT_VARIABLE: Final = "BINLOOM_THRIFT_PORT"
USER_VARIABLE: Final = "BINLOOM_THRIFT_USER"
# A server that has just started needs seconds for its first session.
_CONNECT_SECONDS: Final = 60
_BYTES_AT_ONCE: Final = 8 << 20
_FIRST_ROWS: Final = 500
_MOST_ROWS: Final = 20_000
# Answers depend on these settings, so a session overrides the server's own.
_SETTINGS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    # Literals keep their text: `${name}` is not a setting, and a backslash is an escape.
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    # A metastore on PostgreSQL cannot compare the numbers of partitions; Spark then compares them itself.
    "spark.sql.hive.metastorePartitionPruningFallbackOnException": "true",
    # The server has one partition of the answer in memory, not all.
    "spark.sql.thriftServer.incrementalCollect": "true",
}


class ClusterLostError(StoreError):
    """The Thrift server does not answer, or something else answers at its address."""


class ClusterRefusedError(StoreError):
    """The cluster cannot run a query.

    Attributes
    ----------
    state
        SQLSTATE: its first two characters are the class of the error.
    """


class NoClusterTableError(UsageError):
    """The cluster does not have a table."""


def is_cluster_target() -> bool:
    """Return whether the commands ask a cluster instead of the local warehouse.

    Raises
    ------
    UsageError
        There is no such target.
    """
    target = os.environ.get(TARGET_VARIABLE) or "local"
    if target not in ("local", "thrift"):
        raise UsageError(
            f"{TARGET_VARIABLE} is {target!r}, which is not a target.",
            hint="The targets are local and thrift, as in profiles.yml.",
        )
    return target == "thrift"


def thrift_address() -> tuple[str, int]:
    """Return host and port of the Thrift server that the environment names, as profiles.yml does.

    Raises
    ------
    UsageError
        The port is not a number.
    """
    port = os.environ.get(PORT_VARIABLE) or "10000"
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise UsageError(f"{PORT_VARIABLE} is {port!r}, which is not a port.", hint="Give a number such as 10000.")
    return os.environ.get(HOST_VARIABLE) or "127.0.0.1", int(port)


class Cluster:
    """A session of a Thrift server.

    Parameters
    ----------
    host, port, user
        Where it listens, and the name that it sees.
    settings
        Settings of the session that are not the server's own.

    Raises
    ------
    ClusterLostError
        No Thrift server answers there.
    """

    def __init__(self, host: str, port: int, user: str, settings: Mapping[str, str] = _SETTINGS) -> None:
        self._place = f"{host}:{port}"
        # The library prints its own lines for what the errors tell.
        logging.getLogger("thrift").setLevel(logging.CRITICAL)
        self._session = _connected(host, port, user)
        for name, value in settings.items():
            self.set(name, value)
        self._columns: dict[str, list[Column]] = {}

    @classmethod
    def of_environment(cls, settings: Mapping[str, str] = _SETTINGS) -> "Cluster":
        """Return a session of the Thrift server that the environment names.

        Raises
        ------
        UsageError
            The port is not a number.
        ClusterLostError
            No Thrift server answers there.
        """
        host, port = thrift_address()
        return cls(host, port, os.environ.get(USER_VARIABLE) or "binloom", settings)

    def close(self) -> None:
        """End the session; the server may have ended it before."""
        with contextlib.suppress(Exception):
            self._session.close()

    def set(self, name: str, value: str) -> None:
        """Change a setting of the session."""
        with self._reported():
            self._run(f"set {name}={value}")

    def setting(self, name: str) -> str | None:
        """Return the value of a setting, None if it is not set and has no default."""
        ((_, value),) = self.plain_rows(f"set {name}")
        return None if value == "<undefined>" else str(value)

    def plain_rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the rows of a statement of Spark, with values as the Thrift server sends them.

        Raises
        ------
        ClusterRefusedError, ClusterLostError
        """
        with self._reported():
            return list(self._run(statement).fetchall())

    def answer(self, query: "exp.Query") -> Answer:
        """Return the answer to a query, with values as DuckDB has them.

        Raises
        ------
        ClusterRefusedError, ClusterLostError, NoClusterTableError
            Also while the rows are read.
        UsageError
            A column has a type without an exact text.
        """
        text = _spark(query)
        columns = self.columns(text)
        return Answer([column.name for column in columns], self._rows(text, columns))

    def without_digests(self, query: "exp.Query") -> "exp.Query":
        """Return a query of the same rows, without the digests if it is one of all columns of `row_changes`."""
        from sqlglot import exp

        if not query.is_star:
            return query
        found = [column.name for column in self.columns(_spark(query))]
        kept = [exp.column(name, quoted=True) for name in found if name not in DIGESTS]
        return query if len(kept) == len(found) else exp.select(*kept).from_(query.subquery("answer"))

    def rows(self, query: "exp.Query") -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query, with values as DuckDB has them; see `answer`."""
        return self.answer(query).rows

    def records(self, query: "exp.Query") -> list[dict[str, Any]]:
        """Return the rows of a query by the names of their columns; see `answer`."""
        found = self.answer(query)
        return [dict(zip(found.columns, row, strict=True)) for row in found.rows]

    def copy(self, query: "exp.Query", connection: "DuckDBPyConnection", table: str) -> None:
        """Add the rows of a query to a table of DuckDB, which is created if it is missing; see `answer`.

        Columns of the table that the query does not have are NULL; digests are not copied.
        """
        import pyarrow as pa

        text = _spark(self.without_digests(query))
        columns = self.columns(text)
        rows = values_of(columns, "lines")
        with registered(connection, "lines", pa.table({"line": pa.array([], pa.large_string())})):
            connection.execute(f"create table if not exists {table} as {rows}")
        for batch in self._batches(text, columns):
            with registered(connection, "lines", batch):
                connection.execute(f"insert into {table} by name {rows}")

    def columns(self, query: str) -> list[Column]:
        """Return the columns of the answer to a query."""
        if query not in self._columns:
            with self._reported():
                described = self._run(f"describe query {query}").fetchall()
            self._columns[query] = [Column.of(name, kind) for name, kind, _ in described]
        return self._columns[query]

    def _rows(self, query: str, columns: list[Column]) -> Iterator[tuple[Any, ...]]:
        for batch in self._batches(query, columns):
            with registered(self._reader, "lines", batch):
                rows = self._reader.execute(values_of(columns, "lines")).fetchall()
            yield from rows

    @cached_property
    def _reader(self) -> "DuckDBPyConnection":
        return in_memory()

    def _batches(self, query: str, columns: list[Column]) -> Iterator["pa.Table"]:
        """Yield the lines of some rows, time after time, in a number that fits their size."""
        import pyarrow as pa

        names = ", ".join(f"c{place}" for place in range(len(columns)))
        with self._reported():
            cursor = self._run(f"select {line_of(columns)} as line from ({query}) as answer ({names})")
        cursor.arraysize = _FIRST_ROWS
        while True:
            with self._reported():
                lines = [row[0] for row in cursor.fetchmany(cursor.arraysize)]
            if not lines:
                return
            yield pa.table({"line": pa.array(lines, pa.large_string())})
            row_bytes = sum(map(len, lines)) // len(lines) + 1
            cursor.arraysize = max(1, min(_MOST_ROWS, _BYTES_AT_ONCE // row_bytes))

    def _run(self, statement: str) -> Any:
        cursor = self._session.cursor()
        cursor.execute(statement)
        return cursor

    @contextlib.contextmanager
    def _reported(self) -> Iterator[None]:
        """Turn an error of the session into one sentence."""
        from pyhive.exc import Error
        from thrift.Thrift import TException

        try:
            yield
        except Error as error:
            state, text = _of_server(error)
            if state == "42P01" and (table := re.search(r"`(\w+)`\.`([^`]+)`", text)) is not None:
                raise self._no_table(table[1], table[2]) from None
            raise ClusterRefusedError(
                f"The cluster at {self._place} cannot run a query: {text}.",
                hint="Its log has more.",
                state=state or "",
                reason=text,
            ) from None
        except (TException, OSError, EOFError) as error:
            raise ClusterLostError(
                f"The Thrift server at {self._place} was lost before it answered.",
                hint="Its log may tell why. Run the same command again when it is back.",
            ) from error

    def _no_table(self, schema: str, name: str) -> NoClusterTableError:
        """Return the error for a missing table, with the tables that are nearest."""
        known: list[str] = []
        with contextlib.suppress(StoreError), self._reported():
            known = [row[1] for row in self._run(f"show tables in `{schema}`").fetchall()]
        near = difflib.get_close_matches(name, known, n=3) or sorted(known)[:10]
        build = "Run `dbt build` with target thrift."
        there = f"There are {', '.join(f'{schema}.{one}' for one in near)}." if known else build
        return NoClusterTableError(f"The cluster at {self._place} has no table {schema}.{name}.", hint=there)


def _connected(host: str, port: int, user: str) -> "Connection":
    """Return a session. A server that does not answer in time is none; a query may take longer."""
    import thrift_sasl  # type: ignore[import-untyped]
    from pyhive import exc, hive
    from thrift.Thrift import TException
    from thrift.transport.TSocket import TSocket

    socket = TSocket(host, port, socket_keepalive=True)
    socket.setTimeout(_CONNECT_SECONDS * 1000)
    transport = thrift_sasl.TSaslClientTransport(
        lambda: hive.get_installed_sasl(host=host, sasl_auth="PLAIN", username=user, password="x"), "PLAIN", socket
    )
    try:
        session = hive.Connection(thrift_transport=transport, username=user)
    except (exc.Error, TException, OSError, EOFError, struct.error, AssertionError, ValueError, MemoryError) as error:
        # The bytes of another protocol are read as anything: a length, a text, a version.
        is_refused = re.search(r"Bad status: [34] ", str(error)) is not None
        if is_refused or isinstance(error, exc.Error):
            raise ClusterLostError(
                f"The Thrift server at {host}:{port} refuses a session of user {user!r}.",
                hint=f"binloom connects as {USER_VARIABLE}, without a password: the server must allow that.",
            ) from error
        raise ClusterLostError(
            f"No Thrift server answers at {host}:{port}.",
            hint=f"Start it, or set {HOST_VARIABLE} and {PORT_VARIABLE} to its address;"
            f" without {TARGET_VARIABLE}=thrift, binloom asks the local warehouse.",
        ) from error
    socket.setTimeout(None)
    return session


def _spark(query: "exp.Query") -> str:
    """Return a query in Spark's SQL."""
    from sqlglot import exp

    from ingest.warehouse.catalog import sql_literal

    def exact(node: "exp.Expr") -> "exp.Expr":
        if isinstance(node, exp.TryCast):
            # Otherwise sqlglot writes CAST, which fails, also for rows that another condition excludes.
            node.set("safe", True)
        # sqlglot writes NUL and a digit as an escape of another character.
        is_odd = isinstance(node, exp.Literal) and node.is_string and not node.this.isprintable()
        return exp.Var(this=sql_literal(node.this)) if is_odd else node

    return query.transform(exact).sql("spark")


def _of_server(error: Exception) -> tuple[str | None, str]:
    """Return the SQLSTATE and the sentence of an error, without the query plan and the Java stack."""
    status = getattr(error.args[0] if error.args else None, "status", None)
    if status is None:
        return None, str(error).rstrip(".")
    text: str = status.errorMessage or ""
    # The text follows the name of the condition, which Spark writes once or twice.
    if (condition := re.search(r"\[[A-Z][A-Z0-9_.]+\]", text)) is not None:
        text = text.split(condition[0], 2)[-1]
    # Errors while rows are fetched have the state in their text only.
    state = re.search(r" SQLSTATE: (\w{5})", text)
    return state[1] if state is not None else status.sqlState, re.split(r" SQLSTATE:|\n|;\s*line \d", text.strip())[
        0
    ].strip().rstrip(".")
