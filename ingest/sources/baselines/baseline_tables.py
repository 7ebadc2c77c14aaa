"""The tables whose rows a baseline contains, and the definitions of all tables of a server."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ingest.binlog import TableFilter
from ingest.ddl.hashed_keys import is_hash
from ingest.errors import UsageError
from ingest.sources.servers.information_schema import read_schema
from ingest.sources.servers.server import Server

ENGINES: Final = ("INNODB",)
"""Engines that read all tables as they were when the transaction began."""
BINARY_TYPES: Final = frozenset(
    {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "vector", "geometry", "point"}
    | {"linestring", "polygon", "geomcollection", "geometrycollection", "multipoint", "multilinestring"}
    | {"multipolygon"}
)
_TABLE_TYPES: Final = ("BASE TABLE", "SYSTEM VERSIONED")
_MOST_NAMED: Final = 5

_TABLES: Final = """
select
    table_schema as TABLE_SCHEMA, table_name as TABLE_NAME, table_type as TABLE_TYPE, engine as ENGINE,
    create_time as CREATE_TIME, table_rows as TABLE_ROWS
from information_schema.tables
where table_schema not in ('information_schema', 'performance_schema', 'sys', 'mysql')
"""


@dataclass(frozen=True)
class BaselineTable:
    """A table whose rows a baseline contains.

    Attributes
    ----------
    column_names, data_types
        Columns whose values are read, in the order of the table, and their types.
    primary_key_ordinals
        0-based places of the primary key's columns, ascending; None without a key.
    estimated_rows
        Number of rows as the server estimates it, None if it does not.
    is_versioned
        Whether the table keeps older versions of its rows. The binlog has them too, as rows of their own.
    filled
        Columns with ZEROFILL. The server prints zeros before their numbers, which the binlog does not have.
    """

    schema_name: str
    table_name: str
    column_names: tuple[str, ...]
    data_types: tuple[str, ...] = field(repr=False)
    primary_key_ordinals: tuple[int, ...] | None = None
    estimated_rows: int | None = None
    is_versioned: bool = False
    filled: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{self.schema_name}.{self.table_name}"

    @property
    def query(self) -> str:
        """A query of all rows, with columns that print in the decoder's text form."""
        expressions = ", ".join(
            _printed(name, data_type, is_filled=name in self.filled)
            for name, data_type in zip(self.column_names, self.data_types, strict=True)
        )
        versions = " for system_time all" if self.is_versioned else ""
        return f"select {expressions} from {self.quoted_name}{versions}"

    @property
    def quoted_name(self) -> str:
        """The name as in SQL."""
        return f"{_quoted(self.schema_name)}.{_quoted(self.table_name)}"


def _printed(name: str, data_type: str, *, is_filled: bool) -> str:
    """Return the expression whose text is the decoder's text of a column, or for a FLOAT a number with its bits."""
    # The text of a DOUBLE(10,2) has two decimals, and that of a FLOAT has six digits; a product has all digits.
    if data_type in ("float", "double"):
        return f"{_quoted(name)} * 1e0"
    return f"{_quoted(name)} + 0" if data_type == "bit" or is_filled else _quoted(name)


def filled_columns(columns: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Return the names of the columns with ZEROFILL."""
    return frozenset(row["column_name"] for row in columns if is_filled(row))


def is_filled(column: Mapping[str, Any]) -> bool:
    """Return whether a column has ZEROFILL."""
    return "zerofill" in column["column_type"].lower()


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@dataclass(frozen=True)
class Definitions:
    """The definitions of all tables, with the facts that change when another table takes the place of one."""

    schema: Any
    tables: tuple[tuple[Any, ...], ...]

    def of(self, tables: Sequence[BaselineTable]) -> tuple[Any, ...]:
        """Return what is known about some tables."""
        names = {(table.schema_name, table.table_name) for table in tables}
        columns = [row for row in self.schema[0] if (row["schema_name"], row["table_name"]) in names]
        return columns, [row for row in self.tables if row[:2] in names]


def read_definitions(server: Server) -> Definitions:
    """Return the definitions of all tables that the user may see."""
    tables = sorted(
        (row.text("TABLE_SCHEMA"), row.text("TABLE_NAME"), row["TABLE_TYPE"], row["ENGINE"], str(row["CREATE_TIME"]))
        for row in server.rows(_TABLES)
        if row["TABLE_TYPE"] in _TABLE_TYPES
    )
    return Definitions(read_schema(server), tuple(tables))


def _estimates(server: Server) -> dict[tuple[str, str], int | None]:
    return {(row["TABLE_SCHEMA"], row["TABLE_NAME"]): row["TABLE_ROWS"] for row in server.rows(_TABLES)}


def choose_tables(server: Server, definitions: Definitions, wanted: TableFilter | None) -> tuple[BaselineTable, ...]:
    """Return the tables that a filter selects; None for all tables outside of the system's schemas.

    Raises
    ------
    UsageError
        No table is selected, or a table is not of InnoDB.
    """
    estimates = _estimates(server)
    facts = {row[:2]: row[2:4] for row in definitions.tables}
    chosen = [name for name in facts if wanted is None or wanted.takes(*name)]
    if not chosen:
        patterns = ", ".join([*wanted.tables, *wanted.schemas]) if wanted is not None else ""
        known = [f"{schema}.{table}" for schema, table in facts]
        near = difflib.get_close_matches(patterns, known, n=3) or known[:_MOST_NAMED]
        raise UsageError(
            f"The server has no table {patterns} that the user may read."
            if patterns
            else "The server has no table that the user may read.",
            hint=f"There are {', '.join(near)}." if near else "Grant SELECT on the tables to the user.",
        )
    if others := [name for name in chosen if (facts[name][1] or "").upper() not in ENGINES]:
        named = ", ".join(f"{'.'.join(name)} ({facts[name][1]})" for name in others[:_MOST_NAMED])
        more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
        raise UsageError(
            f"Only InnoDB shows all rows at one position, and these tables have another engine: {named}{more}.",
            hint="Leave them out with --exclude-tables.",
        )
    columns: dict[tuple[str, str], list[dict[str, Any]]] = {name: [] for name in chosen}
    for row in definitions.schema[0]:
        name = (row["schema_name"], row["table_name"])
        # MariaDB does not show these columns to any query.
        if name in columns and not is_hash(row["column_name"], row["extra"]):
            columns[name].append(row)
    return tuple(
        BaselineTable(
            schema_name=name[0],
            table_name=name[1],
            column_names=tuple(row["column_name"] for row in columns[name]),
            data_types=tuple(row["data_type"] for row in columns[name]),
            primary_key_ordinals=tuple(at for at, row in enumerate(columns[name]) if row["primary_key_ordinal"])
            or None,
            estimated_rows=estimates.get(name),
            is_versioned=facts[name][0] == "SYSTEM VERSIONED",
            filled=filled_columns(columns[name]),
        )
        for name in chosen
    )
