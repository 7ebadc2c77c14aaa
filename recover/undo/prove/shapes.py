"""Prove statements whose shape was proved before: only their literals are compared.

A shape is proved for a signature: the same table, verb and columns, and NULL in the same places. All text of such a
statement, except its literals, is then the same as in the statement that sqlglot has read.
"""

import re
import struct
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Final

from recover.undo.prove.parts import Literal, Reading
from recover.undo.rows import literals as kinds
from recover.undo.rows.documents import members_of
from recover.undo.rows.operations import Operation
from recover.undo.tables.table import Column

Matches = Callable[[str, str], bool]
"""Whether the text of a literal is a value. False may also mean that only a full comparison can tell."""

# They match the same texts as the tokens of `reading`, and never less than a whole token.
_PATTERNS: Final = {
    "text": r"('[^'\\]*+(?:''[^'\\]*+)*+')",
    "introduced": r"(_utf8mb4\ X'(?:[0-9A-F]{2})*+')",
    "hex": r"(X'(?:[0-9A-F]{2})*+')",
    "number": r"((?>-?[0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?))",
}


class ProvedShape:
    """A statement that was proved, without its literals.

    Parameters
    ----------
    tokens
        Its tokens, of `reading`.
    reading
        The statement as sqlglot reads it.
    operation
        Its plan.
    """

    def __init__(self, tokens: "Iterable[Literal]", reading: Reading, operation: Operation) -> None:
        tokens = [*tokens]
        self._pattern = re.compile("".join(_PATTERNS.get(kind) or re.escape(text) for kind, text in tokens), re.DOTALL)
        literals = [kind for kind, _ in tokens if kind != "fixed"]
        self._compared: list[tuple[int, bool, str, Matches]] = []
        by_place = {part.place: part for part in reading.parts if part.place is not None}
        for place, kind in enumerate(literals):
            part = by_place.get(place)
            if part is None:
                # Only the number of a limit.
                self._compared.append((place, False, "", _never if kind != "number" else _is_one))
                continue
            column = operation.table.by_name[part.column]
            is_set = part.form in ("set", "document")
            matches = _of_set_value(column, kind) if is_set else _of_condition(column, kind)
            self._compared.append((place, is_set, part.column, _never if part.form == "document" else matches))

    def proves(self, sql: str, operation: Operation) -> bool:
        """Return whether a statement has this shape and the literals of its plan, which has the same signature."""
        match = self._pattern.fullmatch(sql)
        if match is None:
            return False
        found = match.groups()
        values, guard, key = operation.values, operation.guard, operation.key
        for place, is_set, name, matches in self._compared:
            value = values[name] if is_set else guard[name] if name in guard else key.get(name)
            if not matches(found[place], value or ""):
                return False
        return True


def is_text_enough(column: Column, value: str | None) -> bool:
    """Return whether a server reads a value from its text as it was, also if it is a document."""
    return column.data_type != "json" or value is None or not members_of(value, column.documents)


def _of_set_value(column: Column, kind: str) -> Matches:
    matches = _of_value(column, kind)
    if column.data_type != "json":
        return matches
    return lambda text, value: matches(text, value) and is_text_enough(column, value)


def _of_value(column: Column, kind: str) -> Matches:
    """Return the comparison of a literal that a statement sets; the kinds of literals are those of `reading`."""
    data_type = column.data_type
    if data_type in kinds.INTEGERS | kinds.BITS | kinds.DECIMALS:
        return _is_number if kind == "number" else _never
    if data_type in kinds.FLOATS:
        return _is_float if kind == "number" else _never
    if data_type in kinds.DOUBLES:
        return _is_double if kind == "number" else _never
    if kind == "number":
        return _never
    if data_type in kinds.BINARIES | kinds.OPAQUE:
        return _is_hex if kind == "hex" else _never
    return _is_text if kind == "text" else _is_text_as_bytes


def _of_condition(column: Column, kind: str) -> Matches:
    """Return the comparison of a literal in a condition."""
    if column.data_type in kinds.OPAQUE:
        return _is_hex_as_text if kind == "text" else _never
    matches = _of_value(column, kind)
    if column.data_type in kinds.FLOATS | kinds.DOUBLES:
        # The two zeros have conditions of their own.
        return lambda text, value: float(value) != 0 and matches(text, value)
    return matches


def _never(text: str, value: str) -> bool:
    return False


def _is_one(text: str, value: str) -> bool:
    return text == "1"


def _is_number(text: str, value: str) -> bool:
    return "e" not in text and (text == value or Decimal(text) == Decimal(value))


def _is_float(text: str, value: str) -> bool:
    return "e" in text and struct.pack("<f", float(text)) == struct.pack("<f", float(value))


def _is_double(text: str, value: str) -> bool:
    return "e" in text and struct.pack("<d", float(text)) == struct.pack("<d", float(value))


def _is_hex(text: str, value: str) -> bool:
    return text[2:-1] == value[2:]


def _is_hex_as_text(text: str, value: str) -> bool:
    return text[1:-1] == value[2:]


def _is_text(text: str, value: str) -> bool:
    return text[1:-1].replace("''", "'") == value


def _is_text_as_bytes(text: str, value: str) -> bool:
    return bytes.fromhex(text[text.index("'") + 1 : -1]) == value.encode()
