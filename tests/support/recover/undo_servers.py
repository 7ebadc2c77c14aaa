"""Scripts of undo against real servers: select in a server's log, print, run with the client."""

import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ingest.sources.servers.address import ServerAddress
from ingest.sources.snapshots.snapshot_files import read_snapshot_dir
from recover.undo.options import UndoOptions
from recover.undo.plan.planner import Plan, Planner
from recover.undo.print.script import Ending, Heading, script
from recover.undo.prove.against import LiveServer
from recover.undo.select.cascades import add_cascades
from recover.undo.select.selected import select
from recover.undo.tables.definitions import Definitions
from tests.servers import Server, mariadb, mysql56
from tests.servers.rows import Row, table_rows
from tests.support.recover.decoded import decoded_marts

Rows = dict[str, Counter[Row]]


@dataclass(frozen=True)
class Case:
    """Statements before, in and after the transaction that is taken back. Without `after`, it never happened."""

    name: str
    before: tuple[str, ...]
    damage: tuple[str, ...]
    after: tuple[str, ...] = ()
    not_on: tuple[str, ...] = ()
    by_transaction: bool = False

    def __str__(self) -> str:
        return self.name


def transaction(server: Server, schema: str, *groups: tuple[str, ...]) -> None:
    """Run each group of statements as a transaction."""
    with server.connect(autocommit=False, database=schema) as connection, connection.cursor() as cursor:
        for statements in groups:
            for statement in statements:
                cursor.execute(statement)
            connection.commit()


def played(
    server: Server, case: Case, schema: str, is_possible_without: bool = True, *, is_begin_logged: bool = True
) -> tuple[Path, str]:
    """Play a case with the damage in one schema, and without it in another; return the log and the selection."""
    for name in (schema, f"{schema}_without"):
        server.execute(f"drop database if exists {name}", f"create database {name}")
    server.flush()
    transaction(server, schema, case.before)
    if not is_begin_logged:
        server.flush()
    server.execute(f"create table {schema}.marker (a int primary key)", f"drop table {schema}.marker")
    before = position_of(server)
    transaction(server, schema, case.damage)
    end = position_of(server)
    transaction(server, schema, case.after)
    log = server.flush()
    if is_possible_without:
        transaction(server, f"{schema}_without", case.before, case.after)
    return log, f"schema_name = '{schema}' and transaction_pos >= {before} and transaction_pos < {end}"


def position_of(server: Server) -> int:
    """Return where the next event of a server's log begins."""
    return int(server.execute("show binary log status" if is_new(server) else "show master status")[0][1])


def is_new(server: Server) -> bool:
    """Whether a server has the names of statements that MySQL 8 introduced."""
    return server.flavor == "mysql" and server.distribution is not mysql56


@contextmanager
def marts(server: Server, files: Sequence[Path], folder: Path) -> Iterator[tuple[Any, Definitions]]:
    """Give the decoded log of a server, and the definitions of its tables now."""
    snapshot = read_snapshot_dir(server.snapshot_dir(folder))
    connection = decoded_marts(files, snapshot)
    with connection:
        yield connection, Definitions.of_rows(snapshot.columns, snapshot.keys, snapshot.foreign_keys)


def undone(
    server: Server,
    files: Sequence[Path],
    folder: Path,
    condition: str,
    options: UndoOptions | None = None,
    *,
    rows_only: bool = False,
    ending: Ending = "commit",
    against: ServerAddress | None = None,
    with_cascades: bool = False,
) -> tuple[Plan, str]:
    """Return the plan for the changes that fulfil a condition, and its script; empty if it may not be printed."""
    with ExitStack() as opened:
        connection, definitions = opened.enter_context(marts(server, files, folder))
        live = None if against is None else opened.enter_context(LiveServer(against))
        planner = opened.enter_context(Planner(connection, definitions, live))
        selected = select(connection, condition, rows_only=rows_only)
        if with_cascades:
            add_cascades(connection, selected, definitions)
            selected = select(connection, condition)
        plan = planner.plan(selected, options or UndoOptions())
        if not plan.is_printable:
            return plan, ""
        return plan, "\n".join(script(planner, plan, Heading("the end", condition), ending)) + "\n"


def root_of(server: Server) -> ServerAddress:
    """Return the address of a server, with the login of its root."""
    return ServerAddress(server.host, server.port)


def statements_of(text: str) -> list[str]:
    """Return the statements of a script that change rows."""
    return [line for line in text.splitlines() if line.startswith(("INSERT ", "UPDATE ", "DELETE "))]


def run(server: Server, text: str, *options: str) -> "subprocess.CompletedProcess[str]":
    """Run a script with the server's own client."""
    # The package of MySQL 5.6 has no client.
    tools = mariadb if server.distribution is mysql56 else server.distribution
    program = "usr/bin/mysql" if tools.flavor == "mysql" else "usr/bin/mariadb"
    command = tools.command(
        program, "--no-defaults", f"--character-sets-dir={tools.share / 'charsets'}", "--host=127.0.0.1",
        f"--port={server.port}", "--user=root", *options,
    )  # fmt: skip
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def rows_of(server: Server, schema: str) -> Rows:
    """Return the rows of all tables of a schema."""
    tables = server.execute(f"select table_name from information_schema.tables where table_schema = '{schema}'")
    return {table: Counter(table_rows(server, schema, table)[1]) for (table,) in tables}
