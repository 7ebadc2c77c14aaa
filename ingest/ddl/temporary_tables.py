"""Statements that may be on a temporary table, which hides the table of its name in one session.

Servers log those of a temporary table only with STATEMENT and MIXED, and then its CREATE and DROP, too.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from ingest.ddl.actions import Action

Place = tuple[int, ...]

_CREATED: Final = "create temporary table"
_DROPPED: Final = "drop temporary table"
CREATES_TEMPORARY: Final = f"other {_CREATED}"
DROPS_TEMPORARY: Final = f"other {_DROPPED}"
"""The two as steps in the mart `schema_changes`."""
MAY_BE_TEMPORARY: Final = "a statement may be on a temporary table of this name"
_HIDDEN_FROM: Final = frozenset({"ALTER TABLE", "CREATE INDEX", "DROP INDEX"})


def temporary(action: Action, verb: str) -> Action:
    """Return what a statement does to a temporary table, for one that does the same to another table."""
    return replace(action, action="other", detail=_CREATED if verb == "CREATE" else _DROPPED, is_conditional=False)


def without_hidden(actions: Iterable[tuple[Place, Action]]) -> Iterator[tuple[Place, Action]]:
    """Yield actions in the order of a log; of a statement that may be on a temporary table, nobody knows the table."""
    there: set[tuple[str | None, str | None]] = set()
    for place, action in actions:
        table = action.schema_name, action.table_name
        if action.detail == _CREATED:
            there.add(table)
        elif action.detail == _DROPPED:
            there.discard(table)
        yield place, _as_known(action, table in there, action.model in there) if there else action


def _as_known(action: Action, is_hidden: bool, is_model_hidden: bool) -> Action:
    if action.action == "create_like" and is_model_hidden:
        return replace(action, other_schema_name=None, other_table_name=None)
    if is_hidden and action.statement_type in _HIDDEN_FROM:
        named = action.statement_type, action.schema_name, action.table_name
        return Action("not_understood", *named, detail=MAY_BE_TEMPORARY)
    return action
