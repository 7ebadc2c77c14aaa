"""The cost of a volume of binlog: cores, memory, storage, partitions and money, from measured costs of a gigabyte.

The defaults are the figures of `benchmarks/scale.md`, which tells which of them are assumptions. The prices only show
the form of the answer: give those of your cloud.
"""

import argparse
from typing import Final

UNITS: Final = {"G": 1, "T": 1000, "P": 1_000_000}
DAY: Final = 86_400
MONTH_HOURS: Final = 730
SEGMENT_GIGABYTES: Final = 0.134
PART_GIGABYTES: Final = 0.067
SEGMENT_TABLES: Final = 3

COSTS: Final = {
    "land": (16.0, "core seconds to land a gigabyte"),
    "row_changes": (100.0, "core seconds to build row_changes of a gigabyte"),
    "proofs": (239.0, "core seconds to build and test the proofs of a gigabyte"),
    "build": (186.0, "core seconds of a build as a command, whatever is new"),
    "builds_a_day": (24.0, "builds a day"),
    "raw": (0.34, "bytes of raw tables for a byte of binlog"),
    "marts": (0.4, "bytes of all other tables for a byte of binlog"),
    "used": (0.6, "share of the cores that may be busy on average"),
    "memory": (4.0, "gigabytes of memory for a core"),
    "core_hour": (0.05, "price of a core for an hour, with its memory"),
    "gigabyte_month": (0.023, "price of a gigabyte of storage for a month"),
}
"""Each variable with its default and its meaning."""


def model(per_day: str, days: int, **costs: float) -> str:
    """Return a table of what is needed for some binlog a day that is kept for some days."""
    gigabytes = float(per_day[:-1]) * UNITS[per_day[-1].upper()]
    seconds = gigabytes * (costs["land"] + costs["row_changes"] + costs["proofs"])
    seconds += costs["builds_a_day"] * costs["build"]
    cores = seconds / DAY / costs["used"]
    stored = gigabytes * days * (costs["raw"] + costs["marts"])
    segments = gigabytes * days / SEGMENT_GIGABYTES
    parts = gigabytes * days / PART_GIGABYTES
    lines = {
        "processor time a day": f"{seconds / 3600:,.0f} core hours",
        "cores": f"{cores:,.1f}, of which {costs['used']:.0%} are busy on average",
        "memory": f"{cores * costs['memory']:,.0f} GB",
        "storage": f"{stored / 1000:,.1f} TB",
        "segments of each raw table": f"{segments:,.0f} partitions, {segments * SEGMENT_TABLES:,.0f} in all",
        "parts of row_changes": f"{parts:,.0f} partitions",
        "price a month": f"{cores * MONTH_HOURS * costs['core_hour']:,.0f} for cores,"
        f" {stored * costs['gigabyte_month']:,.0f} for storage",
    }
    title = f"{gigabytes:,.0f} GB of binlog a day, kept for {days} days"
    return "\n".join([f"| {title} | |", "| --- | --- |", *(f"| {what} | {value} |" for what, value in lines.items())])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the section."""
    parser.add_argument("--per-day", default="1T", help="bytes of binlog a day: G, T or P")
    parser.add_argument("--days", type=int, default=30, help="days that are kept")
    for name, (value, meaning) in COSTS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=float, default=value, help=f"{meaning} ({value})")
