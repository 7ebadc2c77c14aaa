"""What mysqldump and mariadb-dump write, the programs that come with the servers."""

import os
import subprocess

from tests.servers.server import Server


def dumped(server: Server, *options: str) -> bytes:
    """Return a dump by the server's own program."""
    program = "usr/bin/mysqldump" if server.flavor == "mysql" else "usr/bin/mariadb-dump"
    command = server.distribution.command(
        program, "--no-defaults", "--user=root", "--host=127.0.0.1", f"--port={server.port}", "--protocol=tcp",
        "--default-character-set=utf8mb4", *options,
    )  # fmt: skip
    done = subprocess.run(command, capture_output=True, check=False, env={**os.environ, "TZ": "Asia/Tokyo"})
    assert done.returncode == 0, done.stderr
    return done.stdout
