"""JSON documents as SQL. A server that reads the text of a document makes the same one, except for some members.

A number in the text becomes an integer or a DOUBLE, so `100.3000` would become `100.3`; the text of a DATE becomes a
string. Such a member is set by its path, with its type:
`JSON_SET(CAST('{"day": 0}' AS JSON), '$."day"', CAST('2024-01-02' AS DATE))`.
"""

import re
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ingest.binlog.rows.json_diff import JsonDiffError, Number, apply_changes, parse_change, quoted, scalars_of
from recover.sources.files.document_types import CONTRADICTORY, DocumentTypes

_MOST_DIGITS: Final = 65
_MOST_DECIMALS: Final = 30
_DECIMAL: Final = re.compile(r"-?([0-9]+)(?:\.([0-9]+))?")
_DECIMAL_TYPE: Final = re.compile(r"DECIMAL\(([0-9]+),([0-9]+)\)")
_BYTES: Final = re.compile(r"base64:type[0-9]+:([A-Za-z0-9+/=\s]*)")
_TYPED_TEXTS: Final = (
    ("a DATE", re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")),
    ("a DATETIME", re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}")),
    ("a TIME", re.compile(r"-?[0-9]{2,3}:[0-9]{2}:[0-9]{2}\.[0-9]{6}")),
    ("bytes", _BYTES),
)
"""Texts that a server prints for values that are no texts, in full."""

_BY_CAST: Final = frozenset({"UNSIGNED", "DATE", "TIME(6)", "DATETIME(6)"})
_BY_COLUMN: Final = re.compile(r"(?:DECIMAL|VARBINARY|BINARY|BIT)\([0-9,]+\)|BLOB|TIMESTAMP\(6\)")
"""Types that a column of JSON_TABLE gives, with precisely the bytes that a column of a table would give."""
_BY_LENGTH: Final = {"MEDIUMBLOB": 1 << 16, "LONGBLOB": 1 << 24}
"""Types of bytes that may be so long; JSON_TABLE makes a BLOB of them."""


class DocumentError(ValueError):
    """A document cannot be written so that the server stores the same one."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a document that the server would read otherwise from the text.

    Attributes
    ----------
    path
        Its path, such as `$."a"[0]`.
    text
        Its digits or its characters, as the server prints them.
    form
        The expression that gives it, with `?` for the value.
    value
        The value in this expression: characters, bytes, or the number of a BIT.
    """

    path: str
    text: str
    form: str
    value: str | bytes | int


def members_of(document: str, types: DocumentTypes | None) -> list[Member]:
    """Return the members that a server that reads the text of a document would change.

    Parameters
    ----------
    types
        The types that the log has; None: only the texts are known.

    Raises
    ------
    DocumentError
        The text is not one of a server, or does not tell the type of a member, or no expression gives a member.
    """
    known = None if types is None else types.of(document)
    try:
        found = (
            _number(path, text, known or {}) if isinstance(text, Number) else _other(path, text, known)
            for path, text in scalars_of(document)
        )
        return [member for member in found if member is not None]
    except JsonDiffError as error:
        raise DocumentError(str(error)) from None


def _number(path: str, digits: str, types: Mapping[str, str]) -> Member | None:
    """Return a number; None if the server reads it from the text."""
    kind = types.get(path)
    if kind == "UNSIGNED" or (kind and is_decimal(kind)):
        return Member(path, digits, _form(kind), str(digits))
    if _is_kept(digits):
        return None
    kind = decimal_type(digits)
    if kind is None:
        raise DocumentError(f"it has the number {digits} at {path}, and no DECIMAL column can hold it")
    return Member(path, digits, f"CAST(? AS {kind})", str(digits))


def _other(path: str, text: str, types: Mapping[str, str] | None) -> Member | None:
    """Return a member that is printed as a text; None if it is one."""
    kind = None if types is None else types.get(path)
    if kind:
        if _form(kind) == "":
            raise DocumentError(f"it has a value of type {kind} at {path}, and no expression gives one")
        return Member(path, text, _form(kind), _value(kind, text))
    looks = next((name for name, pattern in _TYPED_TEXTS if pattern.fullmatch(text)), None)
    if looks is None or (types is not None and kind != CONTRADICTORY):
        return None
    shown = text if len(text) <= 40 else text[:40] + "…"
    raise DocumentError(
        f"nothing tells whether '{shown}' at {path} is a text or {looks}; a whole image of the document in binlog files"
        " tells (--files), and --json-as-text takes it for a text"
    )


def _value(kind: str, text: str) -> str | bytes | int:
    found = _BYTES.fullmatch(text)
    if found is None:
        return text
    data = b64decode(found[1])
    return int.from_bytes(data) if kind.startswith("BIT") else data


def _form(kind: str) -> str:
    """Return the expression of a type; empty if there is none."""
    if kind in _BY_CAST:
        return f"CAST(? AS {kind})"
    if kind in _BY_LENGTH:
        return f"COALESCE(?, CAST('' AS BINARY({_BY_LENGTH[kind]})))"
    if _BY_COLUMN.fullmatch(kind):
        return f"(SELECT `v` FROM JSON_TABLE(JSON_ARRAY(?), '$[0]' COLUMNS(`v` {kind} PATH '$')) AS `t`)"
    return ""


def with_members(document: str, members: Sequence[tuple[str, str]]) -> str:
    """Return a document with other members at some paths, as the server prints it; members are texts of JSON.

    Raises
    ------
    DocumentError
        The document has nothing at one of the paths.
    """
    try:
        return apply_changes(document, [parse_change("replace", path, text) for path, text in members])
    except JsonDiffError as error:
        raise DocumentError(str(error)) from None


def printed(member: Member) -> tuple[str, str]:
    """Return the path of a member and its text in a document."""
    return member.path, member.text if isinstance(member.text, Number) else quoted(member.text)


def is_decimal(kind: str) -> bool:
    """Return whether a type is one of a DECIMAL column; results of expressions may have more digits."""
    match = _DECIMAL_TYPE.fullmatch(kind)
    return match is not None and int(match[1]) <= _MOST_DIGITS and int(match[2]) <= _MOST_DECIMALS


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
    mantissa, _, exponent = digits.lower().lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    significant = _significant(mantissa)
    # A server prints the fewest digits that give the same DOUBLE, like Python.
    if _significant(repr(float(digits)).split("e")[0]) != significant:
        return False
    if not exponent and significant:
        # It writes a DOUBLE with an exponent where `kernel.numbers.write_double` does.
        zeros = len(fraction) - len(fraction.lstrip("0"))
        point = len(whole.lstrip("0")) or -zeros
        if point < -14 or (point > 15 and len(significant) <= point):
            return False
    return not fraction.endswith("0") or fraction == "0"


def _significant(digits: str) -> str:
    return digits.lstrip("-").replace(".", "").strip("0")
