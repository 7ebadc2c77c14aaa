"""A running server: one process, one directory, one local port."""

import atexit
import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pymysql

from tests.servers import snapshot
from tests.servers.ports import ReservedPort
from tests.support.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from tests.servers.distribution import Distribution

PR_SET_PDEATHSIG = 1
SOCKET_PATH_LIMIT = 100


class ServerStartError(Exception):
    """The server did not start; the message contains the end of its log."""


class Server:
    """A server process of our own, reachable only from this machine.

    Attributes
    ----------
    host, port, socket
        Where it listens. Root has no password.
    server_id
        The id that it writes into the header of every event.
    binlog_dir, log_name
        Its binlogs, named `binlog.000001` and so on.
    flavor, version
        `mysql` or `mariadb`, and `9.7.4`.
    """

    def __init__(
        self,
        distribution: "Distribution",
        directory: Path,
        options: list[str],
        environment: dict[str, str],
        server_id: int = 1,
        log_name: str = "binlog",
    ) -> None:
        self.distribution = distribution
        self.directory = directory
        self.options = options
        self.environment = environment
        self.server_id = server_id
        self.log_name = log_name
        self.flavor = distribution.flavor
        self.version = distribution.version
        self.binlog_dir = directory / "binlog"
        self.log = directory / "server.log"
        self.host = "127.0.0.1"
        # The server keeps it when it is started again.
        self._reserved_port = ReservedPort()
        self.port = self._reserved_port.number
        self.socket = str(directory / "socket")
        self._socket_folder: Path | None = None
        if len(self.socket) > SOCKET_PATH_LIMIT:  # a socket's path has 107 bytes at most
            self._socket_folder = Path(tempfile.mkdtemp(prefix="server-"))
            self.socket = str(self._socket_folder / "socket")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process and wait until it answers."""
        self.binlog_dir.mkdir(exist_ok=True)
        # A server that starts deletes the temporary tables of every other one in the same folder.
        scratch = self.directory / "tmp"
        scratch.mkdir(exist_ok=True)
        command = self.distribution.command(
            self.distribution.server_program,
            "--no-defaults",
            "--user=root",
            *self.distribution.server_options(),
            f"--server-id={self.server_id}",
            f"--log-bin={self.binlog_dir / self.log_name}",
            "--default-time-zone=+00:00",
            # Tests need no durability, and it costs most of the time.
            "--sync-binlog=0",
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-doublewrite=OFF",
            *self.options,
            f"--datadir={self.directory / 'data'}",
            f"--tmpdir={scratch}",
            f"--socket={self.socket}",
            f"--pid-file={self.directory / 'pid'}",
            f"--port={self.port}",
            f"--bind-address={self.host}",
        )
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "TZ": "UTC", **self.environment},
                preexec_fn=_end_with_parent,
            )
        atexit.register(self.kill)
        self._wait_until_it_answers()

    def _wait_until_it_answers(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                self.connect(connect_timeout=5).close()
                return
            except pymysql.err.OperationalError as error:
                ended = self._process.poll() is not None
                if ended or time.monotonic() > deadline:
                    self.kill()
                    tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])
                    state = "ended" if ended else "does not answer"
                    raise ServerStartError(f"{self.flavor} {self.version} {state} ({error}):\n{tail}") from error
            time.sleep(0.05)

    def stop(self) -> None:
        """Shut the server down cleanly, so that its last binlog is closed."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(PATIENCE_SECONDS)
        self.kill()

    def kill(self) -> None:
        """Kill the process at once, as a crash would."""
        if self._process is not None:
            if self._process.poll() is None:
                self._process.kill()
            self._process.wait()
            self._process = None
        atexit.unregister(self.kill)
        if self._socket_folder is not None:
            for leftover in self._socket_folder.iterdir():
                leftover.unlink()

    def restart(self) -> None:
        """Stop and start again on the same data and port; opens the next binlog."""
        self.stop()
        self.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()
        self._reserved_port.free()
        if self._socket_folder is not None:
            shutil.rmtree(self._socket_folder, ignore_errors=True)

    @property
    def pid(self) -> int | None:
        """The process id while the server runs."""
        return self._process.pid if self._process is not None else None

    def connect(self, **options: Any) -> "pymysql.connections.Connection[Any]":
        """Connect as root with autocommit and utf8mb4; options go to pymysql.

        Without a password there is no TLS: it would take most of the time of a connection.
        """
        defaults = {"user": "root", "password": "", "charset": "utf8mb4", "autocommit": True}
        defaults["ssl_disabled"] = "password" not in options
        return pymysql.connect(host=self.host, port=self.port, **{**defaults, **options})

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements on one connection; return the rows of the last."""
        with self.connect() as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def binlogs(self) -> list[Path]:
        """Return the binlog files, oldest first."""
        return sorted(path for path in self.binlog_dir.glob(f"{self.log_name}.*") if path.suffix[1:].isdigit())

    def flush(self) -> Path:
        """Close the current binlog and open the next; return the closed one."""
        current = self.binlogs()[-1]
        self.execute("flush binary logs")
        return current

    def binlogtool(self, *arguments: str, **options: Any) -> "subprocess.CompletedProcess[Any]":
        """Run this server's own `mysqlbinlog` or `mariadb-binlog`."""
        return self.distribution.binlogtool(*arguments, **options)

    def snapshot_dir(self, directory: str | os.PathLike[str]) -> Path:
        """Write the views that make up a schema snapshot: `columns.json` and so on."""
        with self.connect() as connection:
            return snapshot.write(connection, Path(directory))


def _end_with_parent() -> None:
    """Ask the kernel to end the server when the test process dies, even when that process is killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
