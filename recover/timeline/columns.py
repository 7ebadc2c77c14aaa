"""The columns of a table from one statement to the next."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from ingest.ddl.actions import Column
from ingest.ddl.column_types import bytes_each
from ingest.ddl.letter_case import lowered

# Types of a table map, which has no others if the server logs the names of columns (binlog_row_metadata=FULL).
_WIRE_TYPES: Final = {
    "tiny": "tinyint",
    "short": "smallint",
    "int24": "mediumint",
    "long": "int",
    "longlong": "bigint",
    "newdecimal": "decimal",
    "datetime2": "datetime",
    "timestamp2": "timestamp",
    "time2": "time",
    "newdate": "date",
    "blob": "blob",
    "string": "char",
    "var_string": "varchar",
}
_TEXTS: Final = ("tinytext", "text", "mediumtext", "longtext")
_BLOBS: Final = ("tinyblob", "blob", "mediumblob", "longblob")
LEFT_OUT: Final = (
    *(None, *_TEXTS, *_BLOBS, "json", "vector", "geometry", "point", "linestring", "polygon", "multipoint"),
    *("multilinestring", "multipolygon", "geometrycollection", "geomcollection"),
)
"""Types of columns that an image may lack with `binlog_row_image=NOBLOB`; None is an unknown type."""
_WIRE: Final = re.compile(r"(\w+)(?: ([0-9]+))?( unsigned)?")


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of a table in a range of the log.

    Attributes
    ----------
    columns
        In the order of the table. The type of a column is None if it is unknown.
    primary_key
        Names of its columns, in any order; empty if there is none.
    are_generated_known
        Whether each column is known to be computed from others, or not.
    """

    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    are_generated_known: bool = False

    @classmethod
    def of_version(cls, columns: Iterable[Mapping[str, Any]], primary_key: Iterable[str] | None) -> "Columns":
        """Return the columns of a row of the mart `table_versions`."""
        return cls(tuple(map(_column, columns)), tuple(primary_key or ()))

    @cached_property
    def types(self) -> dict[str, str]:
        """Name to type with length and attributes, in the order of the table."""
        return {column.name: column.column_type or "" for column in self.columns}

    @cached_property
    def key(self) -> tuple[str, ...]:
        """The columns of the primary key in the order of `pk_values`, which is that of the table."""
        in_key = {lowered(name) for name in self.primary_key}
        return tuple(column.name for column in self.columns if lowered(column.name) in in_key)

    def with_generated(self, names: Iterable[str]) -> "Columns":
        """Return the columns, of which those with some names are computed from others, and no others are."""
        folded = {lowered(name) for name in names}
        columns = (replace(one, is_generated=lowered(one.name) in folded) for one in self.columns)
        return Columns(tuple(columns), self.primary_key, True)


def _column(row: Mapping[str, Any]) -> Column:
    data_type, column_type, character_set = row["data_type"], row["column_type"] or "", row["character_set"]
    wire = _WIRE.fullmatch(column_type)
    if wire is not None and (wire[2] is not None or data_type in _WIRE_TYPES.keys() - {"blob"}):
        data_type, column_type = _shown(wire[1], int(wire[2] or 0), wire[3] or "", character_set)
    return Column(row["name"], data_type, column_type or None, character_set, is_nullable=row["is_nullable"])


def _shown(wire: str, metadata: int, sign: str, character_set: str | None) -> tuple[str, str]:
    """Return a type of a table map as information_schema shows it."""
    name = _WIRE_TYPES.get(wire, wire)
    is_binary = character_set in (None, "binary")
    if name in ("decimal", "datetime", "timestamp", "time", "bit"):
        sizes = f"{metadata // 256},{metadata % 256}" if name == "decimal" else str(metadata or "")
        return name, f"{name}({sizes}){sign}" if sizes else name
    if name == "blob":
        name = (_BLOBS if is_binary else _TEXTS)[max(metadata, 1) - 1]
        return name, name
    if name in ("char", "varchar"):
        name = {"char": "binary", "varchar": "varbinary"}[name] if is_binary else name
        return name, f"{name}({metadata // (1 if is_binary else bytes_each(character_set or ''))})"
    # Without the labels of ENUM and SET: a version of a table map lacks them.
    return name, name + sign
