"""Imports point in one direction, from binloom down to the bytes, without cycles."""

import ast
import graphlib
from pathlib import Path

import pytest

from tests.support.places import PROJECT

PACKAGES = [PROJECT / "binloom", PROJECT / "recover", PROJECT / "ingest"]

# Each room and the rooms that it may import, in reverse order of the data flow.
WORDS = {
    "ingest.ahead",
    "ingest.errors",
    "ingest.escapes",
    "ingest.extras",
    "ingest.lazy",
    "ingest.versions",
    "ingest.words",
}
SOURCES = {f"ingest.sources.{one}" for one in ("files", "snapshots", "servers", "baselines", "dumps")}
READING = {f"ingest.binlog.{one}" for one in ("kernel", "text", "byte_files", "buffers", "events", "rows")}
BINLOG = {"ingest.binlog"} | READING
DDL = {"ingest.ddl", "ingest.ddl.digests", "ingest.ddl.dml"}
BYTES = WORDS | BINLOG | DDL | {"ingest.masking"} | SOURCES
INGEST = BYTES | {"ingest.warehouse", "ingest.landing", "ingest.follow", "ingest.quality"}
LANDED = BYTES | {"ingest.warehouse", "ingest.landing"}
# Rows of files, of a home and of a cluster; each is asked through DuckDB or through SQL.
LOGS = {f"recover.sources.{one}" for one in ("engine", "files", "home", "cluster")} | {"recover.sources"}
ROWS = {"recover", "recover.index", "recover.selection", "recover.timeline"} | LOGS
UNDO = {f"recover.undo.{one}" for one in ("options", "tables", "rows", "select", "prove", "plan", "print")}
RECOVER = {"recover.questions", "recover.restore", "recover.retention", "recover.sources.activity", "recover.undo"}
RECOVER |= ROWS | UNDO
MAY_IMPORT = {
    "ingest": set(),
    "ingest.ahead": set(),
    "ingest.errors": set(),
    "ingest.escapes": set(),
    "ingest.extras": {"ingest.errors"},
    "ingest.lazy": set(),
    "ingest.versions": set(),
    "ingest.words": set(),
    "ingest.binlog.kernel": WORDS,
    "ingest.binlog.text": {"ingest.binlog.kernel"},
    "ingest.binlog.byte_files": WORDS,
    "ingest.binlog.buffers": {"ingest.binlog.byte_files", "ingest.binlog.kernel"},
    "ingest.binlog.events": WORDS | READING - {"ingest.binlog.buffers", "ingest.binlog.rows"},
    "ingest.binlog.rows": WORDS | READING,
    "ingest.binlog": WORDS | READING,
    "ingest.ddl": WORDS | BINLOG,
    "ingest.ddl.digests": WORDS | BINLOG | {"ingest.ddl"},
    "ingest.ddl.dml": WORDS | BINLOG | {"ingest.ddl"},
    "ingest.masking": WORDS | BINLOG | DDL | SOURCES,
    "ingest.sources": set(),
    "ingest.sources.files": WORDS | BINLOG,
    "ingest.sources.snapshots": WORDS | BINLOG | DDL,
    "ingest.sources.servers": WORDS | BINLOG | DDL | {"ingest.sources.snapshots"},
    "ingest.sources.baselines": WORDS | BINLOG | DDL | SOURCES - {"ingest.sources.dumps"},
    "ingest.sources.dumps": WORDS | BINLOG | DDL | SOURCES,
    "ingest.warehouse": BYTES,
    "ingest.landing": BYTES | {"ingest.warehouse"},
    "ingest.follow": BYTES | {"ingest.warehouse", "ingest.landing"},
    "ingest.quality": BYTES | {"ingest.warehouse", "ingest.landing"},
    "recover": set(),
    "recover.selection": LANDED | {"recover"},
    "recover.index": LANDED | {"recover.selection"} | LOGS - {"recover.sources", "recover.sources.cluster"},
    "recover.sources.engine": LANDED,
    "recover.sources.home": LANDED | {"recover", "recover.selection", "recover.sources", "recover.sources.engine"},
    "recover.sources.files": LANDED | ROWS - {"recover.timeline", "recover.sources.home", "recover.sources.cluster"},
    "recover.sources.cluster": LANDED | ROWS - {"recover.index", "recover.timeline", "recover.sources.files"},
    "recover.sources": LANDED | ROWS - {"recover.timeline"},
    "recover.sources.activity": LANDED | ROWS | {"recover.questions"},
    "recover.questions": LANDED | ROWS - {"recover.index", "recover.timeline", "recover.sources.files"},
    "recover.timeline": LANDED | ROWS - {"recover.index"},
    "recover.retention": LANDED | ROWS,
    "recover.restore": LANDED | ROWS | UNDO | {"recover.undo"},
    "recover.undo": LANDED | ROWS | UNDO,
    "recover.undo.options": {"ingest.errors"},
    "recover.undo.tables": LANDED | ROWS,
    "recover.undo.rows": LANDED | ROWS | {"recover.undo.tables"},
    "recover.undo.select": LANDED | ROWS | {"recover.undo.options", "recover.undo.tables", "recover.undo.rows"},
    "recover.undo.prove": LANDED | ROWS | UNDO - {"recover.undo.plan", "recover.undo.print"},
    "recover.undo.plan": LANDED | ROWS | UNDO - {"recover.undo.print"},
    "recover.undo.print": LANDED | ROWS | UNDO,
    "binloom": INGEST | {"binloom.api"},
    "binloom.api": INGEST | RECOVER | {"binloom.answers", "binloom.commands", "binloom.pages"},
    "binloom.site": INGEST | RECOVER | {"binloom.pages"},
    "binloom.doctor": INGEST | RECOVER,
    "binloom.typed": INGEST | RECOVER,
    "binloom.answers": INGEST | RECOVER,
    "binloom.pages": INGEST | RECOVER | {"binloom.answers"},
    "binloom.agents": INGEST | RECOVER | {"binloom.api", "binloom.answers", "binloom.commands"},
    "binloom.ui": INGEST | RECOVER | {"binloom.answers", "binloom.filter_options", "binloom.pages"},
    "binloom.commands": INGEST
    | {"binloom", "binloom.answers", "binloom.doctor", "binloom.filter_options", "binloom.pages", "binloom.site"}
    | {"binloom.typed", "binloom.ui"}
    | RECOVER,
    "binloom.general_options": {"binloom.commands"},
    "binloom.options": {"ingest.errors", "binloom.commands"},
    "binloom.filter_options": {"binloom.options"} | RECOVER,
    "binloom.server_options": INGEST | {"binloom.options"},
    "binloom.file_options": {"ingest.errors", "recover.index", "binloom.answers", "binloom.commands"}
    | {"binloom.options", "binloom.server_options"},
    "binloom.cli_agents": {"ingest.errors", "ingest.sources.files", "binloom.agents", "binloom.answers"}
    | {"binloom.commands", "binloom.file_options", "binloom.options"},
    "binloom.cli_baseline": INGEST | {"binloom.commands", "binloom.options", "binloom.server_options"},
    "binloom.cli_recover": INGEST
    | {"binloom.answers", "binloom.commands", "binloom.options", "binloom.file_options", "binloom.filter_options"}
    | {"binloom.server_options"}
    | RECOVER,
    "binloom.cli_models": {"binloom.commands", "binloom.options"},
    "binloom.cli_retention": {"binloom.commands", "binloom.options"},
    "binloom.cli_ui": {"binloom.answers", "binloom.commands", "binloom.file_options", "binloom.options"},
    "binloom.cli": INGEST
    | {"binloom.answers", "binloom.commands", "binloom.general_options", "binloom.options", "binloom.server_options"}
    | {
        "binloom.cli_agents",
        "binloom.cli_baseline",
        "binloom.cli_models",
        "binloom.cli_recover",
        "binloom.cli_retention",
        "binloom.cli_ui",
    },
}
NOT_IN_BINLOG = {"pyspark", "pymysql", "pymysqlreplication", "dbt", "great_expectations", "typer", "rich"}

