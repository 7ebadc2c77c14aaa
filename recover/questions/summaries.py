"""Questions about selected row changes: each change, or sums by transaction, table, hour or thread."""

from typing import TYPE_CHECKING, Final

from recover.selection.condition import COMMIT_ORDER, Selection
from recover.selection.filters import By

if TYPE_CHECKING:
    from sqlglot import exp


_COUNTS: Final = """
    count(*) as changes,
    count_if(event_type = 'INSERT') as inserts,
    count_if(event_type = 'UPDATE') as updates,
    count_if(event_type = 'DELETE') as deletes"""

_TIMES: Final = """
    min(event_timestamp) as first_change_at,
    max(event_timestamp) as last_change_at"""

# In Spark's SQL; `selected` are the row changes that the filters select.
_QUERIES: Final = {
    By.CHANGE: f"""
        select * from selected order by {", ".join(COMMIT_ORDER)}""",
    # A transaction may have more rows than the filters select.
    By.TRANSACTION: f"""
        select
            concat_ws('/', source_id, epoch, binlog_file, transaction_pos) as transaction_id,
            any_value(gtid) as gtid,
            any_value(thread_id) as thread_id,
            any_value(committed_at) as committed_at,
            any_value(outcome) as outcome,
            {_COUNTS},
            any_value(whole_transactions.row_events) as changes_of_transaction,
            array_sort(collect_set(concat(schema_name, '.', table_name))) as tables
        from selected
        left join (
            select
                source_id as whole_source_id,
                epoch as whole_epoch,
                binlog_file as whole_binlog_file,
                start_pos as whole_start_pos,
                row_events
            from binloom.transactions
        ) as whole_transactions
            on
                source_id = whole_source_id
                and epoch = whole_epoch
                and binlog_file = whole_binlog_file
                and transaction_pos = whole_start_pos
        group by source_id, epoch, binlog_file, file_sequence, transaction_pos
        order by source_id, epoch, file_sequence, transaction_pos""",
    By.TABLE: f"""
        select source_id, schema_name, table_name, {_COUNTS},
            count(distinct pk_hash) as keys,
            {_TIMES}
        from selected
        group by source_id, schema_name, table_name
        order by changes desc, source_id, schema_name, table_name""",
    By.HOUR: f"""
        select event_hour, source_id, {_COUNTS},
            count(distinct concat_ws('/', epoch, binlog_file, transaction_pos)) as transactions
        from selected
        group by event_hour, source_id
        order by event_hour, source_id""",
    By.THREAD: f"""
        select source_id, server_id, thread_id, {_COUNTS},
            count(distinct concat_ws('/', epoch, binlog_file, transaction_pos)) as transactions,
            {_TIMES}
        from selected
        group by source_id, server_id, thread_id
        order by changes desc, source_id, server_id, thread_id""",
}


def summary(selection: Selection, by: By, limit: int | None = None) -> "exp.Query":
    """Return the query of the selected changes by a unit.

    Parameters
    ----------
    selection
        The row changes.
    by
        Unit of a row of the answer.
    limit
        At most this number of rows; None: all.
    """
    import sqlglot
    from sqlglot import exp

    query = sqlglot.parse_one(_QUERIES[by], read="spark")
    if not isinstance(query, exp.Query):
        raise TypeError(by)
    query = query.with_("selected", as_=selection.query())
    return query.limit(limit) if limit is not None else query
