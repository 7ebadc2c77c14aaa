"""Later transactions that changed the rows of a transaction again."""

from typing import TYPE_CHECKING, Final

from recover.selection.condition import Selection

if TYPE_CHECKING:
    from sqlglot import exp

# In Spark's SQL. A row is the same if its key is: the key after the transaction is the key before a later change.
_QUERY: Final = """
    select
        concat_ws('/', later.source_id, later.epoch, later.binlog_file, later.transaction_pos) as transaction_id,
        later.source_id,
        any_value(later.gtid) as gtid,
        any_value(later.thread_id) as thread_id,
        min(later.committed_at) as committed_at,
        any_value(later.outcome) as outcome,
        later.schema_name,
        later.table_name,
        count(*) as changes,
        count_if(later.event_type = 'DELETE') as deletes,
        min(later.pk_values) as first_key,
        array_sort(array_distinct(flatten(collect_list(later.changed_columns)))) as columns
    from binloom.row_changes as later
    inner join (
        select
            source_id, schema_name, table_name, changed_key,
            max(epoch) as epoch, max(file_sequence) as file_sequence, max(transaction_pos) as transaction_pos
        from (
            select
                source_id, epoch, file_sequence, transaction_pos, schema_name, table_name,
                coalesce(pk_values_after, pk_values) as changed_key
            from selected
        ) as keys
        where changed_key is not null
        group by source_id, schema_name, table_name, changed_key
    ) as changed
        on
            later.source_id = changed.source_id
            and later.schema_name = changed.schema_name
            and later.table_name = changed.table_name
            and later.pk_values = changed.changed_key
    where
        later.epoch > changed.epoch
        or (later.epoch = changed.epoch and later.file_sequence > changed.file_sequence)
        or (
            later.epoch = changed.epoch
            and later.file_sequence = changed.file_sequence
            and later.transaction_pos > changed.transaction_pos
        )
    group by
        later.source_id, later.epoch, later.binlog_file, later.file_sequence, later.transaction_pos,
        later.schema_name, later.table_name
    order by
        later.source_id, later.epoch, later.file_sequence, later.transaction_pos, later.schema_name, later.table_name
    limit {limit}"""


def later_query(selection: Selection, limit: int) -> "exp.Query":
    """Return the query of later changes of the rows of one transaction, by transaction and table.

    Parameters
    ----------
    selection
        The row changes of the transaction.
    limit
        At most this number of rows.
    """
    return selection.among_selected(_QUERY.format(limit=limit))
