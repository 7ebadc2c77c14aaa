"""Facts about columns that a schema snapshot adds to the binlog: names, signs, character sets, labels."""

import hashlib
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final, Self

from ingest.binlog.text.charsets import canonical

_BINARY_TYPES = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "vector"})
_SIZES = re.compile(r"\w+\((\d+)(?:,(\d+))?\)")
_TEMPORAL_TYPES = frozenset({"time", "datetime", "timestamp"})
LABEL_ESCAPES = {"0": "\0", "n": "\n", "r": "\r", "Z": "\x1a"}
"""Signs for which COLUMN_TYPE has a backslash and a letter in a label; behind a backslash, others are themselves."""


@dataclass(frozen=True, slots=True)
class ColumnHint:
    """A column as a snapshot describes it. `charset` is None for types without a character set.

    `data_type` is empty if only the name of the column is known. `sizes` contains the numbers after the type's name:
    characters, or precision and scale. `fraction_digits` is 0 for types that are not temporal. `is_nullable` is None
    when the snapshot does not record it.
    """

    name: str
    data_type: str
    is_unsigned: bool
    charset: str | None
    members: tuple[str, ...] | None
    is_virtual: bool
    primary_key_ordinal: int | None
    sizes: tuple[int, ...]
    fraction_digits: int
    is_nullable: bool | None

    @property
    def facts(self) -> tuple[object, ...]:
        """All facts that the text of a value may depend on."""
        return (
            *(self.data_type, self.is_unsigned, self.charset, self.members),
            *(self.is_virtual, self.sizes, self.is_nullable),
        )


Definition = tuple[ColumnHint, ...]
"""The columns of a table, in order."""

Place = tuple[str, int, int]
"""A position in a log: base name and number of the file, and the offset in it."""

BEFORE_ALL: Final[Place] = ("", -1, -1)


@dataclass(slots=True)
class SchemaHints:
    """Tables of a source, found by name and binlog position. Picklable.

    Attributes
    ----------
    tables
        By schema and table name, the places where the known definition changes, ascending. Each place has the
        definitions that the table may have from there on: one when it is known, several when the evidence disagrees,
        none when it is unknown. The definitions of the first place are valid before it, too.
    folds_case
        Whether the server stores all table names in lower case.
    """

    tables: dict[tuple[str, str], list[tuple[Place, tuple[Definition, ...]]]] = field(default_factory=dict)
    folds_case: bool = False

    @classmethod
    def from_columns(cls, rows: Iterable[Mapping[str, Any]]) -> Self:
        """Build hints from rows of `schema_columns`.

        Parameters
        ----------
        rows
            Mappings with schema_name, table_name, column_name, ordinal_position (from 1), data_type,
            column_type, character_set, is_nullable, primary_key_ordinal, is_generated and extra. Rows of a
            snapshot with a position also have binlog_file and binlog_pos. Rows without a position are valid
            wherever no snapshot with a position is; the last row given for a column wins.
        """
        found: dict[tuple[str, str], dict[Place, list[Mapping[str, Any]]]] = {}
        for row in rows:
            place = place_of(row.get("binlog_file"), row.get("binlog_pos"))
            versions = found.setdefault((str(row["schema_name"]), str(row["table_name"])), {})
            versions.setdefault(place, []).append(row)
        hints = cls()
        for table, versions in found.items():
            hints.tables[table] = [(place, (definition_of(columns),)) for place, columns in sorted(versions.items())]
        return hints

    def is_known(self, schema: str, table: str) -> bool:
        """Return whether a table has a definition at any place."""
        return any(definitions for _, definitions in self._versions(schema, table))

    def _versions(self, schema: str, table: str) -> list[tuple[Place, tuple[Definition, ...]]]:
        versions = self.tables.get((schema, table))
        if versions is None and self.folds_case:
            versions = self.tables.get((schema.lower(), table.lower()))
        return versions or [(BEFORE_ALL, ())]

    def definitions(
        self, schema: str, table: str, binlog_file: str | None = None, position: int = 0
    ) -> tuple[Definition, ...]:
        """Return the definitions that a table may have at a position; none when it is unknown."""
        versions = self._versions(schema, table)
        at = bisect_right(versions, place_of(binlog_file, position), key=itemgetter(0)) - 1
        return versions[max(at, 0)][1]

    def key_names(self, schema: str, table: str) -> set[str]:
        """Return the columns that are in the primary key of a table at any position."""
        return {
            column.name
            for _, definitions in self._versions(schema, table)
            for definition in definitions
            for column in definition
            if column.primary_key_ordinal is not None
        }

    def digest(
        self, table: tuple[str, str], binlog_file: str, start: int, end: int, *, with_names: bool = False
    ) -> str:
        """Return a short hash of the known facts that a table's values depend on between two positions of a file.

        `with_names` adds the names of the columns, for values that are masked by name.
        """
        first, last = place_of(binlog_file, start), place_of(binlog_file, end)
        known = [(0, self.definitions(*table, binlog_file, start))]
        known += [(place[2], one) for place, one in self._versions(*table) if first < place < last]

        def names(definitions: tuple[Definition, ...]) -> list[object]:
            return [[[column.name for column in one] for one in definitions]] if with_names else []

        facts = [
            (position, [[column.facts for column in definition] for definition in definitions], *names(definitions))
            for number, (position, definitions) in enumerate(known)
            if not number or definitions != known[number - 1][1]
        ]
        return hashlib.blake2b(repr(facts).encode(), digest_size=6).hexdigest()

    def changes_in(self, binlog_file: str) -> dict[int, set[tuple[str, str]]]:
        """Return the tables whose known definition changes in a file, by offset of the change, ascending."""
        name, sequence, _ = place_of(binlog_file, 0)
        changes: dict[int, set[tuple[str, str]]] = {}
        for table, versions in self.tables.items():
            for (other, number, position), _ in versions:
                if (other, number) == (name, sequence):
                    changes.setdefault(position, set()).add(table)
        return dict(sorted(changes.items()))


