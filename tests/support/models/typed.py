"""Tables whose generated models are compared with what a server has: every type, odd names, renamed columns."""

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow.dataset as dataset
import yaml

from binloom.typed.files import known_stems
from tests.servers import Server
from tests.servers.replication import log_end
from tests.servers.rows import table_rows
from tests.support.binlog import workload, workload_tables
from tests.support.binlog.workload import SCHEMA, Column, Kind, Table
from tests.support.commands import DBT
from tests.support.examples import workflow_steps
from tests.support.in_process import binloom
from tests.support.models.copied import copied_project
from tests.support.models.invoke import run_dbt
from tests.support.places import PROJECT

EVERY_TYPE, ODD_NAMES = "Every type", "odd names & 表"
# Columns are renamed, swapped, dropped, and made again under a name that another column had.
RENAMED = (
    "create table workload.renamed (id int primary key, a int comment 'Number of {{ things }}', b varchar(20), c date)",
    "insert into workload.renamed values (1, 10, 'one', '2026-11-01'), (2, 20, 'two', '0000-00-00')",
    "alter table workload.renamed change a number int comment 'Number of {{ things }}'",
    "update workload.renamed set number = 11 where id = 1",
    "alter table workload.renamed drop column c, change b a varchar(20)",
    "alter table workload.renamed add column b decimal(9,3)",
    "update workload.renamed set a = 'ONE', b = 1.005 where id = 1",
    "alter table workload.renamed modify b decimal(9,2)",
    "update workload.renamed set a = 'one' where id = 1",
)
# Values of all columns and versions of the row with id 1, as the log shows them.
RENAMED_VERSIONS = (
    {"number": 10, "a": "one", "b": None, "c": date(2026, 11, 1)},
    {"number": 11, "a": "one", "b": None, "c": date(2026, 11, 1)},
    {"number": 11, "a": "ONE", "b": None, "c": None},
    {"number": 11, "a": "one", "b": Decimal("1.01"), "c": None},
)

# A table with three names, in two schemas: each with the statements after which it has this name.
MOVED = ("moved", "last_name")
RENAMED_TABLE = {
    ("workload", "first_name"): (
        "create table workload.first_name (id int primary key, v varchar(20))",
        "insert into workload.first_name values (1, 'gone'), (7, 'gone')",
        "truncate table workload.first_name",
        "insert into workload.first_name values (1, 'a'), (2, 'b'), (3, 'c')",
        "update workload.first_name set v = 'A' where id = 1",
        "create database moved",
        "create table moved.last_name (id int primary key)",
        "drop table moved.last_name",
    ),
    ("workload", 'second "name"'): (
        'rename table workload.first_name to workload.`second "name"`',
        "update workload.`second \"name\"` set v = 'AA', id = 10 where id = 1",
    ),
    MOVED: (
        'alter table workload.`second "name"` rename to moved.last_name',
        "create table workload.first_name (id int primary key, v varchar(20))",
        "insert into workload.first_name values (2, 'of another table')",
        "alter table moved.last_name change v w varchar(20)",
        "update moved.last_name set w = 'B' where id = 2",
        "delete from moved.last_name where id = 10",
    ),
}
# Another table takes its name.
SWAPPED = (
    "create table workload.swapped (id int primary key, v varchar(20), w varchar(20))",
    "insert into workload.swapped values (1, 'a', 'old'), (2, 'b', 'old'), (3, 'c', 'old')",
    "create table workload._swapped_gho like workload.swapped",
    "alter table workload._swapped_gho add column n int",
    "insert into workload._swapped_gho (id, v, w) select id, v, 'new' from workload.swapped",
    "rename table workload.swapped to workload._swapped_del, workload._swapped_gho to workload.swapped",
    "drop table workload._swapped_del",
    "update workload.swapped set n = 5 where id = 1",
    "set session binlog_row_image = MINIMAL",
    "update workload.swapped set v = 'B' where id = 2",
    "set session binlog_row_image = FULL",
)


