r"""The digest of a statement: its text without values, as MySQL writes it in `performance_schema`, and a hash of it.

Each value becomes `?`, a list of values `?, ...`, a row of them `(...)`, and further rows `/* , ... */`. Comments and
blanks between words do not count. Like the server, binloom keeps only the first 1024 bytes of tokens.

Statements of an application differ only in their values. So regular expressions first take the values and the comments
out of a text, and most texts then equal one whose digest is known.

Source: server, sql/sql_digest.cc, `digest_add_token`, `compute_digest_text` and `digest_reduce_token`;
sql/sql_lex.cc, `lex_one_token`; sql/gen_lex_token.cc, `set_start_token_ids`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import Final

from ingest.binlog.text.collations import charset_names
from ingest.ddl.digests.digest_words import FUNCTIONS, HINTS, KEYWORDS
from ingest.ddl.sql_modes import ANSI_QUOTES, NO_BACKSLASH_ESCAPES

_MOST_BYTES: Final = 1024
_TOKEN_SIZE: Final = 2
_MOST_KNOWN: Final = 4096
_LONGEST_KNOWN: Final = 4096
# Only in longer texts, equal values and rows are looked for.
_LONG: Final = 300
# A version that no server has: the server does not execute such a comment.
_NO_VERSION: Final = 99999

_VALUE, _VALUES = "?", "?, ..."
_ROW_OF_ONE, _ROWS_OF_ONE = "(?)", "(?) /* , ... */"
_ROW, _ROWS = "(...)", "(...) /* , ... */"
_ROW_IN_LIST: Final = "IN (...)"
_SEVERAL: Final = {_ROW_OF_ONE: _ROWS_OF_ONE, _ROW: _ROWS}

_BEFORE_OPERANDS: Final = frozenset(
    {"(", ",", "=", "!=", "<", ">", "<=", ">=", "<=>", "&", "|", "^", "<<", ">>", "+", "-", "*", "/", "%", "&&", "||"}
    | {"SELECT", "CASE", "WHEN", "THEN", "ELSE", "BETWEEN", "AND", "OR", "XOR", "NOT", "DIV", "MOD", "LIKE", "RLIKE"}
    | {"INTERVAL", "DEFAULT", "RETURN", "IF", "ELSEIF", "WHILE", "UNTIL", "EVERY", "AT", "STARTS", "ENDS"}
)
"""Tokens after which a sign belongs to the number behind it."""
# NULL is a value only as an operand: not in IS NULL, SET NULL, or behind the type of a column.
_BEFORE_NULL: Final = (_BEFORE_OPERANDS - {"NOT"}) | {
    "WHERE",
    "ON",
    "BY",
    "HAVING",
    "DISTINCTROW",
    "ALL",
    ":=",
    "!",
    "~",
}
_VERBS_WITH_HINTS: Final = frozenset({"SELECT", "INSERT", "REPLACE", "UPDATE", "DELETE"})

_WORD: Final = r"[\w$\x80-\U0010ffff]"
_NUMBER: Final = (
    rf"0x[0-9A-Fa-f]+(?!{_WORD})|0b[01]+(?!{_WORD})"
    rf"|(?:\d+\.\d*|(?<![\w$`])\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d+(?!{_WORD})"
)
_PLAIN_NUMBER: Final = r"[0-9](?<![\w$.@`\x80-\U0010ffff].)[0-9]*+(?:\.[0-9]++)?(?![\w$.\x80-\U0010ffff])"
_BLANKS: Final = r"[\s\x00-\x20]"
_COMMENT: Final = rf"/\*(?![!+]).*?(?:\*/|\Z)|\#[^\n]*|--(?={_BLANKS}|\Z)[^\n]*"


def _behind(mark: str, has_backslashes: bool) -> str:
    """Return the pattern of the rest of a quoted text behind its first mark; without an end, it is all that follows."""
    plain, pair = (rf"[^{mark}\\]*+", rf"(?:\\.|{mark}{mark})") if has_backslashes else (f"[^{mark}]*+", mark * 2)
    return rf"(?<={mark}){plain}(?:{pair}{plain})*+(?:{mark}|\\?\Z)"


@dataclass(frozen=True)
class _Patterns:
    """The patterns of an SQL mode.

    Attributes
    ----------
    tokens
        A token.
    pieces
        A string, a number, a comment or a quoted name.
    strings
        A string, in a text that has no comment and no name in quotes.
    """

    tokens: re.Pattern[str]
    pieces: re.Pattern[str]
    strings: re.Pattern[str]


@cache
def _patterns(mode: int) -> _Patterns:
    has_ansi_quotes, has_backslashes = bool(mode & ANSI_QUOTES), not mode & NO_BACKSLASH_ESCAPES
    names, strings = ('`"', "'") if has_ansi_quotes else ("`", "'\"")
    # A pattern that begins with a set of characters is searched for quickly.
    name = f"[{names}](?:{'|'.join(_behind(mark, False) for mark in names)})"
    string = f"[{strings}](?:{'|'.join(_behind(mark, has_backslashes) for mark in strings)})"
    return _Patterns(
        re.compile(
            rf"(?P<blank>{_BLANKS}+|{_COMMENT})|(?P<name>{name})|(?P<string>[NnXxBb]?{string})"
            rf"|(?P<number>{_NUMBER})|(?P<word>{_WORD}+)|(?P<hint>/\*\+)|(?P<opens>/\*!(?P<version>\d{{5,6}})?)"
            r"|(?P<sign>\*/|<=>|->>|->|<<|>>|<=|>=|<>|!=|:=|&&|\|\||\\N|@@|.)",
            re.DOTALL,
        ),
        re.compile(
            rf"""(?=[`'"\#/0-9-])(?:(?P<comment>{_COMMENT})|(?P<name>{name}|/\*[!+]\d*)|(?P<string>{string})"""
            rf"|{_PLAIN_NUMBER})",
            re.DOTALL,
        ),
        re.compile(string, re.DOTALL),
    )


_END: Final = "\x03"
_SIMPLE_NAMES: Final = re.compile(r"`[\w$]+`")
_PLAIN_NUMBERS: Final = re.compile(_PLAIN_NUMBER, re.DOTALL)
# Each value is replaced by one of its kind, because a sign belongs only to a number. The blank divides two strings.
_STRING: Final = "'' "
_A_VALUE: Final = r"(?:''|0(?![\w$.])|(?i:NULL)(?![\w$]))"
_LONG_LIST: Final = re.compile(rf"(?:,\s*+{_A_VALUE}\s*+){{3,}}")
_EQUAL_ROWS: Final = re.compile(rf"(\(\s*+{_A_VALUE}\s*+(?:,\s*+{_A_VALUE}\s*+)*+\))(?:\s*+,\s*+\1){{3,}}")


@dataclass(frozen=True, slots=True)
class Digest:
    """A digest: the text without values, and its hash, 64 hexadecimal digits of SHA-256.

    The hash is binloom's own: that of a server depends on the numbers that its version gives to tokens.
    """

    text: str
    hash: str


class DigestReader:
    """Makes digests, and remembers those of texts that differ only in values and comments."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str], Digest] = {}

    def read(self, text: str, mode: int = 0) -> tuple[Digest, list[str]]:
        """Return the digest of a statement, and the comments in it.

        Parameters
        ----------
        text
            The statement.
        mode
            Bits of the SQL mode that it runs in.
        """
        shape, comments = _shape(text, mode)
        known = self._known.get((mode, shape))
        if known is not None:
            return known, comments
        written = digest_text(shape, mode)
        digest = Digest(written, sha256(written.encode("utf-8", "surrogatepass")).hexdigest())
        if len(shape) <= _LONGEST_KNOWN:
            if len(self._known) == _MOST_KNOWN:
                self._known.clear()
            self._known[mode, shape] = digest
        return digest, comments


def _shape(text: str, mode: int) -> tuple[str, list[str]]:
    """Return a text that has the same digest and fewer values, and the comments of the statement."""
    shape, comments = (None if mode & ANSI_QUOTES else _simple_shape(text, mode)) or _any_shape(text, mode)
    if len(shape) > _LONG:
        shape = _EQUAL_ROWS.sub(r"\1,\1,\1", _LONG_LIST.sub(",0,0 ", shape))
    return shape, comments


def _simple_shape(text: str, mode: int) -> tuple[str, list[str]] | None:
    """Return the shape of a statement as most are, which takes a third of the time; None if it is another one.

    It may have a comment at its end or its beginning, and names in backquotes that are words.
    """
    comments: list[str] = []
    if text.endswith("*/"):
        begin = text.rfind("/*")
        if begin < 0:
            return None
        comments.append(text[begin:])
        text = text[:begin]
    elif text.startswith("/*"):
        end = text.find("*/", 2)
        if end < 0:
            return None
        comments.append(text[: end + 2])
        text = text[end + 2 :]
    if comments and comments[0][2:3] in ("!", "+", "/"):
        return None
    shape = _patterns(mode).strings.sub(_STRING, text + _END)
    # A string without an end contains the mark. Quotes are left only in strings, and a comment has another meaning.
    if shape[-1] != _END or any(mark in shape for mark in ("--", "#", "/*")):
        return None
    shape = shape[:-1]
    if "`" in shape and "`" in _SIMPLE_NAMES.sub("", shape):
        return None
    return _PLAIN_NUMBERS.sub("0", shape), comments


def _any_shape(text: str, mode: int) -> tuple[str, list[str]]:
    comments: list[str] = []

    def piece(found: re.Match[str]) -> str:
        if found["comment"] is not None:
            comments.append(found[0])
            # With a blank instead, `--` before it would begin a comment.
            return "/**/"
        return found["name"] or ("0" if found["string"] is None else _STRING)

    return _patterns(mode).pieces.sub(piece, text), comments


def digest_text(text: str, mode: int = 0) -> str:
    """Return the text of the digest of a statement."""
    tokens = _Tokens()
    for token, size in _tokens(text, mode):
        if tokens.is_full:
            break
        tokens.add(token, size)
    return tokens.text()


class _Tokens:
    """The tokens of a digest: values that follow one another become one token while they are added."""

    def __init__(self) -> None:
        self._tokens: list[str] = []
        self._sizes: list[int] = []
        self._bytes = 0
        self.is_full = False

    def add(self, token: str, size: int) -> None:
        last = self._tokens[-1] if self._tokens else ""
        if token in ("number", "string", "NULL"):
            if token == "NULL" and last not in _BEFORE_NULL:
                self._append(token, size)
                return
            while token == "number" and self._last(1) in ("-", "+") and self._last(2) in _BEFORE_OPERANDS:
                self._drop(1)
            self._add_value()
        elif token == ")" and last in (_VALUE, _VALUES) and self._last(2) == "(":
            self._drop(2)
            self._add_row(_ROW_OF_ONE if last == _VALUE else _ROW)
        else:
            self._append(token, size)

    def text(self) -> str:
        if self._last(1) == ";" and not self.is_full:
            self._drop(1)
        return "".join(token if token in ("@", "@@") else f"{token} " for token in self._tokens).rstrip(" ")

    def _add_value(self) -> None:
        if self._last(1) == "," and self._last(2) in (_VALUE, _VALUES):
            self._drop(2)
            self._append(_VALUES)
        else:
            self._append(_VALUE)

    def _add_row(self, row: str) -> None:
        if self._last(1) == "IN":
            self._drop(1)
            self._append(_ROW_IN_LIST)
        elif self._last(1) == "," and self._last(2) in (row, _SEVERAL[row]):
            self._drop(2)
            self._append(_SEVERAL[row])
        else:
            self._append(row)

    def _last(self, place: int) -> str:
        return self._tokens[-place] if len(self._tokens) >= place else ""

    def _append(self, token: str, size: int = _TOKEN_SIZE) -> None:
        if self._bytes + size > _MOST_BYTES:
            self.is_full = True
            return
        self._tokens.append(token)
        self._sizes.append(size)
        self._bytes += size

    def _drop(self, count: int) -> None:
        self._bytes -= sum(self._sizes[-count:])
        del self._tokens[-count:], self._sizes[-count:]


def _tokens(text: str, mode: int) -> Iterator[tuple[str, int]]:
    """Yield each token with its size; `number`, `string` and `NULL` are values."""
    pattern = _patterns(mode).tokens
    place, end, last, is_in_hint = 0, len(text), "", False
    while place < end:
        found = pattern.match(text, place)
        if found is None:
            return
        kind, word = found.lastgroup, found[0]
        place = found.end()
        if kind == "blank":
            continue
        token, size = word, _TOKEN_SIZE
        if kind in ("opens", "version"):
            if int(found["version"] or 0) >= _NO_VERSION:
                place = end if (closes := text.find("*/", place)) < 0 else closes + 2
            continue
        if kind == "hint":
            if last not in _VERBS_WITH_HINTS:
                place = end if (closes := text.find("*/", place)) < 0 else closes + 2
                continue
            is_in_hint = True
        elif word == "*/" and kind == "sign":
            if not is_in_hint:
                continue
            is_in_hint = False
        elif kind == "name":
            token, size = _name(word[1:-1].replace(word[0] * 2, word[0]))
        elif kind == "number" and last != ".":
            token = "number"
        elif kind == "string":
            token = "number" if word[0] in "XxBb" else "string"
        elif kind in ("word", "number"):
            token, size = _word(word, text[place : place + 2], last, is_in_hint)
        elif word == "?" or word == "\\N":
            token = "string"
        elif word == "<>":
            token = "!="
        last = token
        yield token, size
        if word == "@" and not is_in_hint and text[place : place + 1] not in _QUOTES:
            # The name of a user variable or of a host, which may be empty.
            place = max(place, _HOST.match(text, place).end())  # type: ignore[union-attr]
            yield "string", _TOKEN_SIZE


_HOST: Final = re.compile(r"[\w.$\x80-\U0010ffff]*")
_NAMED_AFTER: Final = re.compile(rf"\.{_WORD}")
_QUOTES: Final = ("'", '"', "`")


def _name(name: str) -> tuple[str, int]:
    return f"`{name}`", 2 * _TOKEN_SIZE + len(name.encode("utf-8", "surrogatepass"))


def _word(word: str, following: str, last: str, is_in_hint: bool) -> tuple[str, int]:
    upper = word.upper()
    if is_in_hint:
        return (upper, _TOKEN_SIZE) if upper in HINTS else _name(word)
    is_qualifier = last != "@@" and _NAMED_AFTER.fullmatch(following) is not None
    if last != "." and not is_qualifier:
        known = FUNCTIONS.get(upper) if following[:1] == "(" else None
        known = known or KEYWORDS.get(upper)
        if known is not None:
            return known, _TOKEN_SIZE
        if word[0] == "_" and word[1:].lower() in charset_names():
            return "(_charset)", _TOKEN_SIZE
    return _name(word)
