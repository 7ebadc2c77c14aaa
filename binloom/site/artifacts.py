"""The files in which dbt describes a project: manifest.json and catalog.json."""

import json
from pathlib import Path
from typing import Any

from ingest.errors import StoreError

Node = dict[str, Any]

# A snapshot is a table that its SQL defines, like a model.
_TABLES = ("model", "snapshot", "seed")


class Artifacts:
    """The manifest and the catalog of a project.

    Parameters
    ----------
    target
        Folder of the two files. The catalog may be missing.

    Raises
    ------
    StoreError
        The manifest is missing or has no compiled SQL, or a file is not dbt's.
    """

    def __init__(self, target: Path) -> None:
        manifest = _read(target / "manifest.json")
        catalog = _read(target / "catalog.json") if (target / "catalog.json").exists() else {}
        try:
            self._nodes: dict[str, Node] = manifest["nodes"]
            self._sources: dict[str, Node] = manifest["sources"]
            self._docs: dict[str, Node] = manifest.get("docs", {})
            self._stored: dict[str, Node] = {**catalog.get("nodes", {}), **catalog.get("sources", {})}
        except KeyError as error:
            raise StoreError(f"{target / 'manifest.json'} has no {error}.", hint=_HINT) from error
        models = [node for node in self._nodes.values() if node["resource_type"] == "model"]
        if models and not any(node.get("compiled_code") for node in models):
            raise StoreError(f"{target / 'manifest.json'} has no compiled SQL of any model.", hint=_HINT)

    def tables(self) -> dict[str, Node]:
        """Return sources, seeds and models by id, each after those that it reads."""
        known = {**self._sources, **{id: node for id, node in self._nodes.items() if node["resource_type"] in _TABLES}}
        ordered: dict[str, Node] = {}

        def add(id: str) -> None:
            if id in known and id not in ordered:
                node = known.pop(id)
                for parent in parents_of(node):
                    add(parent)
                ordered[id] = node

        for id in sorted(known):
            add(id)
        return ordered

    def stored_columns(self, id: str) -> dict[str, Node]:
        """Return the columns of a table in the warehouse by name; none if it is not built, or is no table."""
        columns = self._stored.get(id, {}).get("columns", {}).values()
        return {column["name"]: column for column in sorted(columns, key=lambda column: int(column["index"]))}

    def overview(self) -> str:
        """Return the page with which binloom describes its tables, in Markdown; nothing if the project lacks it."""
        return str(self._docs.get("doc.binloom.__overview__", {}).get("block_contents", ""))

    def tests(self) -> dict[str, list[str]]:
        """Return the names of the tests of each table by its id. Unit tests are not among them."""
        tests: dict[str, list[str]] = {}
        for node in self._nodes.values():
            if node["resource_type"] == "test":
                # A singular test is attached to nothing, and tests all that it reads.
                attached = node.get("attached_node")
                for id in [attached] if attached else parents_of(node):
                    tests.setdefault(id, []).append(node["name"])
        return {id: sorted(set(names)) for id, names in tests.items()}


def parents_of(node: Node) -> list[str]:
    """Return the ids of the tables that a node reads."""
    return list(dict.fromkeys(node.get("depends_on", {}).get("nodes", ())))


def relation_of(node: Node) -> str:
    """Return the name by which compiled SQL reads a table, in lower case."""
    if node.get("config", {}).get("materialized") == "ephemeral":
        return f"__dbt__cte__{node['name']}".lower()
    return f"{node['schema']}.{node.get('identifier') or node.get('alias') or node['name']}".lower()


_HINT = "Run `binloom docs`, which writes it again."


def _read(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise StoreError(f"There is no {path.name} in {path.parent}.", hint=_HINT, path=str(path)) from error
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}.", path=str(path)) from error
    except ValueError as error:
        raise StoreError(f"{path} is not valid JSON.", hint=_HINT, path=str(path)) from error
    if not isinstance(document, dict):
        raise StoreError(f"{path} does not contain an object of dbt.", hint=_HINT, path=str(path))
    return document
