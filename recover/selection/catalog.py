"""The tables of the log, as their versions describe them: names, columns, types, keys."""

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from ingest.errors import UsageError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from ingest.landing.bindings import TableVersion as DefinedVersion

_INTEGERS: Final = frozenset(
    {*("tinyint", "smallint", "mediumint", "int", "bigint", "bit"), *("tiny", "short", "int24", "long", "longlong")}
)
_MOMENTS: Final = frozenset({"date", "newdate", "datetime", "datetime2", "timestamp", "timestamp2"})
_BINARY: Final = frozenset(
    {
        *("binary", "varbinary", "tinyblob", "mediumblob", "longblob", "vector", "geometry", "geomcollection"),
        *("point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geometrycollection"),
    }
)
# Types of a table map that hold text or bytes; the character set tells which.
_WIRE_STRINGS: Final = frozenset({"varchar", "var_string", "string", "varchar_compressed", "blob_compressed"})
_PRECISION: Final = re.compile(r"\w+\s*\((\d+)(?:\s*,\s*(\d+))?\)")
_METADATA: Final = re.compile(r"\w+ (\d+)")


class Kind(StrEnum):
    """Rule by which the values of a column are compared."""

    NUMBER = "number"
    YEAR = "year"
    FLOAT = "single precision number"
    DOUBLE = "double precision number"
    MOMENT = "date or time"
    TIME = "time of day or interval"
    BINARY = "binary string"
    ADDRESS = "address or UUID"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table version."""

    ordinal: int
    name: str
    data_type: str | None
    column_type: str | None
    character_set: str | None
    is_nullable: bool | None
    is_primary_key: bool

    @property
    def kind(self) -> Kind:
        """Return the rule by which values are compared."""
        name = (self.data_type or "").lower()
        if name in _INTEGERS or name in ("decimal", "newdecimal"):
            return Kind.NUMBER
        if name in _MOMENTS:
            return Kind.MOMENT
        if name in ("time", "time2"):
            return Kind.TIME
        if name in ("inet4", "inet6", "uuid"):
            return Kind.ADDRESS
        if name in ("year", "float", "double"):
            return Kind[name.upper()]
        if name in _BINARY or (name in ("blob", *_WIRE_STRINGS) and self.character_set in (None, "binary")):
            # A string without a character set is shown as text if it is UTF-8: only BLOB is binary for certain.
            return Kind.TEXT if self.character_set is None and name in _WIRE_STRINGS else Kind.BINARY
        return Kind.TEXT

    @property
    def digits(self) -> tuple[int, int]:
        """Return the digits of a number: all of them, and those after the point."""
        name, text = (self.data_type or "").lower(), self.column_type or ""
        if name == "decimal" and (found := _PRECISION.match(text)):
            return int(found[1]), int(found[2] or 0)
        if name == "newdecimal" and (found := _METADATA.match(text)):
            return divmod(int(found[1]), 256)
        return (10, 0) if name == "decimal" else (20, 0)

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the labels of an ENUM, as far as they are known."""
        return self.members if self.data_type == "enum" else ()

    @property
    def members(self) -> tuple[str, ...]:
        """Return the labels of an ENUM or a SET, as far as they are known."""
        from ingest.binlog.events.hints import enum_members

        return (enum_members(self.column_type or "") or ()) if self.data_type in ("enum", "set") else ()

    @property
    def fixed_bytes(self) -> int:
        """Return the length of a BINARY column, 0 for all others."""
        found = _PRECISION.match(self.column_type or "")
        return int(found[1]) if self.data_type == "binary" and found else 0

    @property
    def shown_type(self) -> str:
        """Return the type for messages."""
        return self.column_type or self.data_type or "of an unknown type"


