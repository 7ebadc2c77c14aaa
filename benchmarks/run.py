"""Measures binloom against its peers in one run and prints the figures as a markdown table.

    python -m benchmarks                        everything, on 1 GB: some ten minutes
    python -m benchmarks --sections decode      decoding alone
    python -m benchmarks --sections soak        a live server followed for a quarter of an hour, see benchmarks/soak.py
    python -m benchmarks --sections history     a build after one more file, see benchmarks/builds.py
    python -m benchmarks --sections hour        one more file in a busy hour, the same module
    python -m benchmarks --sections everything  landing files and building all models, the same module
    python -m benchmarks --copies 2             256 MB instead of 1 GB

Ratios compare measurements made next to each other on the same files; do not compare figures of different runs.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import builds, quality, soak
from benchmarks.generate import generate, size_in_bytes
from benchmarks.measure import Measured, run
from benchmarks.tool import ONE_CORE, print_by_tool
from tests.servers import DISTRIBUTIONS

PROJECT = Path(__file__).resolve().parents[1]
COMPRESSION = {"mysql": "--binlog-transaction-compression=ON", "mariadb": "--log-bin-compress=ON"}
SECTIONS = ("decode", "ingest", "models", "quality")
LONG_SECTIONS = ("soak", "history", "hour", "everything")
ROUNDS = 3
BINLOOM = str(Path(sys.executable).with_name("binloom"))
DBT = str(Path(sys.executable).with_name("dbt"))
SOURCE = "bench"


@dataclass
class Report:
    """Lines of the table that is printed at the end."""

    lines: list[tuple[str, str, str]] = field(default_factory=list)

    def add(self, what: str, figure: str, gate: str = "") -> None:
        self.lines.append((what, figure, gate))
        print(f"{what}: {figure}", file=sys.stderr)

    def markdown(self) -> str:
        table = [("what", "measured", "to reach"), ("---", "---", "---"), *self.lines]
        return "\n".join(f"| {' | '.join(line)} |" for line in table)


def prepare(server: str, size: int, work: Path, options: Sequence[str] = ()) -> Path:
    """Generate a file under server options, or reuse the file of an earlier run; return its folder."""
    folder = work / "".join([f"{server}-{size >> 20}M", *options])
    if not (folder / "binlog.000001").exists():
        print(f"generating {folder}", file=sys.stderr)
        generate(server, size, folder, options)
    return folder


def decode_compressed(report: Report, server: str, plain: Path, compressed: Path) -> None:
    """Decode the same shop's log with and without compression, in turn; measure processor time."""
    rates: dict[Path, list[float]] = {plain: [], compressed: []}
    for _ in range(ROUNDS):
        for folder, found in rates.items():
            command = [sys.executable, "-m", "benchmarks.decode", str(folder / "binlog.000001")]
            measured = run(command, cores=ONE_CORE, capture=True)
            result = json.loads(measured.output)
            found.append(result["rows"] / result["seconds"])
    ours, without = max(rates[compressed]), max(rates[plain])
    size = (compressed / "binlog.000001").stat().st_size
    report.add(
        f"{server}: decode {size / 1e6:,.0f} MB of a compressed log, one core",
        f"{ours / 1e6:.2f} million rows/s, {ours / without:.2f} of the rate without compression",
        "0.5",
    )
    report.add(f"{server}: the same, peak memory", f"{measured.peak_bytes / 1e6:,.0f} MB")


def decode(report: Report, server: str, folder: Path) -> None:
    """Decode one file on one core in three ways; measure processor time, which other work hardly affects."""
    path = folder / "binlog.000001"
    command = [sys.executable, "-m", "benchmarks.decode", str(path)]
    runs: list[Measured] = []
    tool_runs: list[Measured] = []
    for _ in range(ROUNDS):
        runs.append(run(command, cores=ONE_CORE, capture=True))
        tool_runs.append(print_by_tool(server, [path]))
    results = [json.loads(each.output) for each in runs]
    rows = results[0]["rows"]
    seconds = min(result["seconds"] for result in results)
    tool_seconds = min(each.processor_seconds for each in tool_runs)
    peer_command = [*command, "--peer", "--flavor", server]
    peer = json.loads(run(peer_command, cores=ONE_CORE, capture=True).output)
    ours, tool, theirs = rows / seconds, rows / tool_seconds, peer["rows"] / peer["seconds"]
    tool_name = Path(DISTRIBUTIONS[server].binlog_program).name
    size = path.stat().st_size
    report.add(
        f"{server}: decode {size / 1e6:,.0f} MB, {rows:,} rows, one core",
        f"{ours / 1e6:.2f} million rows/s, {size / seconds / 1e6:,.0f} MB/s",
    )
    report.add(f"{server}: the same, peak memory", f"{max(each.peak_bytes for each in runs) / 1e6:,.0f} MB")
    report.add(
        f"{server}: `{tool_name} -v`",
        f"{tool / 1e6:.3f} million rows/s, binloom is {ours / tool:.1f} times as fast",
        "10",
    )
    report.add(
        f"{server}: mysql-replication", f"{theirs:,.0f} rows/s, binloom is {ours / theirs:.0f} times as fast", "100"
    )