def every_type(server: Server) -> Table:
    """Return a table with the columns of every type, and their extreme values."""
    named = {table.name: table for table in workload_tables.tables(server, [])}
    parts = ("integers", "decimals", "floats", "temporals", "binaries", "enums_and_sets")
    columns = [column for name in parts for column in named[name].columns]
    columns += [column for column in named["bits"].columns if column.name in ("b1", "b9", "b63", "b64")]
    columns += [column for column in named["texts"].columns if column.name == "varchar60_latin1"]
    if "documents" in named:
        columns += named["documents"].columns
    chance = random.Random(5)
    # Only some of the many values of a long list, and always its first and last ones.
    return Table(EVERY_TYPE, tuple(_with_fewer_values(column, chance) for column in columns))


def _with_fewer_values(column: Column, chance: random.Random) -> Column:
    values = column.literals
    if len(values) > 25:
        middle = chance.sample(values[8:-8], 9)
        values = (*values[:8], *middle, *values[-8:])
    return replace(column, literals=values)


@dataclass(frozen=True)
class Seen:
    """The rows of a table by id, at a position of the log."""

    place: tuple[int, int]
    rows: dict[int, dict[str, str | None]]


@dataclass(frozen=True)
class Made:
    """A table on a server, with what it contained after each statement."""

    table: Table
    seen: list[Seen]


def make_tables(server: Server) -> dict[str, Made]:
    """Make the tables on a server and change them; return those of which all rows are compared, by name.

    Tables that were renamed are under their last name, with the rows that they had under all of them.
    """
    odd = next(table for table in workload_tables.tables(server, []) if table.name == ODD_NAMES)
    made = [Made(table, []) for table in (every_type(server), odd)]
    moved, swapped = (Made(Table(name, ()), []) for name in (MOVED[1], "swapped"))
    server.execute(f"create database {SCHEMA} character set utf8mb4")
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"set session sql_mode = '{workload.SQL_MODE}', time_zone = '+00:00'")
        for one in made:
            for statement in (one.table.ddl(), *one.table.statements(), *_further_changes(one.table)):
                cursor.execute(statement)
                one.seen.append(_seen(server, SCHEMA, one.table.name))
        for statement in RENAMED:
            cursor.execute(statement)
        for name, statements in RENAMED_TABLE.items():
            for statement in statements:
                cursor.execute(statement)
                moved.seen.append(_seen(server, *name))
        for statement in SWAPPED:
            cursor.execute(statement)
            swapped.seen.append(_seen(server, SCHEMA, "swapped"))
    return {one.table.name: one for one in (*made, moved, swapped)}


def _further_changes(table: Table) -> Iterable[str]:
    """Yield further UPDATEs: each row gets other values, and half of the rows their old ones again."""
    for shift, rows in ((2, range(table.rows)), (0, range(0, table.rows, 2))):
        for index in rows:
            values = ", ".join(
                f"{workload.quoted(column.name)} = {column.literals[(index + shift) % len(column.literals)]}"
                for column in table.columns
                if not column.is_generated
            )
            yield f"update {table.quoted_name} set {values} where id = {index + 1}"


def _seen(server: Server, schema: str, table: str) -> Seen:
    end = log_end(server)
    names, rows = table_rows(server, schema, table)
    place = (int(end.binlog_file.rpartition(".")[2]), end.position)
    return Seen(place, {int(row[0] or 0): dict(zip(names, row, strict=True)) for row in rows})


@dataclass(frozen=True)
class Typed:
    """The project with the generated models, and the names of the models of current rows."""

    project: Path
    home: Path
    stems: dict[tuple[str, str, str], str]

    def current(self, source: str, schema: str, table: str) -> list[dict[str, Any]]:
        """Return the current rows of a table."""
        folder = self.home / "warehouse" / "binloom_tables.db" / self.stems[source, schema, table]
        rows: list[dict[str, Any]] = dataset.dataset(folder).to_table().to_pylist()
        return rows

    @cached_property
    def properties(self) -> dict[str, dict[str, Any]]:
        """The properties of all generated models, by name."""
        files = (self.project / "models" / "tables").glob("*.yml")
        models = (model for file in files for model in yaml.safe_load(file.read_text())["models"])
        return {model["name"]: model for model in models}

    def view(self, source: str, schema: str, table: str, kind: str) -> str:
        """Return the name of the history or the changes of a table."""
        return f"binloom_tables.{self.stems[source, schema, table]}__{kind}"


