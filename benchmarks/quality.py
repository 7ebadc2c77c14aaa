"""Measures the cost of the proofs on many row changes: `python -m benchmarks --sections quality`.

A real server has written the series of files: copies of one file under several names form no chain.
"""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.warehouse import Line, Warehouse, series

# The quality models, and the models that only they need.
PROOFS = ("path:models/marts/quality", "int_chain_files", "int_chain_suspects", "int_chain_breaks")


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
