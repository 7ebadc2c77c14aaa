"""What the DDL of a real server's log comes to is what the server has."""

from typing import Any

import pytest

from ingest.ddl.shapes import Shapes
from tests.python.ddl.folded import described, folded, logged_actions
from tests.servers import Server
from tests.servers.random_ddl import RandomDdl, run_step

STEPS = 200
STEPS_A_LOOK = 20


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("mysql", "mariadb")]
)
def test_random_ddl_comes_to_the_tables_that_the_server_has(
    name: str, seed: int, request: pytest.FixtureRequest
) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    ddl = RandomDdl(seed, server.flavor)
    shapes = Shapes(server.execute("select @@character_set_server")[0][0])
    drop_databases(server)
    server.flush()
    with server.connect() as connection, connection.cursor() as cursor:
        for number, step in enumerate(ddl.steps(STEPS), 1):
            run_step(cursor, step)
            if number % STEPS_A_LOOK == 0:
                assert_same(server, ddl, shapes)
    drop_databases(server)


def assert_same(server: Server, ddl: RandomDdl, shapes: Shapes) -> None:
    """Compare what the log comes to with what the server has."""
    for action in logged_actions(server.flush()):
        shapes.apply(action)
    assert folded(shapes) == described(server, ddl.databases)


def drop_databases(server: Server) -> None:
    """Drop what an earlier seed made."""
    rows: list[Any] = server.execute("show databases")
    for (name,) in rows:
        if name.lower().startswith(("db", "select")):
            server.execute("drop database `" + name.replace("`", "``") + "`")
