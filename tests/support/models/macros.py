"""Renders macros without dbt and Spark: each in a template of its own, as dbt does, so that `return` ends only one."""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jinja2

from tests.support.places import PROJECT

_MACRO = re.compile(r"{%-?\s*macro (\w+)\(.*?{%-?\s*endmacro\s*-?%}", re.DOTALL)


class _Returned(Exception):
    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class Macros:
    """The macros of binloom and of dbt-spark, and what dbt gives to them.

    Parameters
    ----------
    config
        Configuration of the model.
    context
        Further names that the macros use.
    """

    def __init__(self, config: dict[str, Any], **context: Any) -> None:
        self._environment = jinja2.Environment(extensions=["jinja2.ext.do"], undefined=jinja2.StrictUndefined)
        self._names = self._environment.globals
        self.statements: list[str] = []
        self._names.update(
            config=_Config(config),
            adapter=self,
            validation=_Validation(),
            modules={"re": re},
            model={"alias": "model"},
            env_var=lambda name, default: default,
            run_query=self.statements.append,
            **{"return": _return},
        )
        import dbt.include.spark

        (adapter,) = dbt.include.spark.__path__
        theirs = self._macros_of(Path(adapter) / "macros" / "adapters.sql")
        ours: dict[str, Callable[..., Any]] = {}
        for path in sorted((PROJECT / "macros").rglob("*.sql")):
            ours.update(self._macros_of(path))
        self._names.update({**theirs, **ours, **context, "dbt": theirs, "binloom": SimpleNamespace(**ours)})

    def _macros_of(self, path: Path) -> dict[str, Callable[..., Any]]:
        return {found[1]: self._callable(found[1], found[0]) for found in _MACRO.finditer(path.read_text())}

    def _callable(self, name: str, text: str) -> Callable[..., Any]:
        template = cache(self._environment.from_string)

        def call(*values: Any, **named: Any) -> Any:
            try:
                return getattr(template(text).module, name)(*values, **named)
            except _Returned as returned:
                return returned.value

        return call

    def dispatch(self, name: str, _: str) -> Callable[..., Any]:
        """Return the macro that dbt-spark calls: binloom's, if it has one."""
        found: Callable[..., Any] = self._names[f"spark__{name}"]  # type: ignore[assignment]
        return found

    def get_columns_in_relation(self, relation: "Table") -> list[dict[str, str]]:
        """Return the columns of a table."""
        return [{"name": name} for name in relation.columns]

    def render(self, name: str, *values: Any) -> str:
        """Return the text of a macro, with single spaces."""
        return " ".join(str(self.value(name, *values)).split())

    def value(self, name: str, *values: Any, **named: Any) -> Any:
        """Return the value of a macro."""
        return self._names[name](*values, **named)  # type: ignore[operator]


class Table:
    """A table as dbt knows it."""

    def __init__(self, name: str, columns: list[str], provider: str = "parquet") -> None:
        self.name, self.columns = name, columns
        self.is_view, self.is_iceberg, self.is_delta = False, provider == "iceberg", provider == "delta"
        self.information = f"Provider: {provider}\nPartition Columns: [`source_id`, `epoch`]\n"

    def __str__(self) -> str:
        return self.name


class _Config(dict[str, Any]):
    def get(self, name: str, default: Any = None, validator: Any = None) -> Any:
        return super().get(name, default)

    def persist_column_docs(self) -> bool:
        return False


class _Validation:
    any = type("_Any", (), {"__getitem__": lambda self, types: None})()


def _return(value: Any) -> None:
    raise _Returned(value)
