"""Rows that refer to themselves: a server that restricts a foreign key refuses to delete them as they are."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from recover.undo.plan.carried import folded
from recover.undo.rows.operations import Operation, operation_between
from recover.undo.tables.table import ForeignKey, Table, TableName

_LET_GO: Final = ("CASCADE", "SET NULL")
"""Rules by which a server deletes such a row."""


class LoopError(Exception):
    """A row refers to itself, and nothing parts it from itself. The message is a reason without its end."""


def loops(table: TableName, keys: Iterable[ForeignKey]) -> tuple[ForeignKey, ...]:
    """Return the foreign keys of a table to itself that keep a row which refers to itself."""
    return tuple(key for key in keys if key.table == key.parent == table and key.delete_rule not in _LET_GO)


def parted(operation: Operation, keys: Sequence[ForeignKey]) -> list[Operation]:
    """Return the statements that do what one does: a row ceases to refer to itself before it is deleted.

    Parameters
    ----------
    keys
        The foreign keys that `loops` gives.

    Raises
    ------
    LoopError
        No column of a foreign key can be NULL.
    """
    if not keys or operation.verb != "DELETE":
        return [operation]
    now = {**operation.key, **operation.guard}
    table = operation.table
    free = {**now, **{_freed(table, key, keys): None for key in keys if _refers_to_itself(table, key, now)}}
    update = operation_between(table, now, free)
    if update is None:
        return [operation]
    return [update, replace(operation, guard={name: free[name] for name in operation.guard})]


def _refers_to_itself(table: Table, key: ForeignKey, row: dict[str, str | None]) -> bool:
    # Two texts may be equal for the server only; a NULL that is not necessary does no harm.
    child, parent = (
        folded(table, names, (row.get(name) for name in names)) for names in (key.columns, key.parent_columns)
    )
    return None not in child and child == parent


def _freed(table: Table, key: ForeignKey, keys: Sequence[ForeignKey]) -> str:
    """Return the column that parts a row from itself: no other row may refer to its value."""
    for name in _nullable(table, key):
        if not any(name in other.parent_columns for other in keys):
            return name
    raise LoopError(
        f"it refers to itself ({key.name}) in columns that cannot be NULL, so a server does not delete it while it"
        " checks foreign keys: delete it by hand in a session with foreign_key_checks = 0"
    )


def _nullable(table: Table, key: ForeignKey) -> Iterator[str]:
    for name in key.columns:
        column = table.by_name[name]
        if column.is_nullable and not column.is_generated and name not in table.row_key:
            yield name
