"""Tokens of a statement, and a cursor with which a grammar walks over them.

The tokens are those of sqlglot's MySQL dialect, without its keywords: in DDL nearly every word may be a name.
Comments are replaced by blanks beforehand: servers execute comments with a version in them, so their content counts.

Source: server, sql/sql_lex.cc, `lex_one_token`; MariaDB the same.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar, Final

from sqlglot.dialects.mysql import MySQL
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from ingest.ddl.sql_modes import ANSI_QUOTES, MSSQL, NO_BACKSLASH_ESCAPES
from ingest.versions import Flavor

_LETTER: Final = r"[\w\x80-\U0010ffff]"
BODY_MARK: Final = rf"(?<!{_LETTER})(?<![.$])(?P<mark>\${_LETTER}*+\$)"
"""Pattern of the mark, such as `$$` or `$js$`, before and behind the body of a routine in JavaScript.

Within a name, or behind a point, the same signs are part of the name.
"""

_PRIVATE_LETTERS: Final = range(0xE000, 0xF900)
_NUMBER: Final = re.compile(r"[0-9]+(?:[eE][0-9]+)?|0x[0-9a-fA-F]+|0b[01]+")
_LETTERS: Final = re.compile(rf"[0-9](?:{_LETTER}|\$)*+")
_NUMBERS: Final = frozenset({TokenType.NUMBER, TokenType.HEX_STRING, TokenType.BIT_STRING})
_STRINGS: Final = frozenset({TokenType.STRING, TokenType.NATIONAL_STRING})
_SIGNS: Final = {
    "(": TokenType.L_PAREN,
    ")": TokenType.R_PAREN,
    ",": TokenType.COMMA,
    ".": TokenType.DOT,
    "=": TokenType.EQ,
    ";": TokenType.SEMICOLON,
    "@": TokenType.PARAMETER,
    "*": TokenType.STAR,
    "{": TokenType.L_BRACE,
}


class NotUnderstoodError(Exception):
    """A statement continues in a way that the grammar does not know; the message tells where."""


class _Tokenizer(MySQL.Tokenizer):
    KEYWORDS: ClassVar[dict[str, TokenType]] = {}
    COMMANDS: ClassVar[set[TokenType]] = set()
    COMMENTS: ClassVar[list[str | tuple[str, str]]] = []


class _RawTokenizer(_Tokenizer):
    STRING_ESCAPES: ClassVar[list[str]] = ["'", '"']


class _AnsiTokenizer(_Tokenizer):
    QUOTES: ClassVar[list[tuple[str, str] | str]] = ["'"]
    IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ["`", '"']
    STRING_ESCAPES: ClassVar[list[str]] = ["'", "\\"]


class _RawAnsiTokenizer(_AnsiTokenizer):
    STRING_ESCAPES: ClassVar[list[str]] = ["'"]


class _BracketTokenizer(_AnsiTokenizer):
    IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ["`", '"', ("[", "]")]


class _RawBracketTokenizer(_BracketTokenizer):
    STRING_ESCAPES: ClassVar[list[str]] = ["'"]


_TOKENIZERS: Final = {
    ("`", False): _Tokenizer,
    ("`", True): _RawTokenizer,
    ('`"', False): _AnsiTokenizer,
    ('`"', True): _RawAnsiTokenizer,
    ('`"[', False): _BracketTokenizer,
    ('`"[', True): _RawBracketTokenizer,
}


def _marks_of_names(sql_mode: int, flavor: Flavor) -> str:
    """Return the signs that open a quoted name."""
    if flavor == "mariadb" and sql_mode & MSSQL:
        return '`"['
    return '`"' if sql_mode & ANSI_QUOTES else "`"


@cache
def _lexemes(marks: str, has_backslashes: bool, flavor: Flavor, has_dollars: bool) -> re.Pattern[str]:
    """Return a pattern for comments, and for strings and names in which no comment begins.

    A backslash escapes the next sign in a string, not in a name. MySQL does not execute comments of MariaDB's kind. A
    string or name without an end is the rest of the text: each further quote in it would be searched for its end anew.
    """
    inside = r"(?:\\.|[^{0}\\])*+" if has_backslashes else "[^{0}]*+"
    inside_double = '[^"]*+' if '"' in marks else inside.format('"')
    bracketed = r"|\[(?:[^\]]|\]\])*+\]" if "[" in marks else ""
    mark = "M?!" if flavor == "mariadb" else "!"
    body = rf"|(?P<body>{BODY_MARK}(?:.*?(?P=mark)|.*))" if has_dollars else ""
    return re.compile(
        rf"""'{inside.format("'")}'|"{inside_double}"|`[^`]*+`|(?P<unended>['"`].*)"""
        # A version that no server has marks a comment for the client alone.
        rf"|(?P<opens>/\*{mark}(?!999999)(?:[0-9]{{5,6}})?)|(?P<closes>\*/)"
        r"|(?P<comment>/\*.*?(?:\*/|\Z)|\#[^\n]*|--(?=[\s\x00]|\Z)[^\n]*)" + bracketed + body,
        re.DOTALL,
    )


def quotes_with_dollars(flavor: Flavor, version: tuple[int, ...]) -> bool:
    """Return whether a server has routines in JavaScript."""
    return flavor == "mysql" and version >= (9,)


def bare(text: str, sql_mode: int, flavor: Flavor, version: tuple[int, ...], is_cut: bool = False) -> str:
    """Return a statement with blanks in place of comments; of an executed comment only the marks become blanks.

    A body in JavaScript becomes an empty string. Every other character keeps its offset. If the text is cut, blanks
    replace a string or name that does not end.
    """
    depth = 0
    has_dollars = quotes_with_dollars(flavor, version)

    def blank(found: re.Match[str]) -> str:
        nonlocal depth
        if found["opens"]:
            depth += 1
        elif found["closes"] and depth:
            depth -= 1
        elif has_dollars and found["body"]:
            return "''" + _blanks(found[0][2:])
        elif not (found["comment"] or (is_cut and found["unended"])):
            return found[0]
        return _blanks(found[0])

    marks, has_backslashes = _marks_of_names(sql_mode, flavor), not sql_mode & NO_BACKSLASH_ESCAPES
    return _lexemes(marks, has_backslashes, flavor, has_dollars).sub(blank, text)


def _blanks(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def tokens_of(
    text: str,
    sql_mode: int,
    flavor: Flavor,
    version: tuple[int, ...],
    is_cut: bool = False,
    *,
    blanks: str = "",
) -> list[Token]:
    """Return the tokens of a statement.

    Parameters
    ----------
    text
        The statement.
    sql_mode
        Bits of the SQL mode in which it runs.
    flavor, version
        Flavor and version of the server.
    is_cut
        Whether a string or name may lack its end; the tokens before it are returned, or before any other error.
    blanks
        Signs beyond ASCII that are blanks.

    Raises
    ------
    NotUnderstoodError
        A string or name does not end, or something has content that it cannot have; not raised for a text that may be
        cut.
    """
    tokenizer = _TOKENIZERS[_marks_of_names(sql_mode, flavor), bool(sql_mode & NO_BACKSLASH_ESCAPES)]("mysql")
    stand_ins = _stand_ins(text, blanks)
    try:
        tokens = tokenizer.tokenize(bare(text, sql_mode, flavor, version, is_cut).translate(stand_ins))
    except (TokenError, ValueError, IndexError) as error:
        if is_cut:
            return _with_own_letters(tokenizer.tokens, stand_ins)
        raise NotUnderstoodError(f"no tokens: {error}") from error
    # Outside of quotes, only the old form of NULL has a backslash. So a string ends elsewhere: PREPARE read the text in
    # another SQL mode than that of EXECUTE, which is logged.
    if not is_cut and any(one.token_type == TokenType.BACKSLASH and text[one.end + 1 :][:1] != "N" for one in tokens):
        raise NotUnderstoodError("a backslash outside of quotes: it was read in another sql_mode than the logged one")
    no_letters = dict.fromkeys(map(ord, blanks), " ")
    return _with_own_letters(_with_names_like_numbers(tokens, text.translate(no_letters)), stand_ins)


def _with_names_like_numbers(tokens: list[Token], text: str) -> list[Token]:
    """Return tokens in which `2e`, `1$` and `0X41` are names, as well as `0x41` behind a point.

    Source: server, sql/sql_lex.cc, MY_LEX_NUMBER_IDENT.
    """
    found: list[Token] = []
    for token in tokens:
        if found and token.start <= found[-1].end:
            continue
        written = _LETTERS.match(text, token.start) if token.token_type in _NUMBERS else None
        if written is not None and written.end() > token.end:
            is_behind_point = bool(found) and found[-1].token_type == TokenType.DOT
            is_coded = is_behind_point and token.token_type != TokenType.NUMBER
            if is_coded or not _NUMBER.fullmatch(written[0]):
                token = Token(TokenType.VAR, written[0], token.line, token.col, token.start, written.end() - 1)
        found.append(token)
    return found


def _stand_ins(text: str, blanks: str) -> dict[int, int]:
    """Return, for each sign beyond ASCII that only Python takes for a blank, a letter that the text does not have.

    Such a sign, as U+00A0 and U+3000, is a letter for a server, and part of a name that has no quotes.
    """
    if text.isascii():
        return {}
    letters = {ord(sign) for sign in text if sign > "\x7f" and sign.isspace() and sign not in blanks}
    return dict(zip(sorted(letters), (one for one in _PRIVATE_LETTERS if chr(one) not in text), strict=False))


def _with_own_letters(tokens: list[Token], stand_ins: dict[int, int]) -> list[Token]:
    own = {stand_in: blank for blank, stand_in in stand_ins.items()}
    for token in tokens if own else ():
        token.text = token.text.translate(own)
    return tokens


class Cursor:
    """A position in the tokens of a statement.

    Parameters
    ----------
    text
        The statement.
    tokens
        Its tokens.
    """

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self._text = text
        self._tokens = tokens
        self.at = 0

    @property
    def is_at_end(self) -> bool:
        """Whether nothing follows except a semicolon."""
        token = self._token()
        return token is None or token.token_type == TokenType.SEMICOLON

    def _token(self, ahead: int = 0) -> Token | None:
        at = self.at + ahead
        return self._tokens[at] if at < len(self._tokens) else None

    def word(self, ahead: int = 0) -> str:
        """Return the unquoted word at the cursor in upper case; empty for any other token."""
        token = self._token(ahead)
        if token is None or token.token_type != TokenType.VAR:
            return ""
        # Python takes `ı` for a small I, and `ındex` is no keyword.
        return token.text.upper() if token.text.isascii() else token.text

    def is_sign(self, sign: str, ahead: int = 0) -> bool:
        """Return whether the token is a sign such as `(`."""
        token = self._token(ahead)
        return token is not None and token.token_type == _SIGNS[sign]

    def is_name(self, ahead: int = 0) -> bool:
        """Return whether the token may be a name, quoted or not."""
        token = self._token(ahead)
        return token is not None and token.token_type in (TokenType.VAR, TokenType.IDENTIFIER)

    def is_quoted(self, ahead: int = 0) -> bool:
        """Return whether the token is a quoted name."""
        token = self._token(ahead)
        return token is not None and token.token_type == TokenType.IDENTIFIER

    def is_words(self, *words: str) -> bool:
        """Return whether these words come next."""
        return all(self.word(ahead) == word for ahead, word in enumerate(words))

    def take_words(self, *words: str) -> bool:
        """Move past these words if they come next; return whether they do."""
        if not self.is_words(*words):
            return False
        self.at += len(words)
        return True

    def take_one_of(self, *words: str) -> str:
        """Move past one of these words if it comes next; return the word, or an empty string."""
        if (word := self.word()) and word in words:
            self.at += 1
            return word
        return ""

    def take_sign(self, sign: str) -> bool:
        """Move past a sign if it comes next; return whether it does."""
        if not self.is_sign(sign):
            return False
        self.at += 1
        return True

    def expect(self, *words: str) -> None:
        """Move past these words, which must come next."""
        if not self.take_words(*words):
            raise self.not_understood(" ".join(words))

    def expect_sign(self, sign: str) -> None:
        """Move past a sign, which must come next."""
        if not self.take_sign(sign):
            raise self.not_understood(sign)

    def name(self) -> str:
        """Read a name, quoted or not."""
        if not self.is_name():
            raise self.not_understood("a name")
        return self._next().text

    def column(self) -> str:
        """Read the name of a column, behind its table and schema if the statement has them."""
        self.take_sign(".")
        name = self.name()
        while self.take_sign("."):
            name = self.value()
        return name

    def written(self) -> str:
        """Return the token as the statement has it, with its quotes; empty at the end."""
        token = self._token()
        return "" if token is None else self._text[token.start : token.end + 1]

    def text(self) -> str:
        """Read a string, or several strings that the server joins; return their content."""
        if not self.is_text():
            raise self.not_understood("a string")
        said = self._next().text
        while self.is_text():
            said += self._next().text
        return said

    def is_text(self) -> bool:
        """Return whether the token is a string."""
        token = self._token()
        return token is not None and token.token_type in _STRINGS

    def value(self) -> str:
        """Read a name, string or number."""
        token = self._token()
        if token is None or token.token_type in _SIGNS.values():
            raise self.not_understood("a value")
        if self.is_text():
            return self.text()
        return self._next().text

    def literal(self) -> tuple[TokenType, str]:
        """Read any token; return its type and text."""
        token = self._next()
        return token.token_type, token.text

    def number(self) -> int:
        """Read a whole number."""
        token = self._token()
        if token is None or not token.text.isdecimal() or token.token_type == TokenType.IDENTIFIER:
            raise self.not_understood("a number")
        return int(self._next().text)

    def skip(self) -> None:
        """Move past a token; when it opens parentheses, move past all of their content."""
        depth = 0
        while True:
            if self._token() is None:
                raise self.not_understood("more")
            if self.is_sign("("):
                depth += 1
            elif self.is_sign(")"):
                depth -= 1
            self.at += 1
            if depth <= 0:
                return

    def skip_until(self, stops: Callable[["Cursor"], bool]) -> None:
        """Move on until the condition holds outside of parentheses; stop at their end or the statement's end."""
        while not self.is_at_end and not self.is_sign(")") and not stops(self):
            self.skip()

    def skip_settings(self) -> None:
        """Move past MariaDB's SET STATEMENT ... FOR: settings that hold only for the statement behind it."""
        if self.take_words("SET", "STATEMENT"):
            while not self.take_words("FOR"):
                self.skip()

    def list_of(self, item: Callable[[], Any]) -> list[Any]:
        """Read a list in parentheses; return the result of `item` for each element."""
        self.expect_sign("(")
        items = [item()]
        while self.take_sign(","):
            items.append(item())
        self.expect_sign(")")
        return items

    def _next(self) -> Token:
        token = self._token()
        if token is None:
            raise self.not_understood("more")
        self.at += 1
        return token

    def not_understood(self, wanted: str) -> NotUnderstoodError:
        """Return the error that another token was expected here."""
        token = self._token()
        if token is None:
            return NotUnderstoodError(f"it ends where {wanted} was expected")
        near = self._text[token.start : token.start + 40]
        return NotUnderstoodError(f"{wanted} was expected at offset {token.start}: {near}")


class MoreTextError(Exception):
    """The beginning of a statement does not contain the token that a grammar looks at."""


class BeginningCursor(Cursor):
    """A position in the beginning of a statement.

    Parameters
    ----------
    text
        The beginning.
    tokens
        Its tokens, except one that may continue behind it.
    is_whole
        Whether the beginning is the whole statement.
    """

    def __init__(self, text: str, tokens: list[Token], is_whole: bool) -> None:
        super().__init__(text, tokens)
        self._is_whole = is_whole
        self._furthest = 0

    def _token(self, ahead: int = 0) -> Token | None:
        self._furthest = max(self._furthest, self.at + ahead)
        token = super()._token(ahead)
        if token is None and not self._is_whole:
            raise MoreTextError
        return token

    @property
    def read_size(self) -> int | None:
        """Number of characters up to the one behind the last token that was looked at; None at the end of the text."""
        size = self._tokens[self._furthest].end + 2 if self._furthest < len(self._tokens) else len(self._text) + 1
        return size if size <= len(self._text) else None
