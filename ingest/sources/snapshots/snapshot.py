"""A schema snapshot: the rows that land in `schema_columns`, `schema_defaults`, `schema_keys` and `foreign_keys`.

It is built from rows of six views of information_schema, which come from a live server or from files.
The views' columns keep the server's names, in upper case.
"""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from ingest.binlog.text.charsets import BEYOND_BMP
from ingest.ddl.column_types import LABELLED, character_set_of
from ingest.ddl.hashed_keys import hash_columns
from ingest.ddl.letter_case import lowered
from ingest.errors import SnapshotInputError

Origin = Literal["server", "files", "ddl", "binlog"]
ViewRow = Mapping[str, Any]

# Columns read from each view. Those in the second set may be missing: older servers do not have them.
COLUMNS_NEEDED = (
    "TABLE_SCHEMA",
    "TABLE_NAME",
    "COLUMN_NAME",
    "ORDINAL_POSITION",
    "DATA_TYPE",
    "COLUMN_TYPE",
)
COLUMNS_OPTIONAL = (
    "COLUMN_KEY",
    "CHARACTER_SET_NAME",
    "COLLATION_NAME",
    "IS_NULLABLE",
    "COLUMN_DEFAULT",
    "EXTRA",
    "GENERATION_EXPRESSION",
    "COLUMN_COMMENT",
)
KEYS_NEEDED = (
    "CONSTRAINT_NAME",
    "TABLE_SCHEMA",
    "TABLE_NAME",
    "COLUMN_NAME",
    "ORDINAL_POSITION",
)
KEYS_OPTIONAL = ("REFERENCED_TABLE_SCHEMA", "REFERENCED_TABLE_NAME", "REFERENCED_COLUMN_NAME")
RULES_NEEDED = ("CONSTRAINT_SCHEMA", "CONSTRAINT_NAME", "UPDATE_RULE", "DELETE_RULE")
RULES_OPTIONAL = ("TABLE_NAME",)
_VIEWS = ("VIEW", "SYSTEM VIEW")
TABLES_NEEDED = ("TABLE_SCHEMA", "TABLE_NAME", "TABLE_TYPE")
TABLES_OPTIONAL = ("ENGINE", "TABLE_COLLATION")
SCHEMATA_NEEDED = ("SCHEMA_NAME", "DEFAULT_CHARACTER_SET_NAME", "DEFAULT_COLLATION_NAME")
STATISTICS_NEEDED = ("TABLE_SCHEMA", "TABLE_NAME", "NON_UNIQUE", "INDEX_NAME", "INDEX_TYPE")
STATISTICS_OPTIONAL = ("COLUMN_NAME", "SEQ_IN_INDEX", "SUB_PART", "EXPRESSION")

# Engines with hash indexes of their own. In other engines a hash is a column of the table, and its index a tree.
_HASHING_ENGINES = frozenset({"MEMORY", "NDBCLUSTER"})
_GENERATED = re.compile(r"\b(VIRTUAL|STORED|PERSISTENT)\b", re.IGNORECASE)


