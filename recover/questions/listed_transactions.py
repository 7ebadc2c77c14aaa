"""One page of the transactions with selected row changes, and how many of these each table has."""

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from recover.questions.statistics import SECONDS, joined_with_selected
from recover.questions.summaries import application_in
from recover.selection.condition import STATEMENT_KINDS, Selection, place_condition
from recover.selection.filters import Filters

if TYPE_CHECKING:
    from sqlglot import exp


class Sort(StrEnum):
    """Order of the transactions."""

    TIME = "time"
    NEWEST = "newest"
    ROWS = "rows"
    SECONDS = "seconds"
    BYTES = "bytes"


_PLACE: Final = "source_id, epoch, file_sequence, start_pos"
_ORDERS: Final = {
    Sort.TIME: _PLACE,
    Sort.NEWEST: "source_id, epoch desc, file_sequence desc, start_pos desc",
    Sort.ROWS: f"selected_changes desc, {_PLACE}",
    Sort.SECONDS: f"coalesce(seconds, -1) desc, {_PLACE}",
    Sort.BYTES: f"bytes_in_file desc, {_PLACE}",
}
# In Spark's SQL.
_LIST: Final = f"""
    select
        transaction_id, source_id, binlog_file, start_pos, gtid, thread_id, started_at, committed_at, outcome,
        {SECONDS} as seconds,
        end_pos - start_pos as bytes_in_file,
        row_events, inserts, updates, deletes, {{changes}}
    from binloom.transactions
    {{found}}
    order by {{order}}
    limit {{limit}} offset {{offset}}"""
_TABLES: Final = """
    select concat_ws('/', source_id, epoch, binlog_file, transaction_pos) as transaction_id,
        schema_name, table_name, count(*) as changes
    from selected
    group by source_id, epoch, binlog_file, transaction_pos, schema_name, table_name
    order by changes desc, schema_name, table_name"""

_STATEMENTS: Final = f"""
    select concat_ws('/', source_id, epoch, binlog_file, transaction_pos) as transaction_id,
        min_by(digest_text, struct(start_pos, payload_ordinal)) as statement,
        count(*) as statements,
        max({application_in("tags")}) as application
    from binloom_staging.stg_binlog__statements
    where kind in ({", ".join(f"'{kind}'" for kind in STATEMENT_KINDS)}) and digest_text is not null
    group by source_id, epoch, binlog_file, transaction_pos"""


def list_query(selection: Selection, sort: Sort, limit: int, offset: int) -> "exp.Query":
    """Return the query of one page of the transactions with selected changes."""
    others = replace(selection.filters, sources=(), files=())
    terms = {"order": _ORDERS[sort], "limit": limit, "offset": offset}
    if others != Filters():
        return selection.among_selected(_LIST.format(changes="selected_changes", found=joined_with_selected(), **terms))
    # All changes of these transactions are selected: there is no need to count them.
    query = _parsed(_LIST.format(changes="row_events as selected_changes", found="where row_events > 0", **terms))
    return query.where(place_condition(selection.filters))


def tables_query(selection: Selection, transactions: Sequence[str]) -> "exp.Query":
    """Return the query of the selected changes by table, of some transactions, by `transaction_id`."""
    from sqlglot import exp

    among = place_condition(Filters(transactions=tuple(transactions)))
    query = _parsed(_TABLES)
    return query.with_("selected", as_=exp.select("*").from_(selection.query().subquery("chosen")).where(among))


def statements_query(transactions: Sequence[str]) -> "exp.Query":
    """Return the query of the logged statements of some transactions: the first one without its literals, and more."""
    return _parsed(_STATEMENTS).where(place_condition(Filters(transactions=tuple(transactions))))


def _parsed(text: str) -> "exp.Select":
    import sqlglot
    from sqlglot import exp

    return sqlglot.parse_one(text, read="spark", into=exp.Select)
