"""Changes of the selected transactions that are not among the row changes, so that an undo would leave them out.

A transaction is taken back as a whole. Rows in quarantine have no names or no values, and a statement in the log does
not list its rows. If a selected transaction has such changes, the rest of it is taken back only on request.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from ingest.words import counted
from recover.sources.engine import literal
from recover.undo.select.selected import Selected

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from recover.sources.log import Log

_WAY_OUT: Final = "take back only the selected rows with --rows-only"

# An event that could not be decoded has a position, and no transaction.
_IN_QUARANTINE: Final = """
    select distinct schema_name, table_name
    from (
        select epoch, file_sequence, transaction_pos, schema_name, table_name from binloom.quarantined_row_events
        where source_id = $source and transaction_pos is not null
        union all
        select epoch, file_sequence, transactions.start_pos, found.schema_name, found.table_name
        from binloom.quarantined_row_events as found
        inner join binloom.transactions as transactions using (source_id, epoch, file_sequence)
        where source_id = $source and found.transaction_pos is null
            and found.start_pos >= transactions.start_pos and found.start_pos < transactions.end_pos
    )
    semi join selected_transactions using (epoch, file_sequence, transaction_pos)
    order by all"""

_STATEMENTS: Final = """
    select target.schema_name, target.table_name, target.verb, count(*)
    from (
        select epoch, binlog_file, transaction_pos, unnest(dml_targets) as target
        from binloom_staging.stg_binlog__statements where source_id = $source and {is_in_their_files}
    )
    semi join selected_transactions using (epoch, binlog_file, transaction_pos)
    group by all order by all"""


def left_out(connection: "DuckDBPyConnection", selected: Selected) -> Iterator[str]:
    """Yield each reason why a selection of whole transactions is not all of them, as a sentence without its end."""
    if not selected.is_whole:
        return
    source = {"source": selected.source_id}
    for schema, table in connection.execute(_IN_QUARANTINE, source).fetchall():
        where = f"{schema}.{table}" if table is not None else "unknown tables"
        yield (
            f"row events of {where} in the selected transactions are in quarantine, and would be left out:"
            f" land the definition of the table, or {_WAY_OUT}"
        )
    names = connection.execute("select distinct binlog_file from selected_transactions").fetchall()
    files = [literal(name) for (name,) in names]
    # Literals, because DuckDB skips only the folders of other files that it knows before the query runs.
    query = _STATEMENTS.format(is_in_their_files=f"binlog_file in ({', '.join(files)})" if files else "false")
    for schema, table, verb, statements in connection.execute(query, source).fetchall():
        what = f"{verb or 'a statement'} of {f'{schema}.{table}' if table is not None else 'unknown tables'}"
        yield (
            f"the selected transactions contain {counted(statements, 'statement')} without rows ({what}), which would"
            f" be left out: restore from a backup, or {_WAY_OUT}"
        )


def never_landed(log: "Log", selected: Selected) -> Iterator[str]:
    """Yield warnings: files were landed with only some tables, so the selected transactions may lack rows of others."""
    if not selected.is_whole:
        return
    names = log.connection.execute("select distinct epoch, binlog_file from selected_transactions").fetchall()
    files = {(int(epoch), str(name)) for epoch, name in names}
    for text in sorted({text for *file, text in _filters(log, selected.source_id) if tuple(file) in files}):
        yield f"rows of other tables in the selected transactions, because the files were landed with a filter ({text})"


def _filters(log: "Log", source_id: str) -> Iterable[tuple[int, str, str]]:
    """Return the filters with which files were landed: epoch, file and filter, for each file that has one."""
    if log.copies is not None:
        from sqlglot import exp

        return log.copies.cluster.rows(
            exp.select("epoch", "binlog_file", "table_filter")
            .distinct()
            .from_("binloom_staging.stg_binlog__segments")
            .where(exp.column("source_id").eq(source_id), "status = 'completed'", "table_filter is not null")
        )
    if not log.is_landed or log.home is None:
        return ()
    from ingest.warehouse.record import read_states
    from ingest.warehouse.segments import latest_states

    return (
        (epoch, file, state.table_filter)
        for (epoch, file), states in latest_states(read_states(log.home, source_id)).items()
        for state in states
        if state.status == "completed" and state.table_filter is not None
    )
