"""What a schema snapshot knows of columns that the binlog does not say: names, signs, character sets, labels."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from ingest.binlog.charsets import canonical

_UNPOSITIONED: tuple[str, int, int] = ("", -1, -1)
_BINARY_TYPES = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "vector"})
_SIZES = re.compile(r"\w+\((\d+)(?:,(\d+))?\)")
_TEMPORAL_TYPES = frozenset({"time", "datetime", "timestamp"})
_ESCAPES = {"0": "\0", "n": "\n", "r": "\r", "Z": "\x1a"}


@dataclass(frozen=True, slots=True)
class ColumnHint:
    """A column as a snapshot has it. `charset` is None for types without one.

    `sizes` are the numbers behind the type's name: characters, or precision and scale. `fraction_digits` are
    those of a temporal type, 0 for others. `is_nullable` is None where the snapshot does not say it.
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


@dataclass(slots=True)
class SchemaHints:
    """Tables of one or more snapshots of a source, found by name and binlog position. Picklable.

    `tables` maps (schema, table) to versions sorted by position: (file, position) and the columns.
    """

    tables: dict[tuple[str, str], list[tuple[tuple[str, int, int], tuple[ColumnHint, ...]]]] = field(
        default_factory=dict
    )

    @classmethod
    def from_columns(cls, rows: Iterable[Mapping[str, Any]]) -> Self:
        """Builds hints from rows of `schema_columns`.

        Parameters
        ----------
        rows
            Mappings with schema_name, table_name, column_name, ordinal_position (from 1), data_type,
            column_type, character_set, is_nullable, primary_key_ordinal, is_generated and extra; and, where
            the snapshot has a position, binlog_file and binlog_pos. Rows without one are in force wherever
            no positioned snapshot is; of several the one given last wins.
        """
        found: dict[tuple[str, str], dict[tuple[str, int, int], dict[int, ColumnHint]]] = {}
        for row in rows:
            position = _position(row.get("binlog_file"), row.get("binlog_pos"))
            versions = found.setdefault((str(row["schema_name"]), str(row["table_name"])), {})
            columns = versions.setdefault(position, {})
            columns[int(row["ordinal_position"])] = _hint(row)
        hints = cls()
        for table, versions in found.items():
            hints.tables[table] = [
                (position, tuple(columns[ordinal] for ordinal in sorted(columns)))
                for position, columns in sorted(versions.items(), key=lambda item: item[0])
            ]
        return hints

    def for_table(
        self, schema: str, table: str, binlog_file: str | None = None, position: int = 0
    ) -> tuple[ColumnHint, ...] | None:
        """The columns of the snapshot in force: the last one at or before the position, else the first after it."""
        versions = self.tables.get((schema, table))
        if versions is None:
            return None
        at = bisect_right([start for start, _ in versions], _position(binlog_file, position)) - 1
        return versions[max(at, 0)][1]

    def boundaries(self, binlog_file: str) -> list[int]:
        """Offsets in a file at which some snapshot comes into force, ascending."""
        name, sequence, _ = _position(binlog_file, 0)
        return sorted(
            {
                position
                for versions in self.tables.values()
                for (other, number, position), _ in versions
                if (other, number) == (name, sequence)
            }
        )


def _position(binlog_file: Any, position: Any) -> tuple[str, int, int]:
    """Orders positions: files of one base name by their number, then offsets."""
    if not binlog_file or position is None:
        return _UNPOSITIONED
    base, _, number = str(binlog_file).rpartition(".")
    if not number.isdigit():
        return str(binlog_file), 0, int(position)
    return base, int(number), int(position)


def _hint(row: Mapping[str, Any]) -> ColumnHint:
    data_type = str(row["data_type"]).lower()
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
        members=tuple(enum_members(column_type)) if data_type in ("enum", "set") else None,
        is_virtual="VIRTUAL" in extra,
        primary_key_ordinal=int(row["primary_key_ordinal"]) if row.get("primary_key_ordinal") else None,
        sizes=sizes,
        fraction_digits=sizes[0] if sizes and sizes[0] <= 6 and data_type in _TEMPORAL_TYPES else 0,
        is_nullable=row.get("is_nullable"),
    )


def enum_members(column_type: str) -> list[str]:
    """The labels in `enum('a','b')` or `set(…)`: quotes doubled, control characters and backslashes escaped.

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
                character = _ESCAPES.get(column_type[at], column_type[at])
            label.append(character)
            at += 1
        members.append("".join(label))
        at += 2
    return members
