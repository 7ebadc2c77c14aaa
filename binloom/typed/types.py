"""The type of Spark for a column of a server. Every value of the column fits, except dates that do not exist."""

import re
from typing import Final

from recover.selection.catalog import Column, Kind

_INTEGERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "tiny", "short", "int24", "long"})
_BIGINTS: Final = frozenset({"bigint", "longlong"})
_MOST_DIGITS: Final = 38
_WIDTH: Final = re.compile(r"bit\((\d+)\)")


def spark_type(column: Column) -> str:
    """Return the type of a column in typed models.

    TIME is a string: it has negative values and values of more than a day. JSON is a string too: VARIANT cannot be
    compared or grouped, and does not keep the text of numbers.
    """
    name = (column.data_type or "").lower()
    # The labels of an ENUM may contain any word.
    is_unsigned = "unsigned" in (column.column_type or "").lower()
    if name in _INTEGERS:
        return "bigint" if is_unsigned and name in ("int", "long") else "int"
    if name in _BIGINTS:
        return "decimal(20,0)" if is_unsigned else "bigint"
    if name in ("decimal", "newdecimal"):
        precision, scale = column.digits
        return f"decimal({precision},{scale})" if precision <= _MOST_DIGITS else "string"
    if name == "bit":
        width = _WIDTH.match(column.column_type or "")
        return "bigint" if width and int(width[1]) < 64 else "decimal(20,0)"
    if name in ("float", "double", "date"):
        return name
    if name in _OTHERS:
        return _OTHERS[name]
    return "binary" if column.kind is Kind.BINARY else "string"


_OTHERS: Final = {
    "year": "int",
    "newdate": "date",
    # A DATETIME has no time zone; a TIMESTAMP is a moment, which the log has in UTC.
    "datetime": "timestamp_ntz",
    "datetime2": "timestamp_ntz",
    "timestamp": "timestamp",
    "timestamp2": "timestamp",
    "set": "array<string>",
}
