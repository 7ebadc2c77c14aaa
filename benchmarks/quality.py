"""Measures the cost of the proofs: on many row changes at once, and for one more file after short and long histories.

    python -m benchmarks --sections quality                 all quality models on 4 million row changes
    python -m benchmarks --sections history                 `dbt build` after one more file, with a plot

Both work on a series of files that a real server has written: copies of one file under several names form no chain.
"""

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet

from benchmarks.generate import generate
from benchmarks.measure import Measured, run
from benchmarks.plot import Axis, Curve, Panel, write_svg

PROJECT = Path(__file__).resolve().parents[1]
BINLOOM = str(Path(sys.executable).with_name("binloom"))
DBT = str(Path(sys.executable).with_name("dbt"))
SOURCE = "bench"
SERVER = "mysql"
HISTORIES = (10, 30, 100)
# The quality models, and the models that only they need.
PROOFS = ("path:models/marts/quality", "int_chain_files", "int_chain_links", "int_chain_breaks")

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

    def land(self, files: int) -> None:
        """Land the first `files` files; files that are already landed stay."""
        directory = str(self.binlogs[0].parent)
        names = ",".join(path.name for path in self.binlogs[:files])
        self.binloom("ingest", "--source", SOURCE, "--binlog-dir", directory, "--files", names)

    def binloom(self, *arguments: str) -> None:
        run([BINLOOM, *arguments], environment=self._environment)

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
    folder = work / f"{SERVER}-{size >> 10}K-in-hours-of-{file_size >> 10}K"
    if not (folder / "schema").exists():
        shutil.rmtree(folder, ignore_errors=True)
        print(f"generating {folder}", file=sys.stderr)
        generate(SERVER, size, folder, [f"--max-binlog-size={file_size}"], hourly=True)
    return sorted(folder.glob("binlog.*")), folder / "schema"


def quality(work: Path, size: int) -> Iterator[Line]:
    """Build all quality models, and the models that only they need, on a series of files of this many bytes."""
    warehouse = Warehouse(work / "quality", *series(work, size, max(4096, size // 20)))
    warehouse.begin()
    warehouse.land(len(warehouse.binlogs))
    warehouse.dbt("build", "--exclude", *PROOFS, "--exclude-resource-type", "unit_test")
    command = ("build", "--select", *PROOFS, "--exclude-resource-type", "unit_test", "--threads")
    # One thread gives the time of each model alone; the second build measures the total as users run it.
    warehouse.dbt(*command, "1")
    alone = warehouse.node_seconds()
    built = warehouse.dbt(*command, "4", "--full-refresh")
    what = f"{warehouse.row_events():,} row changes in {len(warehouse.binlogs)} files"
    yield (
        f"all quality models and their tests on {what}, one after another, start-up aside",
        f"{sum(alone.values()):.1f} s",
        "90 for 4 million",
    )
    yield (
        "the same in four threads on 2 cores, the whole command",
        f"{built.seconds:.1f} s, {built.processor_seconds:.0f} s of processor time",
        "",
    )
    yield "the same, peak memory", f"{built.peak_bytes / 1e9:.2f} GB", "8"
    for name, seconds in list(alone.items())[:6]:
        yield f"of that, alone: `{name}`", f"{seconds:.1f} s", ""


def history(work: Path, file_size: int, lengths: Sequence[int] = HISTORIES) -> Iterator[Line]:
    """Build after one more file, with histories of several lengths; write `history.json` and `history.svg`."""
    longest = max(lengths) + 1
    binlogs, schema = series(work, (longest + 3) * file_size, file_size)
    warehouse = Warehouse(work / "history", binlogs[:longest], schema)
    warehouse.begin()
    found: list[dict[str, Any]] = []
    for length in sorted(lengths):
        warehouse.land(length)
        warehouse.dbt("build", "--exclude-resource-type", "unit_test")
        base = warehouse.base()
        nothing_new = warehouse.dbt("build", "--exclude-resource-type", "unit_test")
        warehouse.land(length + 1)
        measured = warehouse.dbt("build", "--exclude-resource-type", "unit_test")
        nodes = warehouse.node_seconds()
        found.append(
            {
                "files": length,
                "row_events": warehouse.row_events(),
                "seconds": measured.seconds,
                "processor_seconds": measured.processor_seconds,
                "seconds_nothing_new": nothing_new.seconds,
                "seconds_base": base.seconds,
                "chain_seconds": sum(nodes[name] for name in nodes if name.startswith("int_chain_")),
                "nodes": nodes,
            }
        )
        yield (
            f"`dbt build` after one more file of {file_size / 1e6:.1f} MB, {length} files before",
            f"{measured.seconds:.1f} s, {measured.processor_seconds:.0f} s of processor time, "
            f"{measured.seconds / base.seconds:.1f} times a project of one view; "
            f"with nothing new {nothing_new.seconds:.1f} s, {nothing_new.seconds / base.seconds:.1f} times",
            "2.5, flat; with nothing new 2",
        )
    (work / "history.json").write_text(json.dumps(found, indent=1) + "\n")
    draw(found, work / "history.svg")


def draw(found: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw cost over length of history."""

    def curve(name: str, column: str) -> Curve:
        return Curve(name, [(each["files"], each[column]) for each in found])

    panels = [
        Panel("`dbt build`, seconds", [curve("one more file", "seconds"), curve("nothing new", "seconds_nothing_new")]),
        Panel("processor time of it, seconds", [curve("one more file", "processor_seconds")]),
        Panel("models of the chain, seconds", [curve("one more file", "chain_seconds")]),
    ]
    write_svg(path, "Cost of one more file against the files before it", panels, Axis("files", 1))
