"""The peer of most measurements: the server's own tool, which prints binlogs as text."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.measure import Measured, run
from tests.servers import DISTRIBUTIONS

ONE_CORE: Final = {0}


def print_by_tool(server: str, files: Sequence[Path]) -> Measured:
    """Run `mysqlbinlog -v` on files and discard its output, on one core."""
    command = DISTRIBUTIONS[server].binlogtool_command("-v", "--base64-output=decode-rows", *map(str, files))
    return run(command, environment={"TZ": "UTC"}, cores=ONE_CORE)
