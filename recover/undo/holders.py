"""Rows of the log that hold a value which the plan takes, or refer to a parent that it removes, and keep doing so.

All rows are searched: also those that the plan leaves alone, and those of which it changes other columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from recover.sources.engine import literal
from recover.undo.changes import ORDER, keys_of_rows
from recover.undo.literals import LABELS, TEXTS
from recover.undo.tables import Table

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_SHOWN: Final = 20


@dataclass(frozen=True)
class Search:
    """A search for the rows of a table that hold one of some values in some columns.

    Attributes
    ----------
    values
        The group of claims with these values, and whether they are taken (1) or given up (-1).
    own
        The group of claims of the table in these columns: what the plan does to its rows.
    is_redo
        The log may show the rows as the selection left them, or as an undo did. Rows that nothing has changed since
        the selection began are as they were for the selection itself.
    """

    source_id: str
    table: Table
    names: Sequence[str]
    values: tuple[str, int]
    own: str
    is_redo: bool


@dataclass(frozen=True)
class Holder:
    """A row that holds a value, or may hold it, because its images lack a column.

    Attributes
    ----------
    row
        The row as people write it.
    transaction
        The last one that changed it.
    """

    row: str
    transaction: str
    is_sure: bool


def holders(connection: "DuckDBPyConnection", search: Search) -> list[Holder]:
    """Return the rows that hold a value now, and that the plan does not part from it."""
    find = _rows_with_key if search.table.row_key else _rows_without_key
    group, delta = search.values
    found = connection.execute(
        f"with wanted as (select distinct val from claims where grp = $group and delta = $delta),"
        f" own as (select row_key, val, delta from claims where grp = $own),"
        f" all_changes as ({_changes(search)}), {find(search)} limit {_SHOWN}",
        {
            "group": group, "delta": delta, "own": search.own, "source": search.source_id,
            "schema": search.table.name[0], "name": search.table.name[1],
        },
    ).fetchall()  # fmt: skip
    return [Holder(*one) for one in found]


def _changes(search: Search) -> str:
    """Return a query of the changes of the table, with the values of the columns before and after each."""
    key, key_after = keys_of_rows(search.table)
    before = [_shown(search.table, "row_before", name) for name in search.names]
    after = [_shown(search.table, "row_after", name) for name in search.names]
    values = [f"{value} as before_{number}" for number, value in enumerate(before)]
    values += [f"coalesce({value}, {before[number]}) as after_{number}" for number, value in enumerate(after)]
    return (
        f"select ({ORDER}) as o, event_type, coalesce(gtid, binlog_file || ':' || transaction_pos) as transaction_name,"
        f" coalesce({key}, change_id) as key, coalesce({key_after}, change_id) as key_after, {', '.join(values)},"
        " (epoch, file_sequence, transaction_pos) >="
        " (select min((epoch, file_sequence, transaction_pos)) from selected_transactions) as is_since"
        " from binloom.row_changes where source_id = $source and schema_name = $schema and table_name = $name"
        " and outcome = 'commit'"
    )


def _rows_with_key(search: Search) -> str:
    """Return the rest of a query: a row keeps the value of a column until another image shows the column.

    A row that comes into being without a column has an unknown value. No row from before the selection can have one
    that the plan takes, or a parent that it removes, without an image that shows it.
    """
    numbers = range(len(search.names))
    unless_shown = "if(is_since and (event_type = 'INSERT' or key != key_after), 'u', null)"
    comes = ", ".join(f"coalesce(after_{number}, {unless_shown}) as p{number}" for number in numbers)
    lasts = ", ".join(
        f"arg_max(p{number}, (o, comes)) filter (where p{number} is not null) as p{number}" for number in numbers
    )
    unknown = " or ".join(f"coalesce(p{number} = 'u', false)" for number in numbers)
    is_since = "is_since" if search.is_redo else "true"
    return (
        f"events as (select key_after as k, o, 1 as comes, transaction_name, is_since, {comes}"
        "  from all_changes where event_type != 'DELETE'"
        f" union all select key, o, 0, transaction_name, is_since{', null' * len(search.names)}"
        "  from all_changes where event_type = 'DELETE' or key != key_after),"
        # The first column leaves few rows, of which the last value of each column is needed.
        f" candidates as (select distinct k from events where {unknown}"
        "  or p0 in (select 'v' || split_part(val, ' | ', 1) from wanted)),"
        " last as (select k, arg_max(comes, (o, comes)) as comes,"
        f"  arg_max(transaction_name, (o, comes)) as transaction_name, bool_or(is_since) as is_since, {lasts}"
        "  from events where k in (select k from candidates) group by k),"
        f" held as (select *, {unknown} as is_unknown, {_value('p', search)} as val from last"
        f"  where comes = 1 and {is_since})"
        " select 'row ' || k, transaction_name, not is_unknown from held"
        " where is_unknown or (val in (select val from wanted)"
        "  and not exists (select 1 from own where own.row_key = held.k and own.val = held.val))"
        " order by k"
    )


def _rows_without_key(search: Search) -> str:
    """Return the rest of a query: equal rows are counted, from the first selected transaction on.

    Rows from before are seen when they leave, so that a count never falls below zero.
    """
    known = " and ".join(f"after_{number} is not null" for number in range(len(search.names)))
    own = "true" if search.is_redo else "own.delta < 0"
    return (
        f"steps as (select {_value('after_', search)} as val, o, 1 as step, transaction_name"
        "  from all_changes where event_type != 'DELETE' and is_since"
        f" union all select {_value('before_', search)}, o, -1, transaction_name"
        "  from all_changes where event_type != 'INSERT' and is_since),"
        " counted as (select *, sum(step) over (partition by val order by o, step rows unbounded preceding) as rows"
        "  from steps where val in (select val from wanted)),"
        " last as (select val, arg_max(rows, (o, step)) - least(min(rows), 0) as rows,"
        "  arg_max(transaction_name, o) as transaction_name from counted group by val)"
        " select 'a row', transaction_name, true from last"
        f" where rows > (select count(*) from own where own.val = last.val and {own})"
        " union all select 'a row', any_value(transaction_name), false from all_changes"
        f"  where event_type != 'DELETE' and is_since and not ({known}) having count(*) > 0"
    )


def _shown(table: Table, image: str, name: str) -> str:
    """Return an expression of a column of an image: `v` and the value of `order.value`, `n`; NULL if it lacks it."""
    text = f"{image}[{literal(name)}]"
    if table.by_name[name].data_type in TEXTS | LABELS:
        text = f"lower(rtrim({text}, ' '))"
    is_there = f"list_contains(map_keys({image}), {literal(name)})"
    return f"case when {is_there} then coalesce('v' || replace({text}, '|', '||'), 'n') end"


def _value(prefix: str, search: Search) -> str:
    """Return an expression of the value of all columns; NULL if one of them is NULL or unknown."""
    columns = [f"{prefix}{number}" for number in range(len(search.names))]
    are_values = " and ".join(f"starts_with({column}, 'v')" for column in columns)
    value = " || ' | ' || ".join(f"{column}[2:]" for column in columns)
    return f"case when {are_values} then {value} end"
