"""Unique keys that only statements of the log tell: they are those of the server, and an undo knows them."""

import pytest

from recover.selection.filters import Filters
from recover.sources.log import Log
from recover.undo.options import UndoOptions
from recover.undo.tables.definitions import Definitions
from recover.undo.tables.table import UniqueKey
from recover.undo.undoing import planned
from tests.servers import Server
from tests.servers.marked import marked
from tests.support.landing.binlogs import snapshot_of
from tests.support.recover.undo_servers import is_new, transaction

SCHEMA = "undo_indexes"
STATEMENTS = (
    "create table added (id int primary key, a int, b varchar(20))",
    "create unique index two on added (b, a)",
    "create index plain on added (a)",
    "create unique index start using btree on added (b(3) desc) comment 'x'",
    "create table dropped (id int primary key, a int unique, b int, unique key (b))",
    "drop index b on dropped",
    "create table swapped (id int primary key, a int, b int, unique key u (a))",
    "alter table swapped drop index u, add unique index u (b)",
    "create table renamed (id int primary key, a int, b int)",
    "create unique index u on renamed (a, b)",
    "alter table renamed change a c int",
)
NEW_STATEMENTS = (
    "create table computed (id int primary key, a int, b int, unique key (a, (b + 1)), unique key ((a + b)))",
    "create unique index f on computed ((abs(a)))",
    "create unique index g on computed ((abs(b)))",
    "alter table computed rename column id to number, drop index g",
)
TAKEN = {
    "by_index": "create unique index u on by_index (a)",
    "by_expression": "create unique index u on by_expression ((a * 2))",
}


def _unique_keys(definitions: Definitions, name: str) -> set[tuple[tuple[str | None, int | None], ...]]:
    """Return the columns and the prefixes of the unique keys of a table; no statement keeps the text of expressions."""
    table = definitions.tables[SCHEMA, name]
    keys = [*map(UniqueKey.of_columns, table.unique_keys), *table.computed_keys]
    return {tuple((part.column, part.length) for part in key.parts) for key in keys}


@pytest.mark.parametrize("name", marked("mysql", "mysql56", "mariadb", "mariadb118"))
def test_statements_tell_the_unique_keys_of_the_server(name: str, request: pytest.FixtureRequest) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    server.execute(f"drop database if exists {SCHEMA}")
    server.flush()
    server.execute(f"create database {SCHEMA} character set utf8mb4")
    transaction(server, SCHEMA, STATEMENTS + (NEW_STATEMENTS if is_new(server) else ()))
    shown = Definitions.of_server(snapshot_of(server.host, server.port), "it")
    log = Log.of_whole_files([server.flush()], source_id="s")
    told = Definitions.of_log(log, "s")
    names = [table for schema, table in shown.tables if schema == SCHEMA]
    assert len(names) == (5 if is_new(server) else 4)
    assert {one: _unique_keys(told, one) for one in names} == {one: _unique_keys(shown, one) for one in names}


@pytest.mark.parametrize("name", marked("mysql", "mariadb"))
def test_an_undo_from_files_knows_a_value_that_an_index_forbids(name: str, request: pytest.FixtureRequest) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    server.execute(f"drop database if exists {SCHEMA}")
    server.flush()
    server.execute(f"create database {SCHEMA} character set utf8mb4")
    taken = {table: made for table, made in TAKEN.items() if server.flavor == "mysql" or table == "by_index"}
    for table, made in taken.items():
        for statement in (
            f"create table {table} (id int primary key, a int)",
            made,
            f"insert into {table} values (1, 1)",
            f"update {table} set a = 5",
            f"insert into {table} values (2, 1)",
        ):
            transaction(server, SCHEMA, (statement,))
    log = Log.of_whole_files([server.flush()], source_id="s")
    for table in taken:
        filters = Filters.of(tables=[f"{SCHEMA}.{table}"], types=["update"])
        with planned(log, filters, UndoOptions()) as (_, plan, _):
            assert not plan.is_printable
            assert f"row 2 of {SCHEMA}.{table}" in " ".join(plan.problems), plan.problems
