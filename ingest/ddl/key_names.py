"""Names of keys: those of statements, and those that a server chooses."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count
from typing import Final

from ingest.ddl.actions import Action, Key
from ingest.ddl.letter_case import lowered


def after_rename(name: str, former: str, table: str) -> str:
    """Return the name of a foreign key after its table was renamed: one that a server chose has the table's name."""
    prefix = f"{former}_ibfk_"
    return f"{table}_ibfk_{name.removeprefix(prefix)}" if name.startswith(prefix) else name


def key_after_rename(key: Key, former: str, table: str) -> Key:
    """Return a key of a table after the table was renamed."""
    return replace(key, name=after_rename(key.name or "", former, table)) if key.is_foreign else key


MAY_DROP_FOREIGN_KEYS: Final = ("drop foreign key", "drop constraint")
"""Details of actions that drop foreign keys by their names. A foreign key may have the name of an index or a check."""


def without_dropped(keys: Sequence[Key], action: Action) -> list[Key]:
    """Return the keys of a table without those that an action drops, or replaces by a key of the same name."""
    dropped = {lowered(name) for name in action.dropped_keys}
    may_be_foreign = action.detail in MAY_DROP_FOREIGN_KEYS
    may_be_index = action.detail not in ("drop foreign key", "drop check")
    replaced = {(lowered(key.name), key.is_foreign) for key in action.keys if key.name and not key.is_conditional}
    there = [(lowered(key.name or ""), key) for key in keys]
    if action.detail == "drop constraint" and any(key.is_foreign and name in dropped for name, key in there):
        # MariaDB drops the foreign key and leaves a unique key of the same name; MySQL refuses the statement.
        may_be_index = False
    return [
        key
        for name, key in there
        if (name, key.is_foreign) not in replaced
        and not (name in dropped and (may_be_foreign if key.is_foreign else may_be_index))
    ]


def with_added(keys: Sequence[Key], more: Iterable[Key], table: str) -> list[Key]:
    """Return keys and those that a statement adds, with names; one that is conditional only if no key has its name.

    A foreign key may have the name of an index. One without a name is named after its table, with the number that
    follows the highest one before the statement; an index is named after its first column.
    """
    found = [*keys]
    number = max((_number(key.name or "", table) for key in keys if key.is_foreign), default=0)
    for key in more:
        taken = {lowered(other.name or "") for other in found if other.is_foreign or not key.is_foreign}
        if key.is_conditional and lowered(key.tested_name or key.name or key.columns[0] or "") in taken:
            continue
        if key.name is None and key.is_foreign:
            number += 1
            key = replace(key, name=f"{table}_ibfk_{number}")
        elif key.name is None:
            key = replace(key, name=_free_name(key.columns[0] or "functional_index", taken))
        found.append(key)
    return found


def _number(name: str, table: str) -> int:
    digits = name.removeprefix(f"{table}_ibfk_")
    return int(digits) if digits != name and digits.isdecimal() and digits[0] != "0" else 0


def _free_name(base: str, taken: set[str]) -> str:
    names = (f"{base}_{number}" if number > 1 else base for number in count(1))
    return next(name for name in names if lowered(name) not in {*taken, "primary"})
