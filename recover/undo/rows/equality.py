"""Values that a server may take for equal: how unique keys and foreign keys compare.

A server compares texts by their collation. For printable ASCII its rules are few, and known here. For other characters
they differ from collation to collation and from version to version, so two texts that look alike may be equal.
"""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING, Final, NamedTuple

from recover.sources.engine import literal
from recover.undo.rows.fold import UNKNOWN, Row
from recover.undo.rows.literals import BINARIES, DECIMALS, DOUBLES, FLOATS, TEXTS
from recover.undo.tables.table import Column, Table, UniqueKey

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

_PLAIN: Final = re.compile(r"[ -~]*")
_TIMES: Final = frozenset({"time", "datetime", "timestamp"})
_FOLDING: Final = re.compile(r"\(*(?:lower|upper|lcase|ucase|trim|ltrim|rtrim)\(+`((?:[^`]|``)+)`\)+", re.IGNORECASE)
"""An expression that texts can only have in common if they look alike."""
_NAME: Final = re.compile(r"`((?:[^`]|``)+)`")
_KNOWN: Final = re.compile(r"[a-z\u03b1-\u03c9\u0430-\u045f\u1100-\u11ff\u3400-\u9fff]")
"""Letters that are told apart: Latin, Greek, Cyrillic, Hangul, Han. All others count as nothing."""
_ROOT: Final = re.compile(r"_(?:general|unicode|unicode_520|0900_ai|0900_as|uca1400_ai|uca1400_as)(?:_nopad)?_c[is]$")
"""Collations of no language."""
_ALIKE: Final = str.maketrans("ijuvwym", "iiiiiin")
_UNLIKE_ASCII: Final = re.compile(
    r"turkish|lithuanian|latvian|roman|_(?:tr|lt|lv|la)_|^(?:big5|gb|geostd8|koi8|cp1251|cp866|latin5|latin7|macce)"
)
"""Collations in which printable ASCII has other rules, such as `i` and `y` in Lithuanian."""
_LETTERS: Final = str.maketrans(
    {
        "ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ł": "l", "ħ": "h", "ı": "i",
        "ĸ": "k", "ŋ": "n", "ŧ": "t", "ſ": "s", "ƀ": "b", "\u0345": None,
        **dict(zip(map(chr, range(0x363, 0x370)), "aeioucdhmrtvx", strict=True)),
    }
)  # fmt: skip


class Form(NamedTuple):
    """A value as far as its comparison goes.

    Attributes
    ----------
    exact
        Two values with the same are equal.
    loose
        Two values with others are not equal.
    is_plain
        Two such values are only equal if `exact` is.
    """

    exact: str
    loose: str
    is_plain: bool = True


class _NoForm(NamedTuple):
    exact: None = None
    loose: None = None
    is_plain: bool = False


NO_FORM: Final = _NoForm()
"""The form of an unknown value."""


@dataclass(frozen=True)
class Part:
    """A part of a key, as a server compares it.

    Attributes
    ----------
    name
        Its column; None if the log does not show the part.
    kind
        How its values are compared: the words of `form`.
    sources
        The columns that give it its value.
    """

    name: str | None
    kind: str
    length: int | None
    sources: tuple[str, ...]

    @property
    def is_exact(self) -> bool:
        """Whether values are equal only if their texts are."""
        return self.name is not None and self.kind == "bytes" and self.length is None

    def form(self, value: str | None) -> "Form | _NoForm":
        """Return a value as far as its comparison goes; None is an unknown value."""
        return NO_FORM if value is None else form(self.kind, self.length, value)

    def value(self, row: Row) -> str | None:
        """Return the value that a row has; `UNKNOWN` if the row does not show it."""
        return UNKNOWN if self.name is None else row.get(self.name, UNKNOWN)


def parts_of_key(table: Table, key: UniqueKey) -> tuple[Part, ...]:
    """Return the parts of a unique key."""
    return tuple(
        _column(table.by_name[part.column], part.length, _sources(table, part.column, part.expression))
        if part.column is not None
        else _expression(table, part.expression)
        for part in key.parts
    )


def parts_of_columns(table: Table, names: Iterable[str]) -> tuple[Part, ...]:
    """Return the parts of a key of whole columns."""
    return tuple(_column(table.by_name[name], None, (name,)) for name in names)


def _column(column: Column, length: int | None, sources: tuple[str, ...]) -> Part:
    return Part(column.name, _kind(column), length, sources)


def _sources(table: Table, name: str, expression: str | None) -> tuple[str, ...]:
    return (name,) if not table.by_name[name].is_generated else (name, *_named(table, expression))


def _named(table: Table, expression: str | None) -> tuple[str, ...]:
    """Return the columns that an expression names; all of them if it is unknown."""
    found = {name.replace("``", "`").lower() for name in _NAME.findall(expression or "")}
    return tuple(one.name for one in table.stored if one.name.lower() in found) or table.stored_names


def _expression(table: Table, expression: str | None) -> Part:
    sources = _named(table, expression)
    if len(sources) == 1 and _FOLDING.fullmatch(expression or "") and table.by_name[sources[0]].data_type in TEXTS:
        return Part(sources[0], "folded", None, sources)
    return Part(None, "bytes", None, sources)


def _kind(column: Column) -> str:
    if column.data_type in TEXTS:
        collation = column.collation or "unknown"
        is_padded = "padded " if not re.search(r"0900|nopad|^binary$", collation) else ""
        return is_padded + ("bytes" if re.search(r"_bin$|^binary$", collation) else collation)
    if column.data_type in DECIMALS | FLOATS | DOUBLES:
        return "number"
    if column.data_type in _TIMES:
        return "time"
    return "hex" if column.data_type in BINARIES else "bytes"