MOST_LINES = 500
MODULES = sorted(module for package in PACKAGES for module in package.rglob("*.py"))


def dotted(module: Path) -> str:
    """Return the dotted name of a module."""
    return ".".join(module.relative_to(PROJECT).with_suffix("").parts).removesuffix(".__init__")


BY_NAME = {dotted(module): module for module in MODULES}


def room(name: str) -> str:
    """Return the room of a dotted name: the longest known prefix."""
    return max((one for one in MAY_IMPORT if name == one or name.startswith(f"{one}.")), key=len)


def imported(module: Path) -> set[str]:
    """Return the dotted names that a module imports anywhere, also inside its functions."""
    return {name for node in ast.walk(ast.parse(module.read_text())) for name in _names_of(node)}


def _names_of(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute"
        return {f"{node.module}.{alias.name}" for alias in node.names}
    return set()


@pytest.mark.parametrize("module", MODULES, ids=dotted)
def test_imports_point_one_way(module: Path) -> None:
    here, names = room(dotted(module)), imported(module)
    rooms = {room(name) for name in names if name.split(".")[0] in ("binloom", "ingest", "recover")}
    assert rooms - {here} <= MAY_IMPORT[here]
    if here in BINLOG | DDL:
        assert not {name.split(".")[0] for name in names} & NOT_IN_BINLOG


def imported_at_once(module: Path) -> set[str]:
    """Return the modules of the project that are imported together with a module, or for its types."""
    tree = ast.parse(module.read_text())
    names = {
        name
        for node in tree.body
        for one in ast.walk(node)
        if not isinstance(node, ast.FunctionDef | ast.ClassDef)
        for name in _names_of(one)
    }
    return {
        found
        for name in names
        if (found := next((one for one in (name, name.rpartition(".")[0]) if one in BY_NAME), None))
    }


def test_no_imports_in_a_circle() -> None:
    order = graphlib.TopologicalSorter({name: imported_at_once(module) - {name} for name, module in BY_NAME.items()})
    order.prepare()  # raises CycleError, which names the cycle


def test_a_module_fits_a_few_screens() -> None:
    lengths = {dotted(module): len(module.read_text().splitlines()) for module in MODULES}
    assert {name: length for name, length in lengths.items() if length > MOST_LINES and ".kernel." not in name} == {}


def test_every_room_is_known() -> None:
    assert {room(dotted(module)) for module in MODULES} == MAY_IMPORT.keys()
    assert {dotted(module) for module in MODULES if room(dotted(module)) in ("binloom", "ingest")} == {
        "binloom",
        "ingest",
    }
