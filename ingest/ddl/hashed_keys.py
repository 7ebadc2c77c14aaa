"""The hidden columns that MariaDB adds to a table for its long unique keys.

A unique key of whole TEXT or BLOB values, or of more than 3,072 bytes, has the hash of its values in a column behind
all others. MySQL refuses such keys. A key `using hash` has one too, which nothing here tells.

Source: MariaDB, sql/sql_table.cc, `mysql_prepare_create_table` (`is_hash_field_needed`); the limit was tried on 10.11
and 11.8 with InnoDB.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Final

from ingest.ddl.actions import Column, Key
from ingest.ddl.column_types import bytes_each

NAME: Final = "DB_ROW_HASH_"
_MAX_BYTES: Final = 3072
_UNLIMITED: Final = re.compile(r"text|blob|json|geometry|point|linestring|polygon|multi|collection")
_LENGTH: Final = re.compile(r"(?:var)?(?:char|binary)\((\d+)\)")


def hashed_keys(columns: Sequence[Column], keys: Iterable[Key]) -> int:
    """Return how many of the unique keys of a table have a hash, as far as their columns tell."""
    by_name = {column.name.casefold(): column for column in columns}
    return sum(
        not key.is_foreign
        and sum(_bytes(by_name.get((name or "").casefold()), length) for name, length, _ in key.parts) > _MAX_BYTES
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


def with_hashes(columns: Sequence[Column], more: int) -> list[Column]:
    """Return the columns of a table that has some more hashes, or some fewer."""
    kept = [*columns]
    while more < 0 and kept and kept[-1].name.startswith(NAME):
        kept.pop()
        more += 1
    taken = {column.name.upper() for column in kept}
    free = (name for number in count(1) if (name := f"{NAME}{number}") not in taken)
    return kept + [
        Column(
            next(free), "bigint", "bigint(20) unsigned", is_generated=True, extra="VIRTUAL GENERATED, INVISIBLE",
            is_invisible=True,
        )
        for _ in range(more)
    ]  # fmt: skip
