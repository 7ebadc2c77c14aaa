"""Measures the processor time of the nodes of a build after one more file: `python -m benchmarks.nodes --work DIR`.

All builds run in one process, so that the later ones find a warm JVM, and with one thread, so that the time of the JVM
while a statement runs is the time of that statement. It includes what the JVM compiles meanwhile.
"""

import argparse
import json
import os
import re
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.warehouse import SOURCE, series
from binloom.commands.ingest import land_files
from binloom.commands.project import BUILD, run_dbt
from ingest.landing import land_snapshot
from ingest.sources.snapshots.snapshot_files import read_snapshot_dir
from ingest.warehouse.home import HOME_VARIABLE
from ingest.warehouse.spark import SparkLaunch

FILE_SIZE = 4 << 20
FILES_BEFORE = 2


@dataclass
class Statements:
    """The statements that dbt sent to Spark: their number, and the JVM's seconds by node and kind."""

    jvm: int
    number: int = 0
    seconds: defaultdict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))

    def jvm_seconds(self) -> float:
        """Processor time of the JVM since its start."""
        # The clock of another process: see clock_getcpuclockid(3).
        return time.clock_gettime((~self.jvm << 3) | 2)

    def watch(self) -> None:
        """Measure all statements from now on."""
        from dbt.adapters.spark.session import Cursor

        execute, fetch = Cursor.execute, Cursor.fetchall

        def executed(cursor: Any, sql: str, *parameters: Any) -> None:
            cursor.sql, self.number = sql, self.number + 1
            self._measured(cursor, lambda: execute(cursor, sql, *parameters))

        def fetched(cursor: Any) -> Any:
            return self._measured(cursor, lambda: fetch(cursor))

        Cursor.execute, Cursor.fetchall = executed, fetched

    def _measured(self, cursor: Any, work: Any) -> Any:
        before = self.jvm_seconds()
        try:
            return work()
        finally:
            node = re.search(r'"node_id": "\w+\.\w+\.(\w+)', cursor.sql)
            words = re.sub(r"/\*.*?\*/", "", cursor.sql, flags=re.DOTALL).split()
            key = (node[1] if node else "between nodes", " ".join(words[:2]).lower())
            self.seconds[key] += self.jvm_seconds() - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--work", type=Path, required=True, help="folder of the files and of the warehouse")
    parser.add_argument("--builds", type=int, default=4, help="builds after the first, each after one more file")
    parser.add_argument("--nodes", type=int, default=20, help="number of lines of the most expensive nodes")
    options = parser.parse_args()
    binlogs, schema = series(options.work, (FILES_BEFORE + options.builds + 4) * FILE_SIZE, FILE_SIZE)
    home = options.work / "nodes"
    home.mkdir(exist_ok=True)
    os.environ[HOME_VARIABLE] = str(home)
    with SparkLaunch(home, short_lived=True) as launch:
        compiled = launch.session()._jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()
        statements = Statements(jvm=child_named("java"))
        statements.watch()
        land_snapshot(SOURCE, read_snapshot_dir(schema))
        for build in range(options.builds + 1):
            files = [path.name for path in binlogs[: FILES_BEFORE + build]]
            land_files(SOURCE, binlogs[0].parent, files)
            statements.number = 0
            statements.seconds.clear()
            before, classes = statements.jvm_seconds() + time.process_time(), compiled.getCount()
            run = run_dbt([*BUILD, "--threads", "1"], home)
            seconds = statements.jvm_seconds() + time.process_time() - before
            print(
                f"{len(files)} files: {seconds:.1f} s, {statements.number} statements, "
                f"{compiled.getCount() - classes} classes compiled; {outcome(home)}",
                flush=True,
            )
            for failure in run.failures:
                print(failure)
    dearest = sorted(statements.seconds.items(), key=lambda each: -each[1])
    for (node, statement), seconds in dearest[: options.nodes]:
        print(f"{seconds:8.2f} s  {node}: {statement}")


def child_named(name: str) -> int:
    """Return the id of the child process of this name."""
    for children in Path("/proc/self/task").glob("*/children"):
        for pid in children.read_text().split():
            if Path(f"/proc/{pid}/comm").read_text().strip() == name:
                return int(pid)
    raise ProcessLookupError(name)


def outcome(home: Path) -> str:
    """Return in words how many models and tests the last build ran, and how many models had no new parts."""
    counts: Counter[str] = Counter()
    for result in json.loads((home / "target" / "run_results.json").read_text())["results"]:
        kind = result["unique_id"].partition(".")[0]
        message = result["adapter_response"].get("_message", "")
        counts[f"{kind}s {message if message == 'NOTHING NEW' else 'run'}"] += kind in ("model", "test")
    return ", ".join(f"{number} {words}" for words, number in sorted(counts.items()) if number)


if __name__ == "__main__":
    main()
