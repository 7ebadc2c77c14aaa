"""What mysqldump and mariadb-dump write, the programs that come with the servers."""

import os
import subprocess

from tests.servers import Server, mysql, mysql56


def dumped(server: Server, *options: str) -> bytes:
    """Return a dump by the server's own program."""
    # The package of MySQL 5.6 has no programs of the client.
    tools = mysql if server.distribution is mysql56 else server.distribution
    plugins = f"--plugin-dir={tools.root / 'usr/lib/mysql/plugin'}"
    older = ["--column-statistics=0", "--set-gtid-purged=OFF", plugins] if server.distribution is mysql56 else []
    program = "usr/bin/mysqldump" if tools.flavor == "mysql" else "usr/bin/mariadb-dump"
    command = tools.command(
        program, "--no-defaults", "--user=root", "--host=127.0.0.1", f"--port={server.port}", "--protocol=tcp",
        "--default-character-set=utf8mb4", *older, *options,
    )  # fmt: skip
    done = subprocess.run(command, capture_output=True, check=False, env={**os.environ, "TZ": "Asia/Tokyo"})
    assert done.returncode == 0, done.stderr
    return done.stdout
