"""What sqlfluff's own emulation of dbt lacks, so that the models are linted without a Spark session.

Queries that macros run while a model is compiled give one row whose every cell is `item`; that is enough for the
text of the model to come out whole.
"""

from pathlib import Path
from typing import Any

import yaml


class _Anything:
    """Answers every attribute, item and call with itself, and prints as a name."""

    # Jinja's sandbox asks before it calls.
    unsafe_callable = False
    alters_data = False

    def __getattr__(self, name: str) -> "_Anything":
        return self

    def __getitem__(self, key: Any) -> "_Anything":
        return self

    def __call__(self, *arguments: Any, **keywords: Any) -> "_Anything":
        return self

    def __iter__(self) -> Any:
        return iter(())

    def __int__(self) -> int:
        return 1

    def __len__(self) -> int:
        return 1

    def __str__(self) -> str:
        return "item"


class _Rows(_Anything):
    """A result with one row."""

    def __iter__(self) -> Any:
        return iter((_Anything(),))

    def __getattr__(self, name: str) -> "_Rows":
        return self


class _RunQuery(_Anything):
    def __call__(self, *arguments: Any, **keywords: Any) -> _Rows:
        return _Rows()


class _Var(_Anything):
    """`var(name)` as dbt_project.yml has it."""

    def __call__(self, name: str, default: Any = None) -> Any:
        project = yaml.safe_load(Path("dbt_project.yml").read_text())
        return project.get("vars", {}).get(name, default)


var = _Var()
run_query = _RunQuery()
load_relation = _Anything()
adapter = _Anything()
api = _Anything()
graph = _Anything()
