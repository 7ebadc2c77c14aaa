"""Recognizes statements that may be DDL, or may change rows, by their first word, before they are parsed."""

import re
from typing import Final

VERBS: Final = ("CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE")

_DML_VERBS: Final = ("INSERT", "REPLACE", "UPDATE", "DELETE", "LOAD", "SELECT", "WITH", "CREATE")
_GAP: Final = r"(?is)^(?:\s|/\*.*?\*/|#[^\n]*\n|--[^\n]*\n|/\*M?![0-9]*)*"


def _beginnings(*verbs: str) -> str:
    return rf"(?:{'|'.join(verbs)}|SET\s+STATEMENT)\b"


DDL_PATTERN: Final = f"{_GAP}{_beginnings(*VERBS)}"
"""Matches the beginning of a statement that may be DDL, in the syntax that Arrow knows."""

DML_PATTERN: Final = f"{_GAP}{_beginnings(*_DML_VERBS)}"
"""Matches the beginning of a statement that may change rows, in the syntax that Arrow knows."""

# DDL_PATTERN in one pass for any text: Python would backtrack and try each comment anew.
_MAY_BE_DDL: Final = re.compile(rf"(?is)(?>\s+|/\*M?![0-9]*|/\*.*?\*/|#[^\n]*|--[^\n]*)*+{_beginnings(*VERBS)}")


def may_be_ddl(text: str) -> bool:
    """Return whether a statement begins like DDL."""
    return _MAY_BE_DDL.match(text) is not None
