"""An import may only point one way: commands → landing, quality, sources → binlog, ddl."""

import ast
from pathlib import Path

import pytest

from tests.python.places import PROJECT

PACKAGE = PROJECT / "ingest"

MAY_IMPORT = {
    "errors": set(),
    "escapes": set(),
    "binlog": {"errors"},
    "ddl": {"errors"},
    "sources": {"errors", "binlog", "ddl"},
    "landing": {"errors", "binlog", "ddl", "sources"},
    "quality": {"errors", "escapes", "binlog", "ddl", "sources", "landing"},
    "commands": {"errors", "escapes", "binlog", "ddl", "sources", "landing", "quality"},
    "cli": {"errors", "escapes", "binlog", "ddl", "sources", "landing", "quality", "commands"},
}
NOT_IN_BINLOG = {"pyspark", "pymysql", "pymysqlreplication", "dbt", "great_expectations", "typer", "rich"}

MODULES = sorted(PACKAGE.rglob("*.py"))


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


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_one_way(module: Path) -> None:
    room = module.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if room == "__init__":
        return
    names = imported(module)
    rooms = {name.split(".")[1] for name in names if name.startswith("ingest.")}
    assert rooms - {room} <= MAY_IMPORT[room]
    if room in ("binlog", "ddl"):
        assert not {name.split(".")[0] for name in names} & NOT_IN_BINLOG


def test_every_room_is_known() -> None:
    rooms = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in MODULES}
    assert rooms - {"__init__"} == MAY_IMPORT.keys()