@dataclass(frozen=True, slots=True)
class TableVersion:
    """The definition of a table in a range of positions: a row of `table_versions`."""

    table_version_id: str
    source_id: str
    schema_name: str
    table_name: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...]

    @property
    def name(self) -> str:
        """Return schema and table."""
        return f"{self.schema_name}.{self.table_name}"

    def column(self, name: str) -> Column | None:
        """Return a column by its name; MySQL ignores the case of column names."""
        by_case = {column.name: column for column in self.columns}
        folded = {column.name.lower(): column for column in self.columns}
        return by_case.get(name) or folded.get(name.lower())

    @property
    def key_columns(self) -> tuple[Column, ...]:
        """Return the columns of the primary key, in the order of `pk_values`."""
        by_name = {column.name: column for column in self.columns}
        return tuple(by_name[name] for name in self.primary_key)


def table_version(known: "DefinedVersion") -> TableVersion:
    """Return a definition that the evidence of the log gives, as a version of its table."""
    columns = tuple(Column(*(getattr(column, field.name) for field in fields(Column))) for column in known.columns)
    key = tuple(column.name for column in columns if column.is_primary_key)
    return TableVersion(known.table_version_id, known.source_id, *known.table, columns, key)


def read_table_versions(connection: "DuckDBPyConnection") -> tuple[TableVersion, ...]:
    """Return the versions of all tables, from the view `binloom.table_versions` of a connection."""
    rows = connection.execute(
        "select table_version_id, source_id, schema_name, table_name, columns, primary_key_columns"
        " from binloom.table_versions order by all"
    ).fetchall()
    return tuple(
        TableVersion(
            table_version_id=row[0],
            source_id=row[1],
            schema_name=row[2],
            table_name=row[3],
            columns=tuple(_column(each) for each in row[4] or ()),
            primary_key=tuple(row[5] or ()),
        )
        for row in rows
    )


def _column(row: dict[str, Any]) -> Column:
    return Column(
        ordinal=row["ordinal"],
        name=row["name"],
        data_type=row["data_type"],
        column_type=row["column_type"],
        character_set=row["character_set"],
        is_nullable=row["is_nullable"],
        is_primary_key=row["is_primary_key"],
    )


NO_NAMES: Final = (
    "The log has none: run `binloom ingest` and `binloom build`, or give other files with --files. `binloom status`"
    " tells which files could not be landed."
)
"""What to do about a log without any names."""
NO_NAMES_IN_FILES: Final = "The files have no change of a table. Give those of its time and its server."
"""The same, if the log is files that were given."""


class UnknownNameError(UsageError):
    """A source, table, column, file or label does not exist."""

    @property
    def has_others(self) -> bool:
        """Whether others of its kind are known."""
        return bool(self.context.get("has_others", True))


def unknown_name(finding: str, wanted: str, known: Iterable[str]) -> UnknownNameError:
    """Return the error for an unknown name; its hint has the nearest names, or else some of all."""
    names = sorted(set(known))
    by_fold = {name.lower(): name for name in names}
    near = [by_fold[name] for name in difflib.get_close_matches(wanted.lower(), by_fold, n=3)]
    if near:
        hint = f"The nearest {'name is' if len(near) == 1 else 'names are'} {', '.join(near)}."
    elif names:
        shown = ", ".join(names[:10])
        hint = f"There are {shown}{f' and {len(names) - 10} more' if len(names) > 10 else ''}."
    else:
        hint = NO_NAMES
    return UnknownNameError(finding, hint=hint, has_others=bool(names))


def unknown_source(source_id: str, known: Iterable[str]) -> UnknownNameError:
    """Return the error for a source that is not in the log."""
    return unknown_name(f"There is no source {source_id!r}.", source_id, known)


def unknown_table(name: str, known: Iterable[tuple[str, str]]) -> UnknownNameError:
    """Return the error for a table that is not in the log.

    Parameters
    ----------
    name
        `schema.table`, or a name in any schema; it may be a pattern.
    known
        Schema and name of the tables of the log.
    """
    tables = set(known)
    names = {f"{schema}.{table}" for schema, table in tables} if "." in name else {table for _, table in tables}
    return unknown_name(f"There is no table {name!r}.", name, names)
