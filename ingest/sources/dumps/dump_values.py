"""Values in dumps: how programs write those of a type, and what the text of the decoder is."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ingest.sources.baselines.baseline_tables import BINARY_TYPES, is_filled

if TYPE_CHECKING:
    import pyarrow as pa

NUMBERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double", "year"})
# Their bytes are UTF-8.
_UNICODE: Final = frozenset({None, "utf8mb4", "utf8mb3", "ascii"})


class UnknownCharacterError(Exception):
    """Some bytes are no characters of their column's character set. Its text is the reason."""


def is_exact(column: dict[str, Any]) -> bool:
    """Return whether a dump shows the exact value of a column: it has six digits of a FLOAT, and rounds DOUBLE(M,D)."""
    data_type, column_type = column["data_type"], column["column_type"].lower()
    return not (data_type == "float" or (data_type == "double" and "(" in column_type))


def kind(column: dict[str, Any], *, is_raw: bool) -> int:
    """Return how the values of a column are written as SQL.

    Parameters
    ----------
    is_raw
        Whether a text has the bytes that the server stores, in the character set of its column.
    """
    from ingest.binlog.kernel import dump_row_layout as kernel

    data_type = column["data_type"]
    if data_type in NUMBERS:
        return kernel.NUMBER
    if data_type == "bit":
        return kernel.BITS
    is_binary = data_type in BINARY_TYPES or (is_raw and _needs_conversion(column))
    return kernel.BINARY if is_binary else kernel.TEXT


def taken_columns(
    rows: "pa.ListArray", columns: Sequence[dict[str, Any]], places: Sequence[int], *, is_raw: bool
) -> "pa.ListArray":
    """Return rows with only the columns at some places, and with the texts of the decoder.

    Raises
    ------
    UnknownCharacterError
        Some bytes are no characters.
    """
    is_plain = not any(is_filled(row) or (is_raw and _needs_conversion(row)) for row in columns)
    if is_plain and len(places) == len(columns):
        return rows
    return as_lists([_column(rows, at, columns, is_raw=is_raw) for at in places])


def without_zeros(values: "pa.Array", column: dict[str, Any]) -> "pa.Array":
    """Return numbers without the zeros that a server writes before those of ZEROFILL, which the log does not have."""
    import pyarrow.compute as pc

    return pc.replace_substring_regex(values, r"^(-?)0+([0-9])", r"\1\2") if is_filled(column) else values


def column_of(rows: "pa.ListArray", at: int, size: int) -> "pa.StringArray":
    """Return a column of rows, each of which is a list of so many values."""
    import numpy as np
    import pyarrow as pa

    return rows.flatten().take(pa.array(np.arange(at, len(rows) * size, size)))


def as_lists(columns: "list[pa.StringArray]") -> "pa.ListArray":
    """Return columns as rows, each a list of its values."""
    import numpy as np
    import pyarrow as pa

    rows, size = len(columns[0]), len(columns)
    values = pa.concat_arrays(columns).take(pa.array(np.arange(rows * size).reshape(size, rows).T.ravel()))
    return pa.ListArray.from_arrays(np.arange(0, rows * size + 1, size, dtype=np.int32), values)


def _needs_conversion(column: dict[str, Any]) -> bool:
    return column["data_type"] != "json" and column["character_set"] not in _UNICODE


def _column(rows: "pa.ListArray", at: int, columns: Sequence[dict[str, Any]], *, is_raw: bool) -> "pa.StringArray":
    column, values = columns[at], column_of(rows, at, len(columns))
    return _as_text(values, column) if is_raw and _needs_conversion(column) else without_zeros(values, column)


def _as_text(values: "pa.StringArray", column: dict[str, Any]) -> "pa.StringArray":
    """Return the texts of bytes in hex, in the character set of their column."""
    import pyarrow as pa

    from ingest.binlog.text.charsets import as_text

    # Values that repeat are converted once.
    found = values.dictionary_encode()
    texts = [as_text(bytes.fromhex(value[2:]), column["character_set"]) for value in found.dictionary.to_pylist()]
    if None in texts:
        raise UnknownCharacterError(f"a text of column {column['column_name']} is not {column['character_set']}")
    return pa.array(texts, pa.string()).take(found.indices)
