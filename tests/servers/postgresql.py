"""PostgreSQL as the metastore of Spark, from the packages of Debian."""

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ingest.warehouse.jvm import SHORT_LIVED_OPTIONS, find_java, spark_folder
from tests.servers.ports import ReservedPort
from tests.servers.server import ServerStartError, _end_with_parent
from tests.support.patience import PATIENCE_SECONDS

_DRIVER = Path("/usr/share/java/postgresql.jar")
_ACCOUNT = "postgres"


def why_no_postgresql() -> str:
    """Return what is missing, and how to get it; empty if nothing is."""
    if _programs() is not None and _DRIVER.exists():
        return ""
    return "PostgreSQL or its JDBC driver is missing: apt-get install postgresql libpostgresql-jdbc-java"


def _programs() -> Path | None:
    return next((path.parent for path in sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))), None)


@dataclass(frozen=True)
class PostgreSQL:
    """A server that answers on this machine only, with the empty tables of a metastore."""

    port: int

    @property
    def metastore_settings(self) -> dict[str, str]:
        """Return the settings with which a session of Spark keeps its metastore here."""
        return {
            "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:postgresql://127.0.0.1:{self.port}/postgres",
            "spark.hadoop.javax.jdo.option.ConnectionDriverName": "org.postgresql.Driver",
            "spark.hadoop.javax.jdo.option.ConnectionUserName": _ACCOUNT,
            "spark.hadoop.javax.jdo.option.ConnectionPassword": "not asked for",
            "spark.driver.extraClassPath": str(_DRIVER),
            "spark.sql.hive.metastorePartitionPruningFallbackOnException": "true",
        }


@contextlib.contextmanager
def postgresql() -> Iterator[PostgreSQL]:
    """Start a server until the block ends."""
    programs = _programs()
    assert programs is not None, why_no_postgresql()
    # PostgreSQL refuses to run as root, and its own account cannot enter the folders of the tests.
    account = _ACCOUNT if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="binloom-postgresql-", dir="/tmp"))
    process, reserved = None, ReservedPort()
    try:
        if account is not None:
            os.chown(folder, pwd.getpwnam(account).pw_uid, -1)
        data, port = folder / "data", reserved.number
        options = ["--auth=trust", f"--username={_ACCOUNT}", "--encoding=UTF8", "--no-sync"]
        subprocess.run([programs / "initdb", *options, data], check=True, capture_output=True, user=account, cwd=folder)
        settings = {
            "port": port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": folder,
            "fsync": "off",
        }
        log = folder / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [
                    *(programs / "postgres", "-D", data),
                    *(part for name, value in settings.items() for part in ("-c", f"{name}={value}")),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                user=account,
                cwd=folder,
                preexec_fn=_end_with_parent,
            )
        _wait_until_it_answers(process, programs, port, log)
        _create_tables(port, folder)
        yield PostgreSQL(port)
    finally:
        if process is not None:
            # Its own children end with it.
            process.terminate()
            process.wait()
        reserved.free()
        shutil.rmtree(folder, ignore_errors=True)


def _create_tables(port: int, folder: Path) -> None:
    """Create the tables of a metastore, as docs/cluster.md does.

    A session creates them when it first needs them, each in a connection of its own. On PostgreSQL such a connection
    waits for ever for the transaction that needs the table.
    """
    jars = spark_folder() / "jars"
    with zipfile.ZipFile(next(jars.glob("hive-metastore-*.jar"))) as archive:
        (folder / "package.jdo").write_bytes(archive.read("package.jdo"))
    (folder / "metastore.properties").write_text(
        f"datanucleus.ConnectionURL=jdbc:postgresql://127.0.0.1:{port}/postgres\n"
        f"datanucleus.ConnectionDriverName=org.postgresql.Driver\ndatanucleus.ConnectionUserName={_ACCOUNT}\n"
        "datanucleus.identifierFactory=datanucleus1\ndatanucleus.schema.autoCreateAll=true\n"
    )
    command = [find_java(), *SHORT_LIVED_OPTIONS, "-cp", f"{jars}/*:{_DRIVER}"]
    command += ["org.datanucleus.store.schema.SchemaTool", "-create", "-props", folder / "metastore.properties"]
    subprocess.run([*command, folder / "package.jdo"], check=True, capture_output=True, cwd=folder)


def _wait_until_it_answers(process: "subprocess.Popen[bytes]", programs: Path, port: int, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    asked = [programs / "pg_isready", "--quiet", "--host=127.0.0.1", f"--port={port}"]
    while subprocess.run(asked, check=False).returncode != 0:
        if process.poll() is not None or time.monotonic() > deadline:
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
            raise ServerStartError(f"PostgreSQL does not answer:\n{tail}")
        time.sleep(0.1)
