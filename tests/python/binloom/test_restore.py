"""`binloom restore` on real servers: tables from a dump and the log equal what the server had at that moment."""

import gzip
import subprocess
from pathlib import Path

import pytest

from tests.servers import Server
from tests.servers.dumped import dumped
from tests.servers.marked import marked
from tests.servers.rows import table_rows
from tests.support.binlog import workload
from tests.support.binlog.workload_tables import server_charsets, tables
from tests.support.depth import at_depth
from tests.support.in_process import binloom_here
from tests.support.recover.undo_servers import Rows, is_new, rows_of, run
from tests.support.recover.undo_workload import TABLES, Workload, play

SERVERS = marked("mysql", "mariadb", deep=("mysql56", "mariadb118"))
SESSION = f"set session sql_mode = '{workload.SQL_MODE}', time_zone = '+00:00', group_concat_max_len = 10000000"
# No statement can write the number 0 of an ENUM.
VALID = f"update {workload.SCHEMA}.enums_and_sets set single = null where single = ''"
SCHEMA, BACK = "kept", "kept_again"


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest) -> Server:
    live: Server = request.getfixturevalue(f"{request.param}_server")
    return live


def position(server: Server) -> str:
    """Return where the log of a server ends."""
    file, pos, *_ = server.execute("show binary log status" if is_new(server) else "show master status")[0]
    return f"{file}:{pos}"


def dump(server: Server, path: Path, *options: str, schema: str = SCHEMA) -> Path:
    """Write a dump of a schema with the server's own program."""
    source = "--source-data=2" if server.flavor == "mysql" else "--master-data=2"
    path.write_bytes(dumped(server, source, "--single-transaction", *options, "--databases", schema))
    return path


def restore(*words: object, code: int = 0) -> "subprocess.CompletedProcess[str]":
    """Run the command."""
    done = binloom_here("restore", *words)
    assert done.returncode == code, done.stderr
    return done


def files(server: Server) -> list[str]:
    """Return the option of the binlog files."""
    return ["--files", *map(str, server.binlogs())]


def create(server: Server, schema: str) -> None:
    """Create the tables of the random transactions."""
    server.execute(f"drop database if exists {schema}", f"create database {schema} character set utf8mb4")
    with server.connect(database=schema) as connection, connection.cursor() as cursor:
        for statement in TABLES.values():
            cursor.execute(statement)


def applied(server: Server, script: str, schema: str = SCHEMA) -> Rows:
    """Run a script on a copy of its schema; return the rows of the copy."""
    done = run(server, script.replace(f"`{schema}`.", f"`{BACK}`."))
    assert done.returncode == 0, done.stderr
    return rows_of(server, BACK)


def test_random_changes_after_a_dump(server: Server, tmp_path: Path) -> None:
    for seed in range(at_depth(2, 40)):
        create(server, SCHEMA)
        create(server, BACK)
        with server.connect(autocommit=False, database=SCHEMA) as connection, connection.cursor() as cursor:
            play(cursor, Workload(3 * seed).transactions(), {})
            taken = dump(server, tmp_path / "dump.sql", *(["--hex-blob"] if seed % 2 else []))
            play(cursor, Workload(3 * seed + 1).transactions(), {})
            moment, expected = position(server), rows_of(server, SCHEMA)
            play(cursor, Workload(3 * seed + 2).transactions(), {})
        output = tmp_path / "restored.sql"
        restore(f"{SCHEMA}.*", "--from-dump", taken, "--as-of", moment, "-o", output, *files(server))
        assert applied(server, output.read_text()) == expected, seed


def test_values_of_all_types(server: Server, tmp_path: Path) -> None:
    made = [one for one in tables(server, server_charsets(server)) if one.key == ("id",) and one.engine == "InnoDB"]
    made = [
        one
        for one in made
        if not (one.is_versioned or one.extra_statements) and one.name.isascii() and len(one.columns) < 50
    ]
    for schema in (workload.SCHEMA, BACK):
        server.execute(f"drop database if exists {schema}", f"create database {schema}")
    # Some documents of this table cannot be written as SQL.
    made = [one for one in made if one.name != "documents"]
    since: list[str] = []
    for table in made:
        server.execute(table.ddl(), table.ddl().replace(f"{workload.SCHEMA}.", f"{BACK}.", 1))
        first, *later = table.statements()
        inserts = [one for one in later if one.startswith("insert") and " values " in one]
        server.execute(SESSION, first, *inserts)
        since += [one for one in later if one not in inserts]
    taken = dump(server, tmp_path / "dump.sql", schema=workload.SCHEMA)
    packed = tmp_path / "dump.sql.gz"
    packed.write_bytes(gzip.compress(taken.read_bytes()))
    names = [f"{workload.SCHEMA}.{table.name}" for table in made]
    for statements in ([], since):
        server.execute(SESSION, *statements, VALID)
        output = tmp_path / "restored.sql"
        restore(*names, "--rounded", "--from-dump", packed, "-o", output, *files(server))
        server.execute(*(f"delete from {BACK}.`{table.name}`" for table in made))
        done = run(server, output.read_text().replace(f"`{workload.SCHEMA}`.", f"`{BACK}`."))
        assert done.returncode == 0, done.stderr
        for table in made:
            # The dump does not have all digits of a FLOAT; the log has.
            if table.name != "floats" or statements:
                rows = table_rows(server, BACK, table.name)[1]
                assert sorted(map(repr, rows)) == sorted(map(repr, table_rows(server, workload.SCHEMA, table.name)[1]))
