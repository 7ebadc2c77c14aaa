"""Scripts of undo against real servers: select in a server's log, print, run with the client."""

import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ingest.sources.snapshot_files import read_snapshot_dir
from recover.undo.changes import select
from recover.undo.classify import Wish
from recover.undo.definitions import Definitions
from recover.undo.plan import Plan, Planner
from recover.undo.script import Ending, Heading, script
from tests.servers import Server, mariadb, mysql56
from tests.servers.rows import Row, table_rows
from tests.support.recover.decoded import decoded_marts

Rows = dict[str, Counter[Row]]


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
    wish: Wish | None = None,
    *,
    rows_only: bool = False,
    ending: Ending = "commit",
) -> tuple[Plan, str]:
    """Return the plan for the changes that fulfil a condition, and its script; empty if it may not be printed."""
    with marts(server, files, folder) as (connection, definitions), Planner(connection, definitions) as planner:
        plan = planner.plan(select(connection, condition, rows_only=rows_only), wish or Wish())
        if not plan.is_printable:
            return plan, ""
        return plan, "\n".join(script(planner, plan, Heading("the end", condition), ending)) + "\n"


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