@dataclass(frozen=True)
class SchemaSnapshot:
    """The tables of a source, and the binlog position at which they looked like this.

    Attributes
    ----------
    origin
        Source of the snapshot: server, files, ddl or binlog.
    taken_at
        Time at which it was taken.
    binlog_file, binlog_pos, gtid_executed
        Position in the binlog at which it is valid. None when unknown; then it is assumed to be valid everywhere.
    columns, keys, foreign_keys
        Rows of the raw tables of these names, without `snapshot_id`.
    logs_cascades
        Whether the server logs the changes that foreign keys make in referring rows; None when no server was asked.
    defaults
        Rows of `schema_defaults` without `snapshot_id`. A table or schema without a known default has no row.
    """

    origin: Origin
    taken_at: datetime
    binlog_file: str | None = None
    binlog_pos: int | None = None
    gtid_executed: str | None = None
    columns: list[dict[str, Any]] = field(default_factory=list)
    keys: list[dict[str, Any]] = field(default_factory=list)
    foreign_keys: list[dict[str, Any]] = field(default_factory=list)
    logs_cascades: bool | None = None
    defaults: list[dict[str, Any]] = field(default_factory=list)

    def snapshot_id(self, source_id: str, epoch: int | None = None) -> str:
        """Return a hash of the content and position: equal snapshots have equal identifiers."""
        content = [
            source_id,
            self.origin,
            self.binlog_file,
            self.binlog_pos,
            self.gtid_executed,
            [_without_missing_comment(row) for row in self.columns],
            self.keys,
            self.foreign_keys,
            # Unknown values are left out, so identifiers from before these fields were recorded stay the same.
            *([] if epoch is None else [epoch]),
            *([] if self.logs_cascades is None else [{"logs_cascades": self.logs_cascades}]),
            *([{"defaults": self.defaults}] if self.defaults else []),
        ]
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @property
    def tables(self) -> int:
        """Number of tables."""
        return len({(column["schema_name"], column["table_name"]) for column in self.columns})

    @property
    def doubt(self) -> str | None:
        """A sentence on labels that the server may not have shown as they are; None if there are none."""
        found = [
            ".".join((row["schema_name"], row["table_name"], row["column_name"]))
            for row in self.columns
            if row["data_type"] in LABELLED and row["character_set"] in BEYOND_BMP and "?" in row["column_type"]
        ]
        if not found:
            return None
        others = f" (and of {len(found) - 1} more columns)" if len(found) > 1 else ""
        return (
            f"a label of {found[0]}{others} has a question mark. A server shows one for each sign beyond the Basic"
            " Multilingual Plane, too, such as an emoji. Then the values have it as well, unless the log has labels."
        )


