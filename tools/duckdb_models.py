"""The models that questions need, written for DuckDB, which computes them from the raw tables.

dbt compiles the SQL of the models, and sqlglot writes it for DuckDB. So each fact has one definition, whoever asks.
"""

import contextlib
import io
import re
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any, Final

import sqlglot
from sqlglot import exp

from ingest.errors import BinloomError
from recover.sources.home.landed_marts import DIGESTS, PARTS
from recover.sources.home.marts import BASELINES, MASKED_SOURCES
from recover.sources.log import VIEWS
from recover.timeline.table_log import MARTS
from tests.support.places import PROJECT

MODELS: Final = PROJECT / "recover" / "sources" / "home" / "landed_marts.sql"
"""The generated file, which is a part of the package."""

# Columns of times in the fingerprints of parts, and the texts of times that Spark has there.
_MOMENTS: Final = ("landed_at", "committed_at")
_TEXT: Final = r"""regexp_replace(strftime(x at time zone 'UTC', '%Y-%m-%d %H:%M:%S.%f'), '\.?0+$', '')"""
_JSON_MOMENT: Final = """strftime(x at time zone 'UTC', '"%Y-%m-%dT%H:%M:%S.%gZ"')"""
# Functions of Spark that sqlglot does not read as functions, and the names that they get before.
_NAMES: Final = {r"exists(?=\((?!\s*select\b))": "any_of", "forall": "all_of", "try_element_at": "value_of"}


def duckdb_models() -> str:
    """Return the statements that make the views, each after those that it reads."""
    statements = [f"create view {name} as\n{for_duckdb(code)};\n" for name, code in _needed(_compiled())]
    return "\n".join(["-- Generated from models/ by `make generate`: see tools/duckdb_models.py.\n", *statements])


def for_duckdb(code: str) -> str:
    """Return a query of Spark as one of DuckDB."""
    for name, other in _NAMES.items():
        code = re.sub(rf"\b{name}\b", other, code)
    tree = sqlglot.parse_one(code, read="spark")
    for column in [one for one in tree.find_all(exp.Alias) if one.alias in DIGESTS]:
        column.pop()
    for node in tree.walk():
        node.comments = None
    for hint in [*tree.find_all(exp.Hint)]:
        hint.pop()
    for function in [*tree.find_all(exp.Lambda)]:
        _count_places_from_0(function)
    for element in [*tree.find_all(exp.Bracket)]:
        _count_elements_from_1(element)
    return tree.transform(_function).sql("duckdb", pretty=True, comments=False)


def _count_places_from_0(function: exp.Lambda) -> None:
    """Let a function of an element and its place have the place that Spark gives it."""
    if len(function.expressions) != 2 or isinstance(function.parent, exp.Reduce):
        return
    place = function.expressions[1].name

    def shifted(node: exp.Expr) -> exp.Expr:
        is_place = isinstance(node, exp.Identifier) and node.name == place and not isinstance(node.parent, exp.Dot)
        return exp.paren(exp.Sub(this=node.copy(), expression=exp.Literal.number(1))) if is_place else node

    function.set("this", function.this.transform(shifted))


def _count_elements_from_1(element: exp.Bracket) -> None:
    """Read the element that Spark reads at a place that is no literal; sqlglot changes only literals."""
    place = element.expressions[0]
    if not isinstance(place, exp.Literal):
        element.set("expressions", [exp.Add(this=exp.paren(place.copy()), expression=exp.Literal.number(1))])


