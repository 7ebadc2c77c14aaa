"""Dumps that mydumper writes of a server's databases."""

import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from tests.servers import Server

MYDUMPER: Final = shutil.which("mydumper")
needs_mydumper = pytest.mark.skipif(MYDUMPER is None, reason="needs mydumper (apt-get install mydumper)")

_SECONDS: Final = 20
_TRIES: Final = 5


def dumped_by_mydumper(server: Server, folder: Path, schemas: str, *options: str) -> Path:
    """Return the folder of a dump.

    Parameters
    ----------
    schemas
        Regular expression of the names of the databases.
    """
    command = [
        str(MYDUMPER), "--host=127.0.0.1", f"--port={server.port}", "--user=root", f"--outputdir={folder}",
        f"--regex=^({schemas})\\.", *options,
    ]  # fmt: skip
    for _ in range(_TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        # The threads of mydumper 0.10 sometimes wait for each other for ever.
        with suppress(subprocess.TimeoutExpired):
            done = subprocess.run(command, capture_output=True, check=False, text=True, timeout=_SECONDS)
            assert done.returncode == 0, done.stderr
            return folder
    raise AssertionError("mydumper did not end")
