"""Run as a process: land a folder of binlogs, or print what the tables hold. Killed by the test of faults.

python -m tests.python.landing.faulted land HOME DIRECTORY
python -m tests.python.landing.faulted dump HOME
"""

import hashlib
import json
import sys
from pathlib import Path

from ingest.landing import IngestOptions, ingest, land
from ingest.sources.directory import find_binlogs
from tests.python.landing.spark import all_rows, spark_home

SOURCE = "faulted"
SEGMENT_BYTES = 4_000


def main() -> None:
    """Do what the arguments say."""
    home = Path(sys.argv[2])
    if sys.argv[1] == "land":
        # Commits come often, so that a kill may find some segments committed and others not.
        land.COMMIT_SECONDS, land.COMMIT_SEGMENTS = 0.0, 2
        ingest(SOURCE, find_binlogs(Path(sys.argv[3])), IngestOptions(segment_bytes=SEGMENT_BYTES), home=home)
    else:
        with spark_home(home) as session:
            tables = all_rows(session, SOURCE)
        digests = {name: [len(rows), hashlib.sha256(repr(rows).encode()).hexdigest()] for name, rows in tables.items()}
        print(json.dumps(digests))


if __name__ == "__main__":
    main()
