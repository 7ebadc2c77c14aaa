"""Measures how the cost of landing grows with the data, simulates the metadata of years, and calculates a volume.

    python -m benchmarks.scale land --work DIR --executors 1      a minute of processor time
    python -m benchmarks.scale metadata --work DIR                a year of hours, 100,000 files, 1,000 tables
    python -m benchmarks.scale model --per-day 1T --days 30       cores, memory, storage and money

`land` lands files of a real server: one, one more, and ten more at once. The driver and each executor are processes of
their own, and an executor has one core. The difference between ten files and one is the cost of nine files without the
fixed cost of a command, on JVMs that are warm. All figures are processor time of all processes, which other work on the
machine hardly changes.
"""

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import scale_metadata, scale_model
from benchmarks.measure import processor_seconds, run
from benchmarks.warehouse import SOURCE, series

FILE_SIZE: Final = 8 << 20
# Files that are landed together, one group after the other. The first warms the JVMs up.
GROUPS: Final = (1, 1, 10)
EXECUTOR_MEMORY: Final = 1024


def land(work: Path, executors: int) -> Iterator[dict[str, Any]]:
    """Land groups of files in an empty warehouse; yield processor seconds and bytes after each group."""
    binlogs, schema = series(work, (sum(GROUPS) + 2) * FILE_SIZE, FILE_SIZE)
    home = work / f"scale-{executors}"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    _choose_cluster(home, executors)

    from binloom.commands.ingest import land_files
    from ingest.landing import land_snapshot
    from ingest.sources.snapshots.snapshot_files import read_snapshot_dir
    from ingest.warehouse.spark import SparkLaunch

    with SparkLaunch(home) as launch:
        launch.session()
        land_snapshot(SOURCE, read_snapshot_dir(schema))
        landed = 0
        for number in GROUPS:
            files = binlogs[landed : landed + number]
            landed += number
            figures: dict[str, Any] = {"executors": executors, "files": number}
            figures["bytes"] = sum(path.stat().st_size for path in files)
            figures["decode"] = _decoding_seconds(files)
            before = processor_seconds(os.getpid())
            land_files(SOURCE, binlogs[0].parent, [path.name for path in files])
            figures["land"] = processor_seconds(os.getpid()) - before
            yield {**figures, **_stored(home)}


def _choose_cluster(home: Path, executors: int) -> None:
    from ingest.warehouse.jvm import spark_folder

    os.environ["BINLOOM_HOME"] = str(home)
    os.environ["BINLOOM_SPARK_MASTER"] = f"local-cluster[{executors},1,{EXECUTOR_MEMORY}]"
    os.environ["BINLOOM_DRIVER_MEMORY"] = "1g"
    # Spark looks for these when it starts an executor.
    os.environ["SPARK_HOME"] = str(spark_folder())
    os.environ["SPARK_SCALA_VERSION"] = "2.13"


def _decoding_seconds(binlogs: list[Path]) -> float:
    outputs = (run([sys.executable, "-m", "benchmarks.decode", str(path)], capture=True).output for path in binlogs)
    return sum(float(json.loads(output)["seconds"]) for output in outputs)


def _stored(home: Path) -> dict[str, int]:
    landed = [path for path in (home / "warehouse").rglob("*.parquet") if not path.name.startswith((".", "_"))]
    metastore = [path for path in (home / "metastore").rglob("*") if path.is_file()]
    return {
        "landed_bytes": sum(path.stat().st_size for path in landed),
        "landed_files": len(landed),
        "metastore_bytes": sum(path.stat().st_size for path in metastore),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sections = parser.add_subparsers(dest="section", required=True)
    of_land = sections.add_parser("land")
    of_land.add_argument("--work", type=Path, required=True)
    of_land.add_argument("--executors", type=int, default=1)
    scale_metadata.add_arguments(sections.add_parser("metadata"))
    scale_model.add_arguments(sections.add_parser("model"))
    options = vars(parser.parse_args())
    section = options.pop("section")
    if section == "model":
        print(scale_model.model(**options))
        return
    measured = land(**options) if section == "land" else scale_metadata.metadata(**options)
    started = time.monotonic()
    for figures in measured:
        print(json.dumps({**figures, "wall_seconds": round(time.monotonic() - started)}), flush=True)


if __name__ == "__main__":
    main()
