"""Where a snapshot without a position belongs in a log: behind the statements whose outcome it shows."""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain, islice, takewhile
from typing import Any, Final

from ingest.ddl.actions import Action
from ingest.ddl.history import BEGINNING, Place
from ingest.ddl.letter_case import lowered
from ingest.ddl.shapes import GENERATED_KEY, Shape, TableId

# Columns may have looked the same before such an action.
_CHANGING_LITTLE: Final = (
    *("modify_column", "drop_column", "convert_character_set", "add_primary_key", "drop_primary_key"),
)
_DEFINING: Final = ("add_column", "modify_column", "rename_column")


def last_shown(
    table: TableId,
    tables: Mapping[TableId, Sequence[Mapping[str, Any]]],
    actions: Sequence[tuple[Place, Action]],
    is_same: Callable[[Mapping[str, Any], Mapping[str, Any]], bool],
) -> Place:
    """Return the position of the last statement whose outcome a snapshot without a position shows.

    As far as can be told, the snapshot was taken after that statement. Return `BEGINNING` when it shows the
    outcome of no statement.

    Parameters
    ----------
    table
        A table of the snapshot.
    tables
        Rows of `schema_columns` by table, of all tables of the snapshot.
    actions
        Statements of the log with their positions, in order.
    is_same
        Tells whether two rows of `schema_columns` define columns whose values read the same.
    """
    names = _by_name(tables[table])
    # The last statement that may have had its outcome before it, too, and the last one whose outcome is not there.
    likely: Place | None = None
    contradicted: Place | None = None
    for number in reversed(range(len(actions))):
        place, action = actions[number]
        if place[:-1] == contradicted:
            continue
        if _contradicts(table, names, actions, number, is_same):
            likely, contradicted = None, place[:-1]
            continue
        if _made_by_rename(action) == table:
            is_shown: bool | None = _shows_renames(tables, actions, number, is_same)
        else:
            is_shown = _shows(table, names, tables, actions, number, is_same)
        if is_shown and action.action not in _CHANGING_LITTLE:
            return likely or place
        if is_shown:
            likely = likely or place
    return likely or BEGINNING


def _contradicts(
    table: TableId,
    names: Mapping[str, Mapping[str, Any]],
    actions: Sequence[tuple[Place, Action]],
    number: int,
    is_same: Callable[[Mapping[str, Any], Mapping[str, Any]], bool],
) -> bool:
    """Return whether the columns of a table are those from before an action: it makes one that is not there.

    A later action may have taken the column away, changed it again, or given the table to another name.
    """
    action = actions[number][1]
    if action.action not in _DEFINING or action.is_conditional or _table_of(action) != table:
        return False
    made = {lowered(row["column_name"]): row for row in Shape([*action.columns]).column_rows(table)}
    others = {name for name, row in made.items() if name not in names or not _may_be(names[name], row, is_same)}
    if not others:
        return False
    later = (one for _, one in islice(actions, number + 1, None) if table in (_table_of(one), _made_by_rename(one)))
    return not any(
        one.action.startswith(("create_", "drop_table", "rename_table"))
        or others & {lowered(one.column_name or ""), *(lowered(column.name) for column in one.columns)}
        for one in later
    )


def _may_be(
    shown: Mapping[str, Any], made: Mapping[str, Any], is_same: Callable[[Mapping[str, Any], Mapping[str, Any]], bool]
) -> bool:
    """Return whether a column may be one that an action made. RENAME has no type, and labels may be unknown."""
    column_type = made["column_type"]
    return column_type is None or "(?)" in column_type or is_same(shown, made)


def _shows_renames(
    tables: Mapping[TableId, Sequence[Mapping[str, Any]]],
    actions: Sequence[tuple[Place, Action]],
    number: int,
    is_same: Callable[[Mapping[str, Any], Mapping[str, Any]], bool],
) -> bool:
    """Return whether the tables to which a statement gave their names look like those that it renamed.

    The number is that of one of its actions. One statement can exchange the names of two tables.
    """
    statement = actions[number][0][:-1]
    both_ways = range(number, -1, -1), range(number + 1, len(actions))
    own = chain(*(takewhile(lambda at: actions[at][0][:-1] == statement, way) for way in both_ways))
    return all(_shows_rename(tables, actions, at, is_same) for at in own if _made_by_rename(actions[at][1]) in tables)


def _shows_rename(
    tables: Mapping[TableId, Sequence[Mapping[str, Any]]],
    actions: Sequence[tuple[Place, Action]],
    number: int,
    is_same: Callable[[Mapping[str, Any], Mapping[str, Any]], bool],
) -> bool:
    """Return whether a table of the snapshot may be the one that an action, by its number, gave its name.

    A table of another name may have had this name before, and the snapshot may show that one: tools that change a
    table without a lock prepare a copy, and exchange the names at the end.
    """
    former = _made_by_rename(actions[number][1])
    assert former is not None
    names = _by_name(tables[former])
    for at in range(number, -1, -1):
        action = actions[at][1]
        if _made_by_rename(action) == former:
            former = _table_of(action)
            later = (one for _, one in islice(actions, at + 1, None))
            if former in tables and not any(former in (_made_by_rename(one), _created_by(one)) for one in later):
                return False
        elif (is_shown := _shows(former, names, tables, actions, at, is_same)) is not None:
            return is_shown
    return True


