"""An import points one way: binloom → landing, quality, sources → binlog, ddl."""

import ast
from pathlib import Path

import pytest

from tests.python.places import PROJECT

PACKAGES = [PROJECT / "binloom", PROJECT / "ingest"]
BELOW_BINLOOM = {"ingest.errors", "ingest.escapes", "ingest.binlog", "ingest.ddl", "ingest.sources"}
BELOW_BINLOOM |= {"ingest.landing", "ingest.quality"}

MAY_IMPORT = {
    "ingest.errors": set(),
    "ingest.escapes": set(),
    "ingest.binlog": {"ingest.errors"},
    "ingest.ddl": {"ingest.errors"},
    "ingest.sources": {"ingest.errors", "ingest.binlog", "ingest.ddl"},
    "ingest.landing": {"ingest.errors", "ingest.binlog", "ingest.ddl", "ingest.sources"},
    "ingest.quality": BELOW_BINLOOM - {"ingest.quality"},
    "binloom.commands": BELOW_BINLOOM | {"binloom"},
    "binloom.cli": BELOW_BINLOOM | {"binloom.commands"},
    "binloom": BELOW_BINLOOM,
    "ingest": set(),
}
NOT_IN_BINLOG = {"pyspark", "pymysql", "pymysqlreplication", "dbt", "great_expectations", "typer", "rich"}

MODULES = sorted(module for package in PACKAGES for module in package.rglob("*.py"))


def dotted(module: Path) -> str:
    """The dotted name of a module."""
    return ".".join(module.relative_to(PROJECT).with_suffix("").parts).removesuffix(".__init__")


def room(name: str) -> str:
    """The room that a dotted name is in: the longest that is known."""
    return max((one for one in MAY_IMPORT if name == one or name.startswith(f"{one}.")), key=len)


def imported(module: Path) -> set[str]:
    """Dotted names that a module imports anywhere, also inside its functions."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports are absolute"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("module", MODULES, ids=dotted)
def test_imports_point_one_way(module: Path) -> None:
    here, names = room(dotted(module)), imported(module)
    rooms = {room(name) for name in names if name.split(".")[0] in ("binloom", "ingest")}
    assert rooms - {here} <= MAY_IMPORT[here]
    if here in ("ingest.binlog", "ingest.ddl"):
        assert not {name.split(".")[0] for name in names} & NOT_IN_BINLOG


def test_every_room_is_known() -> None:
    assert {room(dotted(module)) for module in MODULES} == MAY_IMPORT.keys()
    assert {dotted(module) for module in MODULES if room(dotted(module)) in ("binloom", "ingest")} == {
        "binloom",
        "ingest",
    }
