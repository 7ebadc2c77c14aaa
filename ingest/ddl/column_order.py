"""The column changes of an ALTER TABLE in an order in which they can be made one by one."""

from collections.abc import Callable
from dataclasses import replace

from ingest.ddl.actions import Action, Column
from ingest.ddl.letter_case import lowered
from ingest.ddl.shapes import GENERATED_KEY


def behind_generated_key(actions: list[Action]) -> list[Action]:
    """Return placements with those behind a generated key at the beginning: others that are FIRST come between."""
    if any(GENERATED_KEY in (_old(one), _new(one)) for one in actions):
        return actions
    return sorted(actions, key=lambda one: lowered(one.after_column or "") != GENERATED_KEY)


def without_clashes(actions: list[Action], action: Callable[..., Action]) -> list[Action]:
    """Return column changes that can be made one by one; the server makes them all at once.

    `CHANGE a b int, CHANGE b a int` gives column `a` a name that column `b` still has. Such a column `b` first gets
    a temporary name.
    """
    taken = set[str]()
    later = {_old(one) for one in actions if _is_renamed(one)}
    first, rest = list[Action](), list[Action]()
    for one in actions:
        if _is_renamed(one):
            later.discard(_old(one))
        if _is_renamed(one) and _old(one) in taken:
            assert one.column_name is not None
            aside = f"#{one.column_name}"
            first.append(action("rename_column", column_name=one.column_name, columns=(Column(aside),)))
            one = replace(one, column_name=aside)
        rest.append(one)
        if (new := _new(one)) in later:
            taken.add(new)
    return [*first, *rest]


def _old(action: Action) -> str:
    return lowered(action.column_name or "")


def _new(action: Action) -> str:
    return lowered(action.columns[0].name) if action.columns else ""


def _is_renamed(action: Action) -> bool:
    return action.action in ("modify_column", "rename_column") and _old(action) != _new(action)
