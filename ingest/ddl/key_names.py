"""Names of keys: those of statements, and those that a server chooses."""

from collections.abc import Iterable, Iterator, Sequence

from ingest.ddl.actions import Key
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


def with_added(keys: Sequence[Key], more: Iterable[Key], table: str) -> list[Key]:
    """Return keys and those that a statement adds; one that is conditional only if no key has its name."""
    found = [*keys]
    for key in more:
        taken = {lowered(name) for name, _ in named(found, table)} if key.is_conditional else ()
        if lowered(key.name or key.columns[0] or "") not in taken:
            found.append(key)
    return found
