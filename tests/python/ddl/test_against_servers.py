"""What DDL comes to, as far as binloom reads it, is what a real server has."""

from collections.abc import Iterator
from typing import Any

import pytest

from ingest.binlog import open_binlog
from ingest.ddl.batches import version_of
from ingest.ddl.shapes import Shapes
from ingest.ddl.statements import actions_of
from tests.python.ddl.folded import described, folded, logged_actions
from tests.python.ddl.test_statements import TYPES
from tests.servers import Server
from tests.servers.random_ddl import RandomDdl, run_step

STEPS = 200
STEPS_A_LOOK = 20

OF_ONE = {
    "mysql": ["vector", "vector(3)", "point srid 4326", "multilinestring not null srid 0"],
    "mariadb": [
        *("inet6", "inet4", "uuid default uuid()", "varchar(9) compressed", "blob compressed=zlib"),
        *("text default concat('a',',')", "int default 5 check (1 < 2)", "geometry ref_system_id=4326"),
    ],
}
MORE_TYPES = [
    *("timestamp", "text charset binary", "varchar(9) ascii", "char(3) unicode", "tinytext binary", "nchar(3)"),
    *("date default '2020-01-01'", "int default (1+1)", "int as (1+1) stored", "int comment 'x' check (1 < 2)"),
    *("multipolygon", "enum('a', 'b ', 'it''s', \"q\\\"\", 'c\\\\d', 'e\\nf')", "serial primary key"),
]
ALTERED = [
    ("a text, b tinytext, c varchar(9), d mediumtext", "convert to character set utf8mb4"),
    ("a text charset utf8mb3, b tinytext", "convert to character set utf8mb4"),
    ("a int, b int, c int, primary key (a, b)", "modify a int, modify b bigint first"),
    ("a int primary key, b int", "drop primary key"),
    ("a int, b int, c int", "add x int, modify a int after c, add y int after x, change b z text first"),
    ("a int, b int, c int", "rename column a to b, rename column b to a, add q int after a"),
    ("a int, b int, c int", "change a b int, change b c int, change c a int first"),
    ("a int, b int, c int", "modify A bigint, change B B2 int"),
    ("a int, b int", "add (c int, d int, key (c)), add e int primary key first"),
    ("a int", "add b serial, add c int"),
    ("a int, b int, c int", "add x int first, add y int first, add z int after a, drop b"),
]


def each_server() -> Any:
    """Parametrize a test by the fixture of each kind of server."""
    return pytest.mark.parametrize(
        "name", [pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("mysql", "mariadb")]
    )


@pytest.fixture
def server(name: str, request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server without databases of an earlier test."""
    server: Server = request.getfixturevalue(f"{name}_server")
    drop_databases(server)
    yield server
    drop_databases(server)


@each_server()
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_ddl_comes_to_the_tables_that_the_server_has(server: Server, seed: int) -> None:
    ddl, shapes = RandomDdl(seed, server.flavor), shapes_on(server)
    server.flush()
    with server.connect() as connection, connection.cursor() as cursor:
        for number, step in enumerate(ddl.steps(STEPS), 1):
            run_step(cursor, step)
            if number % STEPS_A_LOOK == 0:
                for action in logged_actions(server.flush()):
                    shapes.apply(action)
                assert folded(shapes) == described(server, ddl.databases)


@each_server()
def test_each_type_is_shown_as_the_server_shows_it(server: Server) -> None:
    # Two of the types are of one of the servers.
    both = [written for written, shown in TYPES if shown[0] not in ("vector(3)", "inet6", "uuid")]
    own = "ref_system_id" if server.flavor == "mysql" else "srid"
    types = [*(one for one in both if own not in one), *MORE_TYPES, *OF_ONE[server.flavor]]
    check(server, [[f"create table db.t{number} (a {one}) charset utf8mb4"] for number, one in enumerate(types)])


@each_server()
def test_what_is_altered_comes_to_what_the_server_has(server: Server) -> None:
    check(
        server,
        [
            [f"create table db.t{number} ({columns}) charset latin1", f"alter table db.t{number} {alter}"]
            for number, (columns, alter) in enumerate(ALTERED)
        ],
    )


@pytest.mark.mariadb
def test_columns_that_mariadb_adds_stand_where_its_row_events_have_them(mariadb_server: Server) -> None:
    statements = [
        "create database db",
        "use db",
        "create sequence s",
        "select nextval(s)",
        "set system_versioning_alter_history = keep",
        "create table t (a int) with system versioning",
        "alter table t add b varchar(9), add c date first",
        "insert into t (a) values (1)",
        "create table u (a int)",
        "alter table u add system versioning",
        "insert into u values (1)",
        "create table v like t",
        "insert into v (a) values (1)",
    ]
    shapes = shapes_on(mariadb_server)
    mariadb_server.flush()
    mariadb_server.execute(*statements)
    log = mariadb_server.flush()
    for statement in statements:
        for action in actions_of(statement, "db", 0, "mariadb", version_of(mariadb_server.version)):
            shapes.apply(action)
    assert folded(shapes)["db", "s"] == described(mariadb_server, ["db"])["db", "s"]
    maps = [row for kind, batch in open_binlog(log).batches() if kind == "table_maps" for row in batch.to_pylist()]
    types = {row["table_name"]: [column["type"] for column in row["columns"]] for row in maps}
    for table, logged in types.items():
        assert [WIRE_TYPES[str(column.data_type)] for column in shapes.tables["db", table].columns] == logged
    drop_databases(mariadb_server)


WIRE_TYPES = {
    "int": "LONG",
    "bigint": "LONGLONG",
    "tinyint": "TINY",
    "varchar": "VARCHAR",
    "date": "DATE",
    "timestamp": "TIMESTAMP2",
}


def check(server: Server, tables: list[list[str]]) -> None:
    """Run the statements of each table; compare all tables afterwards."""
    shapes = shapes_on(server)
    statements = ["create database db", *(statement for of_table in tables for statement in of_table)]
    for statement in statements:
        server.execute(statement)
        for action in actions_of(statement, None, 0, server.flavor, version_of(server.version)):
            shapes.apply(action)
    mine, theirs = folded(shapes), described(server, ["db"])
    assert len(theirs) == len(tables)
    for number, of_table in enumerate(tables):
        assert mine["db", f"t{number}"] == theirs["db", f"t{number}"], of_table


def shapes_on(server: Server) -> Shapes:
    """No tables, on a server with its default character set."""
    return Shapes(server.execute("select @@character_set_server")[0][0])


def drop_databases(server: Server) -> None:
    """Drop what a test made."""
    for (name,) in server.execute("show databases"):
        if name.lower().startswith(("db", "select")):
            server.execute("drop database `" + name.replace("`", "``") + "`")
