"""The text of a value after an ALTER TABLE gave its column another type, and the value of an added column.

A value is told only if every server gives it this text, whatever its SQL mode. All others are unknown.
"""

import re
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal
from enum import Enum
from functools import lru_cache
from typing import Final, Literal

from ingest.binlog.events.hints import enum_members
from ingest.ddl.actions import Column
from ingest.ddl.column_types import bytes_each
from ingest.ddl.definitions import COUNTER, ON_UPDATE


class Unknown(Enum):
    """The type of `UNKNOWN`."""

    UNKNOWN = "unknown"


UNKNOWN: Final = Unknown.UNKNOWN
"""A value that the log does not tell. NULL is None."""
Value = str | None | Literal[Unknown.UNKNOWN]

_BITS: Final = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_TEXT_BYTES: Final = dict(zip(("tinytext", "text", "mediumtext", "longtext"), (8, 16, 24, 32), strict=True))
_BLOB_BYTES: Final = dict(zip(("tinyblob", "blob", "mediumblob", "longblob"), (8, 16, 24, 32), strict=True))
_CHARACTERS: Final = frozenset({"char", "varchar", *_TEXT_BYTES})
_BYTES: Final = frozenset({"binary", "varbinary", *_BLOB_BYTES})
_LABELLED: Final = frozenset({"enum", "set"})
_MOMENTS: Final = frozenset({"date", "datetime", "time"})
# All characters of Unicode, or those with up to 16 bits.
_UNICODE: Final = frozenset({"utf8mb4", "utf16", "utf16le", "utf32", "gb18030"})
_PLANE: Final = frozenset({"utf8", "utf8mb3", "ucs2"})
# In these, an ASCII character is not one equal byte.
_WIDE: Final = frozenset({"utf16", "utf16le", "utf32", "ucs2"})

_TYPE: Final = re.compile(r"(\w+)(?:\((.*)\))?(.*)", re.DOTALL)
_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]*")
_NUMBER: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOMENT: Final = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,6}))?")
_TIME: Final = re.compile(r"(-?[0-9]{2,3}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,6}))?")
_MIDNIGHT: Final = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}) 00:00:00(?:\.0+)?")
_HEXADECIMAL: Final = re.compile(r"0x(?:[0-9A-F]{2})*")
# The EXTRA of a column that exists only while a statement runs.
_PADDED: Final = "padded"
# Digits that a float and a double give back as they were written.
_EXACT_DIGITS: Final = {"float": 6, "double": 15}


