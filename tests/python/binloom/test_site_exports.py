"""The lineage as OpenLineage and as a graph of Graphviz."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from binloom.site.exports import to_dot, to_openlineage
from binloom.site.lineage import Column, Lineage, Table, read_lineage
from tests.support.manifests import write_project

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

# The fields that the specification requires, and all that it allows, from its JSON schemas: JobEvent of OpenLineage
# 2-0-2 and the facets' own files.
REQUIRED = {
    "event": {"eventTime", "producer", "schemaURL", "job"},
    "job": {"namespace", "name"},
    "dataset": {"namespace", "name"},
    "documentation": {"_producer", "_schemaURL", "description"},
    "schema": {"_producer", "_schemaURL"},
    "schema field": {"name"},
    "columnLineage": {"_producer", "_schemaURL", "fields"},
    "lineage field": {"inputFields"},
    "input field": {"namespace", "name", "field"},
    "transformation": {"type"},
}
ALLOWED = {
    "event": REQUIRED["event"] | {"inputs", "outputs"},
    "job": REQUIRED["job"] | {"facets"},
    "dataset": REQUIRED["dataset"] | {"facets"},
    "documentation": REQUIRED["documentation"] | {"_deleted"},
    "schema": REQUIRED["schema"] | {"_deleted", "fields"},
    "schema field": {"name", "type", "description", "fields"},
    "columnLineage": REQUIRED["columnLineage"] | {"_deleted", "dataset"},
    "lineage field": {"inputFields", "transformationDescription", "transformationType"},
    "input field": REQUIRED["input field"] | {"transformations"},
    "transformation": {"type", "subtype", "description", "masking"},
}


@pytest.fixture
def lineage(tmp_path: Path) -> Lineage:
    return read_lineage(
        write_project(
            tmp_path,
            {"events": {"id": "bigint", "kind": "string"}},
            {
                "model": "select concat(id, kind) as label, 1 as one from raw.events",
                "lost": "select missing from marts.model",
            },
            stored={"model": {"label": "string", "one": "int"}, "lost": {"x": "int"}},
        )
    )


def fits(kind: str, found: Mapping[str, Any]) -> None:
    assert REQUIRED[kind] <= found.keys() <= ALLOWED[kind], (kind, found)


def assert_openlineage(event: Mapping[str, Any]) -> None:
    """Compare every object of an event with the specification, and every input field with the schema of its table."""
    fits("event", event)
    fits("job", event["job"])
    assert event["schemaURL"].endswith("/JobEvent")
    fields = {}
    for dataset in [*event["inputs"], *event["outputs"]]:
        fits("dataset", dataset)
        facets = dataset["facets"]
        for name, facet in facets.items():
            fits(name, facet)
            file = {"documentation": "Documentation", "schema": "Schema", "columnLineage": "ColumnLineage"}[name]
            assert re.search(rf"/facets/\d-\d-\d/{file}DatasetFacet\.json#", facet["_schemaURL"])
        for field in facets["schema"]["fields"]:
            fits("schema field", field)
        fields[dataset["namespace"], dataset["name"]] = {field["name"] for field in facets["schema"]["fields"]}
    for dataset in event["outputs"]:
        for name, field in dataset["facets"].get("columnLineage", {"fields": {}})["fields"].items():
            assert name in fields[dataset["namespace"], dataset["name"]]
            fits("lineage field", field)
            for source in field["inputFields"]:
                fits("input field", source)
                assert source["field"] in fields[source["namespace"], source["name"]]
                for transformation in source.get("transformations", []):
                    fits("transformation", transformation)
                    assert transformation["type"] in ("DIRECT", "INDIRECT")


def test_an_event_of_openlineage_has_the_fields_of_the_specification(lineage: Lineage) -> None:
    event = to_openlineage(lineage, AT)
    assert_openlineage(event)
    assert event["eventTime"] == "2026-01-02T03:04:05.000+00:00"
    assert [dataset["name"] for dataset in event["inputs"]] == ["raw.events"]
    assert [dataset["name"] for dataset in event["outputs"]] == ["marts.model", "marts.lost"]
    assert json.loads(json.dumps(event)) == event


def test_openlineage_has_the_columns_that_a_column_is_made_of(lineage: Lineage) -> None:
    model, lost = to_openlineage(lineage, AT)["outputs"]
    assert model["facets"]["columnLineage"]["fields"] == {
        "label": {
            "inputFields": [
                {"namespace": "binloom", "name": "raw.events", "field": "id"},
                {"namespace": "binloom", "name": "raw.events", "field": "kind"},
            ]
        }
    }
    (source, _) = lost["facets"]["columnLineage"]["fields"]["x"]["inputFields"]
    (transformation,) = source.pop("transformations")
    assert source == {"namespace": "binloom", "name": "marts.model", "field": "label"}
    assert "could only be followed to the table" in transformation["description"]


def test_the_graph_has_records_by_group_and_edges_between_columns(lineage: Lineage) -> None:
    assert to_dot(lineage) == "\n".join(
        [
            "digraph lineage {",
            "    rankdir=LR",
            "    node [shape=record]",
            '    subgraph "cluster core" {',
            '        label="core"',
            '        "model" [label="model|<c0> label|<c1> one"]',
            '        "lost" [label="lost|<c0> x"]',
            "    }",
            '    subgraph "cluster raw" {',
            '        label="raw"',
            '        "raw.events" [label="raw.events|<c0> id|<c1> kind"]',
            "    }",
            '    "raw.events":c0 -> "model":c0',
            '    "raw.events":c1 -> "model":c0',
            '    "model" -> "lost" [style=dashed]',
            "}",
            "",
        ]
    )


def test_no_name_breaks_out_of_the_graph() -> None:
    columns = (Column('a "b" | {c} <d> \\', "int", ""),)
    table = Table('t"t', "s", "model", "", columns, None, "t.sql", (), (), 'g"')
    graph = to_dot(Lineage((table,), ()))
    assert r'"t\"t" [label="t\"t|<c0> a\ \"b\"\ \|\ \{c\}\ \<d\>\ \\"]' in graph
    assert r'subgraph "cluster g\"" {' in graph
