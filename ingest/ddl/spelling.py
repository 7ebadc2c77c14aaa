"""The case of names of tables, which some servers fold to lower case."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ingest.ddl.actions import Action
from ingest.ddl.letter_case import lowered

_CREATING = ("create_table", "create_like", "create_select")


def distinguishes_case(actions: Iterable[Action]) -> bool:
    """Return whether two tables exist at once whose names differ only in the case of letters.

    Parameters
    ----------
    actions
        Steps of statements in the order of the log, with names as the statements spell them.
    """
    spelled: dict[tuple[str, str], tuple[str, str]] = {}

    def is_another(schema: str | None, table: str | None) -> bool:
        name = schema or "", table or ""
        folded = lowered(name[0]), lowered(name[1])
        return spelled.setdefault(folded, name) != name

    for action in actions:
        schema, table = action.schema_name or "", action.table_name or ""
        if action.action in _CREATING and not action.is_conditional:
            if is_another(schema, table):
                return True
        elif action.action in ("drop_table", "rename_table"):
            spelled.pop((lowered(schema), lowered(table)), None)
            if action.action == "rename_table" and is_another(action.other_schema_name, action.other_table_name):
                return True
        elif action.action == "drop_database":
            spelled = {name: as_is for name, as_is in spelled.items() if name[0] != lowered(schema)}
    return False


def folded(action: Action) -> Action:
    """Return an action with all table names in lower case, for a server that stores them so."""
    names = ("schema_name", "table_name", "other_schema_name", "other_table_name")
    changed: dict[str, Any] = {name: lowered(value) for name in names if (value := getattr(action, name)) is not None}
    return replace(action, **changed)