@dataclass(frozen=True)
class _Type:
    """A type, taken apart."""

    name: str
    sizes: tuple[int, ...]
    is_unsigned: bool
    is_filled: bool
    members: tuple[str, ...]
    character_set: str | None

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the greatest number of an integer type, or of BIT."""
        if self.name == "bit":
            return 0, 2 ** (self.sizes or (1,))[0] - 1
        bits = _BITS[self.name]
        return (0, 2**bits - 1) if self.is_unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)

    @property
    def digits(self) -> int:
        """The digits of a fraction: of a DECIMAL, or of a second."""
        return self.sizes[1] if self.name == "decimal" else (self.sizes or (0,))[0]

    def holds_characters(self, text: str) -> bool:
        """Return whether a text has room in a character type, and has no character that the type lacks."""
        if self.name in _TEXT_BYTES:
            each = bytes_each(self.character_set) if self.character_set is not None else 4
            has_room = len(text) * each < 2 ** _TEXT_BYTES[self.name]
        else:
            has_room = len(text) <= (self.sizes or (1,))[0]
        return has_room and self.has_all(text)

    def has_all(self, text: str) -> bool:
        """Return whether the character set is known to have all characters of a text."""
        if text.isascii() or self.character_set in _UNICODE:
            return True
        return self.character_set in _PLANE and max(text) <= "\uffff"


@lru_cache(maxsize=1000)
def _type_of(data_type: str | None, column_type: str | None, character_set: str | None) -> _Type | None:
    found = _TYPE.fullmatch((column_type or "").split("/*")[0].strip())
    if data_type is None or found is None:
        return None
    name, suffix = data_type.lower(), found[3].lower()
    is_labelled = name in _LABELLED
    sizes = (
        () if is_labelled or not found[2] else tuple(int(one) for one in found[2].split(",") if one.strip().isdigit())
    )
    # A width of an integer or a year is only for the screen, except with zeros in front.
    sizes = () if (name in _BITS and "zerofill" not in suffix) or name == "year" else sizes
    members = (enum_members(column_type or "") or ()) if is_labelled else ()
    return _Type(
        name, sizes, "unsigned" in suffix, "zerofill" in suffix, members, (character_set or "").lower() or None
    )


def _type(column: Column) -> _Type | None:
    return _type_of(column.data_type, column.column_type, column.character_set)


# --- values that a column had before ---


def keeps_text(before: Column, after: Column) -> bool:
    """Return whether each value that is not NULL has the same text in a column after its definition changed."""
    return not renumbers_zeros(before, after) and keeps_other_texts(before, after)


def renumbers_zeros(before: Column, after: Column) -> bool:
    """Return whether the server gives numbers to rows that have 0 or NULL in a column: it becomes AUTO_INCREMENT."""
    return COUNTER in after.extra and COUNTER not in before.extra


def padded(column: Column) -> Column:
    """Return a column in which the values of a CHAR have all spaces that its length has room for."""
    column_type = (column.column_type or "").replace("char", "varchar", 1)
    return replace(column, data_type="varchar", column_type=column_type, is_nullable=True, extra=_PADDED)


def keeps_other_texts(before: Column, after: Column) -> bool:
    """Return the same as `keeps_text`, but for values that are no zeros."""
    if after.extra == _PADDED:
        return False
    old, new = _type(before), _type(after)
    if old is None or new is None:
        return False
    if old == new:
        return True
    if old.is_filled or new.is_filled:
        return False
    match old.name, new.name:
        case (old_name, new_name) if old_name in _BITS and new_name in _BITS:
            return new.limits[0] <= old.limits[0] and old.limits[1] <= new.limits[1]
        case (old_name, new_name) if old_name in _BITS and new_name in _CHARACTERS:
            return new.holds_characters("9" * max(len(str(limit)) for limit in old.limits))
        case (old_name, new_name) if old_name in _CHARACTERS and new_name in _CHARACTERS:
            return _keeps_characters(old, new)
        case (old_name, new_name) if old_name == new_name and old_name in _LABELLED:
            return bool(old.members) and new.members[: len(old.members)] == old.members
        case ("enum" | "set", new_name) if new_name in _CHARACTERS - {"char"}:
            return bool(old.members) and new.holds_characters(",".join(old.members))
        case ("varbinary", "varbinary"):
            return old.sizes <= new.sizes
        case (old_name, new_name) if old_name in _BLOB_BYTES and new_name in _BLOB_BYTES:
            return _BLOB_BYTES[old_name] <= _BLOB_BYTES[new_name]
        case ("bit", "bit"):
            return old.sizes <= new.sizes
    return False


def _keeps_characters(old: _Type, new: _Type) -> bool:
    # A CHAR loses the spaces at its end.
    if new.name == "char" and old.name != "char":
        return False
    if new.character_set != old.character_set and new.character_set not in _UNICODE:
        return False
    if new.name in _TEXT_BYTES:
        each = bytes_each(new.character_set or "utf8mb4")
        # A TEXT in the same character set has as many bytes as before.
        characters = 1 << _TEXT_BYTES[old.name] if old.name in _TEXT_BYTES else (old.sizes or (1,))[0] + 1
        if new.character_set == old.character_set and old.name in _TEXT_BYTES:
            each = 1
        return (characters - 1) * each < 1 << _TEXT_BYTES[new.name]
    return old.name not in _TEXT_BYTES and old.sizes <= new.sizes


def converted(value: str | None, before: Column, after: Column) -> Value:
    """Return the text of a value in a column after its definition changed."""
    if value is None:
        return _of_null(before, after)
    found: Value = UNKNOWN
    old, new = _type(before), _type(after)
    if keeps_other_texts(before, after):
        found = value
    elif after.extra == _PADDED:
        found = value.ljust(new.sizes[0]) if new is not None and new.sizes else UNKNOWN
    elif old is not None and new is not None and not new.is_filled:
        found = _in_type(value, old, new)
    is_zero = isinstance(found, str) and not found.strip("-0.")
    return UNKNOWN if is_zero and renumbers_zeros(before, after) else found


def _of_null(before: Column, after: Column) -> Value:
    if COUNTER in after.extra:
        return UNKNOWN
    if after.is_nullable is False and before.is_nullable is not False:
        # A server that does not refuse the statement stores the value that INSERT takes for a missing one.
        is_told = after.data_type in {*_BITS, "decimal", "float", "double", *_CHARACTERS, "varbinary", *_BLOB_BYTES}
        return _implicit(after) if is_told else UNKNOWN
    is_moment = after.data_type == "timestamp" and before.data_type != "timestamp"
    # Without explicit_defaults_for_timestamp, such a column is NOT NULL.
    return UNKNOWN if after.is_nullable is None or is_moment else None


def _in_type(value: str, old: _Type, new: _Type) -> Value:
    name = new.name
    if name in _BITS or name == "bit":
        return _as_integer(value, old, new)
    if name == "decimal":
        return _as_decimal(value, old, new)
    if name in _EXACT_DIGITS:
        return _as_float(value, old, new)
    if name in _CHARACTERS:
        return _as_characters(value, old, new)
    if name in _LABELLED:
        return _as_labels(value, old, new)
    if name in _BYTES:
        return _as_bytes(value, old, new)
    if name in ("date", "datetime", "time", "timestamp"):
        return _as_moment(value, old, new)
    return UNKNOWN


def _is_number(old: _Type) -> bool:
    return old.name in _BITS or old.name in ("decimal", *_CHARACTERS)


def _as_integer(value: str, old: _Type, new: _Type) -> Value:
    is_bit = old.name == "bit" or new.name == "bit"
    if not (old.name in (*_BITS, "bit") or (_is_number(old) and not is_bit)):
        return UNKNOWN
    whole = value
    if old.name == "decimal":
        whole, _, fraction = value.partition(".")
        if fraction.strip("0"):
            return UNKNOWN
    if old.is_filled:
        whole = whole.lstrip("0") or "0"
    least, greatest = new.limits
    return whole if _INTEGER.fullmatch(whole) and least <= int(whole) <= greatest else UNKNOWN


def _as_decimal(value: str, old: _Type, new: _Type) -> Value:
    if not _is_number(old) or not _NUMBER.fullmatch(value) or len(new.sizes) != 2:
        return UNKNOWN
    precision, scale = new.sizes
    number = Decimal(value).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP) if len(value) < 28 else None
    if number is None or (number.is_signed() and (new.is_unsigned or not number)):
        return UNKNOWN
    return f"{number:f}" if abs(number) < Decimal(10) ** (precision - scale) else UNKNOWN


def _as_float(value: str, old: _Type, new: _Type) -> Value:
    is_exact = old.name in _BITS or old.name == "decimal"
    if not is_exact or new.sizes or not _NUMBER.fullmatch(value):
        return UNKNOWN
    return _plain(value, _EXACT_DIGITS[new.name], new.is_unsigned)


def _plain(value: str, most_digits: int, is_unsigned: bool) -> Value:
    """Return a number without zeros at its end, if it has so few digits that no type changes them."""
    number = Decimal(value)
    if not number:
        return UNKNOWN if number.is_signed() else "0"
    text = f"{number:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    has_few = len(text.lstrip("-0.").replace(".", "")) <= most_digits and abs(number) >= Decimal("0.001")
    return text if has_few and not (is_unsigned and number < 0) else UNKNOWN


def _as_characters(value: str, old: _Type, new: _Type) -> Value:
    told = {*_BITS, "decimal", "year", "json", *_MOMENTS, *_CHARACTERS}
    is_label = old.name in _LABELLED and _is_told_by_labels(value, old)
    if (old.name not in told and not is_label) or old.is_filled:
        return UNKNOWN
    text = value.rstrip(" ") if new.name == "char" else value
    is_same_set = old.character_set == new.character_set and old.name in _CHARACTERS
    has_room = new.holds_characters(text) or (is_same_set and new.holds_characters("x" * len(text)))
    return text if has_room else UNKNOWN


def _is_told_by_labels(value: str, old: _Type) -> bool:
    # Where the labels are not known, a value was logged as a number, and shows as one.
    return bool(old.members) or not value.replace(",", "").isdigit()


def _as_labels(value: str, old: _Type, new: _Type) -> Value:
    if not (old.name in _LABELLED or old.name in _CHARACTERS):
        return UNKNOWN
    chosen = value.split(",") if new.name == "set" and value else [value]
    is_told = old.name in _CHARACTERS or _is_told_by_labels(value, old)
    is_old = not old.members or set(value.split(",") if old.name == "set" and value else [value]) <= {*old.members}
    if not (is_told and is_old) or not set(chosen) <= {*new.members}:
        return UNKNOWN if value or new.name == "enum" or old.name == "enum" else ""
    # A SET has each member once, in the order of its definition.
    return ",".join(sorted({*chosen}, key=new.members.index)) if new.name == "set" else value


def _as_bytes(value: str, old: _Type, new: _Type) -> Value:
    if old.name in _CHARACTERS:
        charset = old.character_set
        is_plain = charset in ("utf8mb4", "utf8mb3", "utf8") or (
            charset is not None and charset not in _WIDE and value.isascii()
        )
        found = f"0x{value.encode().hex().upper()}" if is_plain else None
    else:
        found = value if old.name in _BYTES and _HEXADECIMAL.fullmatch(value) else None
    return UNKNOWN if found is None else _with_room(found, new)


def _with_room(value: str, new: _Type) -> Value:
    length = len(value) // 2 - 1
    if new.name in _BLOB_BYTES:
        return value if length < 2 ** _BLOB_BYTES[new.name] else UNKNOWN
    room = (new.sizes or (1,))[0]
    if length > room:
        return UNKNOWN
    return value + "00" * (room - length) if new.name == "binary" else value


def _as_moment(value: str, old: _Type, new: _Type) -> Value:
    match old.name, new.name:
        case ("datetime", "date"):
            midnight = _MIDNIGHT.fullmatch(value)
            return midnight[1] if midnight else UNKNOWN
        case ("date", "datetime"):
            return _with_fraction(f"{value} 00:00:00", "", new.digits) if _DATE.fullmatch(value) else UNKNOWN
        case ("datetime", "datetime") | ("timestamp", "timestamp"):
            pattern = _MOMENT
        case ("time", "time"):
            pattern = _TIME
        case _:
            return UNKNOWN
    found = pattern.fullmatch(value)
    return _with_fraction(found[1], found[2] or "", new.digits) if found else UNKNOWN


def _with_fraction(moment: str, fraction: str, digits: int) -> Value:
    # Servers round the digits that they drop, or cut them off.
    if fraction[digits:].strip("0"):
        return UNKNOWN
    return f"{moment}.{fraction[:digits].ljust(digits, '0')}" if digits else moment


# --- values of added columns ---


def initial(column: Column) -> Value:
    """Return the value that rows have in a column that was added to their table."""
    if column.is_generated or column.extra not in ("", ON_UPDATE):
        return UNKNOWN
    if column.default is not None:
        if not column.default.is_literal:
            return UNKNOWN
        if column.default.text is not None:
            return _of_default(column.default.text, column.default.is_quoted, column)
        return None if column.is_nullable else UNKNOWN
    if column.is_nullable and column.data_type != "timestamp":
        return None
    return _implicit(column) if column.is_nullable is False else UNKNOWN


def _implicit(column: Column) -> Value:
    """Return the value of a column that is NOT NULL and has no default."""
    kind = _type(column)
    if kind is None or kind.is_filled:
        return UNKNOWN
    if kind.name in _BITS or kind.name in ("bit", *_EXACT_DIGITS):
        return UNKNOWN if kind.name in _EXACT_DIGITS and kind.sizes else "0"
    match kind.name:
        case "decimal":
            return f"{Decimal(0).scaleb(-kind.digits):f}"
        case "enum":
            return kind.members[0] if kind.members else UNKNOWN
        case "date":
            return "0000-00-00"
        case "datetime":
            return _with_fraction("0000-00-00 00:00:00", "", kind.digits)
        case "time":
            return _with_fraction("00:00:00", "", kind.digits)
        case "year":
            return "0000"
        case name if name in _BYTES:
            return _with_room("0x", kind)
        case name if name in _CHARACTERS or name == "set":
            return ""
    return UNKNOWN


def _of_default(text: str, is_quoted: bool, column: Column) -> Value:
    kind = _type(column)
    if kind is None or kind.is_filled:
        return UNKNOWN
    name = kind.name
    if name in _BITS:
        return _as_integer(text, kind, kind) if _INTEGER.fullmatch(text) else UNKNOWN
    if name == "decimal":
        return _as_decimal(text, kind, kind)
    if name in _EXACT_DIGITS:
        return UNKNOWN if kind.sizes or not _NUMBER.fullmatch(text) else _plain(text, _EXACT_DIGITS[name], False)
    if name in _CHARACTERS:
        shown = text.rstrip(" ") if name == "char" else text
        is_text = is_quoted or _INTEGER.fullmatch(text) is not None
        return shown if is_text and (shown.isascii() or kind.holds_characters(shown)) else UNKNOWN
    if name in _LABELLED:
        if not is_quoted:
            return UNKNOWN
        return "" if name == "set" and not text else _as_labels(text, kind, kind)
    if name in _BYTES:
        return _with_room(f"0x{text.encode().hex().upper()}", kind) if is_quoted and text.isascii() else UNKNOWN
    if name == "bit":
        return text if not is_quoted and _INTEGER.fullmatch(text) else UNKNOWN
    if name == "year":
        return text if re.fullmatch(r"19[0-9]{2}|20[0-9]{2}", text) else UNKNOWN
    return _of_moment(text, kind) if is_quoted else UNKNOWN


def _of_moment(text: str, kind: _Type) -> Value:
    """Return a default of a column of dates or times. A TIMESTAMP depends on the time zone of the session."""
    if kind.name == "date":
        return text if _DATE.fullmatch(text) else UNKNOWN
    if kind.name == "datetime" and _DATE.fullmatch(text):
        text += " 00:00:00"
    pattern = {"datetime": _MOMENT, "time": _TIME}.get(kind.name)
    found = pattern.fullmatch(text) if pattern else None
    return _with_fraction(found[1], found[2] or "", kind.digits) if found else UNKNOWN
