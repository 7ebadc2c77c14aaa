"""The tables of the project, their columns, and the columns that each column is made of."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["source", "seed", "model"]
TableColumn = tuple[str, str]


@dataclass(frozen=True)
class Column:
    name: str
    type: str
    description: str


@dataclass(frozen=True)
class Table:
    """A source, a seed or a model; its name is unique: `row_changes`, or `binlog_raw.row_events` for a source."""

    name: str
    schema: str
    kind: Kind
    description: str
    columns: tuple[Column, ...]
    sql: str | None
    path: str
    parents: tuple[str, ...]
    tests: tuple[str, ...]
    group: str


@dataclass(frozen=True)
class Edge:
    """A column that another is made of; not exact where the SQL could only be followed to the whole table."""

    source: TableColumn
    target: TableColumn
    is_exact: bool


@dataclass(frozen=True)
class Lineage:
    tables: tuple[Table, ...]
    edges: tuple[Edge, ...]