@lru_cache(maxsize=1 << 16)
def form(kind: str, length: int | None, value: str) -> Form:
    """Return a value as far as its comparison goes.

    Parameters
    ----------
    kind
        `number`; `time`; `hex` for bytes; `bytes` for texts that only equal themselves; `folded` for texts of which
        only a function is compared; else a collation. `padded` before it: spaces at the end do not count.
    length
        How many characters, or bytes, are compared; None: all.
    """
    if kind == "number":
        return _same(_number(value))
    if kind == "time":
        return _same(value.rstrip("0").rstrip(".") if "." in value else value)
    if kind == "hex":
        return _same(value if length is None else value[: 2 + 2 * length])
    text = value if length is None else value[:length]
    padded, _, collation = kind.rpartition(" ")
    text = text.rstrip(" ") if padded else text
    if collation == "bytes":
        return _same(text)
    if collation == "folded":
        return Form(text, loose_text(text, ""), False)
    if not _PLAIN.fullmatch(text):
        return Form(text, loose_text(text, collation), False)
    if _UNLIKE_ASCII.search(collation):
        return Form(text, loose_text(text, collation), False)
    exact = text if re.search("_cs(?:_ks)?$", collation) else text.lower()
    return Form(exact, loose_text(text, collation))


def _same(text: str) -> Form:
    return Form(text, text)


def _number(text: str) -> str:
    """Return a number in its shortest form; there is one zero."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return text
    return str(number.normalize()) if number else "0"


def register(connection: "DuckDBPyConnection") -> None:
    """Give a connection the functions that `loose_form` and `is_equal` name."""
    from duckdb import CatalogException
    from duckdb.func import FunctionNullHandling, PythonUDFType

    try:
        # The list of all functions would answer, too, and takes DuckDB 30 ms.
        connection.execute("select loose_form('', '', -1)")
    except CatalogException:
        # DuckDB evaluates the annotations of a function, which name a module that is only imported for them.
        connection.create_function(
            "loose_form",
            lambda texts, kinds, lengths: _loose_forms(texts, kinds, lengths),
            ["varchar", "varchar", "bigint"],
            "varchar",
            type=PythonUDFType.ARROW,
        )
        connection.create_function(
            "are_equal",
            lambda ones, others, kinds, lengths: _are_equal(ones, others, kinds, lengths),
            ["varchar", "varchar", "varchar", "bigint"],
            "boolean",
            type=PythonUDFType.ARROW,
            null_handling=FunctionNullHandling.SPECIAL,
        )


def _loose_forms(texts: "pa.Array", kinds: "pa.Array", lengths: "pa.Array") -> "pa.Array":
    import pyarrow as pa

    rows = zip(texts.to_pylist(), kinds.to_pylist(), lengths.to_pylist(), strict=True)
    return pa.array([form(kind, _length(length), text).loose for text, kind, length in rows])


def _are_equal(ones: "pa.Array", others: "pa.Array", kinds: "pa.Array", lengths: "pa.Array") -> "pa.Array":
    import pyarrow as pa

    rows = zip(ones.to_pylist(), others.to_pylist(), kinds.to_pylist(), lengths.to_pylist(), strict=True)
    return pa.array([are_equal(kind, _length(length), one, other) for one, other, kind, length in rows], pa.bool_())


def _length(number: int) -> int | None:
    return None if number < 0 else number


def loose_form(part: Part, text: str) -> str:
    """Return an expression of the loose form of a text, on a connection with this function."""
    return text if part.is_exact else f"loose_form({text}, {_compared(part)})"


def is_equal(part: Part, one: str, other: str) -> str:
    """Return an expression of whether two texts are equal, on a connection with this function; NULL if they may be."""
    return f"{one} = {other}" if part.is_exact else f"are_equal({one}, {other}, {_compared(part)})"


def _compared(part: Part) -> str:
    return f"{literal(part.kind)}, {-1 if part.length is None else part.length}"


def are_equal(kind: str, length: int | None, one: str | None, other: str | None) -> bool | None:
    """Return whether two values are equal; None if they may be. None as a value is an unknown one."""
    if one is None or other is None:
        return None
    first, second = form(kind, length, one), form(kind, length, other)
    if first.exact == second.exact:
        return True
    return False if first.loose != second.loose or (first.is_plain and second.is_plain) else None


@lru_cache(maxsize=1 << 16)
def loose_text(text: str, collation: str = "") -> str:
    """Return a form that is the same for all texts that a collation may take for equal."""
    letters = "".join(map(_loose_letter, unicodedata.normalize("NFKD", text))).replace("ss", "s")
    if _ROOT.search(collation):
        return letters
    # Languages have letters for others, or for two of them: `ä` is `ae` in German, `ü` is `y` in Swedish.
    return re.sub(r"(.)\1+", r"\1", re.sub("(?<=[aou])e", "", letters).translate(_ALIKE))


@lru_cache(maxsize=1 << 16)
def _loose_letter(character: str) -> str:
    """Return what is left of a character in the loose form of a text: a letter without its marks, or a digit."""
    number = unicodedata.numeric(character, None)
    if number is not None:
        return str(ceil(number))
    letter = unicodedata.normalize("NFKD", character.translate(_LETTERS).casefold()).translate(_LETTERS)
    return "".join(one for one in letter if _KNOWN.match(one))