def _by_name(columns: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return {lowered(row["column_name"]): row for row in columns}


def _table_of(action: Action) -> TableId:
    return action.schema_name or "", action.table_name or ""


def _made_by_rename(action: Action) -> TableId | None:
    is_rename = action.action == "rename_table" and action.other_table_name is not None
    return (action.other_schema_name or "", action.other_table_name or "") if is_rename else None


def _created_by(action: Action) -> TableId | None:
    return _table_of(action) if action.action.startswith("create_") else None


def _shows(
    table: TableId,
    names: Mapping[str, Mapping[str, Any]],
    tables: Mapping[TableId, Sequence[Mapping[str, Any]]],
    actions: Sequence[tuple[Place, Action]],
    number: int,
    is_same: Callable[[Mapping[str, Any], Mapping[str, Any]], bool],
) -> bool | None:
    """Return whether these columns of a table look like the result of an action; None if it changes none of them."""
    action = actions[number][1]
    if _table_of(action) != table or (action.is_conditional_creation and not _is_gone(table, actions, number)):
        return None
    defined = list(Shape([*action.columns]).column_rows(table))
    has_defined = bool(defined) and all(
        (found := names.get(lowered(row["column_name"]))) is not None and is_same(found, row) for row in defined
    )
    in_order = sorted(names, key=lambda name: names[name]["ordinal_position"])
    match action.action:
        case "create_table":
            return has_defined and [lowered(row["column_name"]) for row in defined] == in_order
        case "create_like":
            return _is_copy(names, tables, actions, number, is_same)
        case "create_select":
            return True
        case "add_column":
            return has_defined and (action.is_conditional or _is_in_place(action, in_order, is_added=True))
        case "modify_column":
            is_renamed = lowered(action.column_name or "") not in {lowered(row["column_name"]) for row in defined}
            is_former_there = is_renamed and lowered(action.column_name or "") in names
            return has_defined and not is_former_there and _is_in_place(action, in_order, is_added=False)
        case "rename_column":
            is_new = lowered(action.columns[0].name) in names
            return is_new and lowered(action.column_name or "") not in names
        case "drop_column":
            return lowered(action.column_name or "") not in names
        case "add_primary_key" | "drop_primary_key":
            key = {name for name, row in names.items() if row["primary_key_ordinal"]}
            return key == {lowered(name) for name in action.key_columns}
        case "convert_character_set":
            texts = [row["character_set"] for row in names.values() if row["character_set"]]
            return all(action.character_set in (None, character_set) for character_set in texts)
    return None


def _is_gone(table: TableId, actions: Sequence[tuple[Place, Action]], number: int) -> bool:
    """Return whether the log tells that no table has this name before an action: then IF NOT EXISTS creates it."""
    for _, action in islice(reversed(actions), len(actions) - number, None):
        if action.action == "drop_database" and action.schema_name == table[0]:
            return True
        if table in (_table_of(action), _made_by_rename(action)):
            return action.action in ("drop_table", "rename_table") and _made_by_rename(action) != table
    return False


def _is_copy(
    names: Mapping[str, Mapping[str, Any]],
    tables: Mapping[TableId, Sequence[Mapping[str, Any]]],
    actions: Sequence[tuple[Place, Action]],
    number: int,
    is_same: Callable[[Mapping[str, Any], Mapping[str, Any]], bool],
) -> bool:
    """Return whether a table may be the one that CREATE TABLE … LIKE made.

    It looks like its model, if that is still what it was.
    """
    model = actions[number][1].model
    later = (one for _, one in islice(actions, number + 1, None) if one.action not in ("other", "truncate_table"))
    if model not in tables or any(model in (_table_of(one), _made_by_rename(one)) for one in later):
        return True
    columns = _by_name(tables[model])

    def in_order(named: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, Any]]:
        by_place = sorted(named, key=lambda name: named[name]["ordinal_position"])
        return [(name, named[name]["primary_key_ordinal"]) for name in by_place]

    return in_order(names) == in_order(columns) and all(is_same(row, columns[name]) for name, row in names.items())


def _is_in_place(action: Action, in_order: Sequence[str], *, is_added: bool) -> bool:
    """Return whether columns are where an action puts them."""
    columns = [lowered(column.name) for column in action.columns]
    at = in_order.index(columns[0])
    if action.place == "after":
        return at > 0 and in_order[at - 1] == lowered(action.after_column or "")
    if action.place == "first":
        # A primary key that the server has made stays before it.
        return at == 0 or in_order[:at] == [GENERATED_KEY]
    return not is_added or [*in_order[at:]] == columns
