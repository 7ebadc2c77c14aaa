"""The hidden columns that MariaDB adds to a table for its long unique keys.

A unique key of whole TEXT or BLOB values, of more than 3,072 bytes, or `using hash`, has the hash of its values in a
column behind all others. MySQL refuses such keys, or makes another key of them. A short key
is `using hash` only up to the next ALTER TABLE, and not in a table that is made like its own.

Source: MariaDB, sql/sql_table.cc, `mysql_prepare_create_table` (`is_hash_field_needed`); the limit was tried on 10.11
and 11.8 with InnoDB.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count
from typing import Final

from ingest.ddl.actions import Action, Column, Key
from ingest.ddl.column_types import bytes_each
from ingest.ddl.letter_case import lowered

_NAME: Final = "DB_ROW_HASH_"
_MAX_BYTES: Final = 3072
# The smallest limit in another engine, or in InnoDB with other settings.
_LEAST_LIMIT: Final = 767
_CHANGES: Final = ("ALTER TABLE", "CREATE INDEX", "DROP INDEX")
# A POINT has 25 bytes.
_UNLIMITED: Final = re.compile(r"text|blob|json|geometry|linestring|polygon|multi|collection")
_LENGTH: Final = re.compile(r"(?:var)?(?:char|binary)\((\d+)\)")


def hashed_keys(columns: Sequence[Column], keys: Iterable[Key], limit: int = _MAX_BYTES) -> int:
    """Return how many of the unique keys of a table have a hash, as far as they tell.

    A key up to `limit` bytes needs none.
    """
    by_name = {lowered(column.name): column for column in columns}
    return sum(
        not key.is_foreign
        and (
            key.is_hash
            or sum(_bytes(by_name.get(lowered(name or "")), length) for name, length, _ in key.parts) > limit
        )
        for key in keys
    )


def _bytes(column: Column | None, prefix: int | None) -> int:
    """Return the bytes of a part of a key; 0 for types of a few bytes, and for what is not known."""
    if column is None:
        return 0
    each = bytes_each(column.character_set) if column.character_set else 1
    if prefix is not None:
        return prefix * each
    if _UNLIMITED.search(column.data_type or ""):
        return _MAX_BYTES + 1
    found = _LENGTH.match(column.column_type or "")
    return int(found[1]) * each if found else 0


def chosen_hashes(columns: Sequence[Column], keys: Sequence[Key], *, has_all_keys: bool) -> int:
    """Return how many hidden columns a table has for keys that need no hash, but are `using hash`.

    A snapshot does not tell which keys these are, but it has all hidden columns. If all keys are known, and no limit of
    another engine makes a difference, the columns tell how many there are.
    """
    usual = [replace(key, is_hash=False) for key in keys]
    needed = hashed_keys(columns, usual)
    if has_all_keys and needed == hashed_keys(columns, usual, _LEAST_LIMIT):
        return max(sum(is_hash(column.name, column.extra) for column in columns) - needed, 0)
    return hashed_keys(columns, keys) - needed


def ends_hashes(action: Action) -> bool:
    """Return whether a step of a statement makes usual keys of those that are `using hash`."""
    return action.statement_type in _CHANGES and action.action != "rename_table"


def with_hashes(columns: Sequence[Column], more: int) -> list[Column]:
    """Return the columns of a table that has some more hashes, or some fewer."""
    kept = [*columns]
    while more < 0 and kept and may_be_hash(kept[-1].name):
        kept.pop()
        more += 1
    return [*kept, *hash_columns((column.name for column in kept), more)]


def hash_columns(taken: Iterable[str], number: int) -> list[Column]:
    """Return some hashes, with names that a table does not have yet.

    A hash is NOT NULL if all columns of its key are. That is not told here: each counts as nullable.
    """
    names = {name.upper() for name in taken}
    free = (name for place in count(1) if (name := f"{_NAME}{place}") not in names)
    extra = "VIRTUAL GENERATED, INVISIBLE"
    return [
        Column(next(free), "bigint", "bigint(20) unsigned", is_generated=True, extra=extra, is_invisible=True)
        for _ in range(number)
    ]


def is_hash(name: str, extra: str) -> bool:
    """Return whether a column is a hash, by its name and by its EXTRA in `information_schema.columns`."""
    return may_be_hash(name) and "INVISIBLE" in extra


def may_be_hash(name: str) -> bool:
    """Return whether a column has the name of a hash."""
    return name.startswith(_NAME)


def with_hashes_apart(actions: Sequence[Action]) -> tuple[list[Action], list[Action]]:
    """Return actions, and one with all new keys that are `using hash`: it ends the hashes of all others."""
    hashed = [one for one in actions if any(key.is_hash for key in one.keys)]
    keys = tuple(key for one in hashed for key in one.keys)
    return [one for one in actions if one not in hashed], [replace(one, keys=keys) for one in hashed[:1]]
