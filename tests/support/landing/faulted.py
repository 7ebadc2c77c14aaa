"""Lands a folder of binlogs or its schema, or compacts what has landed; tests kill this process.

python -m tests.support.landing.faulted land HOME
python -m tests.support.landing.faulted compact HOME OPERATIONS
python -m tests.support.landing.faulted snapshot HOME OPERATIONS
"""

import os
import signal
import sys
from pathlib import Path

from ingest.landing import IngestOptions, ingest, land_snapshot, run
from ingest.landing.compact import compact_closed_files, merge_logs, remove_replaced
from ingest.landing.held import StreamLanding
from ingest.sources.files.directory import find_binlogs
from ingest.sources.snapshots.snapshot_files import read_snapshot_dir
from tests.support.landing.binlogs import SHOP

SOURCE = "faulted"
SEGMENT_BYTES = 4_000

_OPERATIONS = {"os.rename", "os.remove", "os.rmdir"}


def main() -> None:
    """Run the command from the arguments."""
    home = Path(sys.argv[2])
    if sys.argv[1] == "land":
        land(home)
    elif sys.argv[1] == "snapshot":
        die_before(int(sys.argv[3]))
        land_schema(home)
    else:
        with StreamLanding(SOURCE, home) as landing:
            die_before(int(sys.argv[3]))
            compact_closed_files(landing)
            remove_replaced(landing)
            merge_logs(landing)


def land(home: Path, is_over: Path | None = None) -> None:
    """Land the sample; create a file when it is landed."""
    # Commits are frequent, so that a kill may find some segments committed and others not.
    run.COMMIT_SECONDS, run.COMMIT_SEGMENTS = 0.0, 2
    ingest(SOURCE, find_binlogs(SHOP), IngestOptions(segment_bytes=SEGMENT_BYTES), home=home)
    if is_over is not None:
        is_over.touch()


def land_schema(home: Path) -> None:
    """Land the schema of the sample, which names its rows."""
    land_snapshot(SOURCE, read_snapshot_dir(SHOP / "schema"), home)


def die_before(operations: int) -> None:
    """Kill the process before it renames or deletes the given number of files and folders."""
    done = 0

    def count(event: str, arguments: object) -> None:
        nonlocal done
        if event in _OPERATIONS:
            done += 1
            if done == operations:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)


if __name__ == "__main__":
    main()
