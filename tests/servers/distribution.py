"""The common parts of MySQL and MariaDB as unpacked servers: downloading them, their tools, starting them."""

import os
import shutil
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.servers.locking import lock
from tests.servers.packages import ServerPackagesError, cache_folder
from tests.servers.server import Server


class Distribution(ABC):
    """A server program with its tools, unpacked under the cache folder.

    Parameters
    ----------
    name
        Name of its folder in the cache.
    """

    flavor: str
    server_program: str
    binlog_program: str

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def marker(self) -> str:
        """The marker of tests that need this server, and the beginning of its fixture's name: `mysql56`."""
        return self.name.replace("-", "").replace(".", "")

    @property
    def root(self) -> Path:
        """The folder that it is unpacked to."""
        return cache_folder() / self.name

    @property
    @abstractmethod
    def share(self) -> Path:
        """The folder of messages, character sets and scripts."""

    def available(self) -> bool:
        """Whether the server can be started without downloading anything."""
        return not self.why_not()

    def why_not(self) -> str:
        """Say why the server cannot be started, and how to fix that; empty when it can be started."""
        if not (self.root / self.server_program).exists():
            return f"{self.name} is not under {cache_folder()}; get it with: python -m tests.servers get {self.name}"
        return ""

    def get(self) -> None:
        """Download the server if it is missing, and prepare its empty data directory."""
        self.unpack()
        if self.why_not():
            raise ServerPackagesError(f"What was unpacked to {self.root} has no {self.server_program}.")
        self.pristine()

    @cached_property
    def version(self) -> str:
        """The version as the server's own binlogs spell it, without suffixes: `9.7.4`."""
        output = subprocess.run(
            self.command(self.server_program, "--no-defaults", "--version"), capture_output=True, text=True, check=True
        ).stdout
        word = output.split("Ver ", 1)[1].split()[0]
        return word.split("-")[0]

    def binlogtool_command(self, *arguments: str) -> list[str]:
        """Return the command line of `mysqlbinlog` or `mariadb-binlog`."""
        charsets = f"--character-sets-dir={self.share / 'charsets'}"
        return self.command(self.binlog_program, "--no-defaults", charsets, *arguments)

    def binlogtool(self, *arguments: str, **options: Any) -> "subprocess.CompletedProcess[Any]":
        """Run `mysqlbinlog` or `mariadb-binlog` in UTC; its output is captured as bytes unless told otherwise."""
        options.setdefault("check", True)
        options.setdefault("env", {**os.environ, "TZ": "UTC"})
        if "stdout" not in options:
            options.setdefault("capture_output", True)
        return subprocess.run(self.binlogtool_command(*arguments), **options)

    def pristine(self) -> Path:
        """Return an initialised, empty data directory to copy; make it the first time."""
        folder = cache_folder() / f"{self.name}-{self.version}.data"
        with lock(folder.with_name(f"{folder.name}.lock")):
            if not folder.exists():
                work = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
                try:
                    self.initialise(work / "data")
                    (work / "data").rename(folder)
                finally:
                    shutil.rmtree(work, ignore_errors=True)
        return folder

    def start(
        self,
        directory: str | os.PathLike[str],
        options: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        server_id: int = 1,
        log_name: str = "binlog",
    ) -> Server:
        """Start a server with its data, binlogs and log in a directory; also a context manager.

        Parameters
        ----------
        directory
            Made when missing. An existing data directory in it is used unchanged.
        options
            Server options, written as on the command line; they go before binloom's own.
        environment
            Variables for the server's process.
        server_id, log_name
            Its id among servers that replicate, and the base name of its binlogs.
        """
        if self.why_not():
            raise ServerPackagesError(self.why_not())
        directory = Path(directory).absolute()
        if not (directory / "data").exists():
            directory.mkdir(parents=True, exist_ok=True)
            shutil.copytree(self.pristine(), directory / "data", symlinks=True)
        server = Server(self, directory, list(options), dict(environment or {}), server_id, log_name)
        server.start()
        return server

    @abstractmethod
    def unpack(self) -> None:
        """Download the server to its folder if it is missing."""

    @abstractmethod
    def command(self, program: str, *arguments: str) -> list[str]:
        """Return a command line that runs one of the unpacked programs."""

    @abstractmethod
    def initialise(self, data: Path) -> None:
        """Make an empty data directory in which root has no password."""

    @abstractmethod
    def server_options(self) -> list[str]:
        """Return the options that this server needs to run from the folder where it was unpacked."""
