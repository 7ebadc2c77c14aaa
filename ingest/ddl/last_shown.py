"""Where a snapshot without a position belongs in a log: behind the statements whose outcome it shows."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ingest.ddl.actions import Action
from ingest.ddl.history import BEGINNING, Place
from ingest.ddl.letter_case import lowered
from ingest.ddl.shapes import GENERATED_KEY, Shape, TableId


def last_shown(
    table: TableId,
    columns: Sequence[Mapping[str, Any]],
    actions: Sequence[tuple[Place, Action]],
    is_same: Callable[[Mapping[str, Any], Mapping[str, Any]], bool],
) -> Place:
    """Return the position of the last statement whose outcome a snapshot without a position shows.

    As far as can be told, the snapshot was taken after that statement. Return `BEGINNING` when it shows the
    outcome of no statement.

    Parameters
    ----------
    table, columns
        A table of the snapshot, and its rows of `schema_columns` there.
    actions
        Statements of the log with their positions, in order.
    is_same
        Tells whether two rows of `schema_columns` define columns whose values read the same.
    """
    names = {lowered(row["column_name"]): row for row in columns}
    for place, action in reversed(actions):
        if _shows(table, names, action, is_same):
            return place
    return BEGINNING


def _shows(
    table: TableId,
    names: Mapping[str, Mapping[str, Any]],
    action: Action,
    is_same: Callable[[Mapping[str, Any], Mapping[str, Any]], bool],
) -> bool:
    """Return whether these columns of a table look like the result of an action that changes its definition."""
    if action.action in ("rename_table", "create_like") and action.other_table_name is not None:
        made = (action.other_schema_name or "", action.other_table_name)
        if action.action == "rename_table":
            return made == table
    if (action.schema_name or "", action.table_name or "") != table:
        return False
    defined = list(Shape([*action.columns]).column_rows(table))
    has_defined = bool(defined) and all(
        (found := names.get(lowered(row["column_name"]))) is not None and is_same(found, row) for row in defined
    )
    in_order = sorted(names, key=lambda name: names[name]["ordinal_position"])
    match action.action:
        case "create_table":
            return has_defined and [lowered(row["column_name"]) for row in defined] == in_order
        case "create_like" | "create_select":
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
    return False


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
