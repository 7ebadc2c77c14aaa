"""Columns of a MariaDB sequence.

Source: MariaDB, sql/sql_sequence.cc, `sequence_structure`.
"""

from dataclasses import replace
from typing import Final

from ingest.ddl.actions import Column
from ingest.ddl.column_types import DataType

_WIDTHS: Final = {"tinyint": "5", "smallint": "7", "mediumint": "10", "int": "12", "bigint": "21"}
_OF_VALUES: Final = ("next_not_cached_value", "minimum_value", "maximum_value", "start_value")
_OTHERS: Final = (
    ("increment", DataType("bigint", "21")),
    ("cache_size", DataType("bigint", "21", " unsigned")),
    ("cycle_option", DataType("tinyint", "1", " unsigned")),
    ("cycle_count", DataType("bigint", "21")),
)


VALUES: Final = len(_OF_VALUES)
"""The first columns of a sequence: they have the type of its values."""

SEQUENCE_COLUMNS: Final = frozenset((*_OF_VALUES, *(name for name, _ in _OTHERS)))
"""The names of the columns of each sequence; other tables have other ones."""


def sequence_columns(value: DataType) -> tuple[Column, ...]:
    """Return the columns of a sequence whose values have a type."""
    value = replace(value, sizes=_WIDTHS.get(value.name, value.sizes))
    typed = [*((name, value) for name in _OF_VALUES), *_OTHERS]
    return tuple(Column(name, one.name, one.column_type, is_nullable=False, is_generated=False) for name, one in typed)
