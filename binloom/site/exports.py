"""The lineage in the formats of other tools: OpenLineage and Graphviz."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

from binloom.site.lineage import Edge, Lineage, Table

_PRODUCER: Final = "urn:binloom:docs"
_NAMESPACE: Final = "binloom"

_SPEC: Final = "https://openlineage.io/spec"
_JOB_EVENT: Final = f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/JobEvent"
_DOCUMENTATION: Final = f"{_SPEC}/facets/1-0-1/DocumentationDatasetFacet.json#/$defs/DocumentationDatasetFacet"
_SCHEMA: Final = f"{_SPEC}/facets/1-1-1/SchemaDatasetFacet.json#/$defs/SchemaDatasetFacet"
_COLUMN_LINEAGE: Final = f"{_SPEC}/facets/1-2-0/ColumnLineageDatasetFacet.json#/$defs/ColumnLineageDatasetFacet"

_NOT_FOLLOWED: Final = "The SQL could only be followed to the table: some of its columns are sources of this one."


def to_openlineage(lineage: Lineage, at: datetime | None = None) -> dict[str, Any]:
    """Return the lineage as a job event of OpenLineage, the event of a job that is described and not run.

    The job is the whole project. Its inputs are the sources, and its outputs the seeds and the models, which have the
    facet `columnLineage`. A source column that is not exact has a transformation that says so.

    Parameters
    ----------
    at
        The time of the event, by default now.
    """
    tables = {table.name: table for table in lineage.tables}
    edges: dict[str, list[Edge]] = {name: [] for name in tables}
    for edge in lineage.edges:
        edges[edge.target[0]].append(edge)
    datasets = {name: _dataset(table, edges[name], tables) for name, table in tables.items()}
    return {
        "eventTime": (at or datetime.now(UTC)).astimezone(UTC).isoformat(timespec="milliseconds"),
        "producer": _PRODUCER,
        "schemaURL": _JOB_EVENT,
        "job": {"namespace": _NAMESPACE, "name": "build", "facets": {}},
        "inputs": [datasets[name] for name, table in tables.items() if table.kind == "source"],
        "outputs": [datasets[name] for name, table in tables.items() if table.kind != "source"],
    }


def _dataset(table: Table, edges: Iterable[Edge], tables: dict[str, Table]) -> dict[str, Any]:
    facets: dict[str, Any] = {
        "documentation": _facet(_DOCUMENTATION, description=table.description),
        "schema": _facet(
            _SCHEMA,
            fields=[
                {"name": column.name, "type": column.type, "description": column.description}
                for column in table.columns
            ],
        ),
    }
    fields: dict[str, Any] = {}
    for edge in edges:
        field = fields.setdefault(edge.target[1], {"inputFields": []})
        field["inputFields"].append(_input_field(edge, tables))
    if fields:
        facets["columnLineage"] = _facet(_COLUMN_LINEAGE, fields=fields)
    return {"namespace": _NAMESPACE, "name": _dataset_name(table), "facets": facets}


def _dataset_name(table: Table) -> str:
    return table.name if table.kind == "source" else f"{table.schema}.{table.name}"


def _facet(schema: str, **content: Any) -> dict[str, Any]:
    return {"_producer": _PRODUCER, "_schemaURL": schema, **content}


def _input_field(edge: Edge, tables: dict[str, Table]) -> dict[str, Any]:
    table, column = edge.source
    field: dict[str, Any] = {"namespace": _NAMESPACE, "name": _dataset_name(tables[table]), "field": column}
    if not edge.is_exact:
        field["transformations"] = [{"type": "DIRECT", "description": _NOT_FOLLOWED}]
    return field


def to_dot(lineage: Lineage) -> str:
    """Return the lineage as a graph of Graphviz: a record of columns for each table, in a cluster for each group.

    Tables whose SQL could not be followed to columns have a dashed edge from each table that they read.
    """
    return "\n".join(_dot_lines(lineage)) + "\n"


def _dot_lines(lineage: Lineage) -> Iterator[str]:
    yield "digraph lineage {"
    yield "    rankdir=LR"
    yield "    node [shape=record]"
    for group in sorted({table.group for table in lineage.tables}):
        yield f"    subgraph {_quoted(f'cluster {group}')} {{"
        yield f"        label={_quoted(group)}"
        for table in lineage.tables:
            if table.group == group:
                yield f"        {_quoted(table.name)} [label={_record(table)}]"
        yield "    }"
    ports = {(table.name, column.name): at for table in lineage.tables for at, column in enumerate(table.columns)}
    for edge in lineage.edges:
        if edge.is_exact:
            ends = (f"{_quoted(end[0])}:c{ports[end]}" for end in (edge.source, edge.target))
            yield f"    {' -> '.join(ends)}"
    for source, target in dict.fromkeys(
        (edge.source[0], edge.target[0]) for edge in lineage.edges if not edge.is_exact
    ):
        yield f"    {_quoted(source)} -> {_quoted(target)} [style=dashed]"
    yield "}"


def _record(table: Table) -> str:
    columns = (f"<c{at}> {_in_record(column.name)}" for at, column in enumerate(table.columns))
    return f'"{"|".join([_in_record(table.name), *columns])}"'


def _in_record(text: str) -> str:
    """Return text for the label of a record, in which some characters separate fields."""
    return "".join(f"\\{sign}" if sign in '\\"{}|<> ' else sign for sign in text)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
