"""Lands a folder of binlogs, compacts it, or prints the content of the tables; the test of faults kills this process.

python -m tests.support.landing.faulted land HOME DIRECTORY
python -m tests.support.landing.faulted compact HOME OPERATIONS
python -m tests.support.landing.faulted dump HOME
"""

import hashlib
import json
import os
import signal
import sys
from pathlib import Path

from ingest.landing import IngestOptions, ingest, run
from ingest.landing.compact import compact_closed_files, merge_logs, remove_replaced
from ingest.landing.held import StreamLanding
from ingest.sources.directory import find_binlogs
from tests.support.landing.spark import all_rows, spark_home

SOURCE = "faulted"
SEGMENT_BYTES = 4_000

_OPERATIONS = {"os.rename", "os.remove", "os.rmdir"}


def main() -> None:
    """Run the command from the arguments."""
    home = Path(sys.argv[2])
    if sys.argv[1] == "land":
        # Commits are frequent, so that a kill may find some segments committed and others not.
        run.COMMIT_SECONDS, run.COMMIT_SEGMENTS = 0.0, 2
        ingest(SOURCE, find_binlogs(Path(sys.argv[3])), IngestOptions(segment_bytes=SEGMENT_BYTES), home=home)
    elif sys.argv[1] == "compact":
        with StreamLanding(SOURCE, home) as landing:
            die_before(int(sys.argv[3]))
            compact_closed_files(landing)
            remove_replaced(landing)
            merge_logs(landing)
    else:
        with spark_home(home) as session:
            tables = all_rows(session, SOURCE)
        digests = {name: [len(rows), hashlib.sha256(repr(rows).encode()).hexdigest()] for name, rows in tables.items()}
        print(json.dumps(digests))


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
