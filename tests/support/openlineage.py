"""Compare exports of the lineage with the specification of OpenLineage."""

import re
from collections.abc import Mapping
from typing import Any

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
