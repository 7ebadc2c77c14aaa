"""Questions about selected row changes: each change, or sums by transaction, table, hour, thread or statement."""

from typing import TYPE_CHECKING, Final

from ingest.ddl.digests.comment_tags import APPLICATION_TAGS
from recover.selection.condition import COMMIT_ORDER, STATEMENT_KINDS, Selection
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

_TRANSACTIONS: Final = "count(distinct concat_ws('/', epoch, binlog_file, transaction_pos)) as transactions"

# The statement of each selected change: the last one before it in its transaction. NULL if the server did not log it.
_WITH_STATEMENTS: Final = f"""
    (
        select * from (
            select *, last_value(logged) ignore nulls over (
                partition by source_id, epoch, binlog_file, transaction_pos
                order by start_pos, payload_ordinal, is_change
            ) as statement
            from (
                select
                    source_id, epoch, binlog_file, transaction_pos, start_pos, payload_ordinal, 1 as is_change,
                    event_type, event_timestamp, concat(schema_name, '.', table_name) as changed_table, null as logged
                from selected
                union all
                select
                    statements.source_id, statements.epoch, statements.binlog_file, statements.transaction_pos,
                    statements.start_pos, statements.payload_ordinal, 0 as is_change, null as event_type,
                    null as event_timestamp, null as changed_table,
                    named_struct('digest', digest, 'digest_text', digest_text, 'tags', tags) as logged
                from binloom_staging.stg_binlog__statements as statements
                inner join (
                    select distinct source_id, epoch, binlog_file, transaction_pos from selected
                ) as transactions
                    on
                        statements.source_id = transactions.source_id
                        and statements.epoch = transactions.epoch
                        and statements.binlog_file = transactions.binlog_file
                        and statements.transaction_pos = transactions.transaction_pos
                where statements.kind in ({", ".join(f"'{kind}'" for kind in STATEMENT_KINDS)})
            ) as placed
        ) as attributed
        where is_change = 1
    ) as attributed"""


def application_in(tags: str) -> str:
    """Return the expression of the application that the tags of a statement name."""
    values = ", ".join(f"{tags}['{key}']" for key in APPLICATION_TAGS)
    return f"coalesce({values})"


_APP: Final = application_in("statement.tags")
_ROUTE: Final = """coalesce(
    statement.tags['route'],
    nullif(concat_ws('#', statement.tags['controller'], statement.tags['action']), '')
)"""


def _by_statement(**units: str) -> str:
    """Return the query of sums by expressions on the statements of the changes."""
    names = ", ".join(units)
    values = ", ".join(f"{unit} as {name}" for name, unit in units.items())
    return f"""
        select source_id, {names},
            {"any_value(statement.digest_text) as statement_text," if "digest" in units else ""}
            {_COUNTS}, {_TRANSACTIONS},
            array_sort(collect_set(changed_table)) as tables,
            {_TIMES}
        from (select *, {values} from {_WITH_STATEMENTS}) as told
        group by source_id, {names}
        order by changes desc, source_id, {names}"""


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
            {_TRANSACTIONS}
        from selected
        group by event_hour, source_id
        order by event_hour, source_id""",
    By.THREAD: f"""
        select source_id, server_id, thread_id, {_COUNTS},
            {_TRANSACTIONS},
            {_TIMES}
        from selected
        group by source_id, server_id, thread_id
        order by changes desc, source_id, server_id, thread_id""",
    By.APP: _by_statement(app=_APP),
    By.ROUTE: _by_statement(app=_APP, route=_ROUTE),
    By.DIGEST: _by_statement(digest="statement.digest"),
}


def summary(selection: Selection, by: By, limit: int | None = None, offset: int = 0) -> "exp.Query":
    """Return the query of the selected changes by a unit.

    Parameters
    ----------
    selection
        The row changes.
    by
        Unit of a row of the answer.
    limit
        At most this number of rows; None: all.
    offset
        Number of rows before the first one.
    """
    query = selection.among_selected(_QUERIES[by])
    query = query.limit(limit) if limit is not None else query
    return query.offset(offset) if offset else query
