"""Find the files of `row_changes` in a warehouse that may contain the rows of a key.

The search uses the bloom filters and statistics in the files themselves, so there is no index that could be missing or
older than the files.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from recover.sources.engine import escaped, literal
from recover.sources.home.bloom import BLOCK_BYTES, HEADER_BYTES, hash_of, may_contain, place_of_block

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SCHEMA: Final = "binloom_parts"
"""Schema of `FOOTERS` and `ROWS_IN`, in a connection of `open_marts`."""

FOOTERS: Final = f"{SCHEMA}.footers"
"""View of `footers_query` for all files of `row_changes`."""

ROWS_IN: Final = f"{SCHEMA}.rows_in"
"""Macro: the rows of `row_changes` in a list of files."""

_FILES: Final = f"{SCHEMA}.files"
_READ: Final = f"{SCHEMA}.read"
_READ_KEYS: Final = f"{SCHEMA}.read_keys"


@dataclass(frozen=True)
class KeyParts:
    """Queries of the rows of `row_changes` in the files that may have some keys.

    Attributes
    ----------
    by_old_key
        Has all rows whose `pk_hash` is one of the keys.
    by_new_key
        Has all rows whose `pk_values_after` is one of the keys.
    """

    by_old_key: str
    by_new_key: str


_ALL: Final = KeyParts("select * from binloom.row_changes", "select * from binloom.row_changes")


def key_parts(connection: "DuckDBPyConnection", keys: Iterable[str]) -> KeyParts:
    """Return where the rows of some keys are, given as `pk_values`.

    Parameters
    ----------
    connection
        One of `open_marts`; in any other the rows of all keys are everywhere.
    """
    if not _has_footers(connection):
        return _ALL
    hashes = [hash_of(sha256(key.encode()).hexdigest().encode()) for key in keys]
    # A file of each shape is read with every key, so that the columns are those of all files.
    connection.execute(
        f"""create table if not exists {_FILES} as
        select *, row_number() over (partition by shape order by file_name) = 1 as is_first_of_shape from {FOOTERS}"""
    )
    query = f"select file_name, filters, has_new_keys, is_first_of_shape from {_FILES} order by file_name"
    files = connection.execute(query).fetchall()
    old = [name for name, filters, _, is_first in files if is_first or _may_have(name, filters, hashes)]
    new = [name for name, _, has_new_keys, is_first in files if is_first or has_new_keys]
    return KeyParts(_rows_in(old), _rows_in(new))


def rows_of_keys(connection: "DuckDBPyConnection", keys: Iterable[str]) -> str:
    """Return a query of the rows of `row_changes` that have one of some keys, before the change or after it.

    In a warehouse, rows of a key are read when they are first needed, and then kept in the connection.
    """
    keys = sorted(set(keys))
    if not _has_footers(connection):
        return _of_keys(_ALL, keys)
    connection.execute(f"create table if not exists {_READ_KEYS} (key varchar)")
    read = {key for (key,) in connection.execute(f"select key from {_READ_KEYS}").fetchall()}
    if new := [key for key in keys if key not in read]:
        rows = _of_keys(key_parts(connection, new), new)
        connection.execute(f"create table if not exists {_READ} as select * from ({rows}) limit 0")
        connection.execute(
            f"insert into {_READ} by name select * from ({rows}) where change_id not in (select change_id from {_READ})"
        )
        connection.executemany(f"insert into {_READ_KEYS} values (?)", [[key] for key in new])
    return _of_keys(KeyParts(f"select * from {_READ}", f"select * from {_READ}"), keys)


def _of_keys(parts: KeyParts, keys: Sequence[str]) -> str:
    """Return a query of the rows of keys. Each scan has a condition on one column, which statistics of files answer."""
    hashes = ", ".join(f"'{sha256(key.encode()).hexdigest()}'" for key in keys)
    texts = ", ".join(map(literal, keys))
    return (
        f"select * from ({parts.by_old_key}) where pk_hash in ({hashes})"
        f" union all select * from ({parts.by_new_key})"
        f" where pk_values_after in ({texts}) and pk_hash not in ({hashes})"
    )


def _has_footers(connection: "DuckDBPyConnection") -> bool:
    found = connection.execute("select 1 from information_schema.schemata where schema_name = ?", [SCHEMA])
    return bool(found.fetchall())


def _may_have(path: str, filters: Sequence[int | None] | None, hashes: Sequence[int]) -> bool:
    """Return whether a file may have one of the hashes; each of its row groups has a filter, or none."""
    if not filters or None in filters:
        return True
    file = os.open(path, os.O_RDONLY)
    try:
        return any(_may_have_at(file, start, hashes) for start in filters if start is not None)
    finally:
        os.close(file)


def _may_have_at(file: int, start: int, hashes: Sequence[int]) -> bool:
    header = os.pread(file, HEADER_BYTES, start)
    for hashed in hashes:
        place = place_of_block(header, hashed)
        if place is None or may_contain(os.pread(file, BLOCK_BYTES, start + place), hashed):
            return True
    return False


def _rows_in(files: Iterable[str]) -> str:
    return f"select * from {ROWS_IN}([{', '.join(literal(escaped(name)) for name in files)}])"
