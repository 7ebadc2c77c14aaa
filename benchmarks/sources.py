"""Measures a question to a compressed log beside the plain log: `python -m benchmarks.sources LOG`.

Each round asks the plain log, the compressed ones, and runs the programs that decompress them, in turn; the figures are
medians of wall time. `benchmarks/generate.py --size 200M --out DIR` writes a log.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.measure import Measured, run

PROGRAMS: Final = {"gz": "gzip", "zst": "zstd", "lz4": "lz4", "bz2": "bzip2", "xz": "xz"}
MOST: Final = 1.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--suffixes", default="gz,zst", help=f"of {', '.join(PROGRAMS)}, separated by commas")
    parser.add_argument("--table", default="bench.orders")
    parser.add_argument("--key", default="1042")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.log.parent) as folder:
        archives = {suffix: _compressed(given.log, Path(folder), suffix) for suffix in given.suffixes.split(",")}

        def question(path: Path) -> Measured:
            words = ("query", "--table", given.table, "--key", given.key, "--format", "json", "--files", str(path))
            return run([sys.executable, "-m", "binloom.cli", *words], capture=True)

        def program(suffix: str) -> Measured:
            return run([PROGRAMS[suffix], "-dc", str(archives[suffix])])

        answer = question(given.log).output
        plain: list[Measured] = []
        asked: dict[str, list[Measured]] = {suffix: [] for suffix in archives}
        unpacked: dict[str, list[Measured]] = {suffix: [] for suffix in archives}
        for _ in range(given.rounds):
            plain.append(question(given.log))
            for suffix, path in archives.items():
                asked[suffix].append(question(path))
                unpacked[suffix].append(program(suffix))
                if asked[suffix][-1].output != answer:
                    raise SystemExit(f"{path} gives another answer than {given.log}.")
        print(f"| plain, {given.log.stat().st_size / 1e6:.0f} MB | {_told(plain)} | |")
        for suffix in archives:
            longer = max(_seconds(plain), _seconds(unpacked[suffix]))
            print(
                f"| {suffix}, of which `{PROGRAMS[suffix]} -dc` needs {_seconds(unpacked[suffix]):.2f} s"
                f" | {_told(asked[suffix])}, {_seconds(asked[suffix]) / longer:.2f} of the longer of both | {MOST} |"
            )


def _compressed(log: Path, folder: Path, suffix: str) -> Path:
    path = folder / f"{log.name}.{suffix}"
    with path.open("wb") as file:
        subprocess.run([PROGRAMS[suffix], "-c", str(log)], stdout=file, check=True)
    return path


def _seconds(rounds: list[Measured]) -> float:
    return statistics.median(one.seconds for one in rounds)


def _told(rounds: list[Measured]) -> str:
    return f"{_seconds(rounds):.2f} s, {max(one.peak_bytes for one in rounds) / 1e6:.0f} MB of memory"


if __name__ == "__main__":
    main()
