"""The biggest and longest transactions, and sums of tables, among selected row changes."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sqlglot import exp

    from recover.selection.condition import Selection


class Unit(StrEnum):
    """Unit of the rows of an answer."""

    TRANSACTION = "transaction"
    TABLE = "table"
    HOUR = "hour"


@dataclass(frozen=True)
class Least:
    """Thresholds: a transaction that reaches one of them is printed, whatever its rank.

    Attributes
    ----------
    rows, bytes, seconds
        None: no threshold.
    """

    rows: int | None = None
    bytes: int | None = None
    seconds: float | None = None


_IS_PLAUSIBLE: Final = (
    "committed_at >= started_at and unix_micros(committed_at) - unix_micros(started_at) < 86400000000"
)
SECONDS: Final = f"case when {_IS_PLAUSIBLE} then (unix_micros(committed_at) - unix_micros(started_at)) / 1000000 end"
"""Expression on `binloom.transactions`: how long a transaction lasted; NULL if its session has set its own time."""


def joined_with_selected(*sums: str) -> str:
    """Return the join of `binloom.transactions` with the number of their selected changes, and sums of these."""
    more = "".join(f", {one}" for one in sums)
    return f"""
        inner join (
            select
                source_id as selected_source_id,
                epoch as selected_epoch,
                binlog_file as selected_binlog_file,
                transaction_pos,
                count(*) as selected_changes{more}
            from selected
            group by source_id, epoch, binlog_file, transaction_pos
        ) as found
            on
                source_id = selected_source_id
                and epoch = selected_epoch
                and binlog_file = selected_binlog_file
                and start_pos = transaction_pos"""


# In Spark's SQL; `selected` are the row changes that the filters select. A transaction counts with all of its rows.
_TRANSACTIONS: Final = f"""
    select
        transaction_id, gtid, thread_id, started_at, committed_at, outcome, seconds, is_plausible, bytes_in_file,
        row_events, inserts, updates, deletes, selected_changes, tables, rank_by_rows, rank_by_seconds
    from (
        select
            *,
            row_number() over (order by row_events desc, source_id, epoch, file_sequence, start_pos) as rank_by_rows,
            case when seconds is not null
                then row_number() over (
                    order by coalesce(seconds, -1) desc, source_id, epoch, file_sequence, start_pos
                )
            end as rank_by_seconds
        from (
            select
                transaction_id, gtid, thread_id, started_at, committed_at, outcome, source_id, epoch, file_sequence,
                start_pos, row_events, inserts, updates, deletes, selected_changes, tables,
                end_pos - start_pos as bytes_in_file,
                case when committed_at is not null then {_IS_PLAUSIBLE} end as is_plausible,
                {SECONDS} as seconds
            from binloom.transactions
            {joined_with_selected("array_sort(collect_set(concat(schema_name, '.', table_name))) as tables")}
        ) as measured
    ) as ranked
    where {{wanted}}
    order by rank_by_rows, source_id, epoch, file_sequence, start_pos"""

_TABLES: Final = """
    select
        {hour} source_id, schema_name, table_name,
        sum(changes) as changes,
        sum(inserts) as inserts,
        sum(updates) as updates,
        sum(deletes) as deletes,
        sum(updates_without_change) as updates_without_change,
        count(pk_values) as distinct_keys,
        concat_ws(
            ', ',
            max(case when key_rank = 1 then hot_key end),
            max(case when key_rank = 2 then hot_key end),
            max(case when key_rank = 3 then hot_key end)
        ) as hot_keys,
        sum(event_bytes) as event_bytes
    from (
        select
            *,
            case when pk_values is not null then concat(pk_values, ' (', cast(changes as string), ')') end as hot_key,
            row_number() over (
                partition by {hour} source_id, schema_name, table_name
                order by case when pk_values is null then 1 else 0 end, changes desc, pk_values
            ) as key_rank
        from (
            select
                {hour} source_id, schema_name, table_name, pk_values,
                count(*) as changes,
                count_if(event_type = 'INSERT') as inserts,
                count_if(event_type = 'UPDATE') as updates,
                count_if(event_type = 'DELETE') as deletes,
                count_if(event_type = 'UPDATE' and size(changed_columns) = 0) as updates_without_change,
                coalesce(sum(case when row_ordinal = 0 and payload_ordinal = 0 then end_pos - start_pos end), 0)
                    as event_bytes
            from selected
            group by {hour} source_id, schema_name, table_name, pk_values
        ) as keys
    ) as ranked
    group by {hour} source_id, schema_name, table_name
    order by {order}"""


def transactions_query(selection: "Selection", top: int, least: Least) -> "exp.Query":
    """Return the query of the transactions with selected changes that are big or long.

    Parameters
    ----------
    selection
        Only transactions with one of these row changes.
    top
        Number of ranks by rows, and by seconds.
    least
        Thresholds. If there is one, ranks do not select.
    """
    thresholds = {"row_events": least.rows, "bytes_in_file": least.bytes, "seconds": least.seconds}
    given = [f"{name} >= {value}" for name, value in thresholds.items() if value is not None]
    wanted = " or ".join(given) if given else f"rank_by_rows <= {top} or rank_by_seconds <= {top}"
    return selection.among_selected(_TRANSACTIONS.format(wanted=wanted))


def tables_query(selection: "Selection", unit: Unit) -> "exp.Query":
    """Return the query of sums by table, or by hour and table."""
    is_hourly = unit is Unit.HOUR
    order = "event_hour, source_id, schema_name, table_name" if is_hourly else "changes desc, schema_name, table_name"
    return selection.among_selected(_TABLES.format(hour="event_hour," if is_hourly else "", order=order))
