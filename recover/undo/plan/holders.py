"""Rows of the log that hold a value which the plan takes, or refer to a parent that it removes; parents that are gone.

All rows are searched: also those that the plan leaves alone, and those of which it changes other columns.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from recover.sources.engine import literal
from recover.undo.rows.equality import Part, is_equal, loose_form
from recover.undo.select.changes import keys_of_rows
from recover.undo.select.selected import ORDER
from recover.undo.tables.table import Table

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_MOST_OF_EACH: Final = 100
"""Rows in the way of one claim that are named. Further ones are found when these are gone."""
_NOT_GIVEN: Final = " and exact not in (select exact from claims where grp = $own and delta = 1)"
"""The condition that the plan gives no row the value of a claim."""
_OF_CLAIMANTS: Final = " and row_key in (select unnest($claimants))"


@dataclass(frozen=True)
class Search:
    """A search for the rows of a table that hold one of some values.

    Attributes
    ----------
    parts
        The parts of the key in this table.
    values
        The group of claims with these values, and whether they are taken (1) or given up (-1).
    own
        The group of claims of the table in these parts: what the plan does to its rows.
    is_redo
        The log may show the rows as the selection left them, or as an undo did.
    is_new
        Whether the key is newer than the selection, so that rows may have had the value before it.
    """

    source_id: str
    table: Table
    parts: tuple[Part, ...]
    values: tuple[str, int]
    own: str
    is_redo: bool
    is_new: bool = False


@dataclass(frozen=True)
class Holder:
    """A row that holds a value, or had it and is gone; or may do so, because its images or a collation do not tell.

    Attributes
    ----------
    row
        The row as people write it.
    transaction
        The last one that changed it.
    claimant
        Key of the row of the plan that needs the value.
    """

    row: str
    transaction: str
    is_sure: bool
    claimant: str


def holders(connection: "DuckDBPyConnection", search: Search) -> list[Holder]:
    """Return the rows that hold a value now, and that the plan does not part from it: the first ones of each claim."""
    find = _rows_with_key if search.table.row_key else _rows_without_key
    return _found(connection, search, find(search), most=_MOST_OF_EACH)


def gone_or_replaced(
    connection: "DuckDBPyConnection", search: Search, now: Mapping[str, Collection[str]]
) -> tuple[list[Holder], list[Holder]]:
    """Return the first rows of each claim that had its value, if the plan gives it to no row.

    The first list is of values that no row has now. The second is of rows that had the value when the selection began,
    where another row has it now.

    Parameters
    ----------
    now
        The rows that have the values on a server, by claimant. Those of the log count for others.
    """
    lost = _found(connection, search, _rows_that_lost(search), _NOT_GIVEN, most=_MOST_OF_EACH)
    first = defaultdict[str, list[Holder]](list)
    for one in _found(connection, search, _first_that_lost(search), _NOT_GIVEN) if search.table.row_key else ():
        if one.is_sure:
            first[one.claimant].append(one)
    present = _present(connection, search, {one.claimant for one in lost} | first.keys())
    rows = {claimant: {*now.get(claimant, present[claimant])} for claimant in first}
    replaced = [
        known[0]
        for claimant, known in first.items()
        if rows[claimant] and rows[claimant].isdisjoint(one.row for one in known)
    ]
    return [one for one in lost if not present[one.claimant]], replaced


def without_row(connection: "DuckDBPyConnection", search: Search, *, is_given_only: bool = False) -> list[str]:
    """Return the claimants with a value which the plan gives no row, and that no row of the log has now.

    Parameters
    ----------
    is_given_only
        Whether the log does not matter.
    """
    group, delta = search.values
    rows = connection.execute(
        f"select distinct row_key from claims where grp = $group and delta = $delta{_NOT_GIVEN} order by 1",
        {"group": group, "delta": delta, "own": search.own},
    ).fetchall()
    claimants = [claimant for (claimant,) in rows]
    present = {} if is_given_only else _present(connection, search, claimants)
    return [claimant for claimant in claimants if not present.get(claimant)]


def _present(
    connection: "DuckDBPyConnection", search: Search, claimants: Collection[str]
) -> defaultdict[str, set[str]]:
    """Return the rows of the log that have the values of some claimants now for sure."""
    present = defaultdict[str, set[str]](set)
    for one in _found(connection, search, _rows_now(search), _OF_CLAIMANTS, claimants) if claimants else ():
        if one.is_sure:
            present[one.claimant].add(one.row)
    return present


def _found(
    connection: "DuckDBPyConnection",
    search: Search,
    rows: str,
    besides: str = "",
    claimants: Collection[str] = (),
    most: int | None = None,
) -> list[Holder]:
    """Return the rows that have the value of a claim, or may have it; each row and each claimant once.

    Parameters
    ----------
    most
        How many rows of one claimant are returned, those first that have the value for sure; None: all.
    """
    group, delta = search.values
    equal = " and ".join(is_equal(part, f"held[{n}]", f"parts[{n}]") for n, part in enumerate(search.parts, 1))
    order = "over (partition by row_key order by is_sure desc, label)"
    found = connection.execute(
        f"with wanted as (select * from claims where grp = $group and delta = $delta{besides}),"
        f" own as (select * from claims where grp = $own), all_changes as ({_changes(search)}), {rows},"
        f" {_pairs(search)}, compared as (select *, {equal} as are_equal from pairs)"
        " select label, arg_max(transaction_name, coalesce(are_equal, false)) as transaction_name,"
        "  bool_or(coalesce(are_equal, false)) as is_sure, row_key from compared"
        " where are_equal is distinct from false group by label, row_key"
        f"{'' if most is None else f' qualify row_number() {order} <= {most}'} order by row_key, label",
        {
            "group": group, "delta": delta, "own": search.own, "source": search.source_id,
            "schema": search.table.name[0], "name": search.table.name[1],
            **({"claimants": [*claimants]} if claimants else {}),
        },
    )  # fmt: skip
    return [Holder(*row) for row in found.fetchall()]


def _changes(search: Search) -> str:
    """Return a query of the changes of the table, with the parts of the key before and after each.

    A part is `v` and its value, `n` for NULL, `u` if the log never shows it; NULL if the image lacks it.
    """
    key, key_after = keys_of_rows(search.table)
    values = []
    for number, part in enumerate(search.parts):
        before, after = (_shown(image, part.name) for image in ("row_before", "row_after"))
        values += [f"{before} as before_{number}", f"coalesce({after}, {before}) as after_{number}"]
    return (
        f"select ({ORDER}) as o, event_type, coalesce(gtid, binlog_file || ':' || transaction_pos) as transaction_name,"
        f" coalesce({key}, change_id) as key, coalesce({key_after}, change_id) as key_after, {', '.join(values)},"
        f" event_type != 'UPDATE' or {_is_set(search.parts)} as is_lost, is_lost or key != key_after as is_set,"
        " (epoch, file_sequence, transaction_pos) >="
        " (select min((epoch, file_sequence, transaction_pos)) from selected_transactions) as is_since"
        " from binloom.row_changes where source_id = $source and schema_name = $schema and table_name = $name"
        " and outcome = 'commit'"
    )


def _shown(image: str, name: str | None) -> str:
    if name is None:
        return "'u'"
    is_there = f"list_contains(map_keys({image}), {literal(name)})"
    return f"case when {is_there} then coalesce('v' || {image}[{literal(name)}], 'n') end"


def _is_set(parts: Iterable[Part]) -> str:
    """Return the condition that an UPDATE gives the key another value, or may do so."""
    names = dict.fromkeys(name for part in parts for name in part.sources)
    return " or ".join(
        f"(list_contains(map_keys(row_after), {literal(name)})"
        f" and row_before[{literal(name)}] is distinct from row_after[{literal(name)}])"
        for name in names
    )


def _events(search: Search) -> str:
    """Return queries of what happened at each key: a row that comes or stays, with its parts, or one that leaves.

    A row keeps a part until another image shows it. A row that comes into being without a part has an unknown value.
    """
    numbers = range(len(search.parts))
    comes = ", ".join(
        f"coalesce(after_{number}, if(event_type = 'INSERT' or key != key_after, 'u', null)) as p{number}"
        for number in numbers
    )
    return (
        f"events as (select key_after as k, o, 1 as comes, transaction_name, is_set and is_since as is_set, {comes}"
        "  from all_changes where event_type != 'DELETE'"
        f" union all select key, o, 0, transaction_name, false{', null' * len(numbers)}"
        "  from all_changes where event_type = 'DELETE' or key != key_after)"
    )


def _last(search: Search, keys: str) -> str:
    """Return a query of the last state of the rows with some keys."""
    lasts = ", ".join(
        f"arg_max(p{number}, (o, comes)) filter (where p{number} is not null) as p{number}"
        for number in range(len(search.parts))
    )
    return (
        f"select k, arg_max(comes, (o, comes)) as comes, arg_max(transaction_name, (o, comes)) as transaction_name,"
        f" bool_or(is_set) as is_set, {lasts} from events where k in ({keys}) group by k"
    )


def _near(search: Search, condition: str) -> str:
    """Return a query of keys whose first part was, or may have been, one of the wanted values: they are few."""
    first = search.parts[0]
    form = f"case when starts_with(p0, 'v') then {loose_form(first, 'p0[2:]')} end"
    return (
        "select k from (select *, coalesce(p0 = 'u', false) or"
        f" coalesce({form} in (select forms[1] from wanted), false) as is_near from events)"
        f" group by k having {condition} and (bool_or(is_near) or count(p0) = 0"
        " or (select count(*) > count(forms[1]) from wanted))"
    )


def _rows(search: Search, states: str, columns: str = "'row ' || k as label, transaction_name") -> str:
    """Return queries of rows from states of them: their values, and their loose forms; NULL for unknown ones."""
    held = ", ".join(f"if(starts_with(p{number}, 'v'), p{number}[2:], null)" for number in range(len(search.parts)))
    forms = ", ".join(
        f"case when starts_with(p{number}, 'v') then {loose_form(part, f'p{number}[2:]')} end"
        for number, part in enumerate(search.parts)
    )
    not_null = " and ".join(f"p{number} is distinct from 'n'" for number in range(len(search.parts)))
    return (
        f"states as ({states}),"
        f" rows as (select {columns}, [{held}] as held, [{forms}] as forms from states where {not_null})"
    )


def _pairs(search: Search) -> str:
    """Return a query of rows with the claims that they may stand in the way of."""
    known = "len(list_filter({}.forms, lambda one: one is null)) = 0"
    are_known = f"{known.format('rows')} and {known.format('wanted')}"
    may_be = " and ".join(
        f"(rows.forms[{number}] is null or wanted.forms[{number}] is null"
        f" or rows.forms[{number}] = wanted.forms[{number}])"
        for number in range(1, len(search.parts) + 1)
    )
    return (
        f"pairs as (select rows.*, wanted.row_key, wanted.parts from rows inner join wanted"
        f" on rows.forms = wanted.forms where {are_known}"
        f" union all select rows.*, wanted.row_key, wanted.parts from rows inner join wanted"
        f" on not ({are_known}) and {may_be})"
    )


def _rows_with_key(search: Search) -> str:
    """Return queries of the rows that got the key since the selection began.

    No other row can have a value that the plan takes, unless the key is newer.
    """
    condition = "true" if search.is_new else "bool_or(is_set)"
    is_own = "exists (select 1 from own where own.row_key = k)"
    last = f"select * from ({_last(search, _near(search, condition))}) where comes = 1 and not {is_own}"
    return f"{_events(search)}, {_rows(search, last)}"


def _rows_now(search: Search) -> str:
    """Return queries of the rows that the log has now."""
    last = f"select * from ({_last(search, _near(search, 'true'))}) where comes = 1"
    return f"{_events(search)}, {_rows(search, last)}"


def _rows_that_lost(search: Search) -> str:
    """Return queries of each row that lost the key, with its value until then as earlier images show it.

    An unknown value only matters since the selection began: until then a row of the plan referred to its parent.
    """
    numbers = range(len(search.parts))
    known = ", ".join(
        f"last_value(p{number} ignore nulls)"
        f" over (partition by k order by o, comes rows unbounded preceding) as p{number}"
        for number in numbers
    )
    are_known = " and ".join(f"starts_with(p{number}, 'v')" for number in numbers)
    after, before = (", ".join(f"{when}_{number} as p{number}" for number in numbers) for when in ("after", "before"))
    steps = (
        f"select key_after as k, o, 1 as comes, transaction_name, false as is_lost, is_since, {after}"
        "  from all_changes where event_type != 'DELETE'"
        f" union all select key, o, 0, transaction_name, is_set, is_since, {before}"
        "  from all_changes where event_type != 'INSERT'"
    )
    lost = (
        f"select * from (select k, transaction_name, is_lost, is_since, {known} from ({steps}))"
        f" where is_lost and (is_since or ({are_known}))"
    )
    return _rows(search, lost)


def _first_that_lost(search: Search) -> str:
    """Return queries of the rows that had a value when the selection began, and lost it since.

    A row with another primary key is the same row.
    """
    numbers = range(len(search.parts))
    held = ", ".join(f"before_{number} as p{number}" for number in numbers)
    values = ", ".join(f"before_{number}" for number in numbers)
    lost = (
        f"select key as k, transaction_name, {held} from all_changes"
        " where is_since and event_type != 'INSERT' and is_lost"
        f" qualify row_number() over (partition by {values} order by o) = 1"
    )
    return _rows(search, lost)


def _rows_without_key(search: Search) -> str:
    """Return queries of rows of a table without a key: equal rows are counted, from the first selected transaction on.

    Rows from before are seen when they leave, so that a count never falls below zero.
    """
    numbers = range(len(search.parts))
    own = "true" if search.is_redo else "own.delta < 0"
    after, before = (", ".join(f"{when}_{number} as p{number}" for number in numbers) for when in ("after", "before"))
    steps = (
        f"select transaction_name, o, 1 as step, {after}"
        "  from all_changes where event_type != 'DELETE' and is_since"
        f" union all select transaction_name, o, -1, {before}"
        "  from all_changes where event_type != 'INSERT' and is_since"
    )
    is_known = "len(list_filter(forms, lambda one: one is null)) = 0"
    found = _rows(search, steps, "transaction_name, o, step").replace(" rows as ", " steps as ")
    return (
        f"{found}, counted as (select *, sum(step) over (partition by forms order by o, step rows unbounded preceding)"
        f"   as rows from steps where {is_known} and forms in (select forms from wanted)),"
        " last as (select forms, arg_max(rows, (o, step)) - least(min(rows), 0) as rows, any_value(held) as held,"
        "  arg_max(transaction_name, o) as transaction_name from counted group by forms),"
        " rows as (select 'a row' as label, transaction_name, held, forms from last"
        f"  where rows > (select count(*) from own where own.forms = last.forms and {own})"
        " union all select 'a row', any_value(transaction_name), any_value(held), any_value(forms)"
        f"  from steps where step = 1 and not {is_known} having count(*) > 0)"
    )
