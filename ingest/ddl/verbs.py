"""Recognizes statements that may be DDL, or may change rows, by their first word, before they are parsed."""

import re
from typing import Final

VERBS: Final = ("CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE")

_DML_VERBS: Final = ("INSERT", "REPLACE", "UPDATE", "DELETE", "LOAD", "SELECT", "WITH", "CREATE")
# An executed comment begins and ends in it. For Arrow, `\s` has no vertical tab, and no blank beyond ASCII.
_BLANK: Final = r"(?:[\s\x0b\xa0]|/\*M?![0-9]*|/\*.*?\*/|\*/|#[^\n]*\n|--[^\n]*\n)"


def _beginnings(*verbs: str) -> str:
    return rf"(?:{'|'.join(verbs)}|SET{_BLANK}+STATEMENT)\b"


DDL_PATTERN: Final = f"(?is)^{_BLANK}*{_beginnings(*VERBS)}"
"""Matches the beginning of a statement that may be DDL, in the syntax that Arrow knows."""

DML_PATTERN: Final = f"(?is)^{_BLANK}*{_beginnings(*_DML_VERBS)}"
"""Matches the beginning of a statement that may change rows, in the syntax that Arrow knows."""

# The gap in one pass for any text: Python would backtrack and try each comment anew.
_GAP_OF_ANY_TEXT: Final = r"(?is)(?>\s+|/\*M?![0-9]*|/\*.*?\*/|\*/|#[^\n]*|--[^\n]*)*+"
_MAY_BE_DDL: Final = re.compile(f"{_GAP_OF_ANY_TEXT}{_beginnings(*VERBS)}")
_SETTINGS: Final = re.compile(rf"{_GAP_OF_ANY_TEXT}SET\b")
_CREATE: Final = re.compile(rf"{_GAP_OF_ANY_TEXT}CREATE\b")


def may_be_ddl(text: str) -> bool:
    """Return whether a statement begins like DDL."""
    return _MAY_BE_DDL.match(text) is not None


def sets_sql_mode(text: str) -> bool:
    """Return whether a statement that may be DDL runs in an SQL mode of its own: SET STATEMENT sql_mode = … FOR."""
    return "sql_mode" in text.lower() and _SETTINGS.match(text) is not None


def phrase(*words: str) -> re.Pattern[str]:
    """Return a pattern of words, or patterns of words, that follow each other; a literal may have them, too."""
    return re.compile(rf"(?is)\b{f'{_BLANK}++'.join(words)}\b")


def is_plain_create(text: str) -> bool:
    """Return whether a statement is a CREATE without a query: it contains none of the words that begin one.

    A query begins with SELECT, VALUES, WITH or TABLE, and CREATE TABLE has one TABLE of its own.
    """
    folded = text.lower()
    may_be_query = any(word in folded for word in ("select", "values", "with")) or folded.count("table") > 1
    return not may_be_query and _CREATE.match(text) is not None
