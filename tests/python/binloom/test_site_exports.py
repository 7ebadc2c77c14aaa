"""The lineage as OpenLineage and as a graph of Graphviz."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from binloom.site.exports import to_dot, to_openlineage
from binloom.site.lineage import Column, Lineage, Table, read_lineage
from tests.support.manifests import write_project
from tests.support.openlineage import assert_openlineage

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


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
