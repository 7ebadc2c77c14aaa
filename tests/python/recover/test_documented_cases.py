"""docs/recover.md names only tests that exist."""

import re

from tests.python.recover import test_undo_cases
from tests.support.places import PROJECT

CASES = {case.name for case in test_undo_cases.UNDONE}


def test_every_case_is_tested() -> None:
    rows = re.findall(r"^\| .* \| `([^`]+)` \|$", (PROJECT / "docs" / "recover.md").read_text(), re.MULTILINE)
    files = {path.name for path in (PROJECT / "tests" / "python").rglob("test_*.py")}
    assert len(rows) > 15
    assert [row for row in rows if row not in CASES | files] == []