def schema_rows(
    columns: Iterable[ViewRow],
    keys: Iterable[ViewRow],
    rules: Iterable[ViewRow],
    tables: Iterable[ViewRow],
    statistics: Iterable[ViewRow],
    *,
    needs_rules: bool = True,
    shows_all: bool = True,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """Turn rows of the views into ordered rows of the raw tables, and check that they are consistent.

    Parameters
    ----------
    columns, keys, rules
        Rows of COLUMNS, KEY_COLUMN_USAGE and REFERENTIAL_CONSTRAINTS.
    tables
        Rows of TABLES. Only views, system-versioned tables and tables with hash indexes count: MariaDB does not list
        all columns of these tables.
    statistics
        Rows of STATISTICS. Only hash indexes count, and parts of unique keys that are prefixes or expressions.
    needs_rules
        Whether every foreign key must have its rules. MariaDB shows them only to users with privileges on the
        table beyond SELECT.
    shows_all
        Whether a server shows the columns: then only labels in `binary` have no character set. Otherwise it is unknown.

    Returns
    -------
    tuple of lists
        Rows of `schema_columns`, `schema_keys` and `foreign_keys`.

    Raises
    ------
    SnapshotInputError
        A column occurs twice, a key names a missing column, or it is unknown whether a table has columns that
        are not listed.
    """
    table_rows, statistics = list(tables), list(statistics)
    # A view is no table, although an export of COLUMNS lists its columns.
    views = {_table_id(row) for row in table_rows if str(row["TABLE_TYPE"]).upper() in _VIEWS}
    listed = [row for row in columns if _table_id(row) not in views]
    key_rows = sorted(_with_parts(map(_key_row, keys), statistics, listed), key=_key_order)
    primary = {
        _column_id(row): row["ordinal_position"] for row in key_rows if lowered(row["constraint_name"]) == "primary"
    }
    with_periods = [*listed, *_period_columns(listed, table_rows, primary)]
    complete = [*with_periods, *_hash_columns(with_periods, table_rows, statistics)]
    column_rows = sorted(
        (_column_row(row, primary, "binary" if shows_all else None) for row in complete),
        key=lambda row: (row["schema_name"], row["table_name"], row["ordinal_position"]),
    )
    _check_columns(column_rows)
    _check_keys(column_rows, key_rows)
    by_name = {(row["CONSTRAINT_SCHEMA"], row["CONSTRAINT_NAME"], row.get("TABLE_NAME")): row for row in rules}
    by_schema = {(schema, name): row for (schema, name, _), row in by_name.items()}
    plain, foreign = [], []
    for row in key_rows:
        if row["referenced_table_name"] is None:
            plain.append(row)
            continue
        schema, name = row["schema_name"], row["constraint_name"]
        rule = by_name.get((schema, name, row["table_name"])) or by_schema.get((schema, name))
        if rule is None and needs_rules:
            raise SnapshotInputError(
                f"referential_constraints has no row for the foreign key {schema}.{name} of table {row['table_name']}.",
                hint="Export the views together, from the same server.",
            )
        rule = rule or {}
        foreign.append({**row, "update_rule": rule.get("UPDATE_RULE"), "delete_rule": rule.get("DELETE_RULE")})
    return column_rows, plain, foreign


def _with_parts(
    keys: Iterable[dict[str, Any]], statistics: Sequence[ViewRow], columns: Iterable[ViewRow]
) -> Iterator[dict[str, Any]]:
    """Yield the parts of foreign keys, and those of primary and unique keys with their prefixes and expressions.

    KEY_COLUMN_USAGE shows neither of them: of a key with an expression only the other parts, in which rows may be
    equal. In STATISTICS, an expression is a part without a column. The expression of a generated column is its own.
    """
    unique = [row for row in statistics if str(row["NON_UNIQUE"]) == "0"]
    with_expression = {_index_id(row) for row in unique if row.get("COLUMN_NAME", "") is None}
    prefixes = {
        (*_index_id(row), str(row["COLUMN_NAME"])): int(row["SUB_PART"])
        for row in unique
        if row.get("COLUMN_NAME") is not None and row.get("SUB_PART") is not None
    }
    generated = {
        (*_table_id(row), str(row["COLUMN_NAME"])): expression
        for row in columns
        if (expression := _text(row.get("GENERATION_EXPRESSION")))
    }
    for row in keys:
        table, name = (row["schema_name"], row["table_name"]), row["constraint_name"]
        if row["referenced_table_name"] is not None:
            yield row
        elif (*table, name) not in with_expression:
            column = row["column_name"]
            yield row | _partial(prefixes.get((*table, name, column)), generated.get((*table, column)))
    parts = (one for one in unique if _index_id(one) in with_expression)
    for place, part in enumerate(parts, 1):
        column = _text(part.get("COLUMN_NAME"))
        schema, table_name, name = _index_id(part)
        yield {
            "constraint_name": name,
            "schema_name": schema,
            "table_name": table_name,
            "column_name": column,
            # An export without the place has the parts in their order.
            "ordinal_position": int(part.get("SEQ_IN_INDEX") or place),
            "referenced_schema_name": None,
            "referenced_table_name": None,
            "referenced_column_name": None,
        } | _partial(
            prefixes.get((schema, table_name, name, str(column))),
            _text(part.get("EXPRESSION")) or generated.get((schema, table_name, str(column))),
        )


def _partial(length: int | None, expression: str | None) -> dict[str, Any]:
    """Return the fields that only prefixes and expressions have: without them, snapshots keep their identifiers."""
    fields = {"prefix_length": length, "expression": expression}
    return {name: value for name, value in fields.items() if value is not None}


def _index_id(row: ViewRow) -> tuple[str, str, str]:
    return *_table_id(row), str(row["INDEX_NAME"])


def default_rows(schemata: Iterable[ViewRow], tables: Iterable[ViewRow]) -> list[dict[str, Any]]:
    """Turn rows of the views SCHEMATA and TABLES into ordered rows of the raw table `schema_defaults`.

    A table without TABLE_COLLATION has no row: this applies to views, and to tables of an older export.
    """
    rows = [
        {
            "schema_name": str(row["SCHEMA_NAME"]),
            "table_name": None,
            "character_set": str(row["DEFAULT_CHARACTER_SET_NAME"]),
            "collation": str(row["DEFAULT_COLLATION_NAME"]),
        }
        for row in schemata
    ]
    for row in tables:
        if collation := _text(row.get("TABLE_COLLATION")):
            schema, table = _table_id(row)
            found = {"character_set": character_set_of(collation), "collation": collation}
            rows.append({"schema_name": schema, "table_name": table, **found})
    return sorted(rows, key=lambda row: (row["schema_name"], row["table_name"] or ""))


def _period_columns(
    columns: Sequence[ViewRow], tables: Iterable[ViewRow], primary: Mapping[tuple[str, str, str], int]
) -> Iterator[ViewRow]:
    """Yield rows of COLUMNS for the ends of the period of a system-versioned table that declares no period.

    MariaDB adds these columns behind the others and logs them the same way, but lists them only if they were
    declared. The rows are the same as MariaDB's rows for ends that are declared and invisible.

    Source: MariaDB, sql/handler.cc, `Vers_parse_info::fix_implicit` and `vers_create_sys_field`.
    """
    versioned = {_table_id(row) for row in tables if str(row["TABLE_TYPE"]).upper() == "SYSTEM VERSIONED"}
    by_table = _by_table(columns, versioned)
    if by_table and not any("GENERATION_EXPRESSION" in row for row in columns):
        raise SnapshotInputError(
            f"columns has no GENERATION_EXPRESSION, but table {'.'.join(min(by_table))} is system-versioned.",
            hint="Export the view as it is, with SELECT *: this column tells whether the table declares its period.",
        )
    for (schema, table), listed in by_table.items():
        if any((_text(row.get("GENERATION_EXPRESSION")) or "").upper() == "ROW START" for row in listed):
            continue
        for ordinal, name in enumerate(("row_start", "row_end"), _last_ordinal(listed) + 1):
            yield {
                "TABLE_SCHEMA": schema,
                "TABLE_NAME": table,
                "COLUMN_NAME": name,
                "ORDINAL_POSITION": ordinal,
                "IS_NULLABLE": "NO",
                "DATA_TYPE": "timestamp",
                "COLUMN_TYPE": "timestamp(6)",
                "COLUMN_KEY": "PRI" if (schema, table, name) in primary else "",
                "EXTRA": "STORED GENERATED, INVISIBLE",
            }


def _hash_columns(
    columns: Sequence[ViewRow], tables: Iterable[ViewRow], statistics: Iterable[ViewRow]
) -> Iterator[ViewRow]:
    """Yield rows of COLUMNS for MariaDB's hash columns of unique keys that are long or `using hash`.

    In 11.8 a primary key may also have HASH, but has no such column. A key that is not unique has none. The columns are
    in the order of the keys, which the views do not show.

    Source: MariaDB, sql/table.cc, `TABLE_SHARE::init_from_binary_frm_image`, fields of `LONG_UNIQUE_HASH_FIELD`.
    """
    engines = {_table_id(row): (_text(row.get("ENGINE")) or "").upper() for row in tables}
    hashes: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in statistics:
        is_hash = str(row["INDEX_TYPE"]).upper() == "HASH" and str(row["NON_UNIQUE"]) == "0"
        if is_hash and lowered(str(row["INDEX_NAME"])) != "primary":
            hashes[_table_id(row)].add(str(row["INDEX_NAME"]))
    for (schema, table), others in _by_table(columns, hashes).items():
        engine = engines.get((schema, table))
        if not engine:
            raise SnapshotInputError(
                f"statistics has a unique hash index of table {schema}.{table}, but no view contains its ENGINE.",
                hint="Export tables, too, with SELECT *: it depends on the engine whether the hash is a column.",
            )
        if engine in _HASHING_ENGINES:
            continue
        taken = (str(row["COLUMN_NAME"]) for row in others)
        added = hash_columns(taken, len(hashes[schema, table]))
        for ordinal, column in enumerate(added, _last_ordinal(others) + 1):
            yield {
                "TABLE_SCHEMA": schema,
                "TABLE_NAME": table,
                "COLUMN_NAME": column.name,
                "ORDINAL_POSITION": ordinal,
                "IS_NULLABLE": "YES",
                "DATA_TYPE": column.data_type,
                "COLUMN_TYPE": column.column_type,
                "EXTRA": column.extra,
            }


def _by_table(columns: Iterable[ViewRow], wanted: Container[tuple[str, str]]) -> dict[tuple[str, str], list[ViewRow]]:
    """Group the columns of the wanted tables by table."""
    by_table: dict[tuple[str, str], list[ViewRow]] = defaultdict(list)
    for row in columns:
        if _table_id(row) in wanted:
            by_table[_table_id(row)].append(row)
    return by_table


def _last_ordinal(columns: Iterable[ViewRow]) -> int:
    return max(
        _number(row["ORDINAL_POSITION"], (str(row["TABLE_SCHEMA"]), str(row["TABLE_NAME"]), str(row["COLUMN_NAME"])))
        for row in columns
    )


def _table_id(row: ViewRow) -> tuple[str, str]:
    return str(row["TABLE_SCHEMA"]), str(row["TABLE_NAME"])


def _column_row(
    row: ViewRow, primary: Mapping[tuple[str, str, str], int], bytes_of_labels: str | None
) -> dict[str, Any]:
    extra = _text(row.get("EXTRA")) or ""
    name = (str(row["TABLE_SCHEMA"]), str(row["TABLE_NAME"]), str(row["COLUMN_NAME"]))
    data_type = str(row["DATA_TYPE"]).lower()
    # The servers show no character set for labels in `binary`, which keep spaces at their ends and are never converted.
    not_shown = bytes_of_labels if data_type in LABELLED else None
    return {
        "schema_name": name[0],
        "table_name": name[1],
        "column_name": name[2],
        "ordinal_position": _number(row["ORDINAL_POSITION"], name),
        "column_key": _text(row.get("COLUMN_KEY")) or "",
        "primary_key_ordinal": primary.get(name),
        "data_type": data_type,
        "column_type": str(row["COLUMN_TYPE"]),
        "character_set": _text(row.get("CHARACTER_SET_NAME")) or not_shown,
        "collation": _text(row.get("COLLATION_NAME")) or not_shown,
        "is_nullable": (_text(row.get("IS_NULLABLE")) or "YES").upper() == "YES",
        "column_default": _text(row.get("COLUMN_DEFAULT")),
        # EXTRA also contains DEFAULT_GENERATED, for a default that is an expression.
        "is_generated": bool(_GENERATED.search(extra)),
        "extra": extra,
        "column_comment": _text(row.get("COLUMN_COMMENT")) or None,
    }


def _without_missing_comment(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "column_comment" or value is not None}


def _key_row(row: ViewRow) -> dict[str, Any]:
    name = (str(row["TABLE_SCHEMA"]), str(row["TABLE_NAME"]), str(row["COLUMN_NAME"]))
    referenced = _text(row.get("REFERENCED_TABLE_NAME")) or None
    return {
        "constraint_name": str(row["CONSTRAINT_NAME"]),
        "schema_name": name[0],
        "table_name": name[1],
        "column_name": name[2],
        "ordinal_position": _number(row["ORDINAL_POSITION"], name),
        "referenced_schema_name": (_text(row.get("REFERENCED_TABLE_SCHEMA")) or name[0]) if referenced else None,
        "referenced_table_name": referenced,
        "referenced_column_name": (_text(row.get("REFERENCED_COLUMN_NAME")) or None) if referenced else None,
    }


def _key_order(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["schema_name"], row["table_name"], row["constraint_name"], row["ordinal_position"]


def _column_id(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["schema_name"], row["table_name"], row["column_name"]


def _check_columns(rows: list[dict[str, Any]]) -> None:
    if not rows:
        raise SnapshotInputError(
            "No column of any table was found.",
            hint="A server shows only tables from which the user may SELECT: grant select on SCHEMA.* to USER. And a"
            " file needs the rows of information_schema.columns, or CREATE TABLE statements.",
        )
    seen: dict[tuple[str, str, int], str] = {}
    for row in rows:
        place = (row["schema_name"], row["table_name"], row["ordinal_position"])
        if place in seen:
            raise SnapshotInputError(
                f"Columns {seen[place]!r} and {row['column_name']!r} of table {place[0]}.{place[1]} have the same "
                f"ORDINAL_POSITION {place[2]}.",
                hint="Export the view once, from one server.",
            )
        seen[place] = row["column_name"]


def _check_keys(columns: list[dict[str, Any]], keys: list[dict[str, Any]]) -> None:
    names = {_column_id(row) for row in columns}
    tables = {name[:2] for name in names}
    for row in keys:
        # The view may be exported for some schemas only; but a known table must not lack a column.
        is_expression = row["column_name"] is None
        if not is_expression and _column_id(row) not in names and _column_id(row)[:2] in tables:
            raise SnapshotInputError(
                f"key_column_usage has key {row['constraint_name']!r} on column {row['column_name']!r} of table "
                f"{row['schema_name']}.{row['table_name']}, but columns has no such column.",
                hint="Export the views together, from the same server; where a table is system-versioned, tables too.",
            )


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _number(value: Any, name: tuple[str, str, str]) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        raise SnapshotInputError(
            f"ORDINAL_POSITION of column {'.'.join(name)} is {value!r}, not a number.",
            hint="Export the view as it is, with SELECT * FROM information_schema.…",
        ) from None