def ingest(report: Report, folder: Path, copies: int, work: Path) -> None:
    """Land files with the whole command, and print the same files with mysqlbinlog."""
    binlogs = several_names(folder, copies, work / "binlogs")
    home = work / "home"
    shutil.rmtree(home, ignore_errors=True)
    files = sorted(binlogs.glob("binlog.*"))
    size = sum(path.stat().st_size for path in files)
    command = [BINLOOM, "ingest", "--source", SOURCE, "--binlog-dir", str(binlogs), "--all"]
    environment = {"BINLOOM_HOME": str(home)}
    run([BINLOOM, "snapshot", "--source", SOURCE, "--from-dir", str(folder / "schema")], environment=environment)
    ours = run(command, environment=environment)
    again = run(command, environment=environment)
    tool_seconds = print_by_tool("mysql", files).seconds
    cores = len(os.sched_getaffinity(0))
    report.add(
        f"`binloom ingest` of {size / 1e9:.2f} GB, {cores} cores, the whole command",
        f"{ours.seconds:.1f} s, {size / ours.seconds / 1e6:,.0f} MB/s",
    )
    report.add(
        "`mysqlbinlog -v` of the same files on one core",
        f"{tool_seconds:.1f} s, binloom takes {ours.seconds / tool_seconds:.2f} of it",
        "1",
    )
    report.add("`binloom ingest`, peak memory of all its processes", f"{ours.peak_bytes / 1e9:.2f} GB", "8")
    report.add("`binloom ingest` again: all is landed", f"{again.seconds:.1f} s")


def several_names(folder: Path, copies: int, target: Path) -> Path:
    """Give a generated file several names, so that it looks like a series."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for number in range(1, copies + 1):
        os.link(folder / "binlog.000001", target / f"binlog.{number:06}")
    return target


def models(report: Report, work: Path) -> None:
    """Build `row_changes` from the tables that `ingest` landed; its tests are part of the build."""
    environment = {"BINLOOM_HOME": str(work / "home")}
    places = ["--project-dir", str(PROJECT), "--profiles-dir", str(PROJECT), "--target-path", str(work / "target")]
    # Build all that row_changes and its tests need, so that the measured command builds and tests row_changes only.
    below = ["--exclude", "row_changes+", "--resource-type", "model", "--resource-type", "seed"]
    run([DBT, "build", *below, *places], environment=environment)
    built = run([DBT, "build", "--select", "row_changes", "--full-refresh", *places], environment=environment)
    (model_seconds,) = model_times(work).values()
    rows = landed_rows(work / "home" / "warehouse")
    cores = len(os.sched_getaffinity(0))
    report.add(
        f"`row_changes` from {rows:,} raw row events, {cores} cores, start-up aside",
        f"{model_seconds:.1f} s, {rows / model_seconds:,.0f} rows/s",
        "100,000",
    )
    report.add("`dbt build --select row_changes`, the whole command with its tests", f"{built.seconds:.1f} s")
    report.add("`dbt build --select row_changes`, peak memory", f"{built.peak_bytes / 1e9:.2f} GB", "8")


def model_times(work: Path) -> dict[str, float]:
    """Return the seconds that each model of the last dbt command took."""
    results = json.loads((work / "target" / "run_results.json").read_text())["results"]
    return {
        result["unique_id"]: result["execution_time"] for result in results if result["unique_id"].startswith("model.")
    }


def landed_rows(warehouse: Path) -> int:
    """Count the landed row events from the footers of their files."""
    import pyarrow.parquet as parquet

    files = (warehouse / "binlog_raw.db" / "row_events").rglob("*.parquet")
    return sum(parquet.read_metadata(path).num_rows for path in files)


def machine() -> str:
    """Describe this machine and this version in one line."""
    processors = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in processors if "model name" in line), platform.machine())
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=PROJECT, capture_output=True, text=True, check=False
    ).stdout.strip()
    cores = len(os.sched_getaffinity(0))
    return f"{cores} cores of {model}, {memory:.0f} GB, Python {platform.python_version()}, commit {commit}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("--sections", default=",".join(SECTIONS), help="of " + ", ".join((*SECTIONS, *LONG_SECTIONS)))
    parser.add_argument("--size", type=size_in_bytes, default=size_in_bytes("128M"), help="of a generated file")
    parser.add_argument("--copies", type=int, default=8, help="how many names the file stands under for ingest")
    parser.add_argument("--work", type=Path, default=PROJECT / ".binloom" / "benchmarks", help="where the files go")
    parser.add_argument("--history", default="10,30,100", help="files before the one of the section history")
    arguments = parser.parse_args()
    wanted = arguments.sections.split(",")
    if unknown := set(wanted).difference(SECTIONS, LONG_SECTIONS):
        parser.error(f"no section {', '.join(sorted(unknown))}; there are {', '.join((*SECTIONS, *LONG_SECTIONS))}")
    work = arguments.work.absolute()
    for distribution in DISTRIBUTIONS.values():
        distribution.get()
    report = Report()
    if "decode" in wanted:
        for server, size in (("mysql", arguments.size), ("mariadb", arguments.size // 2)):
            plain = prepare(server, size, work)
            decode(report, server, plain)
            # Compressed, it has about as many rows in a third of the bytes.
            decode_compressed(report, server, plain, prepare(server, size // 3, work, [COMPRESSION[server]]))
    if "ingest" in wanted:
        ingest(report, prepare("mysql", arguments.size, work), arguments.copies, work)
    if "models" in wanted:
        models(report, work)
    if "quality" in wanted:
        # About 670 MB, with 4 million row changes.
        for line in quality.quality(work, arguments.size * 5):
            report.add(*line)
    if "history" in wanted:
        lengths = [int(length) for length in arguments.history.split(",")]
        for line in builds.history(work, arguments.size // 32, lengths):
            report.add(*line)
    if "hour" in wanted:
        for line in builds.hour(work, [size_in_bytes("10M"), arguments.size * arguments.copies], arguments.size // 32):
            report.add(*line)
    if "everything" in wanted:
        for line in builds.everything(work, arguments.size * arguments.copies, arguments.size // 32):
            report.add(*line)
    if "soak" in wanted:
        for line in soak.measure(work):
            report.add(*line)
    print(f"\n{machine()}\n\n{report.markdown()}")


if __name__ == "__main__":
    main()
