"""dbt's description of a small project: sources in schema `raw`, models in schema `marts`."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Columns = Mapping[str, str]


def write_project(
    target: Path,
    sources: Mapping[str, Columns],
    models: Mapping[str, str],
    ephemeral: tuple[str, ...] = (),
    stored: Mapping[str, Columns] | None = None,
    tests: Mapping[str, list[str]] | None = None,
) -> Path:
    """Write manifest.json and catalog.json into a folder, and return it.

    Parameters
    ----------
    sources
        Columns with their types, by table. They are in the catalog.
    models
        Compiled SQL by model, which reads `raw.<source>`, `marts.<model>` and `__dbt__cte__<model>`.
    stored
        Columns of models in the catalog. The other models are not in the catalog.
    tests
        The models that a test reads, by the name of the test.
    """
    nodes = {f"model.demo.{name}": _model(name, sql, sources, name in ephemeral) for name, sql in models.items()}
    nodes |= {f"test.demo.{name}": _test(name, read) for name, read in (tests or {}).items()}
    manifest = {"nodes": nodes, "sources": {f"source.demo.{name}": _source(name) for name in sources}}
    catalog = {
        "nodes": {f"model.demo.{name}": _stored(columns) for name, columns in (stored or {}).items()},
        "sources": {f"source.demo.{name}": _stored(columns) for name, columns in sources.items()},
    }
    target.mkdir(exist_ok=True)
    (target / "manifest.json").write_text(json.dumps(manifest))
    (target / "catalog.json").write_text(json.dumps(catalog))
    return target


def _model(name: str, sql: str, sources: Mapping[str, Columns], is_ephemeral: bool) -> dict[str, Any]:
    parents = [f"source.demo.{table}" for table in re.findall(r"raw\.(\w+)", sql.lower()) if table in sources]
    parents += [f"model.demo.{table}" for table in re.findall(r"(?:marts\.|__dbt__cte__)(\w+)", sql.lower())]
    return {
        "resource_type": "model",
        "name": name,
        "schema": "marts",
        "path": f"core/{name}.sql",
        "original_file_path": f"models/core/{name}.sql",
        "language": "sql",
        "config": {"materialized": "ephemeral" if is_ephemeral else "table"},
        "description": f"About {name}.",
        "columns": {},
        "depends_on": {"nodes": parents},
        "compiled_code": sql,
    }


def _test(name: str, models: list[str]) -> dict[str, Any]:
    return {
        "resource_type": "test",
        "name": name,
        "depends_on": {"nodes": [f"model.demo.{model}" for model in models]},
    }


def _source(name: str) -> dict[str, Any]:
    return {
        "resource_type": "source",
        "name": name,
        "schema": "raw",
        "identifier": name,
        "path": "models/sources.yml",
        "original_file_path": "models/sources.yml",
        "description": "",
        "columns": {},
    }


def _stored(columns: Columns) -> dict[str, Any]:
    return {
        "columns": {
            name: {"name": name, "type": type, "index": at, "comment": None}
            for at, (name, type) in enumerate(columns.items())
        }
    }
