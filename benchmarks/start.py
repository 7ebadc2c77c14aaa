"""Measures the processor time of commands on a small file: `python -m benchmarks.start`.

It is the time of the process and of its children, user and system, the median of `--rounds`.
"""

import argparse
import resource
import statistics
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
SAMPLE = "samples/shop-mysql/binlog.000001"
COMMANDS = {
    "binloom inspect": ["-m", "binloom.cli", "inspect", SAMPLE],
    "binloom decode": ["-m", "binloom.cli", "decode", SAMPLE],
    "binloom query --files": ["-m", "binloom.cli", "query", "--files", SAMPLE, "--limit", "1"],
    "binloom --help": ["-m", "binloom.cli", "--help"],
    "a Spark worker's decoder": [
        "-c",
        "import ingest.binlog.decoder; from ingest.binlog import kernel as k; k.prepare()",
    ],
}


def processor_seconds(arguments: list[str]) -> float:
    """Run Python with these arguments and return the processor time that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], cwd=PROJECT, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    for arguments in COMMANDS.values():
        processor_seconds(arguments)
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(rounds):
        for name, arguments in COMMANDS.items():
            times[name].append(processor_seconds(arguments))
    for name, found in times.items():
        print(f"{name:<26}{statistics.median(found):.2f} s")


if __name__ == "__main__":
    main()
