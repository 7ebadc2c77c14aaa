"""The rows of tables of a live server, all as of one moment, whose position nobody needs. No lock is taken."""

from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Self

import pymysql

from ingest.ddl.hashed_keys import is_hash
from ingest.errors import SourceError, UsageError
from ingest.sources.baselines.baseline_tables import (
    ENGINES,
    BaselineTable,
    Definitions,
    filled_columns,
    read_definitions,
)
from ingest.sources.baselines.consistent_read import TransactionReader, reading_error
from ingest.sources.dumps.dump import TableName
from ingest.sources.dumps.triggers import tables_with_triggers
from ingest.sources.servers.address import ServerAddress
from ingest.sources.servers.server import Server, server_identity
from ingest.sources.snapshots.snapshot import SchemaSnapshot

if TYPE_CHECKING:
    import pyarrow as pa

_OTHER_WAY: Final = "Restore the tables without comparing them."


class LiveRead:
    """A transaction of a server that reads some tables. Use it in a `with` block.

    Parameters
    ----------
    address
        The server.
    names
        Schema and name of the tables.

    Attributes
    ----------
    snapshot
        The definitions of all tables that the user may see, without a position.

    Raises
    ------
    SourceError
        The server cannot be reached or refuses the user, or a table changes its definition meanwhile.
    UsageError
        A table is not there, or its engine has no transactions.
    """

    def __init__(self, address: ServerAddress, names: Collection[TableName]) -> None:
        self._address = address
        self._server = Server(address)
        self._reader: TransactionReader | None = None
        try:
            identity = server_identity(self._server)
            before = read_definitions(self._server)
            self._columns = {name: _stored(before, name) for name in names}
            self._tables = {name: self._table(before, name) for name in names}
            self._reader = TransactionReader(address)
            self._reader.prepare(identity)
            # Nobody can alter these tables until the transaction ends.
            self._reader.begin(tuple(self._tables.values()))
            after = read_definitions(self._server)
            for table in self._tables.values():
                if before.of([table]) != after.of([table]):
                    raise self._changed(table)
        except BaseException:
            self.close()
            raise
        columns, keys, foreign_keys, defaults = after.schema
        self.snapshot = SchemaSnapshot(
            "server", datetime.now(UTC), columns=columns, keys=keys, foreign_keys=foreign_keys, defaults=defaults
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __str__(self) -> str:
        return str(self._address)

    def close(self) -> None:
        """End the transaction and the connections."""
        if self._reader is not None:
            self._reader.close()
        self._server.close()

    def tables_with_triggers(self, names: Collection[TableName]) -> set[TableName] | None:
        """Return which of some tables have triggers; None if the user may not see them."""
        return tables_with_triggers(self._server, names)

    def rows(self, name: TableName) -> "Iterator[pa.ListArray]":
        """Yield the rows of a table, each a list of the texts of its columns that statements may set.

        Raises
        ------
        SourceError
            The table was altered or replaced since the transaction began, or the connection broke.
        """
        assert self._reader is not None
        try:
            yield from self._reader.stream(self._tables[name])
        except pymysql.MySQLError as error:
            raise reading_error(error, self._address, self._changed(self._tables[name])) from None

    def _table(self, definitions: Definitions, name: TableName) -> BaselineTable:
        facts = next((row[2:4] for row in definitions.tables if row[:2] == name), None)
        text = ".".join(name)
        if facts is None:
            raise UsageError(
                f"The server at {self._address} has no table {text} that the user may read.", hint=_OTHER_WAY
            )
        kind, engine = facts
        if kind != "BASE TABLE" or (engine or "").upper() not in ENGINES:
            what = "is system-versioned" if kind != "BASE TABLE" else f"is of engine {engine}"
            raise UsageError(f"{text} {what} on the server at {self._address}.", hint=_OTHER_WAY)
        columns = self._columns[name]
        return BaselineTable(
            *name,
            column_names=tuple(row["column_name"] for row in columns),
            data_types=tuple(row["data_type"] for row in columns),
            filled=filled_columns(columns),
        )

    def _changed(self, table: BaselineTable) -> SourceError:
        return SourceError(
            f"A statement altered, truncated or replaced {table} on the server at {self._address} meanwhile.",
            hint="Run the same command again when no DDL is running.",
        )


def _stored(definitions: Definitions, name: TableName) -> list[dict[str, Any]]:
    rows = (row for row in definitions.schema[0] if (row["schema_name"], row["table_name"]) == name)
    # MariaDB does not show the columns of hashes to any query.
    shown = (row for row in rows if not (row["is_generated"] or is_hash(row["column_name"], row["extra"])))
    return sorted(shown, key=lambda row: int(row["ordinal_position"]))
