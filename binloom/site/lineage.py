"""The tables of the project, their columns, and the columns that each column is made of."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal

from binloom.site.origins import ANY_COLUMN, NotFollowedError, Outputs, TableColumn, column_of, stored

Kind = Literal["source", "seed", "model"]

# The package of binloom's own models.
_OWN: Final = "binloom"


@dataclass(frozen=True)
class Column:
    name: str
    type: str
    description: str


@dataclass(frozen=True)
class Table:
    """A source, a seed or a model.

    Attributes
    ----------
    name
        Unique in the project: `row_changes`, or `binlog_raw.row_events` for a source.
    columns
        A table whose columns nothing lists has the single column `*`.
    sql
        The compiled query of a model.
    path
        The file that defines the table, from the folder of the project.
    parents
        Names of the tables that it reads.
    tests
        Names of its tests in dbt, without unit tests.
    group
        The folder of a model below `models`, such as `intermediate/chain`; `raw` for a source, `seeds` for a seed. For
        a model of a project that uses binloom, the name of the project comes first, except for typed tables.
    """

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
    """A column that another is made of.

    The SQL of the target could be followed to the source if `is_exact`. Otherwise the target is made of some columns of
    the tables that its model reads, and has an edge from each of them.
    """

    source: TableColumn
    target: TableColumn
    is_exact: bool


@dataclass(frozen=True)
class Lineage:
    """All tables, each after those that it reads, and the edges between their columns."""

    tables: tuple[Table, ...]
    edges: tuple[Edge, ...]


def read_lineage(target: Path) -> Lineage:
    """Read the lineage of a dbt project from the artifacts of a build.

    A column is made of the columns that its expression contains; conditions such as where and join are not sources.
    `binloom.site.query_columns` has the rules.

    Parameters
    ----------
    target
        Folder of `manifest.json` with compiled SQL, and of `catalog.json`. A table that the catalog lacks has the
        columns that its SQL gives, else those that the project describes.

    Raises
    ------
    StoreError
        The manifest is missing or has no compiled SQL, or a file is not dbt's.
    """
    from binloom.site.artifacts import Artifacts, parents_of, relation_of
    from binloom.site.query_columns import fields_of_type

    artifacts = Artifacts(target)
    nodes, tests = artifacts.tables(), artifacts.tests()
    names = _names(nodes)
    tables: dict[str, Table] = {}
    edges: list[Edge] = []
    readable: dict[str, Outputs] = {}
    for id, node in nodes.items():
        outputs = _outputs(node, readable)
        table = Table(
            name=names[id],
            schema=node["schema"],
            kind=_kind(node),
            description=node["description"],
            columns=_columns(node["columns"], artifacts.stored_columns(id), outputs),
            sql=node["compiled_code"].strip() if node.get("compiled_code") else None,
            path=node["original_file_path"],
            parents=tuple(names[parent] for parent in parents_of(node) if parent in names),
            tests=tuple(tests.get(id, ())),
            group=_group(node),
        )
        tables[table.name] = table
        edges += _edges(table, outputs, tables)
        readable[relation_of(node)] = [
            (
                column.name,
                stored((table.name, column.name), column_of(outputs, column.name) or fields_of_type(column.type)),
            )
            for column in table.columns
        ]
    return Lineage(tuple(tables.values()), tuple(edges))


def _names(nodes: Mapping[str, Any]) -> dict[str, str]:
    """Return a unique name for each id."""
    names: dict[str, str] = {}
    for id, node in nodes.items():
        is_source = node["resource_type"] == "source"
        name = f"{node['schema']}.{node['identifier']}" if is_source else node["name"]
        # Two packages may have models of one name.
        names[id] = name if name not in names.values() else id
    return names


def _kind(node: Mapping[str, Any]) -> Kind:
    kind: str = node["resource_type"]
    return "source" if kind == "source" else "seed" if kind == "seed" else "model"


def _group(node: Mapping[str, Any]) -> str:
    if node["resource_type"] == "source":
        return "raw"
    package, folder = node.get("package_name", _OWN), PurePosixPath(node["path"]).parent
    if package != _OWN and folder.parts[:1] != ("tables",):
        return str(PurePosixPath(package) / folder)
    return "seeds" if node["resource_type"] == "seed" else str(folder) if folder.name else "models"


def _outputs(node: Mapping[str, Any], readable: Mapping[str, Outputs]) -> Outputs:
    """Return the columns that the SQL of a model gives, none if it cannot be followed."""
    from binloom.site.query_columns import query_outputs

    if not node.get("compiled_code") or node.get("language") != "sql":
        return []
    try:
        outputs = query_outputs(node["compiled_code"], readable)
        for name, _ in outputs:
            column_of(outputs, name)
    except NotFollowedError:
        return []
    return outputs


def _columns(described: Mapping[str, Any], stored: Mapping[str, Any], outputs: Outputs) -> tuple[Column, ...]:
    """Return the columns of a table in the warehouse, then those that only its SQL gives."""
    known = [*stored, *(name for name, _ in outputs)] or list(described)
    names = {name.lower(): name for name in reversed(known)}
    texts = {name.lower(): column for name, column in described.items()}
    found = {name.lower(): column for name, column in stored.items()}
    columns = []
    for key in dict.fromkeys(name.lower() for name in known):
        text, column = texts.get(key, {}), found.get(key, {})
        type = column.get("type") or text.get("data_type") or ""
        columns.append(Column(names[key], type, text.get("description") or column.get("comment") or ""))
    return tuple(columns) or (Column(ANY_COLUMN, "", "The columns of this table are not known."),)


def _edges(table: Table, outputs: Outputs, tables: Mapping[str, Table]) -> Iterator[Edge]:
    for column in table.columns:
        target = (table.name, column.name)
        origins = column_of(outputs, column.name)
        if origins is not None:
            yield from (Edge(source, target, source[1] != ANY_COLUMN) for source in sorted(origins.all()))
        elif table.kind == "model":
            for parent in table.parents:
                yield from (Edge((parent, one.name), target, False) for one in tables[parent].columns)
