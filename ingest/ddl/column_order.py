"""The column changes of an ALTER TABLE in an order in which they can be made one by one."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from ingest.ddl.actions import COMES_BACK, Action, Column
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


def without_columns_of_before(
    added: list[Action], others: Iterable[Action], not_understood: Callable[[str], Exception]
) -> list[Action]:
    """Return additions without those under a condition that the table before the statement does not fulfil.

    MariaDB tests IF NOT EXISTS on the table before the statement, which has each column that the statement drops or
    renames: sql/sql_table.cc, `handle_if_exists_options`.

    Parameters
    ----------
    added
        The columns that the statement adds or moves.
    others
        Its other changes of columns.
    not_understood
        Makes the error for a column that may or may not have been there.
    """
    gone = {_old(one): one.is_conditional for one in others if one.action == "drop_column" or _is_renamed(one)}
    there = [one for one in added if _is_conditional_addition(one) and _new(one) in gone]
    if any(gone[_new(one)] for one in there):
        raise not_understood("a column that exists under no other condition")
    return [one for one in added if one not in there]


def coming_back(dropped: list[Action], columns: Iterable[Action]) -> list[Action]:
    """Return drops of columns, with a note on those whose name an added column gets: keys with this name stay."""
    names = {_new(one) for one in columns if one.action == "add_column"}
    return [replace(one, detail=COMES_BACK) if _is_dropped(one) and _old(one) in names else one for one in dropped]


def _is_conditional_addition(action: Action) -> bool:
    return action.action == "add_column" and action.is_conditional and not action.detail


def _is_dropped(action: Action) -> bool:
    return action.action == "drop_column" and not action.detail


def _old(action: Action) -> str:
    return lowered(action.column_name or "")


def _new(action: Action) -> str:
    return lowered(action.columns[0].name) if action.columns else ""


def _is_renamed(action: Action) -> bool:
    return action.action in ("modify_column", "rename_column") and _old(action) != _new(action)
