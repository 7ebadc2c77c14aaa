"""The values that an ALTER TABLE leaves as they are.

The log contains the statement, but not the rows that it changed. A value is kept only if its text cannot have changed.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from recover.timeline.events import Image

_INTEGERS: Final = ("tinyint", "smallint", "mediumint", "int", "bigint")
_TEXTS: Final = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext")
_NAMING: Final = ("add_column", "drop_column", "modify_column", "rename_column")
_KEY: Final = ("add_primary_key", "drop_primary_key")
_LABEL: Final = re.compile(r"'(?:[^']|'')*'")


@dataclass(frozen=True)
class Columns:
    """The columns of a version of a table.

    Attributes
    ----------
    types
        Name to type with length and attributes, in the order of the table.
    primary_key
        Names of the columns of the primary key, in its order.
    """

    types: Mapping[str, str]
    primary_key: tuple[str, ...] = ()


def kept_columns(row: Image, actions: Sequence[str], columns: Columns | None) -> Image:
    """Return the values of a row that are known after an ALTER TABLE.

    Parameters
    ----------
    row
        The row before the statement.
    actions
        Steps of the statement, as in the mart `schema_changes`.
    columns
        Columns of the table before the statement; None if they are unknown.
    """
    naming = [action for action in actions if action.startswith(_NAMING)]
    if not naming:
        return row
    return {
        column: value
        for column, value in row.items()
        if all(not _names(action, column) or _keeps(action, column, columns) for action in naming)
    }


def replaces_rows(actions: Sequence[str], has_key: bool, versions: Iterable[Columns] = ()) -> bool:
    """Return whether rows cannot be recognized by their keys after an ALTER TABLE."""
    if any(action.startswith(_KEY if has_key else (*_KEY, *_NAMING)) for action in actions):
        return True
    return any(
        action.startswith("modify_column") and _names(action, column) and not _keeps(action, column, columns)
        for columns in versions
        for column in columns.primary_key
        for action in actions
    )


def _names(action: str, column: str) -> bool:
    """Return whether a step contains a column's name. One too many makes a value unknown, and never wrong."""
    return re.search(rf"(?<![\w$]){re.escape(column)}(?![\w$])", action, re.IGNORECASE) is not None


def _keeps(action: str, column: str, columns: Columns | None) -> bool:
    """Return whether a step gives a column another type in which each value has the same text."""
    name = re.escape(column)
    match = re.fullmatch(rf"modify_column {name} {name} (.+?)(?: first| after .+)?", action, re.IGNORECASE)
    before = columns.types.get(column) if columns is not None else None
    return match is not None and before is not None and _has_same_text(before.lower(), match[1].lower())


def _has_same_text(before: str, after: str) -> bool:
    if before == after:
        return True
    (kind, size, rest), (new_kind, new_size, new_rest) = _parts(before), _parts(after)
    if kind in _INTEGERS and new_kind in _INTEGERS:
        return rest == new_rest and "zerofill" not in rest and _INTEGERS.index(new_kind) >= _INTEGERS.index(kind)
    if kind in _TEXTS and new_kind in _TEXTS:
        # A CHAR loses the spaces at its end.
        return (
            (new_kind != "char" or kind == "char")
            and _TEXTS.index(new_kind) >= _TEXTS.index(kind)
            and (kind != new_kind or _number(new_size) >= _number(size))
        )
    if kind == new_kind and kind in ("enum", "set"):
        labels, new_labels = _LABEL.findall(before), _LABEL.findall(after)
        return new_labels[: len(labels)] == labels
    if kind == new_kind == "varbinary":
        return _number(new_size) >= _number(size)
    return False


def _parts(column_type: str) -> tuple[str, str, str]:
    """Return the name, the text in parentheses and the attributes of a type."""
    match = re.fullmatch(r"(\w+)(?:\((.*)\))?(.*)", column_type, re.DOTALL)
    return (match[1], match[2] or "", match[3].strip()) if match else (column_type, "", "")


def _number(size: str) -> int:
    return int(size) if size.isdigit() else 0
