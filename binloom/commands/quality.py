"""`binloom quality`: print the results of the gate and of the models' proofs."""

import shutil
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from binloom.commands.output import Format, print_line, print_rows, progress, say
from ingest.errors import EXIT_CHECK_FAILED
from ingest.words import counted

if TYPE_CHECKING:
    from ingest.quality.gate import CheckResult, GateResult
    from ingest.quality.proofs import Proof

COLUMNS = ("suite", "name", "check", "severity", "success", "checked", "unit", "violations", "examples")
PROOFS_SUITE = "proofs"
_MARGIN = " " * len("  holds  ")
_UNITS = {"landed_segments": "segments", "landed_files": "files", "landed_definitions": "definitions"}


def check(source: str | None, format: Format) -> int:
    """Run the gate, print every expectation and proof; return 1 when an expectation or an `error` proof fails."""
    from ingest.quality.gate import run_gate
    from ingest.quality.proofs import read_proofs

    with progress("checking the landed rows"):
        gate = run_gate(source)
        proofs = read_proofs(source)
    proved = [] if proofs is None else proofs.results
    if format is Format.TEXT:
        width = shutil.get_terminal_size((120, 24)).columns
        for line in text_lines(gate, proved, width):
            print_line(line)
    else:
        print_rows(COLUMNS, _rows(gate, proved), format)
    if proofs is None:
        say("the models are not built, so only the landed rows were checked. Run `dbt build` for the proofs.")
    elif proofs.is_stale:
        say("new rows were landed after the models were built. Run `dbt build` for the proofs of these rows.")
    failed = proofs is not None and any(one.is_error for one in proofs.results)
    return EXIT_CHECK_FAILED if failed else gate.exit_code


def text_lines(gate: "GateResult", proofs: "list[Proof]", width: int) -> Iterator[str]:
    """Yield lines for a person: one for each check that holds, and an additional sentence for each failed check.

    Parameters
    ----------
    gate, proofs
        The results; there are no proofs before the first build.
    width
        Characters in a line. Longer lines are wrapped between words and continue below their sentence.
    """
    yield f"Raw tables: {summary(gate)}"
    yield ""
    for one in gate.results:
        yield from _expectation_lines(one, width)
    if proofs:
        yield ""
        yield from _wrapped(f"Models: {summary_of_proofs(proofs)}", width)
        yield ""
        name_width = max(len(one.name) for one in proofs)
        for proof in proofs:
            yield from _proof_lines(proof, name_width, width)
    yield ""
    if any(one.violations for one in proofs):
        yield from _wrapped("docs/quality.md explains each failed proof, and what to do.", width)
    yield f"Data Docs: {gate.data_docs_path}"


def _expectation_lines(one: "CheckResult", width: int) -> Iterator[str]:
    looked_at = f"{one.checked:,} {_UNITS[one.suite]}"
    if one.success:
        yield from _wrapped(f"{one.check} ({looked_at})", width, "  holds  ")
        return
    yield from _wrapped(f"{one.check}: does not hold for {one.violations:,} of {looked_at}", width, "  FAILS  ")
    for example in one.examples:
        yield from _wrapped(example, width, _MARGIN)


def _proof_lines(one: "Proof", name_width: int, width: int) -> Iterator[str]:
    looked_at = f"{one.checked:,} {one.unit.replace('_', ' ')}"
    if not one.violations:
        yield from _wrapped(f"{one.name:<{name_width}}  {looked_at}", width, "  holds  ")
        return
    verdict = "  FAILS  " if one.is_error else "  warns  "
    found = counted(one.violations, "violation")
    yield from _wrapped(f"{one.name:<{name_width}}  {found}, {looked_at} checked", width, verdict)
    yield from _wrapped(f"{one.violation}.", width, _MARGIN)
    yield from _wrapped(f"Each is a row of the model {one.quality_model}.", width, _MARGIN)


def _wrapped(text: str, width: int, verdict: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=verdict,
        subsequent_indent=" " * len(verdict),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _rows(gate: "GateResult", proofs: "list[Proof]") -> Iterator[list[object]]:
    for one in gate.results:
        looked_at = [one.success, one.checked, _UNITS[one.suite], one.violations, [*one.examples]]
        yield [one.suite, one.name, one.check, "error", *looked_at]
    for proof in proofs:
        looked_at = [not proof.violations, proof.checked, proof.unit, proof.violations, []]
        yield [PROOFS_SUITE, proof.name, proof.violation, proof.severity, *looked_at]


def summary(gate: "GateResult") -> str:
    """Return the result of the gate in one line."""
    failed = sum(not one.success for one in gate.results)
    verdict = (
        f"{failed} of {len(gate.results)} expectations fail" if failed else f"{len(gate.results)} expectations hold"
    )
    return f"{verdict} on {counted(gate.segments, 'segment')} of {counted(gate.files, 'file')}"


def summary_of_proofs(proofs: "list[Proof]") -> str:
    """Return the result of the proofs in one line."""
    errors, warnings = (
        [one.name for one in proofs if one.violations and one.is_error == is_error] for is_error in (True, False)
    )
    if not errors and not warnings:
        return f"{len(proofs)} proofs hold"
    parts = [f"{len(errors)} of {len(proofs)} proofs fail ({', '.join(errors)})"] if errors else []
    parts += [f"{len(warnings)} warn ({', '.join(warnings)})"] if warnings else []
    return "; ".join(parts)
