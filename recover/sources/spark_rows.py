"""Rows of Spark as lines of text, and the lines as rows of DuckDB.

Thrift has neither maps nor times with microseconds, and Python reads it value by value. So each row is one JSON object
in which every value is text. Both engines write and read it, and no value is converted to another type in between.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from ingest.errors import UsageError
from recover.sources.engine import quoted

if TYPE_CHECKING:
    from sqlglot import exp


@dataclass(frozen=True)
class Column:
    """A column of an answer: its name, and its type in Spark."""

    name: str
    type: "exp.DataType"

    @classmethod
    def of(cls, name: str, text: str) -> "Column":
        """Return the column that `describe query` tells.

        Raises
        ------
        UsageError
            The type has no exact text.
        """
        from sqlglot import errors, exp

        try:
            # A NULL without a type; sqlglot does not know Spark's name of it.
            found = exp.DataType.build("string" if text == "void" else text, dialect="spark")
        except errors.SqlglotError:
            found = None
        if found is None or not _is_exact(found):
            raise UsageError(
                f"Column {name} has the type {text}, which binloom cannot read from a cluster.",
                hint="Cast it to string.",
            )
        return cls(name, found)


def line_of(columns: Sequence[Column]) -> str:
    """Return the expression of Spark that makes a line of the columns `c0`, `c1` and so on."""
    values = ", ".join(f"{_text(column.type, place)} as c{place}" for place, column in enumerate(columns))
    # Without the option a NULL inside a struct would be left out.
    return f"to_json(struct({values}), map('ignoreNullFields', 'false'))"


def values_of(columns: Sequence[Column], lines: str) -> str:
    """Return the query of DuckDB that makes rows of the column `line` of a table."""
    shape = ", ".join(f"c{place} {_shape(column.type).sql('duckdb')}" for place, column in enumerate(columns))
    values = ", ".join(f"{_value(column.type, place)} as {quoted(column.name)}" for place, column in enumerate(columns))
    return f"select {values} from (select cast(line::json as struct({shape})) as one from {lines})"


def no_rows(columns: Iterable[tuple[str, str]]) -> str:
    """Return the query of DuckDB that has columns, given with their types in Spark, and no rows."""
    values = (f"null::{_type_in_duckdb(kind)} as {quoted(name)}" for name, kind in columns)
    return f"select {', '.join(values)} where false"


@cache
def _type_in_duckdb(kind: str) -> str:
    from sqlglot import exp

    return exp.DataType.build(kind, dialect="spark").sql("duckdb")


def _text(kind: "exp.DataType", place: int) -> str:
    if _is_moment(kind):
        # The text of a time depends on the time zone of the session.
        return f"cast(unix_micros(c{place}) as string)"
    return f"cast(c{place} as {_shape(kind).sql('spark')})"


def _value(kind: "exp.DataType", place: int) -> str:
    if _is_moment(kind):
        return f"make_timestamptz(one.c{place}::bigint)"
    return f"one.c{place}::{kind.sql('duckdb')}"


def _shape(kind: "exp.DataType") -> "exp.DataType":
    """Return a type with text instead of every simple type in it."""
    from sqlglot import exp

    text = exp.DataType.build("text")
    if not kind.expressions or kind.is_type("decimal"):
        return text
    found = kind.copy()
    if kind.is_type("map"):
        found.set("expressions", [text, _shape(kind.expressions[1])])
    elif kind.is_type("array"):
        found.set("expressions", [_shape(kind.expressions[0])])
    else:
        for field in found.expressions:
            field.set("kind", _shape(field.args["kind"]))
    return found


def _is_exact(kind: "exp.DataType") -> bool:
    """Return whether a value of a type is the same after it was a text. A number in a key of a map would not be."""
    from sqlglot import exp

    types = exp.DType
    if not isinstance(kind, exp.DataType):
        return False
    parts = kind.expressions
    if kind.this == types.ARRAY:
        return len(parts) == 1 and _is_exact(parts[0])
    if kind.this == types.MAP:
        return len(parts) == 2 and parts[0].this == types.TEXT and _is_exact(parts[1])
    if kind.this == types.STRUCT:
        return bool(parts) and all(
            isinstance(field, exp.ColumnDef) and isinstance(field.args.get("kind"), exp.DataType)
            and _is_exact(field.args["kind"])
            for field in parts
        )  # fmt: skip
    return kind.this in (
        *(types.BOOLEAN, types.TINYINT, types.SMALLINT, types.INT, types.BIGINT, types.FLOAT, types.DOUBLE),
        *(types.DECIMAL, types.TEXT, types.DATE, types.TIMESTAMPTZ, types.TIMESTAMPNTZ),
    )


def _is_moment(kind: "exp.DataType") -> bool:
    from sqlglot import exp

    return bool(kind.this == exp.DType.TIMESTAMPTZ)
