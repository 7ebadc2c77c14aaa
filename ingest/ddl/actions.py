"""Actions of a DDL statement, in order: plain data, as the raw table `ddl_actions` holds it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Final, Literal

from ingest.ddl.letter_case import lowered

Default = tuple[str | None, str | None]
"""A character set and a collation, each None where it is unknown."""

Kind = Literal[
    "create_table",
    "create_like",
    "create_select",
    "drop_table",
    "truncate_table",
    "rename_table",
    "add_column",
    "drop_column",
    "modify_column",
    "rename_column",
    "add_primary_key",
    "drop_primary_key",
    "convert_character_set",
    "drop_partition",
    "truncate_partition",
    "exchange_partition",
    "create_database",
    "drop_database",
    "other",
    "not_understood",
]

CONVERTS_COLUMNS: Final = "converts columns"
"""Detail of a conversion that leaves the default of the table as it is if it changes no column."""
MAY_CONVERT_COLUMNS: Final = "may convert columns"
"""Detail of a conversion of which this is not known."""


@dataclass(frozen=True, slots=True)
class DefaultValue:
    """The default of a column.

    Attributes
    ----------
    text
        Its text: the content of a string, or a number as written. None is NULL.
    is_literal
        Whether it is a value, and not an expression, of which `text` tells nothing.
    is_quoted
        Whether it is a string.
    """

    text: str | None
    is_literal: bool = True
    is_quoted: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A column as a statement defines it, with its type as information_schema shows it.

    Attributes
    ----------
    name
        Name as written.
    data_type, column_type
        As information_schema.columns shows them; None where the statement only names the column.
    character_set, collation
        As written; None where the table's default applies. A collation may be a name without a character set
        (`default`, `bin`, or a MariaDB name such as `uca1400_ai_ci`). Its full name then depends on the character set.
    is_nullable, is_generated
        Whether the column takes NULL, and whether it is computed from other columns.
    extra
        As information_schema.columns.EXTRA shows it, for how the column's values are made.
    length
        Characters that a TEXT must have room for, where its type depends on a character set that is still unknown.
    default
        As written; None where the statement has none. Columns that differ only in it are equal: it is no part of the
        shape, and a masked statement has another one.
    is_invisible
        Whether `select *` leaves the column out. Columns that differ only in it are equal, too.
    is_in_period
        Whether the column is an end of a period, which makes it NOT NULL whatever a later statement says. A snapshot
        does not show it, so columns that differ only in it are equal.
    """

    name: str
    data_type: str | None = None
    column_type: str | None = None
    character_set: str | None = None
    collation: str | None = None
    is_nullable: bool | None = None
    is_generated: bool | None = None
    extra: str = ""
    length: int | None = None
    default: DefaultValue | None = field(default=None, compare=False)
    is_invisible: bool = field(default=False, compare=False)
    is_in_period: bool = field(default=False, compare=False)

    @property
    def as_end_of_period(self) -> "Column":
        """The column as an end of a period."""
        return replace(self, is_nullable=False, is_in_period=True)


TAKES_ROWS: Final = ("drop_table", "drop_database", "truncate_table", "drop_partition", "truncate_partition")
"""Actions that remove rows without listing them in the log. The mart `schema_changes` has the same ones."""

KEEPS_NO_ROWS: Final = "engine blackhole"
"""Detail of an action that gives a table an engine that logs rows, and keeps none."""
LOSES_ROWS_AT_START: Final = "engine memory"
"""Detail of an action that gives a table an engine that has no rows after each start of the server."""
HOLDS_ROWS_OF_OTHERS: Final = "engine merge"
"""Detail of an action that gives a table an engine with which it has the rows of other tables."""
ROWS_ARE_IN_ANOTHER: Final = "in the union of another table"
"""Detail of an action that makes the rows of a table those of another one, too."""

COMES_BACK: Final = "comes back"
"""Detail of a dropped column whose name an added column gets in the same statement. Servers look for the columns of a
key among the added ones, and the changed ones by their old names: sql/sql_table.cc, `mysql_prepare_alter_table`."""

INACTIVE_RULES: Final = frozenset({"NO ACTION", "RESTRICT"})
"""Rules by which a foreign key changes no rows."""

KeyPart = tuple[str | None, int | None, str | None]
"""A part of a key: its column, the length of a prefix, and the text of an expression."""


