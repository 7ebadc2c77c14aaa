"""A landing whose driver is killed after its first commit: `python -m tests.support.landing.killed_driver HOME`.

Java has a process group of its own and outlives Python for a moment, as it does when only Python is killed.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from ingest.landing import IngestOptions, IngestResult, ingest, run
from ingest.landing.options import Progress
from ingest.sources.files.directory import find_binlogs
from tests.support.landing.binlogs import SHOP

SMALL = IngestOptions(segment_bytes=8_000)
SEGMENTS_A_COMMIT = 4


def land(home: Path, progress: Progress | None = None) -> IngestResult:
    """Land two files in several segments each."""
    return ingest("shop", find_binlogs(SHOP), SMALL, home=home, progress=progress)


def land_and_die(home: Path) -> None:
    """Land, and kill this process after the first commit, which has a few of the segments."""
    commit = run.Run._commit

    def commit_and_die(self: run.Run, *arguments: Any) -> None:
        commit(self, *arguments)
        os.kill(os.getpid(), signal.SIGKILL)

    run.COMMIT_SEGMENTS = SEGMENTS_A_COMMIT
    run.Run._commit = commit_and_die  # type: ignore[method-assign]
    land(home)


if __name__ == "__main__":
    land_and_die(Path(sys.argv[1]))
