"""Measures `binloom top` beside `binloom decode` of the same files: `python -m benchmarks.top LOG ...`.

Both run in turn, and print to nowhere; the figures are medians of wall time.
`benchmarks/generate.py --size 1G --out DIR` writes a log.
"""

import argparse
import statistics
import sys
from pathlib import Path
from typing import Final

from benchmarks.measure import Measured, run

MOST: Final = 0.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", type=Path, nargs="+")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    files = [str(path) for path in given.logs]
    commands = {"decode": ["decode", *files], "top": ["top", "--format", "json", "--files", *files]}
    rounds: dict[str, list[Measured]] = {name: [] for name in commands}
    for _ in range(given.rounds):
        for name, words in commands.items():
            rounds[name].append(run([sys.executable, "-m", "binloom.cli", *words]))
    seconds = {name: statistics.median(one.seconds for one in of_name) for name, of_name in rounds.items()}
    peaks = {name: max(one.peak_bytes for one in of_name) / 1e6 for name, of_name in rounds.items()}
    size = sum(path.stat().st_size for path in given.logs) / 1e6
    print(f"| decode, {size:,.0f} MB | {seconds['decode']:.2f} s, {peaks['decode']:.0f} MB of memory | |")
    print(
        f"| top | {seconds['top']:.2f} s, {peaks['top']:.0f} MB of memory,"
        f" {seconds['top'] / seconds['decode']:.2f} of the time of decode | {MOST} |"
    )


if __name__ == "__main__":
    main()