@dataclass(frozen=True, slots=True)
class Key:
    """A unique or foreign key. `name` is None where the server chooses it. Rules that are not written are None too.

    A column is None where the key has an expression. `lengths` has, for each column, the number of characters or bytes
    that the key compares, None for whole values. It is empty if all are whole. `expressions` has the texts of
    expressions at their places, and is empty if no text is known. `is_hash` is whether a statement asks for a hash.
    Keys that differ only in it are equal: a snapshot does not have it. `is_conditional` is whether the statement adds
    the key only if no key has its name, or `tested_name`, if the statement tests another one.
    """

    name: str | None
    columns: tuple[str | None, ...]
    referenced_schema_name: str | None = None
    referenced_table_name: str | None = None
    referenced_columns: tuple[str, ...] = ()
    update_rule: str | None = None
    delete_rule: str | None = None
    lengths: tuple[int | None, ...] = ()
    expressions: tuple[str | None, ...] = ()
    is_hash: bool = field(default=False, compare=False)
    is_conditional: bool = field(default=False, compare=False)
    tested_name: str | None = field(default=None, compare=False)

    @classmethod
    def of_parts(cls, name: str | None, parts: Iterable[KeyPart], *, is_hash: bool = False) -> "Key":
        """Return the unique key of parts."""
        columns, lengths, expressions = zip(*parts, strict=True)
        return cls(
            name,
            columns,
            lengths=lengths if any(lengths) else (),
            expressions=expressions if any(expressions) else (),
            is_hash=is_hash,
        )

    @property
    def parts(self) -> tuple[KeyPart, ...]:
        """The parts in their order."""
        return tuple(zip_longest(self.columns, self.lengths, self.expressions))

    def without(self, column: str) -> "Key":
        """Return the key as it is after its column was dropped; it has no columns if that was its only one."""
        parts = [part for part in self.parts if part[0] is None or lowered(part[0]) != lowered(column)]
        if self.is_foreign or not parts:
            return replace(self, columns=tuple(name for name, _, _ in parts))
        others = Key.of_parts(self.name, parts)
        return replace(self, columns=others.columns, lengths=others.lengths, expressions=others.expressions)

    def with_periods(self, periods: Mapping[str, tuple[str, ...]]) -> "Key":
        """Return the key with the columns of a period for its name (WITHOUT OVERLAPS)."""
        if self.is_foreign or not any(lowered(name or "") in periods for name in self.columns):
            return self
        parts = [
            (column, length, expression)
            for name, length, expression in self.parts
            for column in ((None,) if name is None else columns_of_period(name, periods))
        ]
        found = Key.of_parts(self.name, parts, is_hash=self.is_hash)
        return replace(found, is_conditional=self.is_conditional)

    @property
    def is_foreign(self) -> bool:
        """Whether the key refers to another table."""
        return self.referenced_table_name is not None


def columns_of_period(name: str, periods: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the columns that a name in a key means: those of the period of this name, or the column itself.

    The end of the period comes before its start: MariaDB, sql/sql_table.cc, `append_system_key_parts`.
    """
    return periods.get(lowered(name), (name,))[::-1]


@dataclass(frozen=True, slots=True)
class Action:
    """One step of a statement. The steps, applied in order, have the same effect as the statement.

    The attributes are the columns of `ddl_actions`, except the last two, which only a schema snapshot needs:
    keys that the action adds, and names of keys that it drops. `character_set` and `collation` hold the new default
    of a database or table; `default` means the default of the server or database that contains it.
    """

    action: Kind
    statement_type: str
    schema_name: str | None = None
    table_name: str | None = None
    other_schema_name: str | None = None
    other_table_name: str | None = None
    column_name: str | None = None
    columns: tuple[Column, ...] = ()
    place: Literal["first", "after"] | None = None
    after_column: str | None = None
    key_columns: tuple[str, ...] = ()
    character_set: str | None = None
    collation: str | None = None
    is_conditional: bool = False
    detail: str | None = None
    keys: tuple[Key, ...] = field(default=())
    dropped_keys: tuple[str, ...] = field(default=())

    @property
    def is_conditional_creation(self) -> bool:
        """Whether it makes a table if no other table, and no view, has the name."""
        return self.is_conditional and self.action.startswith("create_")

    @property
    def model(self) -> tuple[str, str]:
        """The table whose definition it takes over or changes."""
        if self.action == "create_like":
            return self.other_schema_name or "", self.other_table_name or ""
        if self.action == "create_table":
            return "", ""
        return self.schema_name or "", self.table_name or ""
