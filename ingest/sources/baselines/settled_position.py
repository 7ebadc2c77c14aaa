"""A position of a MySQL server's log whose earlier transactions are all in every transaction that begins from now on.

A server writes a transaction into its log first, and commits it in InnoDB later. The end of the log is therefore no
such position by itself: a snapshot may lack the last transactions before it, for as long as a slow disk or a
semi-synchronous replica takes. Two facts tell when they are committed:

- The server adds a GTID to `gtid_executed` after InnoDB has committed the transaction, and until then the GTID is in
  `gtid_owned`. So all GTIDs before a position are executed when those that were owned then are.
- Without GTIDs, a transaction that is in the log and not committed yet is in `innodb_trx`, with changed rows and a
  thread that is at work. So all of them are committed when each such transaction was seen to have ended, or its thread
  to be idle.

Source: server, sql/binlog.cc, `MYSQL_BIN_LOG::ordered_commit`, `Gtid_state::update_commit_group`. MySQL 5.6 adds a
GTID when it writes the log (`update_on_flush`), so there only the second fact counts.
"""

import re
import time
from typing import Final

from ingest.binlog.gtid_sets import GtidSet
from ingest.errors import SourceError
from ingest.sources.servers.information_schema import Position, binlog_position
from ingest.sources.servers.server import Row, Server, ServerIdentity, executed_gtids, may_be_anonymous

SETTLING_SECONDS: Final = 30.0
"""Transactions that take longer to commit are changed by a statement that runs for long."""

_POLLING_SECONDS: Final = 0.02
_REFRESHED_SECONDS: Final = 0.15
"""The server renews `innodb_trx` when nobody has read it for 0.1 seconds: trx0i_s.cc, CACHE_MIN_IDLE_TIME_NS."""
_ADDED_AFTER_COMMIT: Final = (5, 7, 0)
_OWNER: Final = re.compile(r"#\d+")
_CANNOT_CONVERT: Final = 3854
"""MySQL 9.7 lists no transaction while the text of one of their statements has a character beyond the BMP."""
_WITHOUT_NUMBER: Final = 1 << 48
"""Transactions that have changed nothing get identifiers from here on: trx0trx.h, `trx_get_id_for_print`."""


def settled_position(server: Server, identity: ServerIdentity) -> Position:
    """Return a position near the end of the log, and the executed GTIDs, which contain all of those before it.

    The set is None if the server may log transactions without a GTID.

    Raises
    ------
    AccessRefusedError
        The user may not see the transactions of others, and the server has no GTIDs.
    SourceError
        A transaction did not end in time.
    """
    name, offset, _ = binlog_position(server, identity)
    if identity.version_numbers >= _ADDED_AFTER_COMMIT and not may_be_anonymous(server):
        return name, offset, _when_executed(server)
    _wait_for_engine(server)
    return name, offset, None


def _when_executed(server: Server) -> str | None:
    """Wait until the GTIDs that are owned now are executed, and return all that are."""
    owned = GtidSet.parse(_OWNER.sub("", server.variables("gtid_owned").get("gtid_owned", "")))
    until = time.monotonic() + SETTLING_SECONDS
    while not owned <= GtidSet.parse(executed := executed_gtids(server)):
        if time.monotonic() > until:
            raise _unsettled(server, f"transaction {str(owned).partition(',')[0]}")
        time.sleep(_POLLING_SECONDS)
    return executed


def _wait_for_engine(server: Server) -> None:
    """Wait until each transaction that has changed rows by now has ended, or waits for its client."""
    until = time.monotonic() + SETTLING_SECONDS
    pending: set[int] | None = None
    with Server(server.address) as marker:
        # The list may be older than the position. It is not if a transaction is in it that began after that.
        marker.rows("start transaction with consistent snapshot")
        own = marker.rows("select connection_id() as id")[0].number("id")
        while pending is None or pending:
            if time.monotonic() > until:
                raise _unsettled(server, f"transaction {min(pending)} of innodb_trx" if pending else "a transaction")
            rows = _transactions(server)
            if own in {row.number("thread") for row in rows}:
                idle = {row.number("Id") for row in server.rows("show processlist") if row["Command"] == "Sleep"}
                at_work = {
                    row.number("trx_id") for row in rows if row.number("changed") and row.number("thread") not in idle
                }
                at_work = {number for number in at_work if number < _WITHOUT_NUMBER}
                pending = at_work if pending is None else pending & at_work
                if not pending:
                    return
            time.sleep(_REFRESHED_SECONDS)


def _transactions(server: Server) -> list[Row]:
    """Return the transactions of InnoDB; none when the server cannot list them at the moment."""
    try:
        return server.rows(
            "select trx_id, trx_mysql_thread_id as thread, trx_rows_modified as changed"
            " from information_schema.innodb_trx",
            need="transactions",
        )
    except SourceError as error:
        if error.context.get("number") != _CANNOT_CONVERT:
            raise
        return []


def _unsettled(server: Server, what: str) -> SourceError:
    return SourceError(
        f"On the server at {server.address}, {what} did not end within {SETTLING_SECONDS:.0f} s, so no position of its"
        " log is known to be that of a snapshot.",
        hint="Start the baseline again when no statement that changes rows runs for so long.",
    )