def _function(node: exp.Expr) -> exp.Expr:
    """Return DuckDB's expression for a function that sqlglot leaves as it is, or changes."""
    if isinstance(node, exp.ArrayDistinct):
        # DuckDB's own function gives the elements in any order.
        return _filled("list_filter(x, lambda one, place : list_position(x, one) = place)", node.this)
    if isinstance(node, exp.JSONFormat) and isinstance(node.this, exp.Struct):
        return _json(node.this)
    if isinstance(node, exp.ConcatWs):
        node.set("expressions", [_filled(_TEXT, one) if _is_moment(one) else one for one in node.expressions])
    if not isinstance(node, exp.Anonymous):
        return node
    match node.name.lower():
        case "any_of":
            return exp.paren(exp.GT(this=_number_of(*node.expressions), expression=exp.Literal.number(0)))
        case "all_of":
            elements, function = node.expressions
            function.set("this", exp.not_(exp.paren(function.this)))
            return exp.paren(exp.EQ(this=_number_of(elements, function), expression=exp.Literal.number(0)))
        case "value_of":
            return exp.Bracket(this=node.expressions[0], expressions=[node.expressions[1]], offset=1)
        case "get":
            elements, place = node.expressions
            after = exp.Literal.number(int(place.name) + 1)
            return exp.Bracket(this=exp.paren(elements), expressions=[after], offset=1)
    return node


def _is_moment(node: exp.Expr) -> bool:
    return node.name in _MOMENTS and isinstance(node, exp.Column)


def _json(struct: exp.Struct) -> exp.Expr:
    """Return the JSON text of a struct as Spark writes it: without fields that are NULL."""
    fields = []
    for field in struct.expressions:
        value = _filled(_JSON_MOMENT if _is_moment(field.expression) else "to_json(x)::varchar", field.expression)
        fields.append(_filled(f"""'"{field.name}":' || x""", value))
    return _filled("'{' || concat_ws(',', x) || '}'", *fields)


def _filled(pattern: str, *values: exp.Expr) -> exp.Expr:
    """Return an expression of DuckDB with values in the place of x."""

    def fill(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.ConcatWs) and node.expressions[-1] == exp.column("x"):
            node.set("expressions", [*node.expressions[:-1], *(value.copy() for value in values)])
        return values[0].copy() if node == exp.column("x") else node

    return sqlglot.parse_one(pattern, read="duckdb").transform(fill)


def _number_of(elements: exp.Expr, function: exp.Expr) -> exp.Expr:
    """Return the number of elements for which a function is true."""
    found = exp.Anonymous(this="list_filter", expressions=[elements, function])
    return exp.Anonymous(this="len", expressions=[found])


def _needed(compiled: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the models that the views read, each after those that it reads itself."""
    codes, done = dict(compiled), set[str]()

    def steps(relation: str) -> Iterator[tuple[str, str]]:
        if relation in codes and relation not in done:
            done.add(relation)
            for table in sqlglot.parse_one(codes[relation], read="spark").find_all(exp.Table):
                yield from steps(f"{table.db}.{table.name}")
            yield relation, codes[relation]

    for schema, name in _VIEWS:
        yield from steps(f"{schema}.{name}")


# MASKED_SOURCES has a query of its own, as in a home that was built.
_VIEWS: Final = [one for one in dict.fromkeys((*VIEWS, *MARTS, BASELINES, PARTS)) if one != MASKED_SOURCES]


def _compiled() -> list[tuple[str, str]]:
    """Return the name and the SQL for Spark of each view and of the models that it is made of."""
    from dbt.cli.main import dbtRunner

    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        places = {"project": PROJECT, "profiles": PROJECT}
        done = dbtRunner().invoke(
            [
                *("compile", "--select", *(f"+{name}" for _, name in _VIEWS)),
                *("--exclude", "resource_type:test", "resource_type:unit_test"),
                *(word for name, place in places.items() for word in (f"--{name}-dir", str(place))),
                *("--target-path", folder, "--log-path", folder, "--log-level", "none"),
                *("--no-write-json", "--no-introspect", "--no-populate-cache"),
            ]
        )
    if done.exception is not None:
        raise BinloomError(f"dbt could not compile the models: {done.exception}.")
    nodes: list[Any] = [one.node for one in done.result.results]
    return [
        (node.relation_name, node.compiled_code)
        for node in nodes
        if node.resource_type == "model" and node.config.materialized != "ephemeral"
    ]
