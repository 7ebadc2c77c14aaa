"""JSON documents as SQL. A server that reads the text of a document makes the same one, except for its DECIMAL numbers.

A number in the text becomes an integer or a DOUBLE, so `100.3000` would become `100.3`. Such a number is therefore set
by its path: `JSON_SET(CAST('{"price": 0}' AS JSON), '$."price"', CAST('100.3000' AS DECIMAL(7,4)))`.
"""

import re
from collections.abc import Sequence
from typing import Final

from ingest.binlog.json_diff import JsonDiffError, apply_changes, numbers_of, parse_change

Number = tuple[str, str]
"""The path and the digits of a number in a document."""

_MOST_DIGITS: Final = 65
_MOST_DECIMALS: Final = 30
_DECIMAL: Final = re.compile(r"-?([0-9]+)(?:\.([0-9]+))?")


class DocumentError(ValueError):
    """A document cannot be written so that the server stores the same one."""


def decimals_of(document: str) -> list[Number]:
    """Return the numbers that a server that reads the text of a document would change.

    Raises
    ------
    DocumentError
        The text is not one of a server, or no expression gives one of its numbers.
    """
    try:
        found = [number for number in numbers_of(document) if not _is_kept(number[1])]
    except JsonDiffError as error:
        raise DocumentError(str(error)) from None
    for path, digits in found:
        if decimal_type(digits) is None:
            raise DocumentError(f"it has the number {digits} at {path}, and no DECIMAL column can hold it")
    return found


def with_numbers(document: str, numbers: Sequence[Number]) -> str:
    """Return a document with other numbers at some paths, as the server prints it.

    Raises
    ------
    DocumentError
        The document has nothing at one of the paths.
    """
    try:
        return apply_changes(document, [parse_change("replace", path, digits) for path, digits in numbers])
    except JsonDiffError as error:
        raise DocumentError(str(error)) from None


def decimal_type(digits: str) -> str | None:
    """Return the DECIMAL type with just the digits of a number, as the server stores it; None if there is none."""
    match = _DECIMAL.fullmatch(digits)
    if match is None:
        return None
    whole, fraction = match[1].lstrip("0"), match[2] or ""
    size = max(len(whole) + len(fraction), 1)
    return f"DECIMAL({size},{len(fraction)})" if size <= _MOST_DIGITS and len(fraction) <= _MOST_DECIMALS else None


def _is_kept(digits: str) -> bool:
    """Return whether a server prints a number with the same digits after it has read them."""
    if not {*digits} & {*".e"}:
        return -(1 << 63) <= int(digits) < 1 << 64
    mantissa = digits.lower().split("e")[0]
    return repr(float(digits)).split("e")[0].rstrip("0").rstrip(".") == mantissa.rstrip("0").rstrip(".") and (
        not mantissa.partition(".")[2].endswith("0") or mantissa.endswith(".0")
    )