def generated(folder: Path, home: Path, patterns: Mapping[str, Iterable[str]]) -> Typed:
    """Generate the models of some tables of each source in a copy of the project, and run them in the open session."""
    project = copied_project(folder, {})
    typed = _written(project, home, patterns)
    built = run_dbt(home, "run", "--select", "path:models/tables", project=project)
    assert set(built.values()) == {"success"}, built
    return typed


def generated_in_own_project(folder: Path, home: Path, sources: Iterable[str]) -> tuple[Typed, dict[str, str]]:
    """Generate all models in a copy of the example project, and run the workflow of its pull requests.

    The sample is landed already, which is the step of the workflow before these.

    Returns
    -------
    tuple
        The project, and the status of each model and test.
    """
    project = folder / "project"
    shutil.copytree(PROJECT / "docs" / "examples" / "analytics", project)
    typed = _written(project, home, dict.fromkeys(sources, ()))
    variables = {"BINLOOM_HOME": str(home), "BINLOOM_PROJECT": str(PROJECT), "DBT_PROFILES_DIR": str(PROJECT)}
    variables["PATH"] = f"{DBT.parent}{os.pathsep}{os.environ['PATH']}"
    # The classes of Spark are there.
    variables["VIRTUAL_ENV"] = sys.prefix
    steps = workflow_steps()
    for name in ("Build the models", "Check that the generated models fit their tables"):
        done = subprocess.run(
            ["bash", "-e", "-c", steps[name]],
            cwd=project,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    results = json.loads((project / "target" / "run_results.json").read_text())["results"]
    states = {result["unique_id"].split(".")[2]: result["status"] for result in results}
    return typed, {name: state for name, state in states.items() if state != "no-op"}


def _written(project: Path, home: Path, patterns: Mapping[str, Iterable[str]]) -> Typed:
    place = project / "models" / "tables"
    for source, tables in patterns.items():
        chosen = [word for table in tables for word in ("--tables", table)]
        binloom(home, "generate", "--source", source, "--dir", str(place), *chosen)
    return Typed(project, home, known_stems(place))


def value_of_type(type: str, text: str | None) -> Any:
    """Return the value of a type of Spark that a text of the log has."""
    if text is None:
        return None
    kinds: dict[str, Kind] = {
        "int": "integer",
        "bigint": "integer",
        "timestamp_ntz": "datetime",
        "array<string>": "set",
        "string": "text",
    }
    kind = "decimal" if type.startswith("decimal") else kinds.get(type, type)
    return _value(Column("", type, kind, ()), text)  # type: ignore[arg-type]


def typed_row(table: Table, row: dict[str, str | None]) -> dict[str, Any]:
    """Return the values that a row of a server has in the types of Spark."""
    columns = {column.name: column for column in table.all_columns}
    return {name: None if text is None else _value(columns[name], text) for name, text in row.items()}


def _value(column: Column, text: str) -> Any:
    return _VALUES.get(column.kind, lambda _, text: text)(column, text)


def _moment(_: Column, text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _utc(column: Column, text: str) -> datetime | None:
    moment = _moment(column, text)
    return None if moment is None else moment.replace(tzinfo=UTC)


def _date(column: Column, text: str) -> date | None:
    moment = _moment(column, text)
    return None if moment is None else moment.date()


def _decimal(column: Column, text: str) -> Any:
    precision = int(column.ddl.partition("(")[2].partition(",")[0])
    return Decimal(text) if precision <= 38 else text


def _float(_: Column, text: str) -> float:
    import numpy as np

    return float(np.float32(text))


_VALUES: dict[str, Callable[[Column, str], Any]] = {
    "integer": lambda _, text: int(text),
    "decimal": _decimal,
    "float": _float,
    "double": lambda _, text: float(text),
    "bit": lambda _, text: int(text),
    "year": lambda _, text: int(text),
    "date": _date,
    "datetime": _moment,
    "timestamp": _utc,
    "binary": lambda _, text: bytes.fromhex(text[2:]),
    "set": lambda _, text: text.split(",") if text else [],
}
