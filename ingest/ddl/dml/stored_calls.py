"""Whether a statement calls a stored function, which may change rows of any table.

A name before `(` is a call of a stored function unless the server has a function or keyword of this name, or it is the
name of a table, a common table or an alias before its list of columns.

Sources: server, sql/sql_yacc.yy, `function_call_generic`; MariaDB, sql/sql_yacc.yy.
"""

import re
from collections.abc import Iterator
from functools import cache
from itertools import dropwhile
from typing import Final

from ingest.ddl.dml.own_words import own_words
from ingest.ddl.sql_modes import ANSI_QUOTES, NO_BACKSLASH_ESCAPES
from ingest.ddl.tokens import bare
from ingest.versions import Flavor

_LETTER: Final = r"[\w$\x80-\U0010ffff]"
# Words before the name of a table, an alias, a type or a character set.
_NAMED: Final = rf"""(?:
    (?:AS|INTO|TABLE|WITH|RECURSIVE|SET|CHARSET
        |(?:INSERT|REPLACE)(?:\s++(?:LOW_PRIORITY|DELAYED|HIGH_PRIORITY|IGNORE)(?!{_LETTER}))*+
    )(?!{_LETTER})\s*+\.?
    |\)
)\s*+(?!(?:SELECT|VALUES)(?!{_LETTER}))"""
_COMMENTS: Final = ("/*", "*/", "#", "--")
_LINE_COMMENTS: Final = ("#", "--")
# What is before a `(`, also in strings: a word, or a sign that may end a name or comment. Most texts have nothing else.
_BEFORE_PARENTHESES: Final = re.compile(
    rf"INTO\s++[\w$.`]++\s*+\(|(?:(?<!{_LETTER})({_LETTER}++)|[`\"/])\s*+\(", re.IGNORECASE
)
_COLUMNS_OF_COMMON_TABLE: Final = re.compile(rf"(?:{_LETTER}|[\s,`])*+\)\s*+AS\s*+\(", re.IGNORECASE)
# Partitions have VALUES, too.
_QUERY: Final = re.compile(rf"(?:SELECT|VALUES(?!\s++(?:LESS|IN)(?!{_LETTER})))(?!{_LETTER})", re.IGNORECASE)


@cache
def _lexemes(has_ansi_quotes: bool, has_backslashes: bool) -> re.Pattern[str]:
    """Return a pattern for strings, names and `(` behind a name; a string without an end is the rest of the text."""
    inside = r"(?:\\.|[^{0}\\])*+" if has_backslashes else "[^{0}]*+"
    double = '"[^"]*+"' if has_ansi_quotes else ""
    string = "" if has_ansi_quotes else rf'|"{inside.format(chr(34))}"'
    one = rf"(?:(?:`[^`]*+`{'|' + double if double else ''})++|{_LETTER}++)"
    name = rf"{one}(?:\s*+\.\s*+{one})*+"
    return re.compile(
        rf"""'{inside.format("'")}'{string}
        |{_NAMED}{name}\s*+\(
        |(?P<name>{name})(?P<opens>\s*+\()?+
        |['"`].*+""",
        re.DOTALL | re.IGNORECASE | re.VERBOSE,
    )


def calls_stored_function(
    text: str, sql_mode: int, flavor: Flavor, version: tuple[int, ...], *, is_create: bool = False
) -> bool:
    """Return whether a statement that changes rows calls a stored function, or one that the server may not have.

    Parameters
    ----------
    text
        The statement.
    sql_mode
        Bits of the SQL mode in which it runs.
    flavor, version
        The server's flavor and version.
    is_create
        Whether it is a CREATE TABLE with a query: the definitions before the query contain no such calls.
    """
    words = own_words(flavor, version)
    if not _may_call(text, words):
        return False
    if any(mark in text for mark in _COMMENTS):
        text = bare(text, sql_mode, flavor, version)
    lexemes = _lexemes(bool(sql_mode & ANSI_QUOTES), not sql_mode & NO_BACKSLASH_ESCAPES)
    found: Iterator[re.Match[str]] = lexemes.finditer(text)
    if is_create:
        found = dropwhile(lambda one: _QUERY.match(text, one.start()) is None, found)
    return any(
        one["opens"] and one["name"].lower() not in words and not _COLUMNS_OF_COMMON_TABLE.match(text, one.end())
        for one in found
    )


def _may_call(text: str, words: frozenset[str]) -> bool:
    """Return whether a call is possible: a quick look at the text, which takes strings for code."""
    if any(mark in text for mark in _LINE_COMMENTS):
        return True
    found = _BEFORE_PARENTHESES.finditer(text)
    return any(one[0][0] not in "iI" if one[1] is None else one[1].lower() not in words for one in found)
