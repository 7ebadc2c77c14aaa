"""Names of keys: those of statements, and those that a server chooses."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ingest.ddl.actions import Action, Key
from ingest.ddl.letter_case import lowered


def named(keys: Sequence[Key], table: str) -> Iterator[tuple[str, Key]]:
    """Yield keys with names. An index is named after its first column, a foreign key after its table, numbered.

    An index that begins with an expression is named `functional_index`.
    """
    taken = {key.name for key in keys}
    for key in keys:
        name, number = key.name, 1
        while name is None or (key.name is None and name in taken):
            base = f"{table}_ibfk_{number}" if key.is_foreign else key.columns[0] or "functional_index"
            name = base if key.is_foreign or number == 1 else f"{base}_{number}"
            number += 1
        taken.add(name)
        yield name, key


def after_rename(name: str, former: str, table: str) -> str:
    """Return the name of a foreign key after its table was renamed: one that a server chose has the table's name."""
    prefix = f"{former}_ibfk_"
    return f"{table}_ibfk_{name.removeprefix(prefix)}" if name.startswith(prefix) else name


MAY_DROP_FOREIGN_KEYS: Final = ("drop foreign key", "drop constraint")
"""Details of actions that drop foreign keys by their names. A foreign key may have the name of an index or a check."""


def without_dropped(keys: Sequence[Key], action: Action, table: str) -> list[Key]:
    """Return the keys of a table without those that an action drops, or replaces by a key of the same name."""
    dropped = {lowered(name) for name in action.dropped_keys}
    may_be_foreign = action.detail in MAY_DROP_FOREIGN_KEYS
    may_be_index = action.detail not in ("drop foreign key", "drop check")
    replaced = {(lowered(key.name), key.is_foreign) for key in action.keys if key.name and not key.is_conditional}
    there = [(lowered(name), key) for name, key in named(keys, table)]
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
    """Return keys and those that a statement adds; one that is conditional only if no key has its name.

    A foreign key may have the name of an index.
    """
    found = [*keys]
    for key in more:
        others = named(found, table) if key.is_conditional else ()
        taken = {lowered(name) for name, other in others if other.is_foreign or not key.is_foreign}
        if lowered(key.name or key.columns[0] or "") not in taken:
            found.append(key)
    return found
