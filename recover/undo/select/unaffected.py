"""Selected changes that an undo leaves alone: those that were rolled back, and those of sequences.

A sequence of MariaDB is a table of one row that no DML can change; a server logs each refill as an INSERT. A sequence
never gives a number twice, so there is nothing to take back.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ingest.ddl.sequences import SEQUENCE_COLUMNS
from ingest.errors import UsageError
from recover.undo.tables.table import TableName

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def sequences_among(
    connection: "DuckDBPyConnection", tables: Iterable[TableName], is_selected: str
) -> tuple[TableName, ...]:
    """Return which of some tables are sequences, by the columns of a selected change of each."""
    return tuple(name for name in tables if _is_sequence(connection, name, is_selected))


def _is_sequence(connection: "DuckDBPyConnection", name: TableName, is_selected: str) -> bool:
    row = connection.execute(
        f"select map_keys(row_after) from binloom.row_changes as changes where {is_selected}"
        " and schema_name = ? and table_name = ? limit 1",
        list(name),
    ).fetchone()
    return row is not None and row[0] is not None and {*row[0]} == SEQUENCE_COLUMNS


def leave_taken_back(connection: "DuckDBPyConnection") -> None:
    """Take changes out of the selection that ROLLBACK TO SAVEPOINT took back, although their transaction committed."""
    if not connection.execute("select 1 from selected_changes where outcome = 'rollback' limit 1").fetchall():
        return
    connection.execute(
        "delete from selected_changes where outcome = 'rollback'"
        " and (source_id, epoch, binlog_file, transaction_pos) not in"
        " (select (source_id, epoch, binlog_file, start_pos) from binloom.transactions where outcome = 'rollback')"
    )
    if not connection.execute("select 1 from selected_changes limit 1").fetchall():
        raise UsageError(
            "ROLLBACK TO SAVEPOINT took back all selected changes, so there is nothing to undo.",
            hint="Look for other changes with `binloom query`; those with another outcome than commit changed nothing.",
        )


def leave_rolled_back(connection: "DuckDBPyConnection", is_chosen: str, name_of_transaction: str) -> None:
    """Remove XA transactions that were rolled back from the selection, and remember their names.

    Any other rolled-back transaction is in the log for its rows of an engine without transactions, which remain.

    Parameters
    ----------
    is_chosen
        The condition that a change of `row_changes` is chosen, whatever its outcome.
    name_of_transaction
        The expression of the name of its transaction.
    """
    uncommitted = connection.execute(
        f"select {name_of_transaction}, outcome, epoch, file_sequence, transaction_pos"
        f" from binloom.row_changes as changes where {is_chosen} and outcome is distinct from 'commit'"
        " group by all order by epoch, file_sequence, transaction_pos"
    ).fetchall()
    if not uncommitted:
        return
    ends = {
        tuple(place): (outcome, xa_xid)
        for outcome, xa_xid, *place in connection.execute(
            "select outcome, xa_xid, epoch, file_sequence, start_pos from binloom.transactions"
            " where (epoch, file_sequence, start_pos) in"
            " (select (epoch, file_sequence, transaction_pos) from selected_transactions)"
            " and source_id = (select any_value(source_id) from selected_transactions)"
        ).fetchall()
    }
    for name, outcome, *place in uncommitted:
        end, xa_xid = ends.get(tuple(place), (None, None))
        if outcome == "unknown":
            raise UsageError(
                f"ROLLBACK TO SAVEPOINT may have taken back changes of the selected transaction {name}: the log does"
                " not tell whether they stayed.",
                hint="Leave them out with --rows-only and --where; `binloom query` shows them with outcome unknown.",
            )
        if outcome == "rollback" and end == "commit":
            # ROLLBACK TO SAVEPOINT took these changes back, and no others of the transaction.
            continue
        if end != "rollback" or xa_xid is None:
            raise UsageError(
                f"The selected transaction {name} was not committed: its outcome is {outcome or 'unknown'}.",
                hint="Select without it: the log does not show whether its changes remained.",
            )
        for table in ("selected_transactions", "selected_changes"):
            connection.execute(f"delete from {table} where (epoch, file_sequence, transaction_pos) = (?, ?, ?)", place)
        connection.execute("insert into rolled_back_transactions values (?)", [name])
