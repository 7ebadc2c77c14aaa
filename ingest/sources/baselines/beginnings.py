"""The beginning of a consistent read: the position that its rows belong to, and how that is known.

Without a lock, the transaction begins between two positions of the log:

- All transactions before the first one are in its snapshot (`settled_position.py`).
- Those that come later than the second one are not, because the server writes a transaction into its log before it
  commits it.

The log between the two tells which rows may differ from those at the second position, and what they are there
(`carried_rows.py`).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from ingest.binlog.gtid_sets import gtid_union
from ingest.errors import AccessRefusedError, SourceError
from ingest.sources.baselines.baseline_tables import BaselineTable
from ingest.sources.baselines.carried_rows import carried, shown
from ingest.sources.baselines.cascades import Cascades
from ingest.sources.baselines.log_part import log_between
from ingest.sources.baselines.logged_changes import LoggedChanges, UnloggedWriteError, read_changes
from ingest.sources.baselines.settled_position import settled_position
from ingest.sources.servers.information_schema import Position, Schema, binlog_position
from ingest.sources.servers.server import Server, ServerIdentity
from ingest.sources.servers.server_check import logs_cascades

if TYPE_CHECKING:
    import pyarrow as pa

Proof = Literal["server", "read_lock", "log"]
"""Who tells the position: the server itself, a lock that held all commits, or the log around the beginning."""


@dataclass(frozen=True)
class Beginning:
    """The beginning of a transaction that reads tables.

    Attributes
    ----------
    position
        The position that the rows of `rows` belong to.
    proof
        How it is known.
    since
        A position whose earlier transactions are all in the snapshot; with proof `log` only.
    changes
        What the log changes from there on.
    """

    position: Position
    proof: Proof
    since: Position | None = None
    changes: LoggedChanges = field(default_factory=LoggedChanges)

    def rows(self, table: BaselineTable, batches: "Iterator[pa.ListArray]") -> "Iterator[pa.ListArray]":
        """Yield the rows of a table at the position, from those of the snapshot.

        Raises
        ------
        SourceError
            Something wrote a row without logging it, or the log has only a part of it.
        """
        versions = self.changes.rows.get((table.schema_name, table.table_name))
        if not versions:
            yield from batches
            return
        try:
            yield from carried(batches, table, versions, f"{self.position[0]}:{self.position[1]}")
        except UnloggedWriteError as error:
            raise _unlogged_write(error, self.since or self.position) from None


def begin_between(
    server: Server, identity: ServerIdentity, tables: Sequence[BaselineTable], schema: Schema, begin: Callable[[], None]
) -> Beginning:
    """Begin a transaction between two positions, and read the log between them.

    Parameters
    ----------
    tables, schema
        The tables that the transaction reads, and the definitions of all tables.
    begin
        Begins the transaction.

    Raises
    ------
    AccessRefusedError
        The user lacks a privilege.
    SourceError
        A transaction does not end, the connection broke, or something wrote a row without logging it.
    Unproved
        The log does not tell all changes of the tables.
    """
    cascades = Cascades.of(tables, schema) if not logs_cascades(server) else Cascades()
    _require_names(server, cascades)
    since = settled_position(server, identity)
    begin()
    name, offset, executed = binlog_position(server, identity)
    end = (name, offset, since[2] if since[2] is not None else _fixed_gtids(server, executed))
    if since[:2] == end[:2]:
        return Beginning(end, "log", since)
    try:
        changes = read_changes(log_between(server.address, identity, since, end), tables, schema, identity, cascades)
    except UnloggedWriteError as error:
        raise _unlogged_write(error, since) from None
    if since[2] is not None:
        gtids = gtid_union([since[2], *changes.gtids])
        end = (name, offset, str(gtids) or None)
    return Beginning(end, "log", since, changes)


def _require_names(server: Server, cascades: Cascades) -> None:
    """Refuse tables whose changes cannot be found in the log by name."""
    if cascades.hidden:
        parent = ".".join(cascades.hidden[0])
        raise AccessRefusedError(
            f"A table of the baseline refers to {parent} by a foreign key that cascades, and the user may not see that"
            f" table on the server at {server.address}. Its changes in rows of the baseline are not logged.",
            hint=f"Grant SELECT on {parent}, or leave the table out.",
        )
    if server.variables("lower_case_table_names").get("lower_case_table_names") == "2":
        raise SourceError(
            f"lower_case_table_names is 2 on the server at {server.address}: its log may have other names of tables"
            " than the server shows, so it proves nothing about them.",
            hint="Let the user have the privilege for a read lock, or take the baseline from a dump.",
        )


def _fixed_gtids(server: Server, executed: str | None) -> str | None:
    """Return the executed GTIDs of a server that logs none; None if it may log some, because they may be too few."""
    return executed if server.variables("gtid_mode").get("gtid_mode", "OFF") == "OFF" else None


def _unlogged_write(error: UnloggedWriteError, since: Position) -> SourceError:
    return SourceError(
        f"The row with key {shown(error.key)} of table {error.table} is none of those that the log has from"
        f" {since[0]}:{since[1]} to {error.place}: something wrote it without logging it.",
        hint="Nothing was landed. Find what writes with sql_log_bin=0, and start the baseline again.",
    )
