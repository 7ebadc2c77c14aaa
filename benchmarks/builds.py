"""Measures builds: `python -m benchmarks --sections history,hour,everything`.

history     one more file after a history of files, with a plot
hour        one more file in an hour that has little or much already
everything  landing files in an empty home and building all models and tests, beside the server's own tool

The *base* is `dbt build` of a project of one view: the start of dbt and Spark. It is measured in the same run.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.measure import Measured
from benchmarks.plot import Axis, Curve, Panel, write_svg
from benchmarks.tool import print_by_tool
from benchmarks.warehouse import SERVER, Line, Warehouse, busy_hour, series
from binloom.commands.project import BUILD

HISTORIES = (10, 30, 100)
CHANGES = ("run", "--select", "+row_changes", "+transactions")


def history(work: Path, file_size: int, lengths: Sequence[int] = HISTORIES) -> Iterator[Line]:
    """Build after one more file, with histories of several lengths; write `history.json` and `history.svg`."""
    longest = max(lengths) + 2
    binlogs, schema = series(work, (longest + 3) * file_size, file_size)
    warehouse = Warehouse(work / "history", binlogs[:longest], schema)
    warehouse.begin()
    found: list[dict[str, Any]] = []
    for length in sorted(lengths):
        warehouse.land(length)
        warehouse.dbt(*BUILD)
        base = warehouse.base()
        nothing_new = warehouse.dbt(*BUILD)
        warehouse.land(length + 1)
        measured = warehouse.dbt(*BUILD)
        nodes = warehouse.node_seconds()
        warehouse.land(length + 2)
        changes = warehouse.dbt(*CHANGES)
        found.append(
            {
                "files": length,
                "row_events": warehouse.row_events(),
                "seconds": measured.seconds,
                "processor_seconds": measured.processor_seconds,
                "seconds_nothing_new": nothing_new.seconds,
                "seconds_changes": changes.seconds,
                "seconds_base": base.seconds,
                "chain_seconds": sum(nodes[name] for name in nodes if name.startswith("int_chain_")),
                "nodes": nodes,
            }
        )
        size = f"one more file of {file_size / 1e6:.1f} MB, {length} files before"
        yield f"the base, {length} files", _seconds(base), ""
        yield f"`dbt build`, nothing new, {length} files", _against(nothing_new, base), "2"
        yield f"`dbt build` after {size}", _against(measured, base), "2.5, flat"
        yield f"`dbt run` of `row_changes` and `transactions` after {size}", _against(changes, base), "1.5"
    (work / "history.json").write_text(json.dumps(found, indent=1) + "\n")
    draw(found, work / "history.svg")


def hour(work: Path, sizes: Sequence[int], file_size: int) -> Iterator[Line]:
    """Build after one more file in an hour that has files of a size already, for each size; the first is the peer."""
    first: Measured | None = None
    for size in sizes:
        binlogs, schema = busy_hour(work, size, file_size)
        warehouse = Warehouse(work / "hour", binlogs, schema)
        warehouse.begin()
        warehouse.land(len(binlogs) - 1)
        warehouse.dbt(*BUILD)
        warehouse.land(len(binlogs))
        measured = warehouse.dbt(*BUILD)
        first = first or measured
        what = f"`dbt build` after {file_size / 1e6:.1f} MB more in an hour with {size / 1e6:,.0f} MB"
        yield what, _against(measured, first), "1.2"


def everything(work: Path, size: int, last: int) -> Iterator[Line]:
    """Land the files of the busy hour and build all models and tests; print the same files with the tool."""
    binlogs, schema = busy_hour(work, size, last)
    warehouse = Warehouse(work / "everything", binlogs, schema)
    warehouse.begin()
    landed = warehouse.land(len(binlogs))
    built = warehouse.dbt(*BUILD)
    nodes = warehouse.node_seconds()
    tool = print_by_tool(SERVER, binlogs)
    files = f"{sum(path.stat().st_size for path in binlogs) / 1e9:.2f} GB"
    yield f"`binloom ingest` of {files}, {warehouse.row_events():,} row changes", _against(landed, tool), "0.5"
    yield "`dbt build` of everything after it", _against(built, tool), ""
    yield "of that `row_changes`, beside other models", f"{nodes['row_changes']:.1f} s", ""
    both = landed.seconds + built.seconds
    yield "both", f"{both:.1f} s, {both / tool.seconds:.2f} times", "3"
    yield "`mysqlbinlog -v` of the same files on one core", _seconds(tool), ""


def draw(found: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw cost over length of history."""

    def curve(name: str, column: str) -> Curve:
        return Curve(name, [(each["files"], each[column]) for each in found])

    builds = [
        curve("one more file", "seconds"),
        curve("nothing new", "seconds_nothing_new"),
        curve("a project of one view", "seconds_base"),
    ]
    panels = [
        Panel("`dbt build`, seconds", builds),
        Panel("processor time of it, seconds", [curve("one more file", "processor_seconds")]),
        Panel("models of the chain, seconds", [curve("one more file", "chain_seconds")]),
    ]
    write_svg(path, "Cost of one more file against the files before it", panels, Axis("files", 1))


def _seconds(measured: Measured) -> str:
    return f"{measured.seconds:.1f} s, {measured.processor_seconds:.0f} s of processor time"


def _against(measured: Measured, peer: Measured) -> str:
    return f"{_seconds(measured)}, {measured.seconds / peer.seconds:.2f} times"
