"""Tables as they were before a statement, as far as the statement and the table behind it tell."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ingest.ddl.actions import Action, Column
from ingest.ddl.column_types import BYTE_TYPES, TEXT_TYPES
from ingest.ddl.letter_case import lowered
from ingest.ddl.shapes import Shape


def before(shape: Shape, action: Action) -> Shape | None:
    """Return a table as it was before an action on it; None if nobody can tell the names of its columns.

    The type of a column that the action changed is unknown then, and so is its `data_type`. A dropped column has no
    name, and a moved column had another place, which the statement does not tell. A condition may have been false.

    Parameters
    ----------
    shape
        The table behind the action.
    action
        A step of a statement on this table.
    """
    step = _STEPS.get(action.action)
    # What has no action of its own keeps the names of columns, whether it was done or not.
    may_do_nothing = action.is_conditional and action.action != "other"
    if step is None or may_do_nothing or action.detail in _OF_MARIADB:
        return None
    return step(shape.copy(), action)


# They move columns of their own.
_OF_MARIADB: Final = ("system versioning", "sequence")


def _added(shape: Shape, action: Action) -> Shape | None:
    at = shape.index(action.columns[0].name)
    if at is None:
        return None
    name = shape.columns.pop(at).name
    shape.primary_key = tuple(one for one in shape.primary_key if one != name)
    return shape


def _changed(shape: Shape, action: Action) -> Shape | None:
    return _renamed(shape, action, Column(action.column_name or "")) if action.place is None else None


def _renamed(shape: Shape, action: Action, unknown: Column | None = None) -> Shape | None:
    """Return the table with the old name of a column; its type is that of now, or unknown."""
    at, old = shape.index(action.columns[0].name), action.column_name or ""
    if at is None or shape.index(old) not in (at, None):
        return None
    column = shape.columns[at]
    if lowered(old) == lowered(column.name):
        # The statement may spell the name in other letters.
        old = column.name
    shape.primary_key = tuple(old if one == column.name else one for one in shape.primary_key)
    shape.columns[at] = replace(column if unknown is None else unknown, name=old)
    return shape


def _with_key(shape: Shape, action: Action) -> Shape | None:
    key = {lowered(name) for name in action.key_columns}
    if {lowered(name) for name in shape.primary_key} != key:
        return None
    shape.primary_key = ()
    return _kept(shape, action)


def _converted(shape: Shape, action: Action) -> Shape:
    # In `binary`, a text becomes bytes, and other bytes have the same types.
    is_text = action.character_set not in (None, "default", "binary")
    types = TEXT_TYPES if is_text else TEXT_TYPES | BYTE_TYPES
    shape.columns = [
        Column(one.name, is_nullable=one.is_nullable) if one.data_type in types else one for one in shape.columns
    ]
    return shape


def _kept(shape: Shape, action: Action) -> Shape:
    # ADD PRIMARY KEY and ADD PERIOD make their columns NOT NULL.
    key = {lowered(name) for name in action.key_columns}
    shape.columns = [replace(one, is_nullable=None) if lowered(one.name) in key else one for one in shape.columns]
    return shape


_STEPS: Final[dict[str, Callable[[Shape, Action], Shape | None]]] = {
    "add_column": _added,
    "modify_column": _changed,
    "rename_column": _renamed,
    "rename_table": _kept,
    "add_primary_key": _with_key,
    "convert_character_set": _converted,
    "other": _kept,
}
