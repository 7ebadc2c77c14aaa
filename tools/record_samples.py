"""Records `samples/` and `tests/fixtures/` on real servers: `python -m tools.record_samples`.

The script sets the clock of the servers, so a sample covers one morning of one day. A new recording
differs from the last one in only a few bytes: microseconds, and values that the server generates.
"""

import shutil
import tempfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from tests.servers import Distribution, Server, mariadb, mysql
from tests.servers.clock import Clock
from tests.servers.shop import DAY, Shop

PROJECT = Path(__file__).resolve().parents[1]
SAMPLES = PROJECT / "samples"
FIXTURES = PROJECT / "tests" / "fixtures"
SERVER_UUID = "5ca1ab1e-0000-4000-8000-0000b1d1003e"

FIXTURE_TABLE = [
    "create database fixture",
    """
    create table fixture.things (
        id int unsigned not null primary key,
        name varchar(40) character set utf8mb4 null,
        latin varchar(40) character set latin1 null,
        kind enum('small','large') null,
        flags set('a','b','c') null,
        price decimal(8,3) null,
        happened_at datetime(6) null,
        document json null
    )
    """,
]
FIXTURE_ROWS = [
    """
    insert into fixture.things values
        (1, 'one', 'Zürich', 'small', 'a,c', 1.5, '2026-11-17 08:00:00.000001', '{"a": 1}'),
        (4294967295, '🎁', null, 'large', '', -99999.999, null, '[null, "é", 2.5]'),
        (3, null, 'ÿ', null, 'b', 0, '2026-11-17 23:59:59.999999', null)
    """,
    "update fixture.things set name = null, price = price + 1 where id <> 3",
    "update fixture.things set document = json_set(document, '$.a', 22) where id = 1",
    "delete from fixture.things where id = 3",
]


def prepare(distribution: Distribution, directory: Path, options: list[str], clock: Clock, moment: datetime) -> Server:
    """Start a server at a point in time, with a uuid that is the same in all recordings."""
    clock.set(moment)
    data = directory / "data"
    shutil.copytree(distribution.pristine(), data)
    if distribution is mysql:
        (data / "auto.cnf").write_text(f"[auto]\nserver-uuid={SERVER_UUID}\n")
    return distribution.start(directory, options, clock.environment)


def record_shop(distribution: Distribution, work: Path) -> None:
    """Record one shop sample: two closed binlogs and the schema at their end."""
    target = SAMPLES / f"shop-{distribution.name}"
    clock = Clock(work)
    with prepare(distribution, work / "shop", [], clock, DAY.replace(hour=7, minute=59)) as server:
        Shop(server, clock).play()
        server.flush()
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for path in server.binlogs()[:2]:
            shutil.copyfile(path, target / path.name)
        server.snapshot_dir(target / "schema")


def fill(server: Server, *before: str) -> None:
    """Write the fixture's rows into a new table, after statements with settings."""
    server.execute("drop database if exists fixture", *before, *FIXTURE_TABLE)
    for statement in FIXTURE_ROWS:
        server.execute(statement)


def fixture(server: Server, name: str, write: Callable[[], None]) -> None:
    """Record the log of `write` as one closed file."""
    server.flush()
    write()
    path = FIXTURES / f"{server.flavor}-{name}.binlog"
    shutil.copyfile(server.flush(), path)


def global_fixture(server: Server, name: str, variable: str, value: str) -> None:
    """Record the fixture's rows under another value of a global variable, and restore the variable."""
    before = server.execute(f"select @@global.{variable}")[0][0]
    server.execute("drop database if exists fixture", f"set global {variable} = {value}")
    fixture(server, name, lambda: fill(server))
    server.execute(f"set global {variable} = {before!r}")


def record_fixtures(distribution: Distribution, work: Path) -> None:
    """Record one small file for each property of the format."""
    FIXTURES.mkdir(exist_ok=True)
    clock = Clock(work)
    with prepare(distribution, work / "fixtures", [], clock, DAY.replace(hour=8)) as server:
        fixture(server, "defaults", lambda: fill(server))
        server.snapshot_dir(FIXTURES / f"{server.flavor}-schema")
        global_fixture(server, "checksum-none", "binlog_checksum", "'NONE'")
        global_fixture(server, "metadata-full", "binlog_row_metadata", "'FULL'")
        global_fixture(server, "row-image-minimal", "binlog_row_image", "'MINIMAL'")
        if server.flavor == "mysql":
            global_fixture(server, "rows-query", "binlog_rows_query_log_events", "1")
            global_fixture(server, "partial-json", "binlog_row_value_options", "'PARTIAL_JSON'")
            global_fixture(server, "transaction-payload", "binlog_transaction_compression", "1")
        else:
            global_fixture(server, "metadata-minimal", "binlog_row_metadata", "'MINIMAL'")
            global_fixture(server, "annotate-off", "binlog_annotate_row_events", "0")
            global_fixture(server, "compressed-events", "log_bin_compress", "1")
        fixture(server, "several-transactions-of-one-table", lambda: _many_transactions(server))
        # A file that the server is still writing: its IN_USE flag is set, and it has no end.
        server.flush()
        fill(server)
        shutil.copyfile(server.binlogs()[-1], FIXTURES / f"{server.flavor}-in-use.binlog")
        last = server.binlogs()[-1]
    # A clean shutdown writes a STOP event instead of a ROTATE.
    shutil.copyfile(last, FIXTURES / f"{distribution.name}-stopped.binlog")


def _many_transactions(server: Server) -> None:
    fill(server)
    with server.connect(autocommit=False) as connection, connection.cursor() as cursor:
        for number in range(10, 40):
            cursor.execute("insert into fixture.things (id, name) values (%s, %s)", (number, f"name {number}"))
            cursor.execute("update fixture.things set price = %s where id = %s", (number, number - 1))
            connection.rollback() if number % 10 == 7 else connection.commit()


def main() -> None:
    for distribution in (mysql, mariadb):
        distribution.get()
        with tempfile.TemporaryDirectory(prefix="record-") as work:
            record_shop(distribution, Path(work))
            record_fixtures(distribution, Path(work))
        print(f"recorded on {distribution.name} {distribution.version}")


if __name__ == "__main__":
    main()
