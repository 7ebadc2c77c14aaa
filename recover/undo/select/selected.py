"""The selected changes: which transactions and rows an undo takes back, kept in tables of the connection."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ingest.errors import UsageError
from recover.timeline.events import Place
from recover.undo.select.unaffected import leave_rolled_back, leave_taken_back, sequences_among
from recover.undo.tables.table import TableName

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

ORDER: Final = "epoch, file_sequence, start_pos, payload_ordinal, row_ordinal"
"""The columns of commit order."""
TRANSACTION_NAME: Final = "coalesce(changes.gtid, changes.binlog_file || ':' || changes.transaction_pos)"
"""The expression of `Change.transaction` on `row_changes as changes`."""


class SelectionError(UsageError):
    """A selection of changes cannot be undone as it is."""


class EmptySelectionError(SelectionError):
    """No change is selected."""


@dataclass(frozen=True)
class Selected:
    """The selected changes, which tables of the connection hold.

    Attributes
    ----------
    source_id
        Their source.
    transactions, changes
        How many of each.
    filtered
        How many changes the filters select. Those that are not in `changes` are of the same transactions.
    tables
        Their tables, with the number of selected changes.
    is_whole
        Whether they are whole transactions.
    rolled_back
        Names of transactions that the filters select too, and that changed nothing because they were rolled back.
    sequences
        Sequences with selected changes, which an undo leaves alone; `tables` does not have them.
    """

    source_id: str
    transactions: int
    changes: int
    tables: dict[TableName, int]
    is_whole: bool
    rolled_back: tuple[str, ...] = ()
    sequences: tuple[TableName, ...] = ()
    filtered: int = field(kw_only=True)


def select(
    connection: "DuckDBPyConnection", condition: str, parameters: object = None, *, rows_only: bool = False
) -> Selected:
    """Select the transactions that have a change for which a condition is true; with `rows_only` these changes alone.

    Raises
    ------
    SelectionError
        Nothing is selected, or changes of several sources, or changes that were not committed.
    """
    connection.execute(
        "create or replace table selected_changes as "
        f"select source_id, change_id, binlog_file, transaction_pos, outcome, {ORDER} "
        f"from binloom.row_changes where {condition}",
        parameters,
    )
    sources = [
        row[0] for row in connection.execute("select distinct source_id from selected_changes order by 1").fetchall()
    ]
    if not sources:
        raise EmptySelectionError(
            "No change is selected, so there is nothing to undo.",
            hint="Look for it with `binloom query` and the same filters.",
        )
    if len(sources) > 1:
        raise SelectionError(
            f"Changes of several sources are selected: {', '.join(sources)}.",
            hint="Give --source: an undo is for one server.",
        )
    leave_taken_back(connection)
    connection.execute(
        "create or replace table selected_transactions as "
        "select distinct source_id, epoch, file_sequence, binlog_file, transaction_pos from selected_changes"
    )
    connection.execute("create or replace temp table rolled_back_transactions (name varchar)")
    return described(connection, is_whole=not rows_only)


def add_transactions(connection: "DuckDBPyConnection", names: Iterable[str]) -> Selected:
    """Select further transactions, by their names in `Change.transaction`."""
    connection.execute("create or replace temp table further_transactions (name varchar)")
    connection.executemany("insert into further_transactions values (?)", [[name] for name in names])
    connection.execute(
        "insert into selected_transactions "
        "select distinct source_id, epoch, file_sequence, binlog_file, transaction_pos "
        "from binloom.row_changes as changes "
        "where source_id = (select any_value(source_id) from selected_transactions) "
        f"and {TRANSACTION_NAME} in (select name from further_transactions) "
        "and (epoch, file_sequence, transaction_pos) not in "
        "(select (epoch, file_sequence, transaction_pos) from selected_transactions)"
    )
    return described(connection, is_whole=True)


def selected_names(connection: "DuckDBPyConnection") -> set[str]:
    """Return the names of the transactions of which something is selected."""
    rows = connection.execute(
        f"select distinct {TRANSACTION_NAME} from binloom.row_changes as changes where {_is_chosen(True, 'changes')}"
    ).fetchall()
    return {name for (name,) in rows}


def is_selected(is_whole: bool, table: str = "changes") -> str:
    """Return the condition that a change of `row_changes` is selected and took effect."""
    return f"({_is_chosen(is_whole, table)} and {table}.outcome = 'commit')"


def _is_chosen(is_whole: bool, table: str) -> str:
    if is_whole:
        return (
            f"exists (select 1 from selected_transactions as chosen where chosen.source_id = {table}.source_id"
            f" and chosen.epoch = {table}.epoch and chosen.file_sequence = {table}.file_sequence"
            f" and chosen.transaction_pos = {table}.transaction_pos)"
        )
    return f"exists (select 1 from selected_changes as chosen where chosen.change_id = {table}.change_id)"


def described(connection: "DuckDBPyConnection", is_whole: bool) -> Selected:
    """Return what is selected, by its present tables."""
    leave_rolled_back(connection, _is_chosen(is_whole, "changes"), TRANSACTION_NAME)
    (source, transactions) = connection.execute(
        "select any_value(source_id), count(*) from selected_transactions"
    ).fetchone() or ("", 0)
    rows = connection.execute(
        "select schema_name, table_name, count(*), bool_and(event_type = 'INSERT')"
        f" from binloom.row_changes as changes where {is_selected(is_whole)} group by 1, 2 order by 1, 2"
    ).fetchall()
    inserted = [(schema, name) for schema, name, _, has_only_inserts in rows if has_only_inserts]
    sequences = sequences_among(connection, inserted, is_selected(is_whole))
    tables = {(schema, name): count for schema, name, count, _ in rows if (schema, name) not in sequences}
    names = connection.execute("select name from rolled_back_transactions").fetchall()
    rolled_back = tuple(name for (name,) in names)
    if sequences and not tables:
        raise SelectionError(
            f"Only sequences are selected: {', '.join(map('.'.join, sequences))}. An undo leaves them alone.",
            hint="A sequence never gives a number twice; ALTER SEQUENCE … RESTART sets the next one.",
        )
    if not tables:
        raise SelectionError(
            f"The selection was rolled back, so it changed nothing: {', '.join(rolled_back)}.",
            hint="Select a transaction that was committed.",
        )
    chosen = connection.execute("select count(*) from selected_changes where outcome = 'commit'").fetchone()
    (filtered,) = chosen or (0,)
    changes = sum(tables.values())
    return Selected(source, transactions, changes, tables, is_whole, rolled_back, sequences, filtered=filtered)


def first_place(connection: "DuckDBPyConnection", selected: Selected) -> Place:
    """Return the place of the first selected change of all tables."""
    return Place(*min(first_selected(connection, selected, name) for name in selected.tables)[:3])


def first_selected(connection: "DuckDBPyConnection", selected: Selected, table: TableName) -> tuple[Any, ...]:
    """Return the position of the first selected change of a table."""
    row = connection.execute(
        f"select {ORDER} from binloom.row_changes as changes where {is_selected(selected.is_whole)}"
        f" and schema_name = ? and table_name = ? order by {ORDER} limit 1",
        list(table),
    ).fetchone()
    assert row is not None
    return tuple(row)
