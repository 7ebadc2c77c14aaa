"""A table as an undo needs it: types, keys, generated columns. Only a schema snapshot has all of that."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from ingest.binlog.events.hints import enum_members
from ingest.ddl.letter_case import lowered
from recover.sources.files.document_types import DocumentTypes

TableName = tuple[str, str]
"""Schema and name of a table."""

CASCADING: Final = ("CASCADE", "SET NULL")
"""Rules by which a foreign key changes rows of its table."""


# The ends of the period of a system-versioned table: a snapshot shows them only as generated columns.
_TYPES_OF_PERIODS: Final = ("timestamp(6)", "bigint(20) unsigned")


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    data_type, column_type, character_set
        As information_schema has them: `decimal`, `decimal(10,2)`; the character set of text only.
    is_generated
        Whether the server computes the value, so that no statement may set it.
    is_updated_by_itself
        Whether an UPDATE that does not name the column sets it to the time.
    documents
        The types in JSON documents, of a log that has them.
    is_stored
        Whether the server computes the value when it writes the row, not when it reads it.
    """

    name: str
    data_type: str
    column_type: str
    character_set: str | None = None
    is_nullable: bool = True
    is_generated: bool = False
    is_updated_by_itself: bool = False
    labels: tuple[str, ...] | None = None
    collation: str | None = None
    documents: DocumentTypes | None = field(default=None, compare=False, repr=False)
    is_stored: bool = True


@dataclass(frozen=True)
class KeyPart:
    """A part of a unique key.

    Attributes
    ----------
    column
        Its column; None for an expression.
    length
        Number of characters, or bytes, that the key compares; None for whole values.
    expression
        The expression, also that of a generated column; None for other columns.
    """

    column: str | None
    length: int | None = None
    expression: str | None = None

    @property
    def text(self) -> str:
        """The part as people write it."""
        if self.column is None:
            return f"({self.expression or 'an expression'})"
        return self.column if self.length is None else f"{self.column}({self.length})"


@dataclass(frozen=True)
class UniqueKey:
    """A primary or unique key with its parts in order."""

    parts: tuple[KeyPart, ...]

    @classmethod
    def of_columns(cls, names: Iterable[str]) -> "UniqueKey":
        """Return a key of whole columns."""
        return cls(tuple(map(KeyPart, names)))

    @property
    def text(self) -> str:
        """The parts as people write them."""
        return ", ".join(part.text for part in self.parts)


@dataclass(frozen=True)
class ForeignKey:
    """A foreign key: its columns in the order of the key, and the columns that they refer to."""

    name: str
    table: TableName
    columns: tuple[str, ...]
    parent: TableName
    parent_columns: tuple[str, ...]
    update_rule: str = "RESTRICT"
    delete_rule: str = "RESTRICT"


def with_neighbours(names: Iterable[TableName], keys: Iterable[ForeignKey]) -> set[TableName]:
    """Return tables with their parents and children: the rows of an undo may be in need of theirs."""
    found = {*names}
    return found | {name for key in keys if found & {key.table, key.parent} for name in (key.table, key.parent)}


@dataclass(frozen=True)
class Table:
    """A table: its columns in order, its primary key (empty without one) and its other unique keys.

    Attributes
    ----------
    unique_keys
        Those of whole columns, which no expression gives.
    computed_keys
        Those with prefixes or expressions, in which rows of different columns may be equal; also a primary key.
    defaults
        Columns that an INSERT leaves to the server if the row has these values.
    """

    name: TableName
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    unique_keys: tuple[tuple[str, ...], ...] = ()
    computed_keys: tuple[UniqueKey, ...] = ()
    defaults: Mapping[str, str | None] = field(default_factory=dict, hash=False)

    @cached_property
    def all_keys(self) -> tuple[UniqueKey, ...]:
        """All keys in which no two rows may be equal."""
        plain = map(UniqueKey.of_columns, filter(None, (self.primary_key, *self.unique_keys)))
        return (*plain, *self.computed_keys)

    @cached_property
    def by_name(self) -> dict[str, Column]:
        """The columns by their names."""
        return {column.name: column for column in self.columns}

    @property
    def text(self) -> str:
        """The name as people write it."""
        return ".".join(self.name)

    @cached_property
    def row_key(self) -> tuple[str, ...]:
        """The columns that identify a row: primary key, else a unique key that is never NULL; empty without any."""
        if self.primary_key:
            return self.primary_key
        usable = (key for key in self.unique_keys if all(self._identifies(name) for name in key))
        return min(usable, key=len, default=())

    @cached_property
    def logged_key(self) -> tuple[str, ...]:
        """The columns of the primary key in the order of `pk_values`, which is that of the table."""
        return tuple(column.name for column in self.columns if column.name in self.primary_key)

    @cached_property
    def generated_key(self) -> tuple[str, ...]:
        """The columns of the row key that the server computes."""
        return tuple(name for name in self.row_key if self.by_name[name].is_generated)

    def _identifies(self, name: str) -> bool:
        column = self.by_name[name]
        return not column.is_nullable and not column.is_generated

    @property
    def has_documents(self) -> bool:
        """Whether a column has JSON documents with types that their text does not tell."""
        return any(column.data_type == "json" for column in self.columns)

    def with_documents(self, types: DocumentTypes) -> "Table":
        """Return the table with the types that its documents have in a log."""
        columns = (replace(one, documents=types) if one.data_type == "json" else one for one in self.columns)
        return replace(self, columns=tuple(columns))

    @property
    def is_versioned(self) -> bool:
        """Whether it may be a system-versioned table of MariaDB, which logs a row for each version."""
        ends = [one for one in self.columns if one.is_generated and one.column_type in _TYPES_OF_PERIODS]
        return len(ends) >= 2

    @cached_property
    def stored(self) -> tuple[Column, ...]:
        """The columns that statements may set."""
        return tuple(column for column in self.columns if not column.is_generated)

    @cached_property
    def stored_names(self) -> tuple[str, ...]:
        """The names of these columns."""
        return tuple(column.name for column in self.stored)

    @cached_property
    def zone_warnings(self) -> tuple[str, ...]:
        """Which values a script that writes rows may not bring back: another time zone may have given them.

        No snapshot has the expressions of all generated columns.
        """
        names = [column.name for column in self.columns if column.is_generated and column.is_stored]
        if not names or self.is_versioned or not any(column.data_type == "timestamp" for column in self.stored):
            return ()
        return (
            f"values of {', '.join(names)} of {self.text} that the server computed from a TIMESTAMP in another time"
            " zone. When you run the script, it computes them in UTC",
        )

    @cached_property
    def stamps(self) -> frozenset[str]:
        """The names of columns that an UPDATE sets to the time by itself."""
        return frozenset(column.name for column in self.stored if column.is_updated_by_itself)


