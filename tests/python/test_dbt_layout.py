"""The dbt project can be read: a model fits a few screens, and every macro has a caller."""

import re
from pathlib import Path

import pytest

from tests.support.places import PROJECT

MOST_LINES = 250
MODELS = sorted((PROJECT / "models").rglob("*.sql"))
MACROS = sorted((PROJECT / "macros").rglob("*.sql"))
# dbt calls these itself.
MATERIALIZATIONS = ["parts"]
OVERRIDES = ["spark__get_assert_columns_equivalent", "spark__options_clause", "spark__tblproperties_clause"]
# Models of a user call these; Python tests do, too.
FOR_USERS = ["dbt_snapshot_columns", "typed_changes", "typed_current", "typed_history"]
TESTS = sorted((PROJECT / "tests" / "dbt").rglob("*.sql"))


def test_a_model_fits_a_few_screens() -> None:
    lengths = {model.stem: len(model.read_text().splitlines()) for model in MODELS}
    assert {name: length for name, length in lengths.items() if length > MOST_LINES} == {}


@pytest.mark.parametrize(
    "macro",
    [macro for macro in MACROS if macro.stem not in (*MATERIALIZATIONS, *OVERRIDES, *FOR_USERS)],
    ids=lambda macro: macro.stem,
)
def test_a_macro_has_a_caller(macro: Path) -> None:
    callers = [*MODELS, *MACROS, *TESTS, PROJECT / "dbt_project.yml"]
    call = re.compile(rf"\b{macro.stem}\(")
    assert any(call.search(caller.read_text()) for caller in callers if caller != macro)
