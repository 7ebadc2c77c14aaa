"""A warehouse of a benchmark in a folder of its own, and the series of binlog files that it lands."""

import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as parquet

from benchmarks.generate import generate
from benchmarks.measure import Measured, run

PROJECT = Path(__file__).resolve().parents[1]
BINLOOM = str(Path(sys.executable).with_name("binloom"))
DBT = str(Path(sys.executable).with_name("dbt"))
SOURCE = "bench"
SERVER = "mysql"
BUSY_FILE = 128 << 20

# One line of the report: what, figure, gate.
Line = tuple[str, str, str]


@dataclass(frozen=True)
class Warehouse:
    """A warehouse in a folder of its own, and a series of files to land in it."""

    folder: Path
    binlogs: Sequence[Path]
    schema: Path

    def begin(self) -> None:
        """Start with an empty warehouse and land the schema."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.binloom("snapshot", "--source", SOURCE, "--from-dir", str(self.schema))

    def land(self, files: int) -> Measured:
        """Land the first `files` files; files that are already landed stay."""
        directory = str(self.binlogs[0].parent)
        names = ",".join(path.name for path in self.binlogs[:files])
        return self.binloom("ingest", "--source", SOURCE, "--binlog-dir", directory, "--files", names)

    def binloom(self, *arguments: str) -> Measured:
        """Run a command of binloom."""
        return run([BINLOOM, *arguments], environment=self._environment)

    def dbt(self, *arguments: str) -> Measured:
        """Run a dbt command."""
        places = ["--project-dir", str(PROJECT), "--profiles-dir", str(PROJECT), "--target-path", str(self._target)]
        return run([DBT, *arguments, *places, "--log-path", str(self.folder / "logs")], environment=self._environment)

    def base(self) -> Measured:
        """Build a project of one view with the same settings: the start of dbt and Spark."""
        project = self.folder / "base"
        (project / "models").mkdir(parents=True, exist_ok=True)
        (project / "dbt_project.yml").write_text("name: base\nprofile: binloom\nmodels:\n  +materialized: view\n")
        (project / "models" / "one.sql").write_text("select 1 as one\n")
        places = ["--project-dir", str(project), "--profiles-dir", str(PROJECT)]
        return run([DBT, "build", *places], environment=self._environment)

    @property
    def _environment(self) -> dict[str, str]:
        return {"BINLOOM_HOME": str(self.folder)}

    @property
    def _target(self) -> Path:
        return self.folder / "target"

    def node_seconds(self) -> dict[str, float]:
        """Return the seconds that each model and test of the last dbt command took, by name, the longest first."""
        results = json.loads((self._target / "run_results.json").read_text())["results"]
        seconds = {result["unique_id"].split(".", 2)[2]: result["execution_time"] for result in results}
        return dict(sorted(seconds.items(), key=lambda each: -each[1]))

    def row_events(self) -> int:
        """Count the raw row events from the footers of their files."""
        files = (self.folder / "warehouse" / "binlog_raw.db" / "row_events").rglob("*.parquet")
        return sum(parquet.read_metadata(path).num_rows for path in files)


def series(work: Path, size: int, file_size: int) -> tuple[list[Path], Path]:
    """Let a server write files of about the same size, one for each hour, or reuse the files of an earlier run.

    Returns the files and the schema.
    """
    name = f"{SERVER}-{size >> 10}K-in-hours-of-{file_size >> 10}K"
    return _generated(work / name, size, file_size, hourly=True)


def busy_hour(work: Path, size: int, last: int) -> tuple[list[Path], Path]:
    """Let a server write files of 128 MB at most, then one of `last` bytes, in the present hour; or reuse them.

    Returns the files and the schema.
    """
    name = f"{SERVER}-{size >> 10}K-and-{last >> 10}K"
    return _generated(work / name, size, BUSY_FILE, last=last)


def _generated(
    folder: Path, size: int, file_size: int, *, hourly: bool = False, last: int = 0
) -> tuple[list[Path], Path]:
    if not (folder / "schema").exists():
        shutil.rmtree(folder, ignore_errors=True)
        print(f"generating {folder}", file=sys.stderr)
        generate(SERVER, size, folder, [f"--max-binlog-size={file_size}"], hourly=hourly, last=last)
    return sorted(folder.glob("binlog.*")), folder / "schema"