def tables_of_snapshot(
    columns: Iterable[Mapping[str, Any]], keys: Iterable[Mapping[str, Any]]
) -> dict[TableName, Table]:
    """Return the tables that rows of `schema_columns` and `schema_keys` describe."""
    columns_of: dict[TableName, list[tuple[int, Column]]] = defaultdict(list)
    primary_of: dict[TableName, list[tuple[int, str]]] = defaultdict(list)
    for row in columns:
        name = (row["schema_name"], row["table_name"])
        columns_of[name].append((row["ordinal_position"], _column(row)))
        if row["primary_key_ordinal"]:
            primary_of[name].append((row["primary_key_ordinal"], row["column_name"]))
    keys_of: dict[TableName, dict[str, list[tuple[int, KeyPart]]]] = defaultdict(lambda: defaultdict(list))
    for row in keys:
        # Snapshots of an older binloom have neither prefixes nor expressions.
        part = KeyPart(row["column_name"], row.get("prefix_length"), row.get("expression"))
        named = keys_of[row["schema_name"], row["table_name"]][row["constraint_name"]]
        named.append((row["ordinal_position"], part))
    return {
        name: Table(
            name,
            tuple(column for _, column in sorted(listed, key=lambda one: one[0])),
            tuple(column for _, column in sorted(primary_of[name])),
            *_unique_keys(keys_of[name]),
        )
        for name, listed in columns_of.items()
    }


def _unique_keys(
    named: Mapping[str, list[tuple[int, KeyPart]]],
) -> tuple[tuple[tuple[str, ...], ...], tuple[UniqueKey, ...]]:
    """Return the unique keys of whole columns, and those with prefixes or expressions."""
    plain, computed = [], []
    for name, places in sorted(named.items()):
        parts = tuple(part for _, part in sorted(places, key=lambda one: one[0]))
        columns = tuple(part.column for part in parts if part.column is not None)
        if parts != UniqueKey.of_columns(columns).parts:
            computed.append(UniqueKey(parts))
        elif lowered(name) != "primary":
            plain.append(columns)
    return tuple(plain), tuple(computed)


def foreign_keys_of_snapshot(rows: Iterable[Mapping[str, Any]]) -> list[ForeignKey]:
    """Return the foreign keys that rows of `foreign_keys` describe."""
    parts: dict[tuple[str, str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        parts[row["schema_name"], row["table_name"], row["constraint_name"]].append(row)
    found = []
    for (schema, table, name), listed in sorted(parts.items()):
        listed.sort(key=lambda row: row["ordinal_position"])
        first = listed[0]
        found.append(
            ForeignKey(
                name,
                (schema, table),
                tuple(row["column_name"] for row in listed),
                (first["referenced_schema_name"], first["referenced_table_name"]),
                tuple(row["referenced_column_name"] for row in listed),
                (first["update_rule"] or "UNKNOWN").upper(),
                (first["delete_rule"] or "UNKNOWN").upper(),
            )
        )
    return found


def _column(row: Mapping[str, Any]) -> Column:
    data_type = row["data_type"].lower()
    extra = (row["extra"] or "").lower()
    return Column(
        row["column_name"],
        data_type,
        row["column_type"],
        row["character_set"],
        bool(row["is_nullable"]),
        bool(row["is_generated"]),
        "on update" in extra,
        enum_members(row["column_type"]) if data_type in ("enum", "set") else None,
        row.get("collation"),
        is_stored="virtual" not in extra,
    )
