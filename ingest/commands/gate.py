"""`binloom quality`: what the gate found, and what the models prove."""

import sys
from typing import TYPE_CHECKING

from ingest.commands.output import Format, print_rows, progress, say
from ingest.errors import EXIT_CHECK_FAILED

if TYPE_CHECKING:
    from ingest.quality.gate import GateResult
    from ingest.quality.proofs import Proof

COLUMNS = ("suite", "name", "check", "severity", "success", "checked", "unit", "violations", "examples")
PROOFS_SUITE = "proofs"
_UNITS = {"landed_segments": "segments", "landed_files": "files", "landed_definitions": "definitions"}


def check(source: str | None, format: Format) -> int:
    """Run the gate, print every expectation and every proof; return 1 when one does not hold that is an error."""
    from ingest.quality.gate import run_gate
    from ingest.quality.proofs import read_proofs

    with progress("checking what landed"):
        gate = run_gate(source)
        proofs = read_proofs(source)
    expectations = [
        (one.suite, one.name, one.check, "error", one.success, one.checked, _UNITS[one.suite], one.violations)
        for one in gate.results
    ]
    proved = [
        (PROOFS_SUITE, one.name, one.violation, one.severity, not one.violations, one.checked, one.unit, one.violations)
        for one in (proofs.results if proofs else [])
    ]
    examples = [[*one.examples] for one in gate.results] + [[]] * len(proved)
    print_rows(COLUMNS, [[*row, shown] for row, shown in zip(expectations + proved, examples, strict=True)], format)
    if format is Format.TEXT:
        sys.stdout.write(f"\n{summary(gate)}\n")
        if proofs is not None:
            sys.stdout.write(f"{summary_of_proofs(proofs.results)}\n")
        sys.stdout.write(f"Data Docs: {gate.data_docs_path}\n")
    if proofs is None:
        say("the models are not built, so only what landed was checked. Run `dbt build` for the proofs.")
    elif proofs.is_stale:
        say("something has landed since the models were built. Run `dbt build` for proofs of it.")
    failed = proofs is not None and any(one.is_error for one in proofs.results)
    return EXIT_CHECK_FAILED if failed else gate.exit_code


def summary(gate: "GateResult") -> str:
    """Say what the gate came to, in a line."""
    failed = sum(not one.success for one in gate.results)
    verdict = (
        f"{failed} of {len(gate.results)} expectations fail" if failed else f"{len(gate.results)} expectations hold"
    )
    return f"{verdict} on {gate.segments} segments of {gate.files} files"


def summary_of_proofs(proofs: "list[Proof]") -> str:
    """Say what the proofs came to, in a line."""
    errors, warnings = (
        [one.name for one in proofs if one.violations and one.is_error == is_error] for is_error in (True, False)
    )
    if not errors and not warnings:
        return f"{len(proofs)} proofs hold"
    parts = [f"{len(errors)} of {len(proofs)} proofs fail ({', '.join(errors)})"] if errors else []
    parts += [f"{len(warnings)} warn ({', '.join(warnings)})"] if warnings else []
    return "; ".join(parts)
