"""Servers that encrypt their binlogs, with keys in a file."""

import json
from pathlib import Path

from tests.servers.distribution import Distribution
from tests.servers.flavors import MySQL
from tests.servers.server import Server

KEYRING = "component_keyring_file"


class MySQLWithKeyring(MySQL):
    """MySQL with a keyring, which a manifest beside its program has to ask for: the program gets a folder here."""

    def __init__(self, base: MySQL, directory: Path) -> None:
        super().__init__(base.name, base.suite, base.packages)
        self.programs, self.plugins = directory / "programs", directory / "plugins"
        for folder in (self.programs, self.plugins):
            folder.mkdir(parents=True)
        program, plugin = base.root / base.server_program, base.root / f"usr/lib/mysql/plugin/{KEYRING}.so"
        (self.programs / program.name).symlink_to(program)
        (self.plugins / plugin.name).symlink_to(plugin)
        (self.programs / "mysqld.my").write_text(json.dumps({"components": f"file://{KEYRING}"}))
        keys = {"path": str(directory / "keys"), "read_only": False}
        (self.plugins / f"{KEYRING}.cnf").write_text(json.dumps(keys))
        self.server_program = str(self.programs / program.name)

    def server_options(self) -> list[str]:
        return [*super().server_options(), f"--plugin-dir={self.plugins}"]


def encrypting_mysql(base: MySQL, directory: Path) -> Server:
    """Start a MySQL with binlog_encryption=ON."""
    return MySQLWithKeyring(base, directory).start(directory / "server", ["--binlog-encryption=ON"])


def encrypting_mariadb(base: Distribution, directory: Path) -> Server:
    """Start a MariaDB with encrypt_binlog=ON; its package must have the plugin file_key_management."""
    keys = directory / "keys"
    keys.write_text(f"1;{'ab' * 32}\n")
    options = ["--plugin-load-add=file_key_management", f"--file-key-management-filename={keys}", "--encrypt-binlog=ON"]
    return base.start(directory / "server", options)
