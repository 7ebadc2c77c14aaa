"""The output of `binloom quality` for a user: a line for each passed check, and a sentence for each failed one."""

from functools import cache
from pathlib import Path

import pytest
import yaml

from binloom.commands.quality import text_lines
from ingest.quality.gate import CheckResult, GateResult
from ingest.quality.proofs import Proof
from tests.support.places import PROJECT

SEGMENT = "source_id shop-mysql, epoch 0, binlog_file mysql-bin.000042, segment_start 1073741824"

# Importing Great Expectations takes seconds.
pytestmark = pytest.mark.slow


@cache
def expectations() -> list[tuple[str, str]]:
    """Return suite and description of each expectation."""
    from ingest.quality.suites import suites

    return [(suite.name, one.description) for suite in suites() for one in suite.expectations]


@cache
def models() -> list[tuple[str, str]]:
    """Return name and first sentence of each quality model."""
    return [
        (model["name"], model["description"].split(". ")[0].strip().rstrip("."))
        for file in sorted((PROJECT / "models" / "marts" / "quality").rglob("_models.yml"))
        for model in yaml.safe_load(file.read_text())["models"]
        if model["name"] != "proofs"
    ]


def gate(failing: bool) -> GateResult:
    results = [
        CheckResult(suite, check, check, not failing, 1_234_567, 5 * failing, [SEGMENT] * 5 * failing)
        for suite, check in expectations()
    ]
    return GateResult(not failing, results, Path("/home/me/.binloom/quality/index.html"), 1_234_567, 4)


def proofs(violations: int, severity: str = "error") -> list[Proof]:
    return [
        Proof(name, sentence, name, severity, violations, 98_765_432_100, "row_events") for name, sentence in models()
    ]


def test_there_is_a_line_for_each_check_that_holds() -> None:
    lines = list(text_lines(gate(failing=False), proofs(0), 120))
    holding = [line for line in lines if line.startswith("  holds  ")]
    assert len(holding) == len(expectations()) + len(models()) > 30
    assert [line for line in lines if "FAILS" in line or "warns" in line or "quality.md" in line] == []
    # No text continues on another line: the output is only headings, checks, blank lines and the page.
    assert len(lines) == len(holding) + 7
    assert "  holds  Every row is an INSERT, UPDATE or DELETE (1,234,567 segments)" in lines


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize(("severity", "verdict"), [("error", "FAILS"), ("warn", "warns")])
def test_what_does_not_hold_has_its_sentence(width: int, severity: str, verdict: str) -> None:
    lines = list(text_lines(gate(failing=True), proofs(3, severity), width))
    assert [line for line in lines if len(line) > width] == []
    text = " ".join(" ".join(lines).split())
    for name, sentence in models():
        assert f"{verdict} {name} 3 violations, 98,765,432,100 row events checked {sentence}. " in text
    for _, check in expectations():
        assert f"FAILS {check}: does not hold for 5 of 1,234,567 " in text
    assert text.count(SEGMENT) == 5 * len(expectations())
    assert "docs/quality.md explains" in text


def test_words_stay_whole_on_a_narrow_terminal() -> None:
    narrow, wide = (list(text_lines(gate(failing=True), proofs(3), width)) for width in (80, 1000))
    assert " ".join(narrow).split() == " ".join(wide).split()


def test_there_are_no_proofs_before_the_first_build() -> None:
    lines = list(text_lines(gate(failing=False), [], 120))
    assert lines[0] == f"Raw tables: {len(expectations())} expectations hold on 1,234,567 segments of 4 files"
    assert len(lines) == len(expectations()) + 4