def definition_of(rows: Iterable[Mapping[str, Any]]) -> Definition:
    """Return a table's columns from its rows of `schema_columns`; a later row replaces one with the same ordinal."""
    columns = {int(row["ordinal_position"]): _hint(row) for row in rows}
    return tuple(columns[ordinal] for ordinal in sorted(columns))


def place_of(binlog_file: Any, position: Any) -> Place:
    """Return a position that can be compared with others: files of one base name by their number, then by offset."""
    if not binlog_file or position is None:
        return BEFORE_ALL
    base, _, number = str(binlog_file).rpartition(".")
    if not number.isdigit():
        return str(binlog_file), 0, int(position)
    return base, int(number), int(position)


def _hint(row: Mapping[str, Any]) -> ColumnHint:
    data_type = str(row["data_type"] or "").lower()
    column_type = str(row.get("column_type") or data_type)
    charset = row.get("character_set")
    if charset is None and data_type in _BINARY_TYPES:
        charset = "binary"
    extra = str(row.get("extra") or "").upper()
    found = _SIZES.match(column_type)
    sizes = tuple(int(number) for number in found.groups() if number) if found else ()
    return ColumnHint(
        name=str(row["column_name"]),
        data_type=data_type,
        is_unsigned="unsigned" in column_type.lower().rpartition(")")[2] or "zerofill" in column_type.lower(),
        charset=canonical(str(charset)) if charset else None,
        members=enum_members(column_type) if data_type in ("enum", "set") else None,
        is_virtual="VIRTUAL" in extra,
        primary_key_ordinal=int(row["primary_key_ordinal"]) if row.get("primary_key_ordinal") else None,
        sizes=sizes,
        fraction_digits=sizes[0] if sizes and sizes[0] <= 6 and data_type in _TEMPORAL_TYPES else 0,
        is_nullable=row.get("is_nullable"),
    )


def enum_members(column_type: str) -> tuple[str, ...] | None:
    """Return the labels in `enum('a','b')` or `set(…)`: quotes doubled, control characters and backslashes escaped.

    Return None when the server shows the bytes of a label (`x'6394'`), or cuts the text within a label. It does so when
    labels are not in the column's character set, for example after a conversion of the table. Their own character set
    is then unknown.

    Source: server, sql/sql_show.cc, `append_unescaped`.
    """
    members = []
    at = column_type.find("(") + 1
    while 0 < at < len(column_type) and column_type[at] == "'":
        at += 1
        label = []
        while at < len(column_type):
            character = column_type[at]
            if character == "'":
                if column_type[at + 1 : at + 2] != "'":
                    break
                at += 1
            elif character == "\\" and at + 1 < len(column_type):
                at += 1
                character = LABEL_ESCAPES.get(column_type[at], column_type[at])
            label.append(character)
            at += 1
        members.append("".join(label))
        at += 2
    return tuple(members) if column_type[at - 1 : at] == ")" else None
