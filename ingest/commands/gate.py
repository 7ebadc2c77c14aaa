"""`binloom quality`: what the gate found."""

import sys
from typing import TYPE_CHECKING

from ingest.commands.output import Format, print_rows, progress

if TYPE_CHECKING:
    from ingest.quality.gate import GateResult

COLUMNS = ("suite", "check", "success", "violations", "examples")


def check(source: str | None, format: Format) -> int:
    """Run the gate and print every expectation; return 1 when one does not hold."""
    from ingest.quality.gate import run_gate

    with progress("checking what landed"):
        gate = run_gate(source)
    print_rows(COLUMNS, [[getattr(one, name) for name in COLUMNS] for one in gate.results], format)
    if format is Format.TEXT:
        sys.stdout.write(f"\n{summary(gate)}\nData Docs: {gate.data_docs_path}\n")
    return gate.exit_code


def summary(gate: "GateResult") -> str:
    """Say what the gate came to, in a line."""
    failed = sum(not one.success for one in gate.results)
    verdict = (
        f"{failed} of {len(gate.results)} expectations fail" if failed else f"{len(gate.results)} expectations hold"
    )
    return f"{verdict} on {gate.segments} segments of {gate.files} files"
