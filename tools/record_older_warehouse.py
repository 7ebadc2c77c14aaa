"""Record a small home of an older commit for `tests/python/models/test_older_warehouse.py`.

    python -m tools.record_older_warehouse CHECKOUT

CHECKOUT is a folder with the older commit. Its own commands land and build; MariaDB runs here. The metastore contains
absolute paths, so the home is made at `PLACE`, where the test unpacks it.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final

from tests.servers import mariadb
from tests.support.commands import DBT
from tests.support.older_warehouse import ARCHIVE, FIRST_FILE, FOLLOWED, LANDED, PLACE, SAMPLE, SERVER_OPTIONS, run

_STATEMENTS: Final = (
    """
    create database yard
    create table yard.boats (id int unsigned primary key, kind enum('sail', 'motor'), name varchar(20), n decimal(9, 2))
    create table yard.logged_as_text (id int primary key, n int)
    insert into yard.boats values (1, 'sail', 'Ida', 1.5), (2, 'motor', 'Åse', null)
    update yard.boats set n = n + 1
    set session binlog_format = 'STATEMENT'
    insert into yard.logged_as_text values (1, 1)
    update yard.logged_as_text set n = 2
    set session binlog_format = 'ROW'
    """,
    """
    alter table yard.boats add column length int after kind
    update yard.boats set length = 7 where id = 1
    delete from yard.boats where id = 2
    insert into yard.boats values (4000000000, 'motor', 12, 'Bo', 0)
    """,
)


def record(checkout: Path) -> None:
    """Write `ARCHIVE`."""
    shutil.rmtree(PLACE, ignore_errors=True)
    home, folder = PLACE / "home", PLACE / "server"
    environment = {**os.environ, "BINLOOM_HOME": str(home), "PYTHONPATH": str(checkout)}
    module = "binloom.cli" if (checkout / "binloom").is_dir() else "ingest.cli"

    def binloom(*arguments: object) -> None:
        command = [sys.executable, "-m", module, *map(str, arguments)]
        subprocess.run(command, cwd=checkout, env=environment, check=True)

    sample = checkout / "samples" / SAMPLE
    binloom("snapshot", "--source", LANDED, "--from-dir", sample / "schema")
    binloom("ingest", "--source", LANDED, "--binlog-dir", sample, "--files", FIRST_FILE)
    with mariadb.start(folder, SERVER_OPTIONS) as server:
        live = ("--server", server.host, "--port", server.port, "--user", "root")
        for part in _STATEMENTS:
            run(server, part)
            binloom("snapshot", "--source", FOLLOWED, *live)
            binloom("follow", "--source", FOLLOWED, "--once", *live)
            server.flush()
    build = [DBT, "build", "--exclude-resource-type", "unit_test", "--target-path", str(PLACE / "target")]
    subprocess.run([*build, "--log-path", str(PLACE / "logs")], cwd=checkout, env=environment, check=True)
    with tarfile.open(ARCHIVE, "w:xz") as archive:
        archive.add(home, "home", filter=_without_logs)
        archive.add(folder / "binlog", "binlog")
    shutil.rmtree(PLACE)


def _without_logs(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Leave out logs: they name folders of the machine."""
    return None if member.name.endswith(".log") else member


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    record(parser.parse_args().checkout.absolute())
