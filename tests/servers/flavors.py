"""Oracle MySQL and MariaDB, as Debian packages them: what differs between the two."""

import subprocess
from pathlib import Path

from tests.servers.distribution import Distribution
from tests.servers.packages import ServerPackagesError

# What mariadb-install-db feeds to the server, in its order. The script itself would look for the
# system's own loader and libraries.
SYSTEM_TABLES = [
    "mysql_system_tables.sql",
    "mysql_performance_tables.sql",
    "mysql_system_tables_data.sql",
    "fill_help_tables.sql",
    "maria_add_gis_sp_bootstrap.sql",
    "mysql_sys_schema.sql",
]


class MySQL(Distribution):
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
        command = self.command(self.server_program, "--no-defaults", "--user=root", *self.server_options())
        done = subprocess.run(
            [*command, f"--datadir={data}", "--initialize-insecure", "--skip-log-bin"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise ServerPackagesError(f"MySQL {self.version} could not make a data directory:\n{done.stderr[-1500:]}")
        # Every copy is a server of its own: it makes up its own uuid when it starts.
        (data / "auto.cnf").unlink(missing_ok=True)


class MariaDB(Distribution):
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
            # MariaDB starts with MIXED, in which few changes are logged as rows.
            "--binlog-format=ROW",
        ]

    def initialise(self, data: Path) -> None:
        (data / "mysql").mkdir(parents=True)
        scripts = [path.read_text() for path in self._scripts()]
        # No socket authentication: root comes in over TCP without a password.
        statements = "create database if not exists mysql;\nuse mysql;\nset @auth_root_socket=null;\n"
        command = self.command(self.server_program, "--no-defaults", "--user=root", *self.server_options())
        done = subprocess.run(
            [*command, f"--datadir={data}", "--bootstrap", "--skip-log-bin", "--enforce-storage-engine="],
            input=statements + "".join(scripts),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise ServerPackagesError(f"MariaDB {self.version} could not make a data directory:\n{done.stderr[-1500:]}")

    def _scripts(self) -> list[Path]:
        """Return the scripts that this version has; MariaDB 11 calls them mariadb_…, and 10.5 has no sys schema."""
        names = [name for each in SYSTEM_TABLES for name in (each, each.replace("mysql_", "mariadb_"))]
        return [self.share / name for name in dict.fromkeys(names) if (self.share / name).exists()]
